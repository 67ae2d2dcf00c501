//! The judge that `check`, `eval`, `redteam`, `explain` and `bench` share, so that they agree.

use anyhow::Context;
use conclave_detect::Detector;
use conclave_engine::Checker;
use std::sync::Arc;

/// The detector with everything that is built in.
///
/// # Errors
/// When the data files compiled in are broken.
pub fn detector() -> anyhow::Result<Detector> {
    Detector::builtin().context("pattern files")
}

/// The checker with everything that is built in.
///
/// # Errors
/// When the data files compiled in are broken.
pub fn build() -> anyhow::Result<Checker> {
    let judges = conclave_verifiers::builtin().context("verifier files")?;
    Ok(Checker::new(Arc::new(detector()?), judges))
}
