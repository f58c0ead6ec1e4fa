//! Clients that mean harm, and what others notice of them.

use std::net::SocketAddr;

use axum::http::{Method, StatusCode};
use lejepa_embed::{Encoder, ForeignEncoder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::service::Service;
use crate::tests::{Listening, answer, form_request, image_request, metric, png, request, settings};

/// A connection from another address of this machine.
async fn connect_from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, last], 0).into()).unwrap();
    // A reader that does not read should not need much to be full.
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(to).await.unwrap()
}

fn post(length: usize) -> String {
    format!("POST /embed HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n")
}

/// What somebody else gets meanwhile.
async fn status_from(last: u8, to: SocketAddr) -> String {
    let (mut client, picture) = (connect_from(last, to).await, png(30, 40, 1));
    client.write_all(&[post(picture.len()).as_bytes(), &picture].concat()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().into()
}

#[tokio::test]
async fn bodies_that_do_not_come_take_no_place_in_work() {
    let listening = Listening::start(&["--in-work=2"]).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut client = connect_from(2, listening.address).await;
        client.write_all(post(100).as_bytes()).await.unwrap();
        client.write_all(b".").await.unwrap();
        slow.push(client);
    }
    listening.wait_for("embedding_body_bytes 20").await;
    assert_eq!(status_from(1, listening.address).await, "HTTP/1.1 200 OK");
    assert_eq!(status_from(2, listening.address).await, "HTTP/1.1 200 OK", "even for the same client");
    assert!(metric(&listening.service, "embedding_requests_in_work 0").await);
    drop(slow);
    listening.wait_for("embedding_body_bytes 0").await;
}

#[tokio::test]
async fn one_client_cannot_fill_the_memory_for_bodies() {
    let listening = Listening::start(&["--body=1000", "--bodies=2000"]).await;
    let mut greedy = connect_from(2, listening.address).await;
    greedy.write_all(&[post(1000).as_bytes(), &[0; 900]].concat()).await.unwrap();
    listening.wait_for("embedding_body_bytes 900").await;
    assert_eq!(status_from(2, listening.address).await, "HTTP/1.1 429 Too Many Requests");
    assert_eq!(status_from(1, listening.address).await, "HTTP/1.1 200 OK");
}

#[tokio::test]
async fn several_clients_whose_bodies_do_not_end_keep_nobody_out() {
    let listening = Listening::start(&["--body=1000", "--bodies=2000"]).await;
    let mut greedy = Vec::new();
    for last in [2, 3] {
        let mut client = connect_from(last, listening.address).await;
        client.write_all(&[post(1000).as_bytes(), &[0; 990]].concat()).await.unwrap();
        greedy.push(client);
    }
    listening.wait_for("embedding_body_bytes 1980").await;
    assert_eq!(status_from(1, listening.address).await, "HTTP/1.1 200 OK");
    // The one that came first gave way, and learns it.
    let mut answer = String::new();
    greedy[0].read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("too many bytes of requests"), "{answer}");
    listening.wait_for("embedding_bodies_gave_way_total 1").await;
    listening.wait_for("embedding_body_bytes 990").await;
}

