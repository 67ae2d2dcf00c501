//! Where a PostgreSQL database is, and how it is spoken to.
//!
//! **Invariant:** the password is in no message, no log line and no debug output: only the client's
//! own configuration holds it.
//!
//! **Invariant:** a connection that leaves the machine is encrypted and its certificate checked,
//! unless the address says `sslmode=disable` in so many words.

use crate::error::StoreError;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// How long making a connection may take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);
/// How long bytes may stay unacknowledged before a connection counts as dead.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// The address of a PostgreSQL database.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl {
    config: Config,
    shown: String,
    tls: Option<Trust>,
}

/// Whose certificates are believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Those the operating system believes.
    Platform,
    /// Those signed by the certificates in this file.
    File(PathBuf),
}

impl DatabaseUrl {
    /// Reads `postgres://user:password@host:port/name`, with `sslmode` (`disable`, `require` or
    /// `verify-full`, the last two being the same) and `sslrootcert` if need be.
    ///
    /// # Errors
    /// When it is not such an address; the sentence does not repeat it.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let plain = text.starts_with("postgres://") || text.starts_with("postgresql://");
        if !plain {
            return Err(refused("it must begin with postgres://"));
        }
        let (address, parameters) = text.split_once('?').unwrap_or((text, ""));
        let mut kept = Vec::new();
        let (mut mode, mut roots) = (None, None);
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value.to_owned()),
                Some(("sslrootcert", value)) => roots = Some(PathBuf::from(value)),
                _ => kept.push(parameter),
            }
        }
        let parsed = Config::from_str(&format!("{address}?{}", kept.join("&")));
        // What the client says about a bad address may quote it, so only its kind is repeated.
        let mut config = parsed.map_err(|_| refused("the address cannot be read"))?;
        if config.get_hosts().is_empty() {
            return Err(refused("it names no host"));
        }
        if config.get_dbname().is_none() {
            return Err(refused("it names no database"));
        }
        let tls = trust(mode.as_deref(), roots.as_ref(), is_here(&config))?;
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        config.application_name("conclave");
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_PATIENCE);
        }
        config.tcp_user_timeout(SILENCE_MAX).keepalives_idle(SILENCE_MAX);
        let shown = show(&config);
        Ok(Self { config, shown, tls })
    }

    /// Whether the address itself holds the password.
    #[must_use]
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    pub(super) const fn config(&self) -> &Config {
        &self.config
    }

    pub(super) const fn tls(&self) -> Option<&Trust> {
        self.tls.as_ref()
    }
}

/// Without the password, for people.
impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({})", self.shown)
    }
}

fn refused(why: &str) -> StoreError {
    StoreError::Address(format!(
        "the database address cannot be used: {why}; it looks like \
         postgres://USER:PASSWORD@HOST:5432/NAME"
    ))
}

/// Whether every host is this machine.
fn is_here(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let ip: Option<std::net::IpAddr> = name.parse().ok();
            name == "localhost" || ip.is_some_and(|ip| ip.is_loopback())
        }
    })
}

fn trust(
    mode: Option<&str>,
    roots: Option<&PathBuf>,
    is_here: bool,
) -> Result<Option<Trust>, StoreError> {
    let believed = || roots.cloned().map_or(Trust::Platform, Trust::File);
    match mode {
        Some("disable") => Ok(None),
        Some("require" | "verify-ca" | "verify-full") => Ok(Some(believed())),
        Some(_) => Err(refused("sslmode must be disable, require or verify-full")),
        None if is_here && roots.is_none() => Ok(None),
        None => Ok(Some(believed())),
    }
}

fn show(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => String::new(),
    };
    let port = config.get_ports().first().map(|port| format!(":{port}")).unwrap_or_default();
    format!("postgres://{host}{port}/{}", config.get_dbname().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_shown_nowhere() {
        let url = DatabaseUrl::parse("postgres://me:s3cret@db.example:5433/audit").unwrap();
        assert_eq!(url.to_string(), "postgres://db.example:5433/audit");
        assert!(!format!("{url:?}").contains("s3cret"));
        for bad in [
            "mysql://me:s3cret@db/x",
            "postgres://me:s3cret@db",
            "postgres:///audit?password=s3cret",
            "postgres://me:s3cret@db:port/x",
            "postgres://me:s3cret@db/x?sslmode=maybe",
        ] {
            let sentence = DatabaseUrl::parse(bad).unwrap_err().to_string();
            assert!(sentence.contains("cannot be used"), "{bad}: {sentence}");
            assert!(!sentence.contains("s3cret"), "{sentence}");
        }
    }

    #[test]
    fn what_leaves_the_machine_is_encrypted_unless_the_address_says_otherwise() {
        let cases = [
            ("postgres://u@db.example/x", Some(Trust::Platform)),
            ("postgres://u@10.0.0.7/x", Some(Trust::Platform)),
            ("postgres://u@db.example/x?sslmode=disable", None),
            ("postgres://u@localhost/x", None),
            ("postgres://u@127.0.0.1:5432/x", None),
            ("postgres://u@%2Fvar%2Frun%2Fpostgresql/x", None),
            ("postgres://u@localhost/x?sslmode=require", Some(Trust::Platform)),
            ("postgres://u@h/x?sslrootcert=/etc/ca.pem", Some(Trust::File("/etc/ca.pem".into()))),
        ];
        for (text, expected) in cases {
            let url = DatabaseUrl::parse(text).unwrap();
            assert_eq!(url.tls, expected, "{text}");
        }
    }
}
