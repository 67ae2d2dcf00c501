//! The judge that `check`, `eval`, `redteam`, `explain` and `bench` share, so that they agree.

use crate::cli::ReadingArgs;
use crate::config::SecondTier;
use crate::own_files;
use anyhow::Context;
use conclave_classify::{Ensemble, SlowTiers};
use conclave_detect::Detector;
use conclave_engine::Checker;
use conclave_pii::Finder;
use conclave_verifiers::Judge;
use std::sync::Arc;

/// The detector with everything that is built in.
///
/// # Errors
/// When the data files compiled in are broken.
pub fn detector(second: SecondTier) -> anyhow::Result<Detector> {
    detector_with(Arc::new(classifier(second)?))
}

/// The detector that a command was asked to read with.
///
/// # Errors
/// When a pattern file cannot be read or used.
pub fn asked_detector(args: &ReadingArgs) -> anyhow::Result<Detector> {
    let trained = Arc::new(classifier(args.second_tier)?);
    own_files::detector_of(&args.patterns, &trained).context("pattern files")
}

/// The trained models that are built in.
///
/// # Errors
/// When the data files compiled in are broken.
pub fn classifier(second: SecondTier) -> anyhow::Result<Ensemble> {
    let second = match second {
        SecondTier::Never => SlowTiers::Never,
        SecondTier::Unsure => SlowTiers::Unsure,
        SecondTier::Always => SlowTiers::Always,
    };
    Ensemble::builtin(second).context("trained models")
}

/// The detector with these trained models.
///
/// # Errors
/// When the data files compiled in are broken.
pub fn detector_with(trained: Arc<Ensemble>) -> anyhow::Result<Detector> {
    Ok(Detector::builtin().context("pattern files")?.with_classifier(trained))
}

/// What looks for identifying data.
///
/// # Errors
/// When the patterns compiled in are broken.
fn finder() -> anyhow::Result<Finder> {
    Finder::builtin().context("identifying data")
}

/// The checker that a command was asked to judge with. Where no reply will be judged, the verifiers are left out:
/// without them a reply would be withheld.
///
/// # Errors
/// When a pattern file cannot be read or used.
pub fn build(reading: &ReadingArgs, with_replies: bool) -> anyhow::Result<Checker> {
    // The start of `check` is mostly this: what does not need the detector is built beside it.
    let (detector, rest) = std::thread::scope(|scope| {
        let rest = scope.spawn(|| {
            let judges = if with_replies { judges()? } else { Vec::new() };
            Ok::<_, anyhow::Error>((finder()?, judges))
        });
        (asked_detector(reading), rest.join())
    });
    let (finder, judges) = rest.map_err(|_| anyhow::anyhow!("building the verifiers broke"))??;
    Ok(Checker::new(Arc::new(detector?), judges).with_finder(finder))
}

/// The checker with this detector.
///
/// # Errors
/// When the data files compiled in are broken.
pub fn with(detector: Arc<Detector>) -> anyhow::Result<Checker> {
    Ok(Checker::new(detector, judges()?).with_finder(finder()?))
}

fn judges() -> anyhow::Result<Vec<Box<dyn Judge>>> {
    conclave_verifiers::builtin().context("verifier files")
}
