//! Certificates made for each test: which are used, which are refused, and what connections come to.

use super::super::serve::{ServerState, serve};
use super::*;
use crate::GatewayLimits;
use axum::Router;
use axum::routing::get;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use std::net::SocketAddr;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsConnector;

/// Some day in 2026.
const NOW: u64 = 1_780_000_000_000;

/// A pair in PEM that holds from one year to another.
fn pair(from: i32, until: i32) -> [String; 2] {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(until, 12, 31);
    [params.self_signed(&key).unwrap().pem(), key.serialize_pem()]
}

fn files_in(dir: &Path) -> TlsFiles {
    TlsFiles { certificate: dir.join("cert.pem"), key: dir.join("key.pem") }
}

fn write(files: &TlsFiles, [certificate, key]: &[String; 2]) {
    std::fs::write(&files.certificate, certificate).unwrap();
    std::fs::write(&files.key, key).unwrap();
}

#[test]
fn each_thing_that_can_be_wrong_with_the_files_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let files = files_in(dir.path());
    let refusal = || TlsIdentity::load(files.clone(), NOW).err().map(|error| error.to_string());
    let good = pair(2020, 2049);
    let [certificate, key] = good.clone();
    assert!(refusal().unwrap().contains("cert.pem cannot be read"));
    for (given, said) in [
        ([certificate.clone(), pair(2020, 2049)[1].clone()], "does not belong"),
        ([String::new(), key.clone()], "no certificate in"),
        ([key.clone(), key.clone()], "no certificate in"),
        ([certificate.clone(), certificate.clone()], "no private key in"),
        ([certificate.clone(), String::new()], "no private key in"),
        (pair(2020, 2025), "ended on 2025-12-31"),
        (pair(2027, 2049), "holds from 2027-01-01"),
        ([certificate.replace("MII", "MIJ"), key.clone()], "cert.pem"),
    ] {
        write(&files, &given);
        let why = refusal().unwrap_or_else(|| panic!("{said}: it was used"));
        assert!(why.contains(said), "{said}: {why}");
    }
    write(&files, &good);
    std::fs::remove_file(&files.key).unwrap();
    assert!(refusal().unwrap().contains("the key file"));
    write(&files, &good);
    assert_eq!(refusal(), None);
}

#[test]
fn a_new_pair_is_taken_up_and_a_bad_one_leaves_the_old_in_force() {
    let dir = tempfile::tempdir().unwrap();
    let files = files_in(dir.path());
    write(&files, &pair(2020, 2030));
    let identity = TlsIdentity::load(files.clone(), NOW).unwrap();
    let until = identity.until_ms();
    assert_eq!(identity.reload_if_changed(NOW), None);
    std::fs::write(&files.certificate, "half of a").unwrap();
    assert!(matches!(identity.reload_if_changed(NOW), Some(Err(TlsError::NoCertificate(_)))));
    assert_eq!((identity.reload_if_changed(NOW), identity.until_ms()), (None, until), "said once");
    write(&files, &pair(2020, 2041));
    assert_eq!(identity.reload_if_changed(NOW), Some(Ok(())));
    assert!(identity.until_ms() > until);
    assert_eq!(identity.reload(NOW), Ok(()));
}

/// A server with this identity.
async fn open(identity: Arc<TlsIdentity>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let router = Router::new().route("/", get(async || "fine"));
    tokio::spawn(async move {
        let limits =
            GatewayLimits { header_timeout: Duration::from_millis(300), ..Default::default() };
        let state = ServerState::default();
        serve(listener, router, limits, Some(identity), &state, std::future::pending()).await
    });
    addr
}

/// What is answered to somebody who trusts this certificate and speaks these versions.
async fn ask(
    addr: SocketAddr,
    trusted: &str,
    versions: &[&'static SupportedProtocolVersion],
    alpn: &[&str],
) -> io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(versions).unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(addr).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let spoken = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec).unwrap_or_default();
    Ok(format!("{} {}", String::from_utf8_lossy(&spoken), String::from_utf8_lossy(&answer)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_1_2_and_1_3_are_spoken_and_a_new_certificate_needs_no_restart() {
    let dir = tempfile::tempdir().unwrap();
    let files = files_in(dir.path());
    let (first, second) = (pair(2020, 2030), pair(2020, 2041));
    write(&files, &first);
    let identity = Arc::new(TlsIdentity::load(files.clone(), NOW).unwrap());
    let addr = open(Arc::clone(&identity)).await;
    for version in [&TLS12, &TLS13] {
        let said = ask(addr, &first[0], &[version], &["h2", "http/1.1"]).await.unwrap();
        assert!(said.starts_with("http/1.1 HTTP/1.1 200") && said.ends_with("fine"), "{said}");
    }
    assert!(ask(addr, &first[0], &[&TLS13], &["h2"]).await.is_err(), "HTTP/1.1 alone");
    assert!(ask(addr, &second[0], &[&TLS13], &[]).await.is_err(), "another's certificate");
    write(&files, &second);
    identity.reload(NOW).unwrap();
    assert!(ask(addr, &second[0], &[&TLS13], &[]).await.unwrap().ends_with("fine"));
    assert!(ask(addr, &first[0], &[&TLS13], &[]).await.is_err(), "the old one is gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_speaks_plain_http_is_told_and_whoever_says_nothing_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let files = files_in(dir.path());
    write(&files, &pair(2020, 2030));
    let addr = open(Arc::new(TlsIdentity::load(files, NOW).unwrap())).await;
    let mut plain = TcpStream::connect(addr).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut told = String::new();
    // Our answer may be followed by a reset, because the request was not read.
    let _ = plain.read_to_string(&mut told).await;
    assert!(told.starts_with("HTTP/1.1 400") && told.contains("https://"), "{told}");
    let mut silent = TcpStream::connect(addr).await.unwrap();
    assert_eq!(
        silent.read(&mut [0; 8]).await.unwrap_or(0),
        0,
        "cut off after the patience for heads"
    );
}
