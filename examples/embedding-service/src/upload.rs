//! The images of a request: its body, or the parts of a form.

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::multipart::MultipartError;
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::{StatusCode, header};
use futures_util::StreamExt;
use serde::Serialize;

use crate::body::Account;
use crate::failure::Failure;
use crate::settings::Limits;

/// Image files and, for those of a form, what they are called there.
#[derive(Debug, Default)]
pub(crate) struct Upload {
    pub(crate) files: Vec<Bytes>,
    pub(crate) parts: Vec<Part>,
}

/// The names of one part of a form.
#[derive(Debug, Serialize)]
pub(crate) struct Part {
    name: Option<String>,
    filename: Option<String>,
}

impl Upload {
    pub(crate) async fn read(request: Request, limits: &Limits, account: &Account) -> Result<Self, Failure> {
        // A client that tells the length need not send it all to learn that.
        if request.body().size_hint().lower() > limits.body as u64 {
            return Err(too_long(limits));
        }
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
        let is_form = kind.eq_ignore_ascii_case("multipart/form-data");
        let family = kind.split('/').next().unwrap_or_default();
        let is_image =
            kind.is_empty() || family.eq_ignore_ascii_case("image") || kind == "application/octet-stream";
        if !is_form && !is_image {
            let message = format!("expected an image or multipart/form-data, got: {kind}");
            return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let request = request.map(|body| account.counted(body));
        let upload = match is_form {
            true => Self::read_form(request, limits.images).await,
            false => Self::read_image(request.into_body(), limits).await,
        };
        upload.map_err(|failure| account.failure().unwrap_or(failure))
    }

    /// Piece by piece into one place: a body of millions of pieces takes no more memory than its bytes.
    async fn read_image(body: Body, limits: &Limits) -> Result<Self, Failure> {
        let (mut pieces, mut bytes) = (body.into_data_stream(), Vec::new());
        while let Some(piece) = pieces.next().await {
            let broken = |_| Failure::new(StatusCode::BAD_REQUEST, "the body ends too early");
            let piece = piece.map_err(broken)?;
            if bytes.len() + piece.len() > limits.body {
                return Err(too_long(limits));
            }
            bytes.extend_from_slice(&piece);
        }
        bytes.shrink_to_fit();
        Ok(Self { files: vec![bytes.into()], parts: Vec::new() })
    }

    async fn read_form(request: Request, most: usize) -> Result<Self, Failure> {
        let broken = |error: MultipartError| Failure::new(error.status(), error.body_text());
        let form = Multipart::from_request(request, &()).await;
        let mut form = form.map_err(|error| Failure::new(error.status(), error.body_text()))?;
        let mut upload = Self::default();
        while let Some(field) = form.next_field().await.map_err(broken)? {
            if upload.files.len() == most {
                return Err(Failure::too_large(format!("a request has at most {most} images")));
            }
            let (name, filename) = (field.name().map(Into::into), field.file_name().map(Into::into));
            upload.parts.push(Part { name, filename });
            upload.files.push(field.bytes().await.map_err(broken)?);
        }
        match upload.files.is_empty() {
            true => Err(Failure::new(StatusCode::BAD_REQUEST, "no images in the form")),
            false => Ok(upload),
        }
    }
}

fn too_long(limits: &Limits) -> Failure {
    Failure::too_large(format!("a request has at most {} bytes", limits.body))
}
