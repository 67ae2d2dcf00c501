//! nginx as a plain proxy before the mock model: what any proxy costs.
//!
//! **Invariant:** one process without a master, so that ending it ends all of it.

use crate::house::{free_addr, scratch, wait_for};
use crate::process::Running;
use crate::setup;
use std::path::Path;
use std::process::{Command, Stdio};

/// A running nginx.
pub struct Proxy {
    _process: Running,
    _files: tempfile::TempDir,
    pub addr: String,
}

/// Starts one before a model; none where it is not installed and cannot be.
pub fn start(model: &str, dir: Option<&Path>) -> anyhow::Result<Option<Proxy>> {
    if !is_here() && setup::nginx().is_err() {
        return Ok(None);
    }
    let (files, addr) = (scratch(dir)?, free_addr()?);
    let here = files.path().display();
    let config = format!(
        "daemon off;\nmaster_process off;\npid {here}/pid;\nerror_log {here}/error.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n  access_log off;\n  client_body_temp_path {here}/body;\n  proxy_temp_path {here}/proxy;\n  \
         fastcgi_temp_path {here}/fastcgi;\n  uwsgi_temp_path {here}/uwsgi;\n  scgi_temp_path {here}/scgi;\n  \
         keepalive_requests 1000000;\n  \
         upstream model {{ server {model}; keepalive 64; keepalive_requests 1000000; }}\n  \
         server {{\n    listen {addr};\n    location / {{\n      proxy_pass http://model;\n      \
         proxy_http_version 1.1;\n      proxy_set_header Connection \"\";\n    }}\n  }}\n}}\n"
    );
    std::fs::write(files.path().join("nginx.conf"), config)?;
    let mut command = Command::new("nginx");
    command.arg("-c").arg(files.path().join("nginx.conf")).stderr(Stdio::null());
    let process = Running(command.spawn()?);
    wait_for(&addr)?;
    Ok(Some(Proxy { _process: process, _files: files, addr }))
}

fn is_here() -> bool {
    // It knows no `--version`.
    let asked = Command::new("nginx").arg("-v").stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}
