//! The middleware that every request passes: host, origin, token, role.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::cors;
use crate::error::ApiError;
use crate::host_origin::OriginError;
use crate::log::{LoggedBefore, RequestLine};
use crate::rights;
use crate::routes::Access;
use crate::state::App;
use crate::tokens::MIN_TOKEN;
use crate::unauthenticated::UnauthenticatedSlot;

/// The content security policy of the page: its own files and its own server, nothing inline, no
/// other hosts.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; frame-ancestors 'none'; form-action 'none'; base-uri 'none'";

const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(), geolocation=(), microphone=()",
    ),
];

/// A year, for the one name that the operator has given.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddr(pub(crate) SocketAddr);

/// Checks that need no token, and headers for every answer.
pub(crate) async fn outer_middleware(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let line = RequestLine::new(&request, peer(&request));
    let is_open = !app.origins.allowed.is_empty() && cors::is_open(request.uri().path());
    let allowed = &app.origins.allowed;
    let allowed = allowed.find(request.uri().path(), request.headers());
    let allowed = allowed.cloned();
    let is_encrypted = app.origins.is_encrypted(request.headers());
    let mut response = match check(&app, &request) {
        // Answered before the route: browsers send no token with a preflight.
        Ok(()) if allowed.is_some() && cors::is_preflight(&request) => {
            cors::preflight(request.headers())
        }
        Ok(()) => next.run(request).await,
        Err(refused) => {
            let lacks_port = app.origins.lacks_port(request.headers());
            refusal(refused, lacks_port).into_response()
        }
    };
    let took = began.elapsed();
    app.metrics.answered(response.status(), took);
    line.answered(&response, took);
    let is_misdirected = response.status() == StatusCode::MISDIRECTED_REQUEST;
    let headers = response.headers_mut();
    // A misdirected request gets no details about this server.
    if let Some(origin) = allowed.filter(|_| !is_misdirected) {
        cors::allow(origin, headers);
    }
    // Also without an `Origin`: a cache must not give such an answer to a page.
    if is_open {
        cors::vary(headers);
    }
    if is_encrypted {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HSTS);
    }
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Headers set by the asset handler take precedence.
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

fn check(app: &App, request: &Request) -> Result<(), OriginError> {
    let (uri, headers) = (request.uri(), request.headers());
    app.origins.check_host(uri, headers)?;
    let is_page = request.method() == Method::GET && uri.path() == "/";
    app.origins.check_origin(uri.path(), headers, is_page)
}

fn refusal(refused: OriginError, lacks_port: bool) -> ApiError {
    match refused {
        OriginError::NoHost => ApiError::bad("the request names no single host").code("no_host"),
        OriginError::Misdirected => {
            let message = "this server has another name";
            ApiError::new(StatusCode::MISDIRECTED_REQUEST, "other_host", message).hint(match lacks_port {
                true => {
                    "`Host` lacks the port: a proxy has to pass on what the browser sent (in nginx \
                     `proxy_set_header Host $http_host`)"
                }
                false => "`linkspan serve --origin` tells it more names",
            })
        }
        OriginError::ForeignPage => ApiError::forbidden("requests of other pages are refused")
            .code("foreign_page")
            .hint("`linkspan serve --allow-origin` names pages that may use the API"),
    }
}

/// The token and the role that one route needs.
pub(crate) async fn auth_middleware(
    State((app, access)): State<(Arc<App>, Access)>,
    mut request: Request,
    next: Next,
) -> Response {
    let Access::Role(role) = access else {
        return next.run(request).await;
    };
    let is_ws = request.uri().path() == "/ws";
    // A long token is always checked: one client behind a shared address must not lock out the others.
    let by_token = || {
        let token = token(request.headers(), is_ws)?;
        let may_try =
            token.len() >= MIN_TOKEN || app.rate_limit.may_try(peer(&request), Instant::now());
        may_try.then(|| app.find_caller(token)).flatten()
    };
    let caller = app.only_caller().or_else(by_token);
    let Some(caller) = caller else {
        return unauthorized(&app, peer(&request));
    };
    // Any valid token keeps the connection, also one whose role is too low for this route.
    if let Some(slot) = request.extensions().get::<Arc<UnauthenticatedSlot>>() {
        slot.mark_authenticated();
    }
    if caller.role < role {
        return rights::too_low(&caller, role, "for this").into_response();
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// The token of a request: one header, or for browsers, which cannot set one, a subprotocol.
fn token(headers: &HeaderMap, is_ws: bool) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    match (values.next(), values.next()) {
        // With two headers it is unclear which one counts, so neither does.
        (Some(value), None) => {
            let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token)
        }
        (None, _) if is_ws => {
            let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
            let mut offered = offered
                .filter_map(|it| it.to_str().ok())
                .flat_map(|it| it.split(','));
            offered.find_map(|it| it.trim().strip_prefix("token."))
        }
        _ => None,
    }
}

fn peer(request: &Request) -> IpAddr {
    let peer = request.extensions().get::<PeerAddr>();
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |it| it.0.ip())
}

fn unauthorized(app: &App, peer: IpAddr) -> Response {
    app.metrics.refused();
    let failures = app.rate_limit.record(peer, Instant::now());
    let error = if failures.is_too_many() {
        let message = "too many wrong tokens came from this address; wait a minute";
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", message)
    } else {
        let message = "the token is missing or wrong";
        ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
            .hint("`linkspan token` prints the address of the page with its token")
    };
    let mut response = error.into_response();
    if !failures.is_news() {
        response.extensions_mut().insert(LoggedBefore);
    }
    response
}
