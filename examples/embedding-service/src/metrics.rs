//! Counts and times in Prometheus' text format, version 0.0.4.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use lejepa_embed::{Condition, Statistics};

use crate::connections;

/// What has happened to requests so far.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    by_status: BTreeMap<u16, u64>,
    rejected: u64,
    /// Requests that took at most as long as the bound of the same index and longer than the one before.
    buckets: [u64; BUCKETS.len()],
    embedded: u64,
    seconds: f64,
}

/// What others know.
#[derive(Debug)]
pub(crate) struct Now {
    pub(crate) in_work: usize,
    pub(crate) body_bytes: usize,
    pub(crate) bodies_gave_way: u64,
    pub(crate) decodings_overdue: usize,
    pub(crate) connections: connections::Counts,
    pub(crate) encoder: Statistics,
    pub(crate) condition: Condition,
}

/// Upper bounds in seconds: from one small image on a fast machine to a form of photographs on a slow one.
const BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1., 2.5, 5., 10., 30.];

impl Metrics {
    pub(crate) fn record(&self, status: StatusCode, time: Duration) {
        let mut counts = self.counts();
        *counts.by_status.entry(status.as_u16()).or_default() += 1;
        if status == StatusCode::OK {
            let seconds = time.as_secs_f64();
            counts.embedded += 1;
            counts.seconds += seconds;
            if let Some(bucket) = BUCKETS.iter().position(|&bound| seconds <= bound) {
                counts.buckets[bucket] += 1;
            }
        }
    }

    pub(crate) fn reject(&self) {
        self.counts().rejected += 1;
    }

    pub(crate) fn text(&self, now: &Now) -> String {
        let Counts { by_status, rejected, buckets, embedded, seconds } = &*self.counts();
        let requests: String = by_status
            .iter()
            .map(|(status, count)| format!("embedding_requests_total{{status=\"{status}\"}} {count}\n"))
            .collect();
        let mut below = 0;
        let buckets: String = std::iter::zip(BUCKETS, buckets)
            .map(|(bound, count)| {
                below += count;
                format!("embedding_request_duration_seconds_bucket{{le=\"{bound}\"}} {below}\n")
            })
            .collect();
        let Now { in_work, body_bytes, bodies_gave_way, decodings_overdue, .. } = now;
        let Now { connections, encoder: Statistics { runs, images }, condition, .. } = now;
        let connections::Counts { open, refused, closed } = connections;
        let Condition { sessions, alive, .. } = condition;
        format!(
            "\
# HELP embedding_requests_total Requests to /embed by the status of their answer.
# TYPE embedding_requests_total counter
{requests}\
# HELP embedding_requests_rejected_total Requests that found too many others in work, or of their own client.
# TYPE embedding_requests_rejected_total counter
embedding_requests_rejected_total {rejected}
# HELP embedding_requests_in_work Requests that are computed.
# TYPE embedding_requests_in_work gauge
embedding_requests_in_work {in_work}
# HELP embedding_body_bytes Bytes of bodies in memory.
# TYPE embedding_body_bytes gauge
embedding_body_bytes {body_bytes}
# HELP embedding_bodies_gave_way_total Incomplete bodies that gave way to others.
# TYPE embedding_bodies_gave_way_total counter
embedding_bodies_gave_way_total {bodies_gave_way}
# HELP embedding_decodings_overdue Images whose decoding takes longer than a request may.
# TYPE embedding_decodings_overdue gauge
embedding_decodings_overdue {decodings_overdue}
# HELP embedding_connections Connections that are open.
# TYPE embedding_connections gauge
embedding_connections {open}
# HELP embedding_connections_refused_total Connections that found no place.
# TYPE embedding_connections_refused_total counter
embedding_connections_refused_total {refused}
# HELP embedding_connections_closed_total Connections that waited and gave way to others.
# TYPE embedding_connections_closed_total counter
embedding_connections_closed_total {closed}
# HELP embedding_sessions Sessions of the encoder.
# TYPE embedding_sessions gauge
embedding_sessions {sessions}
# HELP embedding_sessions_alive Those of them that work.
# TYPE embedding_sessions_alive gauge
embedding_sessions_alive {alive}
# HELP embedding_images_total Images that went through the encoder.
# TYPE embedding_images_total counter
embedding_images_total {images}
# HELP embedding_inferences_total Inferences, each of one or several images.
# TYPE embedding_inferences_total counter
embedding_inferences_total {runs}
# HELP embedding_request_duration_seconds Time of requests that were answered with embeddings.
# TYPE embedding_request_duration_seconds histogram
{buckets}\
embedding_request_duration_seconds_bucket{{le=\"+Inf\"}} {embedded}
embedding_request_duration_seconds_sum {seconds}
embedding_request_duration_seconds_count {embedded}
"
        )
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(in_work: usize) -> Now {
        Now {
            in_work,
            body_bytes: 0,
            bodies_gave_way: 0,
            decodings_overdue: 0,
            connections: connections::Counts { open: 1, refused: 0, closed: 2 },
            encoder: Statistics { runs: 2, images: 3 },
            condition: Condition { sessions: 2, alive: 2, longest: None },
        }
    }

    #[test]
    fn buckets_count_all_that_took_no_longer_and_only_what_was_embedded() {
        let metrics = Metrics::default();
        metrics.record(StatusCode::OK, Duration::from_millis(5));
        metrics.record(StatusCode::OK, Duration::from_millis(20));
        metrics.record(StatusCode::OK, Duration::from_secs(1000));
        metrics.record(StatusCode::REQUEST_TIMEOUT, Duration::from_secs(30));
        let text = metrics.text(&now(3));
        let bucket = |bound: &str, count: u64| {
            let line = format!("embedding_request_duration_seconds_bucket{{le=\"{bound}\"}} {count}\n");
            assert!(text.contains(&line), "{line} in {text}");
        };
        bucket("0.005", 1);
        bucket("0.01", 1);
        bucket("0.025", 2);
        bucket("30", 2);
        bucket("+Inf", 3);
        assert!(text.contains("embedding_request_duration_seconds_sum 1000.025\n"));
        assert!(text.contains("embedding_requests_total{status=\"408\"} 1\n"));
        assert!(text.contains("embedding_requests_in_work 3\n"));
    }

    #[test]
    fn every_line_is_a_sample_or_a_comment_about_one() {
        let metrics = Metrics::default();
        metrics.record(StatusCode::OK, Duration::from_millis(5));
        let text = metrics.text(&now(0));
        for line in text.lines() {
            let sample = line.rsplit_once(' ').is_some_and(|(_, value)| value.parse::<f64>().is_ok());
            assert!(sample || line.starts_with("# HELP ") || line.starts_with("# TYPE "), "{line}");
        }
        assert!(text.ends_with('\n'));
    }
}
