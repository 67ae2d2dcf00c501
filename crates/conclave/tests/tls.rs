//! The program with a certificate of its own: what browsers and clients get, and a certificate that is renewed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what they expect"
)]

mod house;

use house::{binary, conclave};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A certificate and its key in PEM.
fn pair(until: i32) -> [String; 2] {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(until, 12, 31);
    [params.self_signed(&key).unwrap().pem(), key.serialize_pem()]
}

fn write(dir: &Path, [certificate, key]: &[String; 2]) {
    std::fs::write(dir.join("cert.pem"), certificate).unwrap();
    std::fs::write(dir.join("key.pem"), key).unwrap();
}

fn configured(dir: &Path, listen: &str, more: &str) -> String {
    let (certificate, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    let text = format!(
        "[server]\nlisten = \"{listen}\"\n{more}\n[tls]\ncertificate = {certificate:?}\nkey = {key:?}\n"
    );
    let file = dir.join("conclave.toml");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// A running program, and what it says.
struct Served {
    program: Child,
    addr: SocketAddr,
    said: Receiver<String>,
}

impl Served {
    fn start(dir: &Path, config: &str) -> Self {
        let mut command = Command::new(binary());
        command.args(["serve", "--config", config, "--data"]).arg(dir.join("data"));
        let mut program = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(program.stderr.take().unwrap()).lines();
        let (tell, said) = channel();
        std::thread::spawn(move || {
            lines.map_while(Result::ok).try_for_each(|line| tell.send(line))
        });
        let mut served = Self { program, addr: SocketAddr::from(([127, 0, 0, 1], 0)), said };
        let ready = served.hear("conclave is ready");
        let at = ready.split_once("https://").expect("an encrypted address").1;
        let end = at.find(|one: char| !one.is_ascii_digit() && one != '.' && one != ':');
        served.addr = at[..end.unwrap_or(at.len())].parse().unwrap();
        served
    }

    /// The next line that says this.
    fn hear(&self, what: &str) -> String {
        loop {
            let line = self.said.recv_timeout(Duration::from_secs(60)).expect(what);
            if line.contains(what) {
                return line;
            }
        }
    }

    fn hang_up(&self) {
        let pid = self.program.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    }

    /// What is answered to somebody who trusts this certificate alone.
    async fn get(&self, path: &str, trusted: &str) -> std::io::Result<String> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let config = builder.with_root_certificates(roots).with_no_client_auth();
        let stream = TcpStream::connect(self.addr).await?;
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_encrypts_by_itself_and_takes_up_a_renewed_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second, third) = (pair(2040), pair(2041), pair(2042));
    write(dir.path(), &first);
    let served = Served::start(dir.path(), &configured(dir.path(), "127.0.0.1:0", ""));
    let health = served.get("/health", &first[0]).await.unwrap();
    assert!(health.starts_with("HTTP/1.1 200"), "{health}");
    let page = served.get("/login", &first[0]).await.unwrap().to_lowercase();
    let cookies: Vec<_> = page.lines().filter(|line| line.starts_with("set-cookie:")).collect();
    assert!(!cookies.is_empty(), "{page}");
    assert!(cookies.iter().all(|cookie| cookie.contains("; secure")), "{cookies:?}");

    // Files that change are seen without being told.
    write(dir.path(), &second);
    served.hear("the certificate was read again");
    assert!(served.get("/livez", &second[0]).await.unwrap().starts_with("HTTP/1.1 200"));
    assert!(served.get("/livez", &first[0]).await.is_err(), "the old certificate is gone");

    // A bad one replaces nothing, whether it is seen or hung up for.
    std::fs::write(dir.path().join("key.pem"), &third[1]).unwrap();
    served.hear("does not belong to the certificate");
    served.hang_up();
    served.hear("does not belong to the certificate");
    assert!(served.get("/livez", &second[0]).await.unwrap().starts_with("HTTP/1.1 200"));
    write(dir.path(), &third);
    served.hang_up();
    served.hear("the certificate was read again");
    assert!(served.get("/livez", &third[0]).await.unwrap().starts_with("HTTP/1.1 200"));
}

#[test]
fn what_is_wrong_with_a_certificate_is_said_by_config_check_and_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let good = pair(2040);
    let file = configured(dir.path(), "127.0.0.1:0", "");
    let mixed = [good[0].clone(), pair(2040)[1].clone()];
    for (given, said) in [
        (None, "cannot be read"),
        (Some(&mixed), "does not belong to the certificate"),
        (Some(&pair(2021)), "ended on 2021-12-31"),
    ] {
        if let Some(given) = given {
            write(dir.path(), given);
        }
        let checked = conclave(&["config", "check", &file]);
        let told = String::from_utf8_lossy(&checked.stdout).into_owned()
            + &String::from_utf8_lossy(&checked.stderr);
        assert_ne!(checked.status.code(), Some(0), "{told}");
        assert!(told.contains(said), "{said}: {told}");
        let data = dir.path().join("data");
        let started = conclave(&["serve", "--config", &file, "--data", data.to_str().unwrap()]);
        let told = String::from_utf8_lossy(&started.stderr).into_owned();
        assert!(!started.status.success() && told.contains(said), "{said}: {told}");
    }
    write(dir.path(), &good);
    assert_eq!(conclave(&["config", "check", &file]).status.code(), Some(0));
    std::fs::write(&file, "[tls]\nkey = \"key.pem\"\n").unwrap();
    let checked = conclave(&["config", "check", &file]);
    let told = String::from_utf8_lossy(&checked.stdout).into_owned()
        + &String::from_utf8_lossy(&checked.stderr);
    assert!(told.contains("tls.certificate"), "{told}");
}

#[test]
fn listening_beyond_this_machine_without_tls_is_said_loudly() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("conclave.toml");
    let warned = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let checked = conclave(&["config", "check", file.to_str().unwrap()]);
        let told = String::from_utf8_lossy(&checked.stdout).into_owned()
            + &String::from_utf8_lossy(&checked.stderr);
        told.contains("nothing encrypts it")
    };
    assert!(warned("[server]\nlisten = \"0.0.0.0:8420\"\n"));
    assert!(!warned("[server]\nlisten = \"0.0.0.0:8420\"\nbehind_proxy = true\n"));
    assert!(!warned("[server]\nlisten = \"127.0.0.1:8420\"\n"));
    write(dir.path(), &pair(2040));
    let with_tls = configured(dir.path(), "0.0.0.0:8443", "");
    assert!(!warned(&std::fs::read_to_string(with_tls).unwrap()));
}
