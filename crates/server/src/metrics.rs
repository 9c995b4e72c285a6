//! Figures for Prometheus, in its text format. A handful of counters needs no library.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;

use crate::error::{ApiError, Result};
use crate::state::App;

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By the first digit of the status.
    answers: [AtomicU64; 5],
    refused: AtomicU64,
    events: AtomicU64,
    bytes: AtomicU64,
    detached: AtomicU64,
    prompts: AtomicU64,
    followers: AtomicI64,
}

/// Counted as long as it lives.
#[derive(Debug)]
pub(crate) struct Following(Arc<App>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.metrics.followers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    pub(crate) fn answered(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(count) = self.answers.get(class) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn delivered(&self, n_events: u64, n_bytes: usize) {
        self.events.fetch_add(n_events, Ordering::Relaxed);
        self.bytes.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn detached(&self) {
        self.detached.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn submitted(&self) {
        self.prompts.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn n_followers(&self) -> i64 {
        self.followers.load(Ordering::Relaxed)
    }

    /// Somebody follows, until what is returned is dropped; not more than there may be.
    pub(crate) fn follows(app: &Arc<App>) -> Result<Following> {
        // Counted first, so that what is dropped below is counted out again.
        let before = app.metrics.followers.fetch_add(1, Ordering::Relaxed);
        let following = Following(Arc::clone(app));
        if usize::try_from(before).unwrap_or_default() < app.max_clients {
            return Ok(following);
        }
        Err(ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too_many_clients",
            "there are as many clients as there may be",
        ))
    }

    fn text(&self, app: &App) -> String {
        let mut text = String::new();
        let mut put = |name: &str, kind: &str, help: &str, rows: &[(&str, u64)]| {
            // Writing to a string does not fail.
            writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}").ok();
            for (labels, value) in rows {
                writeln!(text, "{name}{labels} {value}").ok();
            }
        };
        let load = |it: &AtomicU64| it.load(Ordering::Relaxed);
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"].map(|it| format!("{{class=\"{it}\"}}"));
        let answers: Vec<(&str, u64)> = classes
            .iter()
            .zip(&self.answers)
            .map(|(class, count)| (class.as_str(), load(count)))
            .collect();
        put(
            "linkspan_http_responses_total",
            "counter",
            "Answers by the class of their status.",
            &answers,
        );
        put(
            "linkspan_auth_failures_total",
            "counter",
            "Requests without a right token.",
            &[("", load(&self.refused))],
        );
        put(
            "linkspan_followers",
            "gauge",
            "Clients that follow sessions.",
            &[("", self.n_followers().unsigned_abs())],
        );
        put(
            "linkspan_delivered_events_total",
            "counter",
            "Events sent to clients.",
            &[("", load(&self.events))],
        );
        put(
            "linkspan_delivered_bytes_total",
            "counter",
            "Bytes of these events.",
            &[("", load(&self.bytes))],
        );
        put(
            "linkspan_detached_total",
            "counter",
            "Clients let go because they were too slow.",
            &[("", load(&self.detached))],
        );
        put(
            "linkspan_prompts_total",
            "counter",
            "Prompts that were taken.",
            &[("", load(&self.prompts))],
        );
        put(
            "linkspan_store_trouble",
            "gauge",
            "1 while the journal cannot be written.",
            &[("", u64::from(app.hub.trouble().is_some()))],
        );
        put(
            "linkspan_uptime_seconds",
            "gauge",
            "Since the server began.",
            &[("", app.began.elapsed().as_secs())],
        );
        text
    }
}

pub(crate) async fn show(State(app): State<Arc<App>>) -> impl IntoResponse {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], app.metrics.text(&app))
}
