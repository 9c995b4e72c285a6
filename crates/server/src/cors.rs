//! Pages of other origins that the operator has named: preflights are answered for them, and answers
//! carry the headers by which a browser hands them to the page.
//!
//! There are none unless they are named, each is compared to the letter, and cookies or other
//! credentials of the browser are never part of it: such a page needs a token like any other
//! client.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;

/// For how long a browser may remember an answer to a preflight, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
/// The methods of all routes that other origins can use.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

const PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-allow-private-network");

/// The configured origins, in the form of the `Origin` header.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllowedOrigins(Vec<String>);

impl AllowedOrigins {
    pub(crate) fn new(origins: Vec<String>) -> Self {
        Self(origins)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The origin of a request, if it is one of those and the path is open to them.
    pub(crate) fn find<'a>(&self, path: &str, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let (Some(origin), None) = (origins.next(), origins.next()) else {
            return None;
        };
        let is_named = |it: &String| it.as_bytes() == origin.as_bytes();
        (is_open(path) && self.0.iter().any(is_named)).then_some(origin)
    }
}

/// Whether other origins can be let in here: not to the page and its files.
pub(crate) fn is_open(path: &str) -> bool {
    let is_below = |root: &str| {
        let rest = path.strip_prefix(root);
        rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
    };
    ["/ag-ui", "/api", "/ws"].into_iter().any(is_below)
}

/// Whether the request is a CORS preflight.
pub(crate) fn is_preflight(request: &Request) -> bool {
    let asks = header::ACCESS_CONTROL_REQUEST_METHOD;
    request.method() == Method::OPTIONS && request.headers().contains_key(asks)
}

/// The answer to a preflight of an origin that was named. The request itself is checked when it comes.
pub(crate) fn preflight(asked: &HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    // Apps may send headers of their own, which are ignored here.
    if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    // Chrome asks for this before a public page may reach an address of the local network.
    if asked.get(PRIVATE_NETWORK).is_some_and(|it| it == "true") {
        let yes = HeaderValue::from_static("true");
        headers.insert(ALLOW_PRIVATE_NETWORK, yes);
    }
    response
}

/// Marks an answer as one that this origin may read.
pub(crate) fn allow(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    // A page reads only a few headers of another origin unless they are named.
    let readable = HeaderValue::from_static("idempotent-replayed, retry-after, www-authenticate");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, readable);
}

/// Sets `Vary`, so that caches distinguish origins.
pub(crate) fn vary(headers: &mut HeaderMap) {
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}