#[tokio::test]
async fn images_of_many_scans_are_refused_before_they_are_decoded() {
    let listening = Listening::start(&["--scans=3"]).await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/formats/images");
    let status = async |name: &str| {
        let picture = std::fs::read(format!("{folder}/{name}")).unwrap();
        let (status, found) = answer(&listening.service, image_request(picture)).await;
        (status, found["error"].as_str().unwrap_or_default().to_string())
    };
    assert_eq!(status("baseline.jpg").await.0, StatusCode::OK);
    let (refused, error) = status("progressive.jpg").await;
    assert_eq!(refused, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(error.starts_with("image must have at most 3 scans"), "{error}");
}

#[tokio::test]
async fn clients_that_do_not_read_their_answers_are_cut_off() {
    let listening = Listening::start(&["--write-timeout=0.1"]).await;
    let mut client = connect_from(2, listening.address).await;
    let many = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n".repeat(100);
    // Ends only if the service closes the connection: it reads no more requests than it can answer.
    while client.write_all(&many).await.is_ok() {}
    listening.wait_for("embedding_connections 0").await;
}

#[tokio::test]
async fn idle_connections_give_way_to_others() {
    let listening = Listening::start(&["--connections=4"]).await;
    let mut early = connect_from(1, listening.address).await;
    listening.wait_for("embedding_connections 1").await;
    let mut idle = Vec::new();
    for last in [2, 3, 4, 5, 6].into_iter().cycle().take(50) {
        idle.push(connect_from(last, listening.address).await);
        assert_eq!(status_from(1, listening.address).await, "HTTP/1.1 200 OK");
    }
    // Nobody notices one client with many connections but itself: it has a share.
    let listening = Listening::start(&["--connections=4"]).await;
    drop(std::mem::replace(&mut early, connect_from(1, listening.address).await));
    listening.wait_for("embedding_connections 1").await;
    for _ in 0..50 {
        idle.push(connect_from(2, listening.address).await);
    }
    listening.wait_for("embedding_connections_closed_total 48").await;
    early.write_all(b"GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    early.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

#[tokio::test]
async fn images_of_too_many_pixels_together_are_refused_before_they_are_decoded() {
    let listening = Listening::start(&["--request-pixels=2399"]).await;
    let picture = png(30, 40, 1);
    // The second one says as much in its header and holds nothing.
    let bomb = [&picture[..60], b"nothing"].concat();
    let (status, found) = answer(&listening.service, form_request(&[&picture, &picture])).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    let said = "the images of a request have at most 2399 pixels together, got: 2400";
    assert_eq!(found["error"], said);
    let (status, _) = answer(&listening.service, form_request(&[&picture, &bomb])).await;
    assert!([StatusCode::PAYLOAD_TOO_LARGE, StatusCode::UNPROCESSABLE_ENTITY].contains(&status));
    let (status, _) = answer(&listening.service, image_request(picture)).await;
    assert_eq!(status, StatusCode::OK);
}

/// An encoder that computes NaN of every image, and its path.
fn broken_encoder() -> (Encoder, &'static str) {
    let whole = settings(&[]);
    let path = "secret/folder/encoder.onnx";
    let mut bytes = std::fs::read(&whole.encoder).unwrap();
    // Without its last field, the checksum: metadata of a key of 13 and a value of 64 bytes.
    bytes.truncate(bytes.len() - 83);
    let name = b"\x42\x0bnorm.weight\x4a";
    let place = bytes.windows(name.len()).position(|bytes| bytes == name).unwrap() + name.len();
    // Behind the length of the weights, two bytes.
    bytes[place + 2..place + 6].copy_from_slice(&f32::NAN.to_le_bytes());
    let preprocess = whole.open().unwrap().preprocess().clone();
    let description = ForeignEncoder { preprocess, output: Some("embedding".into()) };
    (Encoder::builder().foreign(description).open_bytes(path, &bytes).unwrap(), path)
}

#[tokio::test]
async fn what_is_not_a_number_is_an_error_and_errors_name_no_files() {
    let (encoder, path) = broken_encoder();
    let service = Service::new(encoder, &settings(&[]));
    let service = service.router(service.watching());
    let (status, found) = answer(&service, image_request(png(30, 40, 1))).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let said = "the embedding of the image is not finite (NaN or infinity)";
    assert_eq!(found, serde_json::json!({ "error": said, "image": 0 }));
    let (_, health) = answer(&service, request(Method::GET, "/healthz", ())).await;
    assert!(!health.to_string().contains(path), "{health}");
}

#[tokio::test]
async fn health_and_metrics_are_where_they_are_wanted() {
    let settings = settings(&[]);
    let service = Service::new(settings.open().unwrap(), &settings);
    for path in ["/healthz", "/metrics"] {
        let (status, _) = answer(&service.router(axum::Router::new()), request(Method::GET, path, ())).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    }
    let (status, _) = answer(&service.watching(), request(Method::GET, "/healthz", ())).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn limits_that_no_request_could_keep_are_refused() {
    let refused = |flags: &[&str]| settings(flags).limits.check().unwrap_err().to_string();
    let said = "--body must fit into a client's share of --bodies, 500: 1000";
    assert_eq!(refused(&["--body=1000", "--bodies=1000"]), said);
    assert!(refused(&["--pixels=1000", "--decoded-pixels=999"]).starts_with("--pixels"));
}

#[tokio::test]
async fn deep_images_are_refused_before_they_are_decoded() {
    let listening = Listening::start(&[]).await;
    let picture = image::DynamicImage::new_rgba16(300, 200);
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    let (status, found) = answer(&listening.service, image_request(bytes.into_inner())).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(found["error"].as_str().unwrap().contains("16 bits per value"), "{found}");
}
