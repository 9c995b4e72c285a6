//! Which requests are meant for this server: the names it answers to, and the pages it trusts.
//!
//! A name has to match to the letter, port included: it is the only protection against DNS
//! rebinding and CSRF. `X-Forwarded-*` and `Forwarded` are ignored, because any client can set
//! them.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderValue, Uri, header};

use crate::cors::AllowedOrigins;

/// Why a request's host or origin is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OriginError {
    /// There is no single `Host`.
    NoHost,
    /// It was meant for another host.
    Misdirected,
    /// It comes from a page that is not ours.
    ForeignPage,
}

/// The names of this server.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostNames {
    /// It cannot be reached by a name, so that any will do.
    has_no_name: bool,
    /// In the form of the `Host` header.
    hosts: Vec<String>,
    /// In the form of the `Origin` header.
    origins: Vec<String>,
    /// Those of `hosts` that browsers may always reach encrypted.
    encrypted: Vec<String>,
    /// Other pages that the operator trusts with the API.
    pub(crate) allowed: AllowedOrigins,
}

impl HostNames {
    /// The names of a server at this address; `public` are those it has elsewhere, such as
    /// `https://agents.example.com`.
    pub(crate) fn new(
        address: SocketAddr,
        is_tls: bool,
        public: &[String],
        allowed: AllowedOrigins,
    ) -> Self {
        let (scheme, usual) = if is_tls { ("https", 443) } else { ("http", 80) };
        let mut names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        names.push("[::1]".to_owned());
        match address.ip() {
            // It listens on every address of the machine; `--origin` says which names that means.
            ip if ip.is_unspecified() => (),
            IpAddr::V4(ip) => names.push(ip.to_string()),
            IpAddr::V6(ip) => names.push(format!("[{ip}]")),
        }
        names.dedup();
        let port = address.port();
        let mut hosts: Vec<String> = names.iter().map(|it| format!("{it}:{port}")).collect();
        if port == usual {
            // Browsers leave out the port that goes without saying.
            hosts.extend(names);
        }
        let mut origins: Vec<String> = hosts.iter().map(|it| format!("{scheme}://{it}")).collect();
        let mut encrypted = Vec::new();
        for origin in public {
            if let Some((scheme, host)) = origin.split_once("://") {
                hosts.push(host.to_owned());
                origins.push(origin.clone());
                if scheme == "https" {
                    encrypted.push(host.to_owned());
                }
            }
        }
        Self {
            has_no_name: false,
            hosts,
            origins,
            encrypted,
            allowed,
        }
    }

    /// A server that no browser can reach. A page behind some proxy is refused by its `Origin`.
    pub(crate) fn none() -> Self {
        Self {
            has_no_name: true,
            ..Self::default()
        }
    }

    /// Whether to send HSTS for this name. It applies to all ports of a name, so never for
    /// `localhost`, where other servers run.
    pub(crate) fn is_encrypted(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
        host.is_some_and(|it| self.encrypted.iter().any(|name| name.as_bytes() == it))
    }

    /// Whether a request was sent to one of our names, but without the port.
    pub(crate) fn lacks_port(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).and_then(|it| it.to_str().ok());
        host.is_some_and(|it| {
            let named = |host: &String| {
                let rest = host.strip_prefix(it);
                rest.is_some_and(|it| it.starts_with(':'))
            };
            self.hosts.iter().any(named)
        })
    }

    /// Whether a request was meant for us.
    pub(crate) fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), OriginError> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(OriginError::NoHost);
        };
        let is_ours =
            |it: &[u8]| self.has_no_name || self.hosts.iter().any(|host| host.as_bytes() == it);
        // A request line with a whole URL, as proxies get it, names a host of its own.
        let authority = uri.authority().map(|it| it.as_str().as_bytes());
        match is_ours(host.as_bytes()) && authority.is_none_or(is_ours) {
            true => Ok(()),
            false => Err(OriginError::Misdirected),
        }
    }

    /// Whether a request comes from our own page, from none at all, or from one that the operator
    /// has named; that one may be of any other site, so `Sec-Fetch-Site` says nothing more. Any
    /// site may link to the page itself (`is_page`), which holds no data.
    pub(crate) fn check_origin(
        &self,
        path: &str,
        headers: &HeaderMap,
        is_page: bool,
    ) -> Result<(), OriginError> {
        if self.allowed.find(path, headers).is_some() {
            return Ok(());
        }
        // A sandboxed page sends `null`, which is no name of ours either.
        for origin in headers.get_all(header::ORIGIN) {
            let is_ours = |it: &String| it.as_bytes() == origin.as_bytes();
            if !self.origins.iter().any(is_ours) {
                return Err(OriginError::ForeignPage);
            }
        }
        let is_visit = is_page
            && headers
                .get("sec-fetch-mode")
                .is_some_and(|it| it == "navigate");
        // `none` is sent for an address that was typed or a bookmark.
        for site in headers.get_all("sec-fetch-site") {
            if !is_visit && site != "same-origin" && site != "none" {
                return Err(OriginError::ForeignPage);
            }
        }
        Ok(())
    }
}
