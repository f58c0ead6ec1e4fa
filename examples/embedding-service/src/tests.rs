//! Requests and their answers, with the small encoder of the repository.

use std::io::Cursor;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode, header};
use axum::response::Response;
use clap::Parser;
use futures_util::stream;
use http_body_util::BodyExt;
use image::{DynamicImage, ImageFormat, RgbImage};
use lejepa_embed::Encoder;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::error::Elapsed;
use tower::ServiceExt;

use crate::server::Server;
use crate::service::Service;
use crate::settings::Settings;

/// Images that share an inference may differ from one alone in the last digits.
const TOLERANCE: f32 = 1e-4;

pub(crate) fn settings(flags: &[&str]) -> Settings {
    let encoder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/fashion-mnist-vit/encoder.onnx");
    Settings::parse_from(["embedding-service", encoder].iter().chain(flags))
}

fn encoder() -> Encoder {
    Encoder::open(Path::new(&settings(&[]).encoder)).unwrap()
}

fn service(flags: &[&str]) -> Router {
    let settings = settings(flags);
    let service = Service::new(settings.open().unwrap(), &settings);
    service.router(service.watching())
}

/// A service that listens.
pub(crate) struct Listening {
    pub(crate) address: SocketAddr,
    pub(crate) service: Router,
    stop: oneshot::Sender<()>,
    server: JoinHandle<Result<(), Elapsed>>,
}

impl Listening {
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let settings = settings(flags);
        settings.limits.check().unwrap();
        let service = Service::new(settings.open().unwrap(), &settings);
        let router = service.router(service.watching());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let connections = service.connections.clone();
        let server = Server { listener, router: router.clone(), limits: settings.limits, connections };
        let server = tokio::spawn(server.serve(async {
            let _ = stopped.await;
        }));
        Self { address, service: router, stop, server }
    }

    pub(crate) async fn wait_for(&self, line: &str) {
        while !metric(&self.service, line).await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

pub(crate) fn png(height: u32, width: u32, seed: u8) -> Vec<u8> {
    let picture = RgbImage::from_fn(width, height, |x, y| {
        image::Rgb([seed, (7 * x) as u8 ^ seed, (5 * y) as u8].map(|value| value.wrapping_mul(3)))
    });
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::from(picture).write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

pub(crate) fn request(method: Method, path: &str, body: impl Into<Body>) -> Request<Body> {
    Request::builder().method(method).uri(path).body(body.into()).unwrap()
}

pub(crate) fn image_request(body: impl Into<Body>) -> Request<Body> {
    let mut request = request(Method::POST, "/embed", body);
    request.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("image/png"));
    request
}

pub(crate) fn form_request(files: &[&[u8]]) -> Request<Body> {
    let mut body = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let head = format!(
            "--edge\r\nContent-Disposition: form-data; name=\"part {index}\"; filename=\"{index}.png\"\r\n\r\n"
        );
        body.extend([head.as_bytes(), file, b"\r\n"].concat());
    }
    body.extend(b"--edge--\r\n");
    let mut request = request(Method::POST, "/embed", body);
    let content_type = header::HeaderValue::from_static("multipart/form-data; boundary=edge");
    request.headers_mut().insert(header::CONTENT_TYPE, content_type);
    request
}

/// A body of which nothing ever comes.
fn silence() -> Body {
    Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>())
}

async fn text(response: Response) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

pub(crate) async fn answer(service: &Router, request: Request<Body>) -> (StatusCode, Value) {
    let response = service.clone().oneshot(request).await.unwrap();
    let status = response.status();
    (status, serde_json::from_str(&text(response).await).unwrap())
}

pub(crate) async fn metric(service: &Router, line: &str) -> bool {
    let response = service.clone().oneshot(request(Method::GET, "/metrics", ())).await.unwrap();
    text(response).await.lines().any(|found| found == line)
}

