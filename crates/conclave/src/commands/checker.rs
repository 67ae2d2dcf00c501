//! The judge that `check`, `eval`, `redteam`, `explain` and `bench` share, so that they agree.

use crate::config::SecondTier;
use anyhow::Context;
use conclave_classify::{Ensemble, Second};
use conclave_detect::Detector;
use conclave_engine::Checker;
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

/// The checker with everything that is built in.
///
/// # Errors
/// When the data files compiled in are broken.
pub fn build(second: SecondTier) -> anyhow::Result<Checker> {
    with(Arc::new(detector(second)?))
}

/// The checker with this detector.
///
/// # Errors
/// When the data files compiled in are broken.
pub fn with(detector: Arc<Detector>) -> anyhow::Result<Checker> {
    let judges = conclave_verifiers::builtin().context("verifier files")?;
    let finder = conclave_pii::Finder::builtin().context("identifying data")?;
    Ok(Checker::new(detector, judges).with_finder(finder))
}
