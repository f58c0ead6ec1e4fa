//! The paths of the service and the way of a request from its images to their embeddings.
//!
//! A request takes one thing after the other, and of each no more than its client's share: place for the
//! bytes of its body as they come, a place in work once they are all there, for each image one of the decoders
//! and memory for its pixels, and a place with the encoder.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, body::Bytes};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use lejepa_embed::{Encoder, Error, Image, printable_name};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::timeout_at;

use crate::bodies::Bodies;
use crate::body::Account;
use crate::connections::{Connection, Connections};
use crate::decoders::Decoders;
use crate::failure::Failure;
use crate::health;
use crate::metrics::{Metrics, Now};
use crate::peer::Peer;
use crate::pool::{Pool, Taken};
use crate::settings::{Limits, Settings, cores};
use crate::upload::{Part, Upload};

/// What all requests share.
pub(crate) struct Service {
    encoder: Arc<Encoder>,
    limits: Limits,
    pub(crate) connections: Arc<Connections>,
    bodies: Arc<Bodies>,
    /// Requests of which everything is there.
    work: Pool,
    /// Two for each core: small images do not wait until large ones are decoded, of which there are few at a time.
    decoders: Decoders,
    /// Images that the encoder has: a batch for every session, and one that waits behind it.
    inferences: Pool,
    /// Images of one request that are under way.
    ahead: usize,
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

impl Service {
    pub(crate) fn new(encoder: Encoder, settings: &Settings) -> Arc<Self> {
        let limits = settings.limits;
        let pool = |amount: usize| Pool::new(amount, limits.share_of(amount));
        let most = crate::file_limit::most_connections(limits.connections);
        let (pixels, share_of) = ((limits.decoded_pixels, limits.pixels), |amount| limits.share_of(amount));
        let computed = settings.batching.images();
        Arc::new(Self {
            encoder: Arc::new(encoder),
            limits,
            connections: Arc::new(Connections::new(most, limits.share_of(most))),
            bodies: Arc::new(Bodies::new(pool(limits.bodies))),
            work: pool(limits.in_work),
            decoders: Decoders::new(2 * cores(), pixels, share_of, limits.timeout),
            // Whoever is alone keeps all sessions busy.
            inferences: Pool::new(2 * computed, limits.share_of(2 * computed).max(computed)),
            ahead: computed.max(cores()),
            metrics: Metrics::default(),
        })
    }

    /// What clients see, beside other paths.
    pub(crate) fn router(self: &Arc<Self>, others: Router) -> Router {
        let embedding = post(embed).layer(from_fn_with_state(self.clone(), measure));
        let embedding = Router::new().route("/embed", embedding).with_state(self.clone());
        finished(embedding.merge(others)).layer(DefaultBodyLimit::max(self.limits.body))
    }

