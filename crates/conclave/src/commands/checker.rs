//! The judge that `check`, `eval`, `redteam`, `explain` and `bench` share, so that they agree.

use crate::cli::ReadingArgs;
use crate::config::SecondTier;
use crate::own_files;
use anyhow::Context;
use conclave_classify::{ActionModel, Ensemble, SlowTiers};
use conclave_detect::Detector;
use conclave_engine::Checker;
use conclave_pii::Finder;
use conclave_verifiers::{Consequences, Judge};
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

/// The built-in verifiers, with the trained model of actions behind Counterfactual.
///
/// # Errors
/// When the data files compiled in are broken.
pub fn judges() -> anyhow::Result<Vec<Box<dyn Judge>>> {
    let model = Arc::new(ActionModel::builtin().context("the model of actions")?);
    let engine = Consequences::builtin().context("verifier files")?.with_classifier(model);
    conclave_verifiers::builtin_with(Arc::new(engine)).context("verifier files")
}

/// The checker of tests that measure no model: with the first tier alone.
#[cfg(test)]
pub(super) fn quick(with_replies: bool) -> Checker {
    let reading = ReadingArgs { second_tier: SecondTier::Never, patterns: Vec::new() };
    build(&reading, with_replies).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_engine::Question;
    use serde_json::json;

    #[test]
    fn calls_without_words_are_delivered_after_any_short_word_and_grave_ones_are_not() {
        let checker = quick(true);
        let check = |text: &str, tool: serde_json::Value| {
            let line = json!({"text": text, "response": "", "tools": [tool]});
            checker.check(&Question::from_line(line.as_object().unwrap()).unwrap())
        };
        // Of 220 such words these were withheld, because a model of replies read an empty text.
        let words = "city time stop lights calendar meeting save load convert hr legal contact support \
            hours power build log query container ok 1 x hi thanks";
        for word in words.split(' ') {
            let answer = check(word, json!({"name": "lookup", "arguments": {"name": "Paris"}}));
            assert_eq!(answer.action, "deliver", "{word}: {:?}", answer.votes);
            let voted = answer.votes.iter().filter(|vote| vote.vote != "not_applicable").count();
            assert_eq!(voted, 2, "{word}: {:?}", answer.votes);
        }
        let grave =
            json!({"name": "device", "arguments": {"device": "ventilators", "power": "off"}});
        assert_ne!(check("lights", grave).action, "deliver");
    }
}
