//! The paths of the service and the way of a request from its images to their embeddings.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, body::Bytes};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use lejepa_embed::{Encoder, Image};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout_at;

use crate::failure::Failure;
use crate::metrics::{Metrics, Now};
use crate::settings::{Limits, cores};
use crate::upload::{Part, Upload};

/// What all requests share.
struct Service {
    encoder: Arc<Encoder>,
    limits: Limits,
    /// A permit for every request, which it takes before its body is read: the memory is bounded.
    work: Arc<Semaphore>,
    /// A permit for every image that is decoded: more at a time would be no faster, and photographs are
    /// much larger than what is left of them for the encoder.
    decoders: Arc<Semaphore>,
    metrics: Metrics,
}

/// What a client gets.
#[derive(Debug, Serialize)]
struct Answer {
    dim: usize,
    /// One for every image, in their order.
    embeddings: Vec<Vec<f32>>,
    /// The names of the images of a form.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<Part>,
}

pub(crate) fn router(encoder: Encoder, limits: Limits) -> Router {
    let service = Arc::new(Service {
        encoder: Arc::new(encoder),
        limits,
        work: Arc::new(Semaphore::new(limits.in_work)),
        decoders: Arc::new(Semaphore::new(cores())),
        metrics: Metrics::default(),
    });
    Router::new()
        .route("/embed", post(embed).layer(from_fn_with_state(service.clone(), measure)))
        .route("/healthz", get(healthz))
        .route("/metrics", get(metrics))
        .fallback(async || Failure::new(StatusCode::NOT_FOUND, "no such path"))
        .method_not_allowed_fallback(async || {
            Failure::new(StatusCode::METHOD_NOT_ALLOWED, "another method is needed")
        })
        .layer(DefaultBodyLimit::max(limits.body))
        .with_state(service)
}

async fn embed(State(service): State<Arc<Service>>, request: Request) -> Result<Json<Answer>, Failure> {
    let Ok(permit) = service.work.clone().try_acquire_owned() else {
        service.metrics.reject();
        return Err(Failure::busy("too many requests in work"));
    };
    let deadline = tokio::time::Instant::now() + service.limits.timeout;
    let upload = timeout_at(deadline, Upload::read(request, &service.limits)).await;
    let upload =
        upload.map_err(|_| Failure::new(StatusCode::REQUEST_TIMEOUT, "the request came too slowly"))??;
    let embeddings = timeout_at(deadline, service.embed_files(upload.files, permit)).await;
    let embeddings = embeddings.map_err(|_| Failure::busy("the embedding took too long"))??;
    Ok(Json(Answer { dim: service.encoder.dim(), embeddings, images: upload.parts }))
}

/// The service listens only after the encoder was opened and tried.
async fn healthz(State(service): State<Arc<Service>>) -> impl IntoResponse {
    Json(
        serde_json::json!({ "status": "ok", "encoder": service.encoder.name(), "dim": service.encoder.dim() }),
    )
}

async fn metrics(State(service): State<Arc<Service>>) -> impl IntoResponse {
    let in_work = service.limits.in_work - service.work.available_permits();
    let text = service.metrics.text(&Now { in_work, encoder: service.encoder.statistics() });
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

async fn measure(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let response = next.run(request).await;
    service.metrics.record(response.status(), start.elapsed());
    response
}

impl Service {
    /// One embedding for each image file, in their order. The permit is given back when nothing is computed
    /// any more, which is later than the end of this if the client goes away.
    async fn embed_files(
        &self,
        files: Vec<Bytes>,
        permit: OwnedSemaphorePermit,
    ) -> Result<Vec<Vec<f32>>, Failure> {
        let permit = &Arc::new(permit);
        stream::iter(files.into_iter().enumerate())
            .map(|(index, file)| async move {
                let pixels = self.prepare(file).await.map_err(|failure| failure.of_image(index))?;
                self.embed_pixels(pixels, permit.clone()).await.map_err(|failure| failure.of_image(index))
            })
            .buffered(self.limits.images)
            .try_collect()
            .await
    }

    /// What the encoder takes of an image file.
    async fn prepare(&self, file: Bytes) -> Result<Vec<f32>, Failure> {
        let turn = self.decoders.clone().acquire_owned().await;
        let (encoder, limit) = (self.encoder.clone(), self.limits.pixels);
        let prepared = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            encoder.preprocess().apply(&Image::decode_within(&file, limit)?)
        });
        match prepared.await {
            Ok(result) => {
                result.map_err(|error| Failure::caused_by(StatusCode::UNPROCESSABLE_ENTITY, &error))
            }
            Err(stopped) => Err(Failure::internal(&stopped)),
        }
    }

    async fn embed_pixels(
        &self,
        pixels: Vec<f32>,
        permit: Arc<OwnedSemaphorePermit>,
    ) -> Result<Vec<f32>, Failure> {
        let (sender, embedding) = oneshot::channel();
        self.encoder.embed_pixels_then(pixels, move |embedding| {
            drop(permit);
            // Nobody is waiting any more if that fails.
            let _ = sender.send(embedding);
        });
        match embedding.await {
            Ok(result) => {
                result.map(|embedding| embedding.to_vec()).map_err(|error| Failure::internal(&error))
            }
            Err(stopped) => Err(Failure::internal(&stopped)),
        }
    }
}
