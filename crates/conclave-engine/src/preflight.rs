//! What is looked at before a model is asked: the input, and how strictly the turn is treated.
//!
//! **Invariant:** nothing here calls a model.

use crate::settings::Settings;
use crate::turn::{Turn, last_of};
use conclave_core::{Category, DirectiveId, Mode, Role, Score, Scrutiny, Sensitivity};
use conclave_detect::{Detector, Reading};
use conclave_instinct::Instinct;
use std::sync::Arc;

/// What the input came to.
#[derive(Clone, Debug)]
pub(crate) struct Examination {
    pub input: Arc<Reading>,
    pub scrutiny: Scrutiny,
    pub stop: Option<Stop>,
}

/// Why the model is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The input asks for harm.
    Harmful { category: Option<Category>, directive: DirectiveId },
    /// A person in crisis asks for means: the system itself answers.
    CrisisWithMeans,
}

/// Decides from what was read whether, and how strictly, the turn goes on.
pub(crate) fn examine(
    instinct: &Instinct,
    settings: &Settings,
    turn: &Turn,
    input: Reading,
    newcomer: bool,
) -> Examination {
    let scrutiny = scrutiny(settings, turn, &input, newcomer);
    let stop = stop(instinct, settings, &input);
    Examination { input: Arc::new(input), scrutiny, stop }
}

/// What there is to read of a turn.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    said: String,
    brought: String,
    mode: Mode,
}

impl Input {
    /// The person's last words, and what tools and files brought.
    pub(crate) fn of(turn: &Turn) -> Self {
        Self {
            said: last_of(&turn.conversation, Role::User),
            brought: last_of(&turn.conversation, Role::Tool),
            mode: effective_mode(turn),
        }
    }

    /// Reads it. What tools and files brought is read for injection only, because nobody asked for
    /// anything there.
    pub(crate) fn read(&self, detector: &Detector) -> Reading {
        let mut reading = detector.read(&self.said, self.mode);
        if !self.brought.is_empty() {
            let smuggled = detector.read(&self.brought, self.mode).injection;
            reading.injection = reading.injection.max(smuggled);
        }
        reading
    }
}

/// A minor is always read in child-safe mode.
fn effective_mode(turn: &Turn) -> Mode {
    if turn.context.minor { Mode::ChildSafe } else { turn.context.mode }
}

fn scrutiny(settings: &Settings, turn: &Turn, input: &Reading, newcomer: bool) -> Scrutiny {
    let context = &turn.context;
    let strict = input.is_crisis()
        || context.minor
        || context.mode == Mode::ChildSafe
        || context.sensitivity == Sensitivity::Sacred;
    let raised = newcomer || input.is_injection() || context.sensitivity == Sensitivity::High;
    let asked = match (strict, raised) {
        (true, _) => Scrutiny::Strict,
        (false, true) => Scrutiny::Raised,
        (false, false) => Scrutiny::Normal,
    };
    asked.max(settings.scrutiny_min)
}

fn stop(instinct: &Instinct, settings: &Settings, input: &Reading) -> Option<Stop> {
    if input.is_harmful() {
        if input.is_crisis() {
            return Some(Stop::CrisisWithMeans);
        }
        let category = input.gravest();
        let directive = category.map_or(FIRST, |category| instinct.for_category(category));
        return Some(Stop::Harmful { category, directive });
    }
    // Crisis wins contact over everything else that could stop a turn.
    let refuse_injection = settings.block_injection && input.is_injection() && !input.is_crisis();
    refuse_injection.then(|| Stop::Harmful {
        category: Some(Category::Injection),
        directive: instinct.for_category(Category::Injection),
    })
}

/// The core that every other directive serves.
const FIRST: DirectiveId = DirectiveId(1);

/// What a decision remembers of a score.
pub(crate) fn is_crisis(score: Score) -> bool {
    score.hundredths() >= 50
}
