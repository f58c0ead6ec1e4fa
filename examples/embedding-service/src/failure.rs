//! What a client is told when there is no embedding for it: `{"error": "...", "image": 0}`.

use std::error::Error;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lejepa_embed::printable_name;
use serde::Serialize;

use crate::pool::Exhausted;

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

    /// There is no more of something, for this client or for everybody.
    pub(crate) fn exhausted(exhausted: Exhausted, what: &str) -> Self {
        match exhausted {
            Exhausted::Share => {
                let error = format!("this client has its share of {what} already");
                Self::new(StatusCode::TOO_MANY_REQUESTS, error)
            }
            Exhausted::All => Self::busy(&format!("too many {what}")),
        }
    }

    pub(crate) fn of_image(self, index: usize) -> Self {
        Self { image: Some(index), ..self }
    }

    /// What went wrong is for the log alone: it may name files and machines.
    pub(crate) fn internal(error: &dyn Error) -> Self {
        eprintln!("cannot answer a request: {}", printable_name(&chain(error)));
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error")
    }

    /// Why an image of the client's cannot be used: all that an error says, with its reasons.
    pub(crate) fn unusable(error: &dyn Error) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, chain(error))
    }
}

fn chain(error: &dyn Error) -> String {
    let chain = std::iter::successors(Some(error), |&error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let again = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&self.status);
        let mut response = (self.status, Json(self)).into_response();
        if again {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        response
    }
}
