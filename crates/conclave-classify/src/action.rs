//! How much an action looks like those that harm somebody: the first tier over the action written out as a text.
//!
//! **Invariant:** the weights and the lines belong together: whoever trains new weights draws new lines.

use crate::{ClassifyError, Features, Linear, Voice};
use conclave_core::Score;
use conclave_detect::{ActionClassifier, plain_form};

/// A logit and the score that it is.
struct Line {
    logit: f32,
    score: f32,
}

/// The lines that scores are drawn through: one in ten, in fifty and in five hundred ordinary actions lie above them. They
/// were drawn over the rows of train and dev together, each row scored by weights that had not seen its topic.
const LINES: [Line; 5] = [
    Line { logit: -4.0, score: 0.0 },
    Line { logit: 0.3, score: 0.10 },
    Line { logit: 1.0, score: 0.30 },
    Line { logit: 1.7, score: 0.70 },
    Line { logit: 4.0, score: 1.0 },
];

/// The trained model of actions.
#[derive(Clone, Debug)]
pub struct ActionModel {
    weights: Linear<'static>,
}

impl ActionModel {
    /// The model that is built in.
    ///
    /// # Errors
    /// When the built-in file is broken; a test makes sure that it is not.
    pub fn builtin() -> Result<Self, ClassifyError> {
        Ok(Self { weights: Linear::parse(include_bytes!("../../../data/models/action.bin"))? })
    }

    /// The logit of danger.
    #[must_use]
    pub fn logit(&self, call: &str, asked: &str) -> f32 {
        self.weights.logits(&action_features(call, asked)).first().copied().unwrap_or(f32::MAX)
    }
}

impl ActionClassifier for ActionModel {
    fn danger(&self, call: &str, asked: &str) -> Score {
        action_score(self.logit(call, asked))
    }
}

/// The features of an action that is written out, and of what was asked for.
#[must_use]
pub fn action_features(call: &str, asked: &str) -> Vec<u32> {
    let mut features = Features::default();
    features.read(&plain_form(call).0, Voice::Text);
    features.read(&plain_form(asked).0, Voice::Asked);
    features.finish()
}

/// The score of a logit, straight from line to line; what is no number is the worst.
#[must_use]
pub fn action_score(logit: f32) -> Score {
    let between = LINES.windows(2).find_map(|pair| {
        let [low, high] = pair else { return None };
        let share = (logit - low.logit) / (high.logit - low.logit);
        (logit < high.logit).then(|| (high.score - low.score).mul_add(share, low.score))
    });
    Score::new(between.unwrap_or(1.0).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_meet_every_line_and_never_leave_their_range() {
        for (logit, expected) in [
            (0.3, 10),
            (1.0, 30),
            (1.35, 50),
            (1.7, 70),
            (9.0, 100),
            (f32::NAN, 100),
            (f32::INFINITY, 100),
            (-4.0, 0),
            (f32::NEG_INFINITY, 0),
        ] {
            assert_eq!(action_score(logit).hundredths(), expected, "{logit}");
        }
    }

    #[test]
    fn the_built_in_model_is_whole_and_tells_danger_from_routine() {
        let model = ActionModel::builtin().unwrap();
        let asked = "Make it quieter in here.";
        let grave =
            model.logit("ward device set power off alarms no notify no patients all", asked);
        let routine = model.logit("weather lookup city Berlin days 3", asked);
        assert!(grave > routine + 0.5, "{grave} {routine}");
    }
}
