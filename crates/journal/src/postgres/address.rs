//! Where the database is and how to get there.
//!
//! A password never appears in an error, in a log or in `Debug`. A connection that leaves the machine is
//! encrypted and the name of the server is checked, unless the user allows plain text.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{password, tls};

/// Dead connections are noticed by the time a call would be given up.
const KEEPALIVE: Duration = Duration::from_secs(10);
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(15);

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("the address of a journal begins with `postgres://`")]
    Scheme,
    #[error("the address of the journal names no {0}")]
    Missing(&'static str),
    #[error("the address of the journal is not valid")]
    Invalid(#[source] tokio_postgres::Error),
    #[error("`sslmode={0}` is unknown; it is `disable`, `prefer`, `require` or `verify-full`")]
    SslMode(String),
    /// Everything that agents see and say would cross the network for all to read.
    #[error("the connection to `{host}` would not be encrypted")]
    Plain { host: String },
    #[error("cannot read `{}`", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("`{}` can be read by others; its mode has to be 600", .0.display())]
    Exposed(PathBuf),
    #[error("`{}` has no certificate of an authority", .0.display())]
    NoCertificate(PathBuf),
}

/// A database with everything that is needed to connect.
#[derive(Clone)]
pub(super) struct Address {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

/// How an address is checked.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionRules {
    /// Certificates of authorities beside those of the system.
    pub(super) ca_file: Option<PathBuf>,
    /// Plain text may leave the machine.
    pub(super) allows_plain: bool,
}

impl Address {
    pub(super) fn parse(url: &str, rules: &ConnectionRules) -> Result<Self, AddressError> {
        let (url, ssl_mode) = take_ssl_mode(url)?;
        let mut config = Config::from_str(&url).map_err(AddressError::Invalid)?;
        if config.get_hosts().is_empty() {
            return Err(AddressError::Missing("host"));
        }
        if config.get_user().is_none() {
            return Err(AddressError::Missing("user"));
        }
        if config.get_application_name().is_none() {
            config.application_name("linkspan");
        }
        if config.get_hosts().len() > 1 {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        config
            .keepalives_idle(KEEPALIVE)
            .tcp_user_timeout(TCP_USER_TIMEOUT);
        let distant = distant_host(&config);
        let is_encrypted = match ssl_mode.as_deref() {
            Some("require" | "verify-ca" | "verify-full") => true,
            None | Some("prefer") => distant.is_some(),
            Some("disable") => match distant {
                Some(host) if !rules.allows_plain => return Err(AddressError::Plain { host }),
                _ => false,
            },
            Some(other) => return Err(AddressError::SslMode(other.to_owned())),
        };
        let tls = match is_encrypted {
            true => Some(tls::connector(rules.ca_file.as_deref())?),
            false => None,
        };
        config.ssl_mode(match is_encrypted {
            true => SslMode::Require,
            false => SslMode::Disable,
        });
        Ok(Self { config, tls })
    }

    pub(super) fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    pub(super) fn set_password(&mut self, password: &str) {
        self.config.password(password);
    }

    /// Looks the password up in a file of the form of `.pgpass`.
    pub(super) fn look_up_password(&mut self, path: &Path) -> Result<(), AddressError> {
        let lines = password::read_private(path)?;
        let config = &self.config;
        let host = config.get_hosts().first().map(host_name);
        let found = password::find(
            &lines,
            host.as_deref().unwrap_or("localhost"),
            config.get_ports().first().copied().unwrap_or(5432),
            config
                .get_dbname()
                .or(config.get_user())
                .unwrap_or_default(),
            config.get_user().unwrap_or_default(),
        );
        if let Some(found) = found {
            self.set_password(&found);
        }
        Ok(())
    }

    pub(super) async fn connect(&self) -> Result<(Client, Messages), tokio_postgres::Error> {
        Ok(match &self.tls {
            Some(tls) => {
                let (client, connection) = self.config.connect(tls.clone()).await?;
                (client, Messages(Box::new(connection)))
            }
            None => {
                let (client, connection) = self.config.connect(NoTls).await?;
                (client, Messages(Box::new(connection)))
            }
        })
    }
}

/// As people may see it.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (config, ports) = (&self.config, self.config.get_ports());
        write!(f, "postgres://{}@", config.get_user().unwrap_or_default())?;
        for (n, host) in config.get_hosts().iter().enumerate() {
            let separator = if n == 0 { "" } else { "," };
            let port = ports.get(n).or(ports.first()).unwrap_or(&5432);
            write!(f, "{separator}{}:{port}", host_name(host))?;
        }
        write!(f, "/{}", config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The client library does not know all modes.
fn take_ssl_mode(url: &str) -> Result<(String, Option<String>), AddressError> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(AddressError::Scheme);
    }
    let Some((base, options)) = url.split_once('?') else {
        return Ok((url.to_owned(), None));
    };
    let mut ssl_mode = None;
    let others = options
        .split('&')
        .filter(|it| match it.strip_prefix("sslmode=") {
            Some(mode) => {
                ssl_mode = Some(mode.to_owned());
                false
            }
            None => true,
        });
    let others: Vec<_> = others.collect();
    let url = format!("{base}?{}", others.join("&"));
    Ok((url.trim_end_matches('?').to_owned(), ssl_mode))
}

fn host_name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    }
}