fn assert_embeds(answer: &Value, files: &[&[u8]]) {
    let expected = encoder().embed_bytes(files).unwrap();
    let embeddings = answer["embeddings"].as_array().unwrap();
    assert_eq!(answer["dim"], expected.ncols());
    assert_eq!(embeddings.len(), files.len());
    for (embedding, expected) in embeddings.iter().zip(expected.rows()) {
        let embedding: Vec<f32> = serde_json::from_value(embedding.clone()).unwrap();
        assert_eq!(embedding.len(), expected.len());
        for (value, expected) in embedding.iter().zip(expected) {
            assert!((value - expected).abs() < TOLERANCE, "{value} is not {expected}");
        }
    }
}

#[tokio::test]
async fn an_image_is_answered_with_its_embedding() {
    let (service, picture) = (service(&[]), png(40, 60, 1));
    let (status, found) = answer(&service, image_request(picture.clone())).await;
    assert_eq!((status, &found["images"]), (StatusCode::OK, &Value::Null));
    assert_embeds(&found, &[&picture]);
    let (status, found) = answer(&service, request(Method::POST, "/embed", picture.clone())).await;
    assert_eq!(status, StatusCode::OK, "without a content type");
    assert_embeds(&found, &[&picture]);
}

#[tokio::test]
async fn embeddings_have_length_one_if_that_is_asked_for() {
    let (_, found) = answer(&service(&["--normalise"]), image_request(png(40, 60, 1))).await;
    let embedding: Vec<f32> = serde_json::from_value(found["embeddings"][0].clone()).unwrap();
    let length = embedding.iter().map(|value| value * value).sum::<f32>().sqrt();
    assert!((length - 1.).abs() < TOLERANCE, "{length}");
}

#[tokio::test]
async fn the_images_of_a_form_are_answered_in_their_order_with_their_names() {
    let pictures = [1, 2, 3, 4, 5].map(|seed| png(30 + u32::from(seed), 40, seed));
    let pictures: Vec<&[u8]> = pictures.iter().map(Vec::as_slice).collect();
    let (status, found) = answer(&service(&["--batch=2"]), form_request(&pictures)).await;
    assert_eq!(status, StatusCode::OK);
    assert_embeds(&found, &pictures);
    assert_eq!(found["images"][3], serde_json::json!({ "name": "part 3", "filename": "3.png" }));
}

#[tokio::test]
async fn a_broken_image_is_named_with_the_reason() {
    let (service, picture) = (service(&[]), png(30, 40, 1));
    let (status, found) = answer(&service, form_request(&[&picture, &picture[..90], &picture])).await;
    assert_eq!((status, &found["image"]), (StatusCode::UNPROCESSABLE_ENTITY, &Value::from(1)));
    assert!(found["error"].as_str().unwrap().starts_with("cannot decode image: "), "{found}");
    for broken in [&b""[..], b"not an image", b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n"] {
        let (status, found) = answer(&service, image_request(broken.to_vec())).await;
        assert_eq!((status, &found["image"]), (StatusCode::UNPROCESSABLE_ENTITY, &Value::from(0)));
    }
}

#[tokio::test]
async fn requests_over_a_limit_are_refused() {
    let service = service(&["--body=4000", "--pixels=1200", "--images=2"]);
    let picture = png(30, 40, 1);
    assert!(picture.len() < 1000);
    let (status, found) = answer(&service, image_request(vec![0; 4001])).await;
    assert_eq!((status, &found["image"]), (StatusCode::PAYLOAD_TOO_LARGE, &Value::Null));
    let pieces = stream::iter((0..5).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![0; 1000]))));
    let (status, _) = answer(&service, image_request(Body::from_stream(pieces))).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "without a length in the head");
    let (status, _) = answer(&service, form_request(&[&[0; 4000]])).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "a form");
    let (status, found) = answer(&service, form_request(&[&picture, &picture, &picture])).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{found}");
    let (status, found) = answer(&service, form_request(&[&picture, &png(30, 41, 1)])).await;
    assert_eq!((status, &found["image"]), (StatusCode::UNPROCESSABLE_ENTITY, &Value::from(1)));
    assert_eq!(found["error"], "image must have 1 to 1200 pixels, got 30x41");
    let (status, _) = answer(&service, form_request(&[&picture, &picture])).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn forms_that_hold_nothing_or_are_none_are_refused() {
    let service = service(&[]);
    let (status, _) = answer(&service, form_request(&[])).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let mut cut_off = form_request(&[]);
    *cut_off.body_mut() = Body::from("--edge\r\nContent-Disposition: form-data\r\n\r\nabc");
    let (status, _) = answer(&service, cut_off).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let mut json = image_request("{}");
    let content_type = header::HeaderValue::from_static("application/json");
    json.headers_mut().insert(header::CONTENT_TYPE, content_type);
    let (status, _) = answer(&service, json).await;
    assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn a_request_beyond_those_in_work_is_rejected() {
    // The first image waits for company that never comes.
    let service = service(&["--in-work=1", "--latency=3600000", "--batch=2", "--sessions=1"]);
    let waiting = tokio::spawn(service.clone().oneshot(image_request(png(30, 40, 1))));
    while !metric(&service, "embedding_requests_in_work 1").await {
        tokio::task::yield_now().await;
    }
    let response = service.clone().oneshot(image_request(png(30, 40, 1))).await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS, "its own share");
    assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    assert!(metric(&service, "embedding_requests_rejected_total 1").await);
    waiting.abort();
}

