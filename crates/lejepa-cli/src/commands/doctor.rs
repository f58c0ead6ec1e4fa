//! `lejepa doctor`

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::encoder_arguments::RuntimeArguments;
use crate::output;

/// Show what was found on this machine, and how to get what is missing
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    runtime: RuntimeArguments,
}

/// One line of the answer.
struct Finding {
    name: &'static str,
    /// What was found, or why nothing was.
    found: std::result::Result<String, String>,
    /// The command that gets it.
    remedy: &'static str,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let findings = findings(arguments.runtime.onnxruntime.as_deref());
    if arguments.json {
        output::line(serde_json::to_string_pretty(&to_json(&findings))?);
    } else {
        for Finding { name, found, remedy } in &findings {
            match found {
                Ok(found) => output::line(format_args!("{name:<14} {found}")),
                Err(problem) => {
                    output::line(format_args!("{name:<14} missing: {problem}"));
                    output::line(format_args!("{:<14} to get it: {remedy}", ""));
                }
            }
        }
    }
    let complete = findings.iter().all(|finding| finding.found.is_ok());
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn findings(library: Option<&Path>) -> Vec<Finding> {
    let always = |name, found: String| Finding { name, found: Ok(found), remedy: "" };
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let mut findings = vec![always("lejepa", env!("CARGO_PKG_VERSION").into())];
    match lejepa_embed::runtime::load(library) {
        Ok(info) => {
            findings.push(always("ONNX Runtime", format!("{}, {}", info.version, info.library.display())));
            findings.push(always("providers", info.providers.join(", ")));
        }
        Err(error) => findings.push(Finding {
            name: "ONNX Runtime",
            found: Err(error.to_string()),
            remedy: "make setup",
        }),
    }
    findings.push(Finding {
        name: "HDF5",
        found: lejepa_data::hdf5_version().ok_or_else(|| "this program was built without it".into()),
        remedy: "sudo apt-get install libhdf5-dev && cargo build --release --workspace",
    });
    findings.push(always("device", "cpu".into()));
    findings.push(always("threads", threads.to_string()));
    findings.push(always("SIMD", simd_level().into()));
    findings
}

/// The widest vector unit that matrix products use.
fn simd_level() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            return "AVX-512";
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            return "AVX2 with FMA";
        }
        "SSE2"
    }
    #[cfg(target_arch = "aarch64")]
    {
        "NEON"
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        "none"
    }
}

fn to_json(findings: &[Finding]) -> serde_json::Value {
    let entry = |finding: &Finding| {
        let value = match &finding.found {
            Ok(found) => serde_json::json!({ "found": found }),
            Err(problem) => serde_json::json!({ "missing": problem, "to_get_it": finding.remedy }),
        };
        (finding.name.to_string(), value)
    };
    findings.iter().map(entry).collect::<serde_json::Map<_, _>>().into()
}
