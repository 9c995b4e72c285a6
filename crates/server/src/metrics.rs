//! Figures for Prometheus, in its text format. A handful of counters needs no library.

use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use hub::{Histogram, Hub};

use crate::error::{ApiError, Result};
use crate::state::App;

#[derive(Debug)]
pub(crate) struct Metrics {
    /// By the first digit of the status.
    answers: [AtomicU64; 5],
    refused: AtomicU64,
    events: AtomicU64,
    bytes: AtomicU64,
    detached: AtomicU64,
    prompts: AtomicU64,
    followers: AtomicI64,
    requests: Mutex<Histogram>,
}

/// Upper bounds of how long it takes until an answer begins, in seconds.
const REQUEST_SECONDS: &[f64] = &[0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// Queued and running work according to the journal.
#[derive(Clone, Copy, Debug, Default)]
struct WorkGauges {
    running: u64,
    queued: u64,
    asks: u64,
}

impl WorkGauges {
    async fn read(hub: &Hub) -> hub::Result<Self> {
        let journal = hub.journal();
        let mut queued = 0;
        for session in journal.pending(None).await? {
            queued += hub.queue(&session).await?.len() as u64;
        }
        Ok(Self {
            running: journal.open_runs(None).await?.len() as u64,
            queued,
            asks: journal.asks(None).await?.len() as u64,
        })
    }

    fn text(self) -> String {
        let Self {
            running,
            queued,
            asks,
        } = self;
        format!(
            "# HELP linkspan_runs_running Runs that have begun and not ended.
# TYPE linkspan_runs_running gauge
linkspan_runs_running {running}
# HELP linkspan_prompts_queued Prompts that wait for their turn.
# TYPE linkspan_prompts_queued gauge
linkspan_prompts_queued {queued}
# HELP linkspan_asks_waiting Questions of agents that wait for an answer.
# TYPE linkspan_asks_waiting gauge
linkspan_asks_waiting {asks}
"
        )
    }
}

/// A value of a label: nothing in it ends the text before its end.
fn label(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}

/// Counted as long as it lives.
pub(crate) struct FollowerGuard(Arc<App>);

impl Drop for FollowerGuard {
    fn drop(&mut self) {
        self.0.metrics.followers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            answers: Default::default(),
            refused: AtomicU64::default(),
            events: AtomicU64::default(),
            bytes: AtomicU64::default(),
            detached: AtomicU64::default(),
            prompts: AtomicU64::default(),
            followers: AtomicI64::default(),
            requests: Mutex::new(Histogram::new(REQUEST_SECONDS)),
        }
    }
}