    /// What those who run the service see.
    pub(crate) fn watching(self: &Arc<Self>) -> Router {
        let paths = Router::new().route("/healthz", get(healthz)).route("/metrics", get(metrics));
        paths.with_state(self.clone())
    }
}

/// With answers in JSON for everything else.
pub(crate) fn finished(router: Router) -> Router {
    router.fallback(async || Failure::new(StatusCode::NOT_FOUND, "no such path")).method_not_allowed_fallback(
        async || Failure::new(StatusCode::METHOD_NOT_ALLOWED, "another method is needed"),
    )
}

async fn embed(State(service): State<Arc<Service>>, request: Request) -> Result<Json<Answer>, Failure> {
    let connection = request.extensions().get::<Arc<Connection>>().cloned();
    let peer = connection.as_ref().map_or(Peer::NOBODY, |connection| connection.peer());
    let deadline = tokio::time::Instant::now() + service.limits.timeout;
    let account = Account::new(service.bodies.clone(), peer);
    let upload = timeout_at(deadline, Upload::read(request, &service.limits, &account)).await;
    let slow = || Failure::new(StatusCode::REQUEST_TIMEOUT, "the request came too slowly");
    // Unless it waited for place in vain.
    let upload = upload.map_err(|_| account.failure().unwrap_or_else(slow))??;
    account.complete();
    let place = service.work.try_take(peer, 1).map_err(|exhausted| {
        service.metrics.reject();
        Failure::exhausted(exhausted, "requests in work")
    })?;
    if let Some(connection) = &connection {
        connection.work();
    }
    let embeddings = timeout_at(deadline, service.embed_files(peer, upload.files, place)).await;
    let embeddings = embeddings.map_err(|_| Failure::busy("the embedding took too long"))??;
    Ok(Json(Answer { dim: service.encoder.dim(), embeddings, images: upload.parts }))
}

async fn healthz(State(service): State<Arc<Service>>) -> Response {
    health::answer(&service.encoder, &service.decoders, service.limits.timeout)
}

async fn metrics(State(service): State<Arc<Service>>) -> impl IntoResponse {
    let text = service.metrics.text(&Now {
        in_work: service.work.used(),
        body_bytes: service.bodies.pool.used(),
        bodies_gave_way: service.bodies.gave_way(),
        decodings_overdue: service.decoders.overdue(),
        connections: service.connections.counts(),
        encoder: service.encoder.statistics(),
        condition: service.encoder.condition(),
    });
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

async fn measure(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let response = next.run(request).await;
    service.metrics.record(response.status(), start.elapsed());
    response
}

impl Service {
    /// One embedding for each image file, in their order. The place in work is given back when nothing is
    /// computed any more, which is later than the end of this if the client goes away.
    async fn embed_files(
        &self,
        peer: Peer,
        files: Vec<Bytes>,
        place: Taken,
    ) -> Result<Vec<Vec<f32>>, Failure> {
        let place = &Arc::new(place);
        let sizes = self.sizes(peer, &files).await?;
        stream::iter(files.into_iter().zip(sizes).enumerate())
            .map(|(index, (file, pixels))| async move {
                let prepared =
                    self.prepare(peer, file, pixels).await.map_err(|failure| failure.of_image(index))?;
                self.embed_pixels(peer, prepared, place.clone())
                    .await
                    .map_err(|failure| failure.of_image(index))
            })
            .buffered(self.ahead)
            .try_collect()
            .await
    }

    /// How many pixels every image has: too many are refused before any of them is decoded.
    async fn sizes(&self, peer: Peer, files: &[Bytes]) -> Result<Vec<usize>, Failure> {
        let (files, limits) = (files.to_vec(), self.limits);
        let sizes = self.decoders.run(peer, 0, move || {
            let sizes = files.iter().enumerate().map(|(index, file)| {
                let size = Image::size_within(file, limits.of_image());
                size.map_err(|error| Failure::unusable(&error).of_image(index))
            });
            sizes.map(|size| size.map(|(height, width)| height * width)).collect::<Result<Vec<_>, _>>()
        });
        let sizes = sizes.await??;
        let (all, most) = (sizes.iter().sum::<usize>(), limits.request_pixels);
        match all > most {
            true => Err(Failure::too_large(format!(
                "the images of a request have at most {most} pixels together, got: {all}"
            ))),
            false => Ok(sizes),
        }
    }

    /// What the encoder takes of an image file.
    async fn prepare(&self, peer: Peer, file: Bytes, pixels: usize) -> Result<Vec<f32>, Failure> {
        let (encoder, limits) = (self.encoder.clone(), self.limits.of_image());
        let prepared = self
            .decoders
            .run(peer, pixels, move || encoder.preprocess().apply(&Image::decode_within(&file, limits)?));
        prepared.await?.map_err(|error| Failure::unusable(&error))
    }

    async fn embed_pixels(
        &self,
        peer: Peer,
        pixels: Vec<f32>,
        place: Arc<Taken>,
    ) -> Result<Vec<f32>, Failure> {
        let turn = self.inferences.take(peer, 1).await;
        let (sender, embedding) = oneshot::channel();
        self.encoder.embed_pixels_then(pixels, move |embedding| {
            drop((place, turn));
            // Nobody is waiting any more if that fails.
            let _ = sender.send(embedding);
        });
        match embedding.await {
            Ok(Ok(embedding)) => Ok(embedding.to_vec()),
            Ok(Err(error @ Error::Flawed { flaw, .. })) => {
                eprintln!("no embedding: {}", printable_name(&error.to_string()));
                Err(Failure::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    format!("the embedding of the image {flaw}"),
                ))
            }
            Ok(Err(error)) => Err(Failure::internal(&error)),
            Err(stopped) => Err(Failure::internal(&stopped)),
        }
    }
}
