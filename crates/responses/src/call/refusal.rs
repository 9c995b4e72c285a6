//! Refusals of an endpoint: their body, and whether another attempt may succeed.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use tokio::time::timeout;

use super::CallError;

/// Bytes that are read of an error.
const MAX_ERROR: usize = 64 << 10;
/// Until an error is read, whatever the endpoint does with it.
const PATIENCE: Duration = Duration::from_secs(5);

/// An answer with the status of an error.
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Refusal {
    pub(super) async fn read(mut response: Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        let read = async {
            while let Ok(Some(chunk)) = response.chunk().await {
                body.extend_from_slice(&chunk);
                // A body without an end must not fill the memory.
                if body.len() > MAX_ERROR {
                    break;
                }
            }
        };
        // The rest is not needed: the status is enough.
        timeout(PATIENCE, read).await.ok();
        body.truncate(MAX_ERROR);
        Self {
            status,
            headers,
            body: String::from_utf8_lossy(&body).into_owned(),
        }
    }

    /// Whether the endpoint does not know the response it was asked to continue.
    pub(super) fn is_forgotten(&self, error: &CallError) -> bool {
        let is_bad = self.status == StatusCode::BAD_REQUEST;
        // Only some use the code of the specification; the others are known by status and words.
        error.code == "previous_response_not_found"
            || self.status == StatusCode::NOT_FOUND
            || (is_bad && error.message.contains("previous_response_id"))
            || (is_bad && error.message.contains("Previous response"))
    }

    /// How long the endpoint asks its callers to wait.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let text = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        if let Ok(seconds) = text.parse::<f64>() {
            return Duration::try_from_secs_f64(seconds).ok();
        }
        let at = httpdate::parse_http_date(text).ok()?;
        // A date that has passed is no wait.
        Some(at.duration_since(SystemTime::now()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_a_number_of_seconds_or_a_date() {
        let wanted = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            let refusal = Refusal {
                status: StatusCode::TOO_MANY_REQUESTS,
                headers,
                body: String::new(),
            };
            refusal.retry_after()
        };
        assert_eq!(wanted("2"), Some(Duration::from_secs(2)));
        assert_eq!(wanted("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(
            wanted("Wed, 21 Oct 2015 07:28:00 GMT"),
            Some(Duration::ZERO)
        );
        assert_eq!(wanted("-1"), None);
        assert_eq!(wanted("soon"), None);
    }
}
