//! Owns the guards: their order, what each may do, and what follows from all of them together.
//!
//! **Invariant:** a guard that fails holds; nothing passes because somebody could not be asked.
//! **Invariant:** the strictest outcome wins, whatever the order.

use serde::{Deserialize, Serialize};

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$each])* $variant,)+ }

        impl $name {
            /// Every one, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}

named! {
    /// Who looks, in the order in which they look, before a model is asked and after.
    Guard {
        /// Whether the model is known and priced, and the input fits.
        Cost = "cost",
        /// What communities say about their knowledge.
        Cultural = "cultural",
        /// Whether the person agreed.
        Consent = "consent",
        /// What identifies people.
        Pii = "pii",
        /// Where words may go.
        Jurisdiction = "jurisdiction",
        /// Whether words harm.
        Toxicity = "toxicity",
        /// Whether the money is there.
        Budget = "budget",
    }
}

named! {
    /// What a recipe has a guard do when it finds something.
    GuardAction {
        /// Nothing is returned.
        Block = "block",
        /// What was found is replaced by tokens.
        Redact = "redact",
        /// It waits for an elder.
        ElderReview = "elder_review",
        /// It goes on, marked.
        Flag = "flag",
        /// A cheaper model that is permitted is asked.
        Downgrade = "downgrade",
    }
}

named! {
    /// When a guard looked.
    Phase {
        /// Before any model is asked.
        Pre = "pre",
        /// At what came back.
        Post = "post",
    }
}

named! {
    /// What came of it, from mildest to strictest.
    Taken {
        /// Nothing was found.
        Passed = "passed",
        /// It was marked.
        Flagged = "flagged",
        /// Another model is asked.
        Downgraded = "downgraded",
        /// Parts were replaced.
        Redacted = "redacted",
        /// It waits for a person.
        Held = "held",
        /// The guard itself failed: it waits for a person.
        Failed = "failed",
        /// Nothing is returned.
        Blocked = "blocked",
    }
}

impl GuardAction {
    /// Whether a guard can do this.
    #[must_use]
    pub const fn suits(self, guard: Guard) -> bool {
        match guard {
            Guard::Cultural => matches!(self, Self::ElderReview | Self::Flag | Self::Block),
            Guard::Pii => matches!(self, Self::Redact | Self::Block),
            Guard::Budget => matches!(self, Self::Block | Self::Downgrade),
            Guard::Consent | Guard::Jurisdiction => matches!(self, Self::Block),
            Guard::Toxicity | Guard::Cost => matches!(self, Self::Block | Self::Flag),
        }
    }
}

/// A guard as a recipe wants it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardRule {
    /// Which.
    pub guard: Guard,
    /// What it does when it finds something.
    pub action: GuardAction,
    /// Whether the recipe cannot go on without it.
    #[serde(default)]
    pub blocking: bool,
    /// From where on it acts, in hundredths, where it measures something.
    #[serde(default)]
    pub threshold: Option<u8>,
}

/// What one guard did. The code is of a closed list and may be kept for ever; the detail may not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GuardOutcome {
    /// Which.
    pub guard: Guard,
    /// When.
    pub phase: Phase,
    /// What came of it.
    pub taken: Taken,
    /// What it found, as a word of a closed list; empty where it passed.
    pub code: &'static str,
    /// A sentence for whoever may read the sealed words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl GuardOutcome {
    /// A guard that found nothing.
    #[must_use]
    pub const fn passed(guard: Guard, phase: Phase) -> Self {
        Self { guard, phase, taken: Taken::Passed, code: "", detail: String::new() }
    }

    /// A guard that found something.
    #[must_use]
    pub fn found(
        (guard, phase): (Guard, Phase),
        taken: Taken,
        code: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self { guard, phase, taken, code, detail: detail.into() }
    }
}

/// What follows from all guards together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Goes on.
    Open,
    /// Waits for a person.
    Held,
    /// Nothing is returned.
    Closed,
}

/// What follows: the strictest wins.
#[must_use]
pub fn passage(outcomes: &[GuardOutcome]) -> Passage {
    match outcomes.iter().map(|outcome| outcome.taken).max() {
        Some(Taken::Blocked) => Passage::Closed,
        Some(Taken::Held | Taken::Failed) => Passage::Held,
        _ => Passage::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(taken: Taken) -> GuardOutcome {
        GuardOutcome::found((Guard::Pii, Phase::Pre), taken, "x", "")
    }

    #[test]
    fn guards_look_in_the_order_of_the_specification() {
        let names: Vec<_> = Guard::ALL.iter().map(|guard| guard.as_str()).collect();
        let order = ["cost", "cultural", "consent", "pii", "jurisdiction", "toxicity", "budget"];
        assert_eq!(names, order);
        assert!(Guard::ALL.is_sorted());
    }

    #[test]
    fn the_strictest_outcome_wins_and_a_failure_holds() {
        for (taken, expected) in [
            (vec![], Passage::Open),
            (
                vec![Taken::Passed, Taken::Flagged, Taken::Downgraded, Taken::Redacted],
                Passage::Open,
            ),
            (vec![Taken::Redacted, Taken::Failed, Taken::Passed], Passage::Held),
            (vec![Taken::Held, Taken::Passed], Passage::Held),
            (vec![Taken::Blocked, Taken::Failed], Passage::Closed),
        ] {
            let mut outcomes: Vec<_> = taken.iter().copied().map(outcome).collect();
            assert_eq!(passage(&outcomes), expected, "{taken:?}");
            outcomes.reverse();
            assert_eq!(passage(&outcomes), expected, "the order does not matter");
        }
    }

    #[test]
    fn no_guard_takes_an_action_that_is_not_its_own() {
        assert!(GuardAction::Redact.suits(Guard::Pii));
        assert!(!GuardAction::Flag.suits(Guard::Consent), "consent is never a mere mark");
        assert!(!GuardAction::Redact.suits(Guard::Cultural));
        for guard in Guard::ALL {
            assert!(GuardAction::ALL.iter().any(|action| action.suits(*guard)), "{guard:?}");
        }
    }
}
