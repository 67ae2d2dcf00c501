//! TLS to the database, by rustls.
//!
//! **Invariant:** certificates are checked, and so is the name in them; there is no switch that
//! turns this off and encrypts all the same.

use super::url::Trust;
use futures_util::future::{BoxFuture, FutureExt};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Stream;

/// Encrypts connections.
#[derive(Clone)]
pub(super) struct Encryption(Arc<ClientConfig>);

impl Encryption {
    /// # Errors
    /// When the certificates to believe cannot be read; the error is a sentence.
    pub(super) fn new(trust: &Trust) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be used: {error}"))?;
        let config = match trust {
            Trust::Platform => builder
                .with_platform_verifier()
                .map_err(|error| format!("the system's certificates cannot be used: {error}"))?
                .with_no_client_auth(),
            Trust::File(path) => {
                let cannot = |error: &dyn std::fmt::Display| {
                    format!("the certificates in {} cannot be used: {error}", path.display())
                };
                let mut roots = RootCertStore::empty();
                let read = CertificateDer::pem_file_iter(path).map_err(|error| cannot(&error))?;
                for certificate in read {
                    let certificate = certificate.map_err(|error| cannot(&error))?;
                    roots.add(certificate).map_err(|error| cannot(&error))?;
                }
                if roots.is_empty() {
                    return Err(cannot(&"there are none in it"));
                }
                builder.with_root_certificates(roots).with_no_client_auth()
            }
        };
        Ok(Self(Arc::new(config)))
    }
}

impl<S> MakeTlsConnect<S> for Encryption
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type TlsConnect = Handshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Self::Error> {
        let name = ServerName::try_from(host)?.to_owned();
        Ok(Handshake { config: Arc::clone(&self.0), name })
    }
}

/// One handshake to be made.
pub(super) struct Handshake {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Encrypted<S>>>;

    fn connect(self, stream: S) -> Self::Future {
        async move {
            let encrypted = TlsConnector::from(self.config).connect(self.name, stream).await?;
            Ok(Encrypted(encrypted))
        }
        .boxed()
    }
}

/// An encrypted connection.
pub(super) struct Encrypted<S>(Stream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, bytes)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
