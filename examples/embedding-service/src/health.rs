//! Whether the service can do its work.

use std::path::Path;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use lejepa_embed::{Condition, Encoder};

use crate::decoders::Decoders;

/// The service listens only after the encoder was opened and tried; what is told here is how it is now.
pub(crate) fn answer(encoder: &Encoder, decoders: &Decoders, patience: Duration) -> Response {
    let name = Path::new(encoder.name()).file_name().unwrap_or_default().to_string_lossy();
    let mut about = serde_json::json!({ "status": "ok", "encoder": name, "dim": encoder.dim() });
    match problem(&encoder.condition(), decoders.longest(), patience) {
        None => Json(about).into_response(),
        Some(problem) => {
            about["status"] = "failing".into();
            about["problem"] = problem.into();
            (StatusCode::SERVICE_UNAVAILABLE, Json(about)).into_response()
        }
    }
}

/// What is wrong: sessions that nobody works with any more, or an inference or a decoder that does not come to an
/// end.
fn problem(condition: &Condition, decoding: Option<Duration>, patience: Duration) -> Option<String> {
    let Condition { sessions, alive, longest } = *condition;
    if alive < sessions {
        return Some(format!("{} of {sessions} sessions have ended", sessions - alive));
    }
    let mut running = [("an inference", longest), ("the decoding of an image", decoding)].into_iter();
    running.find_map(|(what, longest)| {
        let stuck = longest.filter(|&longest| longest > patience)?;
        Some(format!("{what} has not ended for {} seconds", stuck.as_secs()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_and_stuck_sessions_and_decoders_are_noticed() {
        let patience = Duration::from_secs(30);
        let told = |alive, longest: Option<u64>| {
            let longest = longest.map(Duration::from_secs);
            problem(&Condition { sessions: 2, alive, longest }, None, patience)
        };
        assert_eq!(told(2, None), None);
        assert_eq!(told(2, Some(29)), None);
        assert_eq!(told(1, None).unwrap(), "1 of 2 sessions have ended");
        assert_eq!(told(2, Some(31)).unwrap(), "an inference has not ended for 31 seconds");
        let well = Condition { sessions: 2, alive: 2, longest: None };
        let told = |seconds| problem(&well, Some(Duration::from_secs(seconds)), patience);
        assert_eq!(told(29), None);
        assert_eq!(told(31).unwrap(), "the decoding of an image has not ended for 31 seconds");
    }
}
