//! Encrypted connections, for a gateway without a proxy before it: the certificate and its key, read from files and
//! read again when they change.
//!
//! **Invariant:** TLS 1.2 and newer, HTTP/1.1 within it.
//! **Invariant:** files that cannot be used replace nothing: whoever connects meets the last pair that could.

use super::serve::PatientStream;
use super::validity::validity;
use conclave_voice::Date;
use rustls::ServerConfig;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};
use thiserror::Error;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Files larger than this are no certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// What somebody is told who speaks plain HTTP here.
const SPEAK_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 51\r\nconnection: close\r\n\r\nThis port speaks TLS: begin the URL with https://.\n";

/// Where a certificate and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, and those between it and a root, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TlsError {
    /// A file is not there, or not for us.
    #[error("the {what} file {} cannot be read: {why}", path.display())]
    Unreadable {
        /// Certificate or key.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// A file holds something else.
    #[error("there is no certificate in {}: it must hold PEM, `-----BEGIN CERTIFICATE-----`, the server's own first", .0.display())]
    NoCertificate(PathBuf),
    /// A file holds something else.
    #[error("there is no private key in {}: it must hold PEM, `-----BEGIN PRIVATE KEY-----` (or RSA or EC), without a passphrase", .0.display())]
    NoKey(PathBuf),
    /// Each is fine, and they are not one pair.
    #[error("the key in {} does not belong to the certificate in {}", key.display(), certificate.display())]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// Its time is over.
    #[error("the certificate in {} ended on {until}: put a new one in its place", path.display())]
    Expired {
        /// Which file.
        path: PathBuf,
        /// Its last day.
        until: String,
    },
    /// Its time has not come.
    #[error("the certificate in {} holds from {from} on: is the clock right?", path.display())]
    NotYet {
        /// Which file.
        path: PathBuf,
        /// Its first day.
        from: String,
    },
    /// Anything else.
    #[error("the certificate in {} cannot be used: {why}", path.display())]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// A pair that is in force.
struct PairInForce {
    config: Arc<ServerConfig>,
    until_ms: u64,
}

/// When files were written and how long they are.
type FileMarks = [Option<(SystemTime, u64)>; 2];

/// The certificate that connections are encrypted with.
pub struct TlsIdentity {
    files: TlsFiles,
    in_force: RwLock<PairInForce>,
    /// What the files were when they were last read, whatever came of it.
    seen: Mutex<FileMarks>,
}

impl TlsIdentity {
    /// Reads the files.
    ///
    /// # Errors
    /// What is wrong with them; the sentence says what to do.
    pub fn load(files: TlsFiles, now_ms: u64) -> Result<Self, TlsError> {
        let seen = Mutex::new(marks(&files));
        let in_force = RwLock::new(read_pair(&files, now_ms)?);
        Ok(Self { files, in_force, seen })
    }

    /// Reads the files again and has them used from the next connection on.
    ///
    /// # Errors
    /// What is wrong with them; the pair from before stays in force.
    pub fn reload(&self, now_ms: u64) -> Result<(), TlsError> {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = marks(&self.files);
        let pair = read_pair(&self.files, now_ms)?;
        *self.in_force.write().unwrap_or_else(PoisonError::into_inner) = pair;
        Ok(())
    }

    /// The same where a file has changed since it was last read; `None` where none has.
    pub fn reload_if_changed(&self, now_ms: u64) -> Option<Result<(), TlsError>> {
        let known = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        (known != marks(&self.files)).then(|| self.reload(now_ms))
    }

    /// Until when the certificate in force holds, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn until_ms(&self) -> u64 {
        self.in_force.read().unwrap_or_else(PoisonError::into_inner).until_ms
    }

    /// Encrypts a connection, if its client does so in time.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
        patience: Duration,
        write_timeout: Duration,
    ) -> io::Result<TlsStream<PatientStream<TcpStream>>> {
        let config =
            Arc::clone(&self.in_force.read().unwrap_or_else(PoisonError::into_inner).config);
        let shaking_hands = async {
            let mut first = [0];
            let mut stream = stream;
            if stream.peek(&mut first).await? == 1 && first[0].is_ascii_alphabetic() {
                stream.write_all(SPEAK_TLS).await?;
                stream.shutdown().await?;
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "plain HTTP came over a TLS port",
                ));
            }
            let stream = PatientStream::new(stream, write_timeout);
            TlsAcceptor::from(config).accept(stream).await
        };
        match tokio::time::timeout(patience, shaking_hands).await {
            Ok(accepted) => accepted,
            Err(_late) => Err(io::Error::new(io::ErrorKind::TimedOut, "no handshake came")),
        }
    }
}

fn marks(files: &TlsFiles) -> FileMarks {
    [&files.certificate, &files.key].map(|path| {
        let known = std::fs::metadata(path).ok()?;
        Some((known.modified().ok()?, known.len()))
    })
}

fn read_pair(files: &TlsFiles, now_ms: u64) -> Result<PairInForce, TlsError> {
    let path = &files.certificate;
    let pem = read_file("certificate", path)?;
    let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|_| TlsError::NoCertificate(path.clone()))?;
    let own = chain.first().ok_or_else(|| TlsError::NoCertificate(path.clone()))?;
    let unusable = |why: String| TlsError::Unusable { path: path.clone(), why };
    let held =
        validity(own).ok_or_else(|| unusable("it does not say how long it holds".to_owned()))?;
    let day =
        |ms| Date::of_ms(ms).map_or_else(|| "a distant day".to_owned(), |day| day.to_string());
    if held.until_ms < now_ms {
        return Err(TlsError::Expired { path: path.clone(), until: day(held.until_ms) });
    }
    if held.from_ms > now_ms {
        return Err(TlsError::NotYet { path: path.clone(), from: day(held.from_ms) });
    }
    let key = PrivateKeyDer::from_pem_slice(&read_file("key", &files.key)?);
    let key = key.map_err(|_: PemError| TlsError::NoKey(files.key.clone()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key);
    let mut config = config.map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            TlsError::Mismatch { certificate: path.clone(), key: files.key.clone() }
        }
        other => unusable(other.to_string()),
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(PairInForce { config: Arc::new(config), until_ms: held.until_ms })
}

fn read_file(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |why: String| TlsError::Unreadable { what, path: path.to_owned(), why };
    let known = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    if known.len() > FILE_BYTES_MAX || !known.is_file() {
        return Err(unreadable("it is no file of a certificate's size".to_owned()));
    }
    std::fs::read(path).map_err(|error| unreadable(error.to_string()))
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
