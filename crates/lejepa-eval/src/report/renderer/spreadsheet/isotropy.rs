//! Bias and variance on isotropic and anisotropic features: a line per quantity, with theory where it is known.

use csv::Writer;

use super::{optional, plain};
use crate::isotropy::table::{holds, statement};
use crate::isotropy::{
    DemonstrationReport, IsotropyReport, LinearPoint, Measurement, ProbeKind, RidgeBias, SmoothMeasurement,
    SmoothPoint, VariantReport, Verdict,
};
use crate::report::{CandidateIsotropy, DatasetReport};
use crate::{Error, Result};

/// What stands for a set and a candidate where features are simulated.
const SIMULATED: &str = "simulated";

/// The files' names and contents; none without such results.
pub(super) fn files(
    datasets: &[DatasetReport],
    demonstration: Option<&DemonstrationReport>,
) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let mut table = Isotropy::new()?;
    if let Some(DemonstrationReport { settings: _, linear, smooth, verdicts }) = demonstration {
        table.names = [SIMULATED, SIMULATED].map(str::to_owned);
        linear.iter().try_for_each(|point| table.linear(point))?;
        smooth.iter().try_for_each(|point| table.smooth(point))?;
        verdicts.iter().try_for_each(|verdict| table.verdict(verdict))?;
    }
    for dataset in datasets {
        for CandidateIsotropy { candidate, found } in &dataset.isotropy {
            let IsotropyReport { settings: _, features: _, variants, verdicts, notes: _ } = found;
            table.names = [&dataset.name, candidate].map(|it| plain(it));
            variants.iter().try_for_each(|variant| table.variant(variant))?;
            verdicts.iter().try_for_each(|verdict| table.verdict(verdict))?;
        }
    }
    table.finish()
}

struct Isotropy {
    numbers: Writer<Vec<u8>>,
    verdicts: Writer<Vec<u8>>,
    /// Of the set and the candidate.
    names: [String; 2],
    lines: usize,
}

/// One number.
struct Line<'a> {
    shape: &'a str,
    condition: f64,
    probe: ProbeKind,
    setting: f64,
    quantity: &'a str,
    value: f64,
    error: Option<f64>,
    theory: Option<f64>,
}

impl Isotropy {
    fn new() -> Result<Self> {
        let new = |columns: &[&str]| {
            let mut writer = Writer::from_writer(Vec::new());
            writer.write_record(["dataset", "candidate"].iter().chain(columns)).map_err(Error::Csv)?;
            Ok::<_, Error>(writer)
        };
        let numbers =
            ["shape", "condition", "probe", "setting", "quantity", "value", "standard_error", "theory"];
        let verdicts = [
            "statement",
            "probe",
            "setting",
            "shape",
            "isotropic",
            "anisotropic",
            "ratio",
            "standard_error",
            "holds",
        ];
        Ok(Self { numbers: new(&numbers)?, verdicts: new(&verdicts)?, names: Default::default(), lines: 0 })
    }

    fn line(&mut self, line: &Line<'_>) -> Result<()> {
        let Line { shape, condition, probe, setting, quantity, value, error, theory } = line;
        let cells = [
            plain(shape),
            condition.to_string(),
            kind(*probe).into(),
            setting.to_string(),
            (*quantity).into(),
            value.to_string(),
            optional(*error),
            optional(*theory),
        ];
        self.lines += 1;
        self.numbers.write_record(self.names.iter().chain(&cells)).map_err(Error::Csv)
    }

    fn linear(&mut self, point: &LinearPoint) -> Result<()> {
        let LinearPoint {
            condition,
            coefficient_variance,
            standard_error,
            expected_coefficient_variance,
            prediction_variance,
            expected_prediction_variance,
            ridge,
        } = point;
        let line = |setting, quantity, value, error, theory| Line {
            shape: SIMULATED,
            condition: *condition,
            probe: ProbeKind::Ridge,
            setting,
            quantity,
            value,
            error,
            theory: Some(theory),
        };
        let (error, expected) = (Some(*standard_error), *expected_coefficient_variance);
        self.line(&line(0., "coefficient_variance", *coefficient_variance, error, expected))?;
        self.line(&line(0., "variance", *prediction_variance, None, *expected_prediction_variance))?;
        for RidgeBias { lambda, worst, average, fixed_design_worst, fixed_design_average } in ridge {
            self.line(&line(*lambda, "squared_bias_narrowest", *worst, None, *fixed_design_worst))?;
            self.line(&line(*lambda, "squared_bias_average", *average, None, *fixed_design_average))?;
        }
        Ok(())
    }

    fn smooth(&mut self, point: &SmoothPoint) -> Result<()> {
        // Fisher information is that of the condition.
        let SmoothPoint { condition, fisher_information: _, measurements } = point;
        for SmoothMeasurement { measured, leading_order, limit } in measurements {
            self.measurement(SIMULATED, *condition, measured, limit.or(*leading_order))?;
        }
        Ok(())
    }

    fn variant(&mut self, variant: &VariantReport) -> Result<()> {
        // The best are among the measurements, and the inverse trace is that of the shape.
        let VariantReport { name, shape: _, condition, inverse_trace: _, measurements, best: _ } = variant;
        measurements.iter().try_for_each(|measured| self.measurement(name, *condition, measured, None))
    }

    fn measurement(
        &mut self,
        shape: &str,
        condition: f64,
        measured: &Measurement,
        bias_in_theory: Option<f64>,
    ) -> Result<()> {
        let Measurement {
            probe,
            setting,
            squared_bias,
            corrected_squared_bias,
            variance,
            mean_squared_error,
            accuracy,
            alone,
            coefficient_variance,
        } = *measured;
        let numbers = [
            ("squared_bias", Some(squared_bias), bias_in_theory),
            ("corrected_squared_bias", Some(corrected_squared_bias), bias_in_theory),
            ("variance", Some(variance), None),
            ("mean_squared_error", Some(mean_squared_error), None),
            ("accuracy", accuracy, None),
            ("share_alone", alone, None),
            ("coefficient_variance", coefficient_variance, None),
        ];
        for (quantity, value, theory) in numbers {
            if let Some(value) = value {
                self.line(&Line { shape, condition, probe, setting, quantity, value, error: None, theory })?;
            }
        }
        Ok(())
    }

    fn verdict(&mut self, verdict: &Verdict) -> Result<()> {
        let Verdict {
            statement: said,
            probe,
            setting,
            shape,
            isotropic,
            anisotropic,
            ratio,
            standard_error,
            holds: answer,
            // The same in words.
            sentence: _,
        } = verdict;
        let cells = [
            statement(*said).into(),
            kind(*probe).into(),
            setting.to_string(),
            plain(shape),
            isotropic.to_string(),
            anisotropic.to_string(),
            optional(*ratio),
            standard_error.to_string(),
            holds(*answer).into(),
        ];
        self.verdicts.write_record(self.names.iter().chain(&cells)).map_err(Error::Csv)
    }

    fn finish(self) -> Result<Vec<(&'static str, Vec<u8>)>> {
        if self.lines == 0 {
            return Ok(Vec::new());
        }
        let content =
            |writer: Writer<Vec<u8>>| writer.into_inner().map_err(|it| Error::Write(it.into_error()));
        Ok(vec![("isotropy.csv", content(self.numbers)?), ("verdicts.csv", content(self.verdicts)?)])
    }
}

fn kind(probe: ProbeKind) -> &'static str {
    match probe {
        ProbeKind::Ridge => "ridge",
        ProbeKind::Knn => "knn",
        ProbeKind::Radius => "radius",
        ProbeKind::Kernel => "kernel",
    }
}