#[tokio::test]
async fn a_client_that_sends_too_slowly_is_told_so() {
    let service = service(&["--timeout=0.01"]);
    let (status, _) = answer(&service, image_request(silence())).await;
    assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
    assert!(metric(&service, "embedding_requests_in_work 0").await);
}

#[tokio::test]
async fn health_and_metrics_tell_of_the_encoder_and_of_requests() {
    let service = service(&[]);
    let (status, health) = answer(&service, request(Method::GET, "/healthz", ())).await;
    assert_eq!((status, &health["status"]), (StatusCode::OK, &Value::from("ok")));
    let picture = png(30, 40, 1);
    answer(&service, form_request(&[&picture])).await;
    answer(&service, image_request("broken")).await;
    for line in [
        "embedding_requests_total{status=\"200\"} 1",
        "embedding_requests_total{status=\"422\"} 1",
        "embedding_images_total 1",
        "embedding_inferences_total 1",
        "embedding_requests_in_work 0",
        "embedding_request_duration_seconds_count 1",
    ] {
        assert!(metric(&service, line).await, "{line}");
    }
}

#[tokio::test]
async fn other_paths_and_methods_are_refused_in_json_too() {
    let service = service(&[]);
    let (status, found) = answer(&service, request(Method::GET, "/", ())).await;
    assert_eq!((status, found["error"].is_string()), (StatusCode::NOT_FOUND, true));
    let (status, found) = answer(&service, request(Method::GET, "/embed", ())).await;
    assert_eq!((status, found["error"].is_string()), (StatusCode::METHOD_NOT_ALLOWED, true));
}

#[tokio::test]
async fn a_request_that_has_begun_is_answered_after_the_service_was_told_to_stop() {
    let (listening, picture) = (Listening::start(&[]).await, png(30, 40, 1));
    let mut client = TcpStream::connect(listening.address).await.unwrap();
    let head = format!("POST /embed HTTP/1.1\r\nHost: here\r\nContent-Length: {}\r\n\r\n", picture.len());
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(&picture[..10]).await.unwrap();
    listening.wait_for("embedding_body_bytes 10").await;
    listening.stop.send(()).unwrap();
    while TcpStream::connect(listening.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    client.write_all(&picture[10..]).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(listening.server.await.unwrap().is_ok());
}

#[tokio::test]
async fn heads_that_never_end_and_requests_that_outlast_the_stop_are_cut_off() {
    let listening = Listening::start(&["--head-timeout=0.05", "--stop-timeout=0.05"]).await;
    let mut slow = TcpStream::connect(listening.address).await.unwrap();
    slow.write_all(b"POST /embed HTTP/1.1\r\nHost:").await.unwrap();
    // Ends only if the service closes the connection.
    slow.read_to_end(&mut Vec::new()).await.unwrap();
    let mut endless = TcpStream::connect(listening.address).await.unwrap();
    endless.write_all(b"POST /embed HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n.").await.unwrap();
    listening.wait_for("embedding_body_bytes 1").await;
    listening.stop.send(()).unwrap();
    assert!(listening.server.await.unwrap().is_err());
}
