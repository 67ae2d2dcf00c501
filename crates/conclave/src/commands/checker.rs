//! The judge that `check`, `eval`, `redteam`, `explain` and `bench` share, so that they agree.

use crate::config::SecondTier;
use anyhow::Context;
use conclave_classify::{Ensemble, Second};
use conclave_detect::Detector;
use conclave_engine::Checker;
use conclave_pii::Finder;
use std::sync::Arc;

/// The detector with everything that is built in.
///
/// # Errors
/// When the data files compiled in are broken.
pub fn detector(second: SecondTier) -> anyhow::Result<Detector> {
    let second = match second {
        SecondTier::Never => Second::Never,
        SecondTier::Unsure => Second::Unsure,
        SecondTier::Always => Second::Always,
    };
    let trained = Ensemble::builtin(second).context("trained models")?;
    Ok(Detector::builtin().context("pattern files")?.with_classifier(Arc::new(trained)))
}

/// What looks for identifying data.
///
/// # Errors
/// When the patterns compiled in are broken.
fn finder() -> anyhow::Result<Finder> {
    Finder::builtin().context("identifying data")
}

/// The checker with everything that is built in.
///
/// # Errors
/// When the data files compiled in are broken.
pub fn build(second: SecondTier) -> anyhow::Result<Checker> {
    // The start of `check` is mostly this: both are built side by side.
    let (detector, finder) = std::thread::scope(|scope| {
        let finder = scope.spawn(finder);
        (detector(second), finder.join())
    });
    let finder = finder.map_err(|_| anyhow::anyhow!("looking for identifying data broke"))??;
    assemble(Arc::new(detector?), finder)
}

/// The checker with this detector.
///
/// # Errors
/// When the data files compiled in are broken.
pub fn with(detector: Arc<Detector>) -> anyhow::Result<Checker> {
    assemble(detector, finder()?)
}

fn assemble(detector: Arc<Detector>, finder: Finder) -> anyhow::Result<Checker> {
    let judges = conclave_verifiers::builtin().context("verifier files")?;
    Ok(Checker::new(detector, judges).with_finder(finder))
}
