//! What a client is told when there is no embedding for it: `{"error": "...", "image": 0}`.

use std::error::Error;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// In seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    #[serde(skip)]
    status: StatusCode,
    error: String,
    /// Which image of the request, from zero, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<usize>,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into(), image: None }
    }

    pub(crate) fn too_large(error: String) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, error)
    }

    /// The client may come again after the time that the answer names.
    pub(crate) fn busy(error: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error)
    }

    pub(crate) fn of_image(self, index: usize) -> Self {
        Self { image: Some(index), ..self }
    }

    pub(crate) fn internal(error: &dyn Error) -> Self {
        Self::caused_by(StatusCode::INTERNAL_SERVER_ERROR, error)
    }

    /// All that an error says, with its reasons.
    pub(crate) fn caused_by(status: StatusCode, error: &dyn Error) -> Self {
        let chain = std::iter::successors(Some(error), |&error| error.source());
        Self::new(status, chain.map(ToString::to_string).collect::<Vec<_>>().join(": "))
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        if self.status == StatusCode::INTERNAL_SERVER_ERROR {
            eprintln!("{}", self.error);
        }
        let busy = self.status == StatusCode::SERVICE_UNAVAILABLE;
        let mut response = (self.status, Json(self)).into_response();
        if busy {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        response
    }
}