/// The first host that is another machine.
fn distant_host(config: &Config) -> Option<String> {
    let is_distant = |name: &str| {
        let is_loopback = name.parse().is_ok_and(|it: IpAddr| it.is_loopback());
        name != "localhost" && !is_loopback
    };
    let addresses = config.get_hostaddrs().iter().map(ToString::to_string);
    let names = config.get_hosts().iter().filter_map(|it| match it {
        Host::Tcp(name) => Some(name.clone()),
        #[cfg(unix)]
        Host::Unix(_) => None,
    });
    // An address that is given beside a name is where the bytes go.
    match config.get_hostaddrs() {
        [] => names.into_iter().find(|it| is_distant(it)),
        _ => addresses.into_iter().find(|it| is_distant(it)),
    }
}

/// The half of a connection that moves the bytes. It ends with the client.
pub(super) struct Messages(Box<dyn PollMessage>);

impl Messages {
    /// What the server says without being asked; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Result<AsyncMessage, tokio_postgres::Error>> {
        std::future::poll_fn(|cx| self.0.poll_next(cx)).await
    }
}

trait PollMessage: Send {
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<AsyncMessage, tokio_postgres::Error>>>;
}

impl<S, T> PollMessage for tokio_postgres::Connection<S, T>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send,
{
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<AsyncMessage, tokio_postgres::Error>>> {
        self.poll_message(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<(String, bool), String> {
        let address = Address::parse(url, &ConnectionRules::default());
        let address = address.map_err(|it| it.to_string())?;
        Ok((address.to_string(), address.tls.is_some()))
    }

    #[test]
    fn what_leaves_the_machine_is_encrypted() {
        let addresses = [
            ("postgres://ann@localhost/db", false),
            ("postgres://ann@127.0.0.1:7/db?sslmode=disable", false),
            ("postgres://ann@[::1]/db?sslmode=verify-full", true),
            ("postgresql://ann@%2Frun%2Fpg/db", false),
            ("postgres://ann@db.example/db", true),
            ("postgres://ann@10.0.0.1/db?sslmode=prefer", true),
            ("postgres://ann@localhost,db.example/db", true),
        ];
        for (url, expected) in addresses {
            assert_eq!(parse(url).unwrap().1, expected, "{url}");
        }
        let plain = "postgres://ann@db.example/db?application_name=x&sslmode=disable";
        let refused = "the connection to `db.example` would not be encrypted";
        assert_eq!(parse(plain).unwrap_err(), refused);
        let rules = ConnectionRules {
            allows_plain: true,
            ..ConnectionRules::default()
        };
        assert!(Address::parse(plain, &rules).unwrap().tls.is_none());
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        let url = "postgres://ann:secret@h1:7,h2:8/db?sslmode=verify-full";
        let address = Address::parse(url, &ConnectionRules::default()).unwrap();
        let shown = "postgres://ann@h1:7,h2:8/db";
        assert_eq!(
            (address.to_string(), format!("{address:?}")),
            (shown.into(), shown.into())
        );
        assert!(address.has_password());
    }

    #[test]
    fn an_error_does_not_show_a_password() {
        for url in [
            "ann:secret@h/db",
            "postgres://ann:secret@/db",
            "postgres://ann:secret@h:secret/db",
            "postgres://ann:secret@h/db?secret",
            "postgres://ann:secret@h/db?port=secret",
            "postgres://ann:secret@h/db?sslmode=none",
        ] {
            let err = Address::parse(url, &ConnectionRules::default()).unwrap_err();
            let mut text = format!("{err} {err:?}");
            let mut source = std::error::Error::source(&err);
            while let Some(it) = source {
                text.push_str(&it.to_string());
                source = it.source();
            }
            assert!(!text.contains("ann:") && !text.contains("cret@"), "{text}");
        }
    }
}
