//! Which share of the images a process computes: typed, or told by what has started it.

use std::env;

use anyhow::{Context, Result, anyhow, bail};
use lejepa_eval::features::Shard;

/// What was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Given(Shard),
    /// The number is in the environment, and if none is given here, how many there are.
    Environment {
        count: Option<usize>,
    },
}

/// `3/16`, `auto` or `auto/16`.
pub(super) fn choice(typed: &str) -> Result<Choice, String> {
    match typed.strip_prefix("auto") {
        Some("") => Ok(Choice::Environment { count: None }),
        Some(count) => {
            let count = count.strip_prefix('/').and_then(|count| count.parse().ok());
            let count = count.ok_or("expected auto or auto/16")?;
            Ok(Choice::Environment { count: Some(count) })
        }
        None => typed.parse().map(Choice::Given),
    }
}

impl Choice {
    pub(super) fn shard(self) -> Result<Shard> {
        match self {
            Self::Given(shard) => Ok(shard),
            Self::Environment { count } => told(count, &|name| env::var(name).ok()),
        }
    }
}

/// The share of a task of a SLURM array, or of a pod of an indexed job.
fn told(count: Option<usize>, variable: &dyn Fn(&str) -> Option<String>) -> Result<Shard> {
    let number = |name: &str| -> Result<Option<usize>> {
        let parsed = variable(name).map(|text| text.trim().parse());
        parsed.transpose().with_context(|| format!("not a number in the environment variable {name}"))
    };
    let (index, told_count) = match number("SLURM_ARRAY_TASK_ID")? {
        Some(task) => {
            let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
            let step = number("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1).max(1);
            let index = task.checked_sub(first).map(|index| index / step);
            let tasks = number("SLURM_ARRAY_TASK_COUNT")?;
            let last = number("SLURM_ARRAY_TASK_MAX")?;
            if let (Some(tasks), Some(last)) = (tasks, last)
                && last.checked_sub(first).map(|last| last / step + 1) != Some(tasks)
            {
                bail!("the array has gaps, and its tasks are no shares of all: use --shard 3/16");
            }
            (index, tasks)
        }
        None => (number("JOB_COMPLETION_INDEX")?, None),
    };
    // Some tasks of an array that are sent again are another array.
    if let (Some(count), Some(told)) = (count, told_count)
        && count != told
    {
        bail!("an array of {told} tasks says nothing about a share of {count}: use --shard 3/{count}");
    }
    let missing =
        "neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX says which share this is: use --shard 3/16";
    let index = index.ok_or_else(|| anyhow!(missing))?;
    let count = count
        .or(told_count)
        .ok_or_else(|| anyhow!("nothing says how many shares there are: use --shard auto/16"))?;
    Shard::new(index + 1, count)
        .ok_or_else(|| anyhow!("the environment says share {} of: {count}", index + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(count: Option<usize>, variables: &[(&str, &str)]) -> Result<String> {
        let variable = |name: &str| {
            variables.iter().find(|(found, _)| *found == name).map(|(_, value)| value.to_string())
        };
        told(count, &variable).map(|shard| shard.to_string())
    }

    #[test]
    fn arrays_of_slurm_and_indexed_jobs_say_which_share_it_is() {
        let array = [
            ("SLURM_ARRAY_TASK_ID", "14"),
            ("SLURM_ARRAY_TASK_MIN", "10"),
            ("SLURM_ARRAY_TASK_STEP", "2"),
            ("SLURM_ARRAY_TASK_COUNT", "8"),
        ];
        assert_eq!(shard(None, &array).unwrap(), "3/8");
        assert_eq!(shard(Some(16), &[("JOB_COMPLETION_INDEX", "0")]).unwrap(), "1/16");
        for (count, variables) in [
            (None, &[][..]),
            (None, &[("JOB_COMPLETION_INDEX", "0")]),
            (Some(4), &[("JOB_COMPLETION_INDEX", "4")]),
            (Some(4), &[("JOB_COMPLETION_INDEX", "four")]),
            (Some(16), &[("SLURM_ARRAY_TASK_ID", "5"), ("SLURM_ARRAY_TASK_COUNT", "1")]),
            (
                None,
                &[
                    ("SLURM_ARRAY_TASK_ID", "4"),
                    ("SLURM_ARRAY_TASK_MAX", "9"),
                    ("SLURM_ARRAY_TASK_COUNT", "2"),
                ],
            ),
            (Some(4), &[("SLURM_ARRAY_TASK_ID", "1"), ("SLURM_ARRAY_TASK_MIN", "2")]),
        ] {
            assert!(shard(count, variables).is_err(), "{variables:?}");
        }
    }

    #[test]
    fn shares_are_typed_as_numbers_or_left_to_the_environment() {
        assert_eq!(choice("auto/16"), Ok(Choice::Environment { count: Some(16) }));
        assert_eq!(choice("3/16"), Ok(Choice::Given(Shard::new(3, 16).unwrap())));
        for typed in ["auto16", "auto/", "0/3", "x"] {
            assert!(choice(typed).is_err(), "{typed}");
        }
    }
}