impl Metrics {
    // Relaxed everywhere: the counters order nothing else.
    pub(crate) fn answered(&self, status: StatusCode, took: Duration) {
        self.requests().observe(took);
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(count) = self.answers.get(class) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn requests(&self) -> MutexGuard<'_, Histogram> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Counts a follower until the guard is dropped; `None` when the limit is reached.
    pub(crate) fn follows(app: &Arc<App>) -> Result<FollowerGuard> {
        // Counted first, so that dropping the guard below undoes it.
        let before = app.metrics.followers.fetch_add(1, Ordering::Relaxed);
        let following = FollowerGuard(Arc::clone(app));
        if usize::try_from(before).unwrap_or_default() < app.max_clients {
            return Ok(following);
        }
        let message = "there are as many clients as there may be";
        Err(ApiError::unavailable("too_many_clients", message))
    }

    fn text(&self, app: &App, work: Option<WorkGauges>) -> String {
        let mut text = String::new();
        if let Some(work) = work {
            text.push_str(&work.text());
        }
        self.put_runs(app, &mut text);
        let load = |it: &AtomicU64| it.load(Ordering::Relaxed);
        let [n_1xx, n_2xx, n_3xx, n_4xx, n_5xx] = self.answers.each_ref().map(load);
        let refused = load(&self.refused);
        let followers = self.n_followers();
        let (events, bytes) = (load(&self.events), load(&self.bytes));
        let (detached, prompts) = (load(&self.detached), load(&self.prompts));
        let trouble = u64::from(app.hub.trouble().is_some());
        let uptime = app.began.elapsed().as_secs();
        text + &format!(
            r#"# HELP linkspan_http_responses_total Answers by the class of their status.
# TYPE linkspan_http_responses_total counter
linkspan_http_responses_total{{class="1xx"}} {n_1xx}
linkspan_http_responses_total{{class="2xx"}} {n_2xx}
linkspan_http_responses_total{{class="3xx"}} {n_3xx}
linkspan_http_responses_total{{class="4xx"}} {n_4xx}
linkspan_http_responses_total{{class="5xx"}} {n_5xx}
# HELP linkspan_auth_failures_total Requests without a right token.
# TYPE linkspan_auth_failures_total counter
linkspan_auth_failures_total {refused}
# HELP linkspan_followers Clients that follow sessions.
# TYPE linkspan_followers gauge
linkspan_followers {followers}
# HELP linkspan_delivered_events_total Events sent to clients.
# TYPE linkspan_delivered_events_total counter
linkspan_delivered_events_total {events}
# HELP linkspan_delivered_bytes_total Bytes of these events.
# TYPE linkspan_delivered_bytes_total counter
linkspan_delivered_bytes_total {bytes}
# HELP linkspan_detached_total Clients let go because they were too slow.
# TYPE linkspan_detached_total counter
linkspan_detached_total {detached}
# HELP linkspan_prompts_total Prompts that were taken.
# TYPE linkspan_prompts_total counter
linkspan_prompts_total {prompts}
# HELP linkspan_store_trouble 1 while the journal cannot be written.
# TYPE linkspan_store_trouble gauge
linkspan_store_trouble {trouble}
# HELP linkspan_uptime_seconds Since the server began.
# TYPE linkspan_uptime_seconds gauge
linkspan_uptime_seconds {uptime}
"#
        )
    }

    /// How runs ended and how long they took.
    fn put_runs(&self, app: &App, text: &mut String) {
        let mut family = |name: &str, kind: &str, help: &str, rows: &[String]| {
            // Writing to a string does not fail.
            writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}").ok();
            for row in rows {
                writeln!(text, "{name}{row}").ok();
            }
        };
        let (mut totals, mut times) = (Vec::new(), Vec::new());
        for ((engine, outcome), durations) in app.hub.run_counts().all() {
            let labels = format!("engine=\"{}\",outcome=\"{outcome}\"", label(&engine));
            totals.push(format!("{{{labels}}} {}", durations.count()));
            put_durations(&labels, &durations, &mut times);
        }
        let help = "Runs that have ended here, by engine and outcome.";
        family("linkspan_runs_total", "counter", help, &totals);
        let help = "From the beginning of a run to its end.";
        family("linkspan_run_duration_seconds", "histogram", help, &times);
        let mut waits = Vec::new();
        for (engine, durations) in app.hub.run_counts().first_events() {
            let labels = format!("engine=\"{}\"", label(&engine));
            put_durations(&labels, &durations, &mut waits);
        }
        let help = "From accepting a prompt to the first event of its agent.";
        family("linkspan_first_event_seconds", "histogram", help, &waits);
        let mut requests = Vec::new();
        put_durations("", &self.requests(), &mut requests);
        let name = "linkspan_http_request_duration_seconds";
        let help = "From a request to the beginning of its answer.";
        family(name, "histogram", help, &requests);
    }
}

/// The rows of a histogram, each without the metric's name.
fn put_durations(labels: &str, durations: &Histogram, rows: &mut Vec<String>) {
    // Prometheus takes no comma before the first label.
    let comma = if labels.is_empty() { "" } else { "," };
    let mut bucket = |bound: &str, count: u64| {
        rows.push(format!("_bucket{{{labels}{comma}le=\"{bound}\"}} {count}"));
    };
    for (bound, count) in durations.buckets() {
        bucket(&bound.to_string(), count);
    }
    bucket("+Inf", durations.count());
    let labels = match labels {
        "" => String::new(),
        labels => format!("{{{labels}}}"),
    };
    rows.push(format!("_sum{labels} {}", durations.seconds()));
    rows.push(format!("_count{labels} {}", durations.count()));
}

pub(crate) async fn show(State(app): State<Arc<App>>) -> impl IntoResponse {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    // A journal that cannot be read is a figure of its own.
    let work = WorkGauges::read(&app.hub).await.ok();
    ([(header::CONTENT_TYPE, kind)], app.metrics.text(&app, work))
}
