//! The vocabulary of guards: who looks, when, what they may do, and what they found.
//!
//! **Invariant:** why something was stopped is a [`GuardCode`]. The HTTP status, the directive and the
//! sentence a person reads are each looked up from it in one table; nothing is decided by a text.
//! **Invariant:** the strictest disposition wins, whatever the order; a guard that failed holds.

use serde::{Deserialize, Serialize, Serializer};

/// An enum whose variants have stable names on the wire and in the ledger.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum $name { $($(#[$each])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// Every one, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// Finds the one with this name.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == name)
            }
        }
    };
}

named! {
    /// Who looks, in the order in which they look.
    GuardKind {
        /// Whether the model is offered and permitted, and the input fits.
        Cost = "cost",
        /// What communities say about their knowledge.
        Culture = "cultural",
        /// Whether the person agreed.
        Consent = "consent",
        /// What identifies people.
        PersonalData = "pii",
        /// Where words may go.
        Jurisdiction = "jurisdiction",
        /// What the person asks for: harm, crisis, injection, trend, drift.
        Interpretation = "interpretation",
        /// Whether words harm, where a recipe sets a line of its own.
        Toxicity = "toxicity",
        /// Whether the money is there.
        Budget = "budget",
    }
}

named! {
    /// What a guard does when it finds something, where a recipe or a policy may choose.
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
        /// At what a model would be shown.
        Before = "pre",
        /// At what came back.
        After = "post",
    }
}

named! {
    /// What came of a guard's look, from mildest to strictest.
    Disposition {
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

named! {
    /// Why a guard did more than let something pass.
    GuardCode {
        /// There is no consent that covers it.
        ConsentRequired = "consent_required",
        /// The consent was taken back.
        ConsentWithdrawn = "consent_withdrawn",
        /// Consent is stated, and nobody keeps records to check it.
        ConsentUnverified = "consent_unverified",
        /// A rule forbids that words go where they would go.
        Jurisdiction = "jurisdiction",
        /// No rule says whether they may.
        JurisdictionUnknown = "jurisdiction_unknown",
        /// A community's protocol speaks of it.
        Cultural = "cultural",
        /// It is sacred.
        Sacred = "sacred",
        /// It belongs to a community, and nobody here can decide for it.
        NoElders = "no_elders",
        /// It identifies somebody.
        PersonalData = "pii",
        /// It tries to override instructions.
        Injection = "injection",
        /// The person asks for harm.
        Harmful = "harmful",
        /// It may be that the person asks for harm; one weak sign says so.
        Doubt = "doubt",
        /// Something said earlier was refused or would be, and a model was not shown it.
        History = "history",
        /// It holds parts that nobody can judge, and the policy refuses those.
        Unjudged = "unjudged",
        /// Words harm.
        Toxicity = "toxicity",
        /// Nobody offers the model.
        UnknownModel = "unknown_model",
        /// The policy or the sensitivity does not permit the model.
        ModelNotPermitted = "model_not_permitted",
        /// The input is longer than the model may read.
        TooLong = "too_long",
        /// A limit on money forbids it.
        InsufficientQuota = "insufficient_quota",
        /// A limit on money is in force, and nobody knows the price.
        Unpriced = "unpriced",
        /// A budget is asked for, and none is kept.
        NoBudgetKept = "no_purse",
        /// A cheaper model was asked.
        Downgraded = "downgraded",
        /// The guard could not be asked.
        GuardFailed = "guard_failed",
    }
}

impl GuardAction {
    /// Whether a guard can do this.
    #[must_use]
    pub const fn suits(self, guard: GuardKind) -> bool {
        match guard {
            GuardKind::Culture => matches!(self, Self::ElderReview | Self::Flag | Self::Block),
            GuardKind::PersonalData => matches!(self, Self::Redact | Self::Block),
            GuardKind::Budget => matches!(self, Self::Block | Self::Downgrade),
            GuardKind::Consent | GuardKind::Jurisdiction => matches!(self, Self::Block),
            GuardKind::Interpretation | GuardKind::Toxicity | GuardKind::Cost => {
                matches!(self, Self::Block | Self::Flag)
            }
        }
    }
}

/// A guard as a recipe or a policy wants it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardRule {
    /// Which.
    pub guard: GuardKind,
    /// What it does when it finds something.
    pub action: GuardAction,
    /// Whether the recipe cannot go on without it.
    #[serde(default)]
    pub blocking: bool,
    /// From where on it acts, in hundredths, where it measures something.
    #[serde(default)]
    pub threshold: Option<u8>,
}

/// What one guard found. The code may be kept for ever; the detail is words, and may not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which guard.
    pub guard: GuardKind,
    /// When it looked.
    pub phase: Phase,
    /// What came of it.
    #[serde(rename = "taken")]
    pub disposition: Disposition,
    /// Why; absent where it passed.
    #[serde(serialize_with = "name_or_nothing")]
    pub code: Option<GuardCode>,
    /// A sentence for whoever may read the sealed words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Whether the guard only watches: what it found is recorded and changes nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub monitor: bool,
}

fn name_or_nothing<S: Serializer>(code: &Option<GuardCode>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(code.map_or("", GuardCode::as_str))
}

impl Finding {
    /// A guard that found nothing.
    #[must_use]
    pub const fn passed(guard: GuardKind, phase: Phase) -> Self {
        let detail = String::new();
        Self { guard, phase, disposition: Disposition::Passed, code: None, detail, monitor: false }
    }

    /// A guard that found something.
    #[must_use]
    pub fn new(
        guard: GuardKind,
        phase: Phase,
        disposition: Disposition,
        code: GuardCode,
        detail: impl Into<String>,
    ) -> Self {
        let detail = detail.into();
        Self { guard, phase, disposition, code: Some(code), detail, monitor: false }
    }

    /// Whether it changes anything.
    #[must_use]
    pub const fn counts(&self) -> bool {
        !self.monitor
    }

    /// The code's name; empty where it passed.
    #[must_use]
    pub fn code_name(&self) -> &'static str {
        self.code.map_or("", GuardCode::as_str)
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

impl Passage {
    /// What follows: the strictest finding wins, and one that only watches changes nothing.
    #[must_use]
    pub fn through(findings: &[Finding]) -> Self {
        let counted = findings.iter().filter(|finding| finding.counts());
        match counted.map(|finding| finding.disposition).max() {
            Some(Disposition::Blocked) => Self::Closed,
            Some(Disposition::Held | Disposition::Failed) => Self::Held,
            _ => Self::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(disposition: Disposition) -> Finding {
        let code = GuardCode::PersonalData;
        Finding::new(GuardKind::PersonalData, Phase::Before, disposition, code, "")
    }

    #[test]
    fn guards_look_in_the_order_of_the_specification() {
        let names: Vec<_> = GuardKind::ALL.iter().map(|guard| guard.as_str()).collect();
        let order = [
            "cost",
            "cultural",
            "consent",
            "pii",
            "jurisdiction",
            "interpretation",
            "toxicity",
            "budget",
        ];
        assert_eq!(names, order);
        assert!(GuardKind::ALL.is_sorted());
    }

    #[test]
    fn the_strictest_finding_wins_and_a_failure_holds() {
        use Disposition::{Blocked, Downgraded, Failed, Flagged, Held, Passed, Redacted};
        for (dispositions, expected) in [
            (vec![], Passage::Open),
            (vec![Passed, Flagged, Downgraded, Redacted], Passage::Open),
            (vec![Redacted, Failed, Passed], Passage::Held),
            (vec![Held, Passed], Passage::Held),
            (vec![Blocked, Failed], Passage::Closed),
        ] {
            let mut findings: Vec<_> = dispositions.iter().copied().map(finding).collect();
            assert_eq!(Passage::through(&findings), expected, "{dispositions:?}");
            findings.reverse();
            assert_eq!(Passage::through(&findings), expected, "the order does not matter");
        }
    }

    #[test]
    fn a_guard_that_only_watches_changes_nothing() {
        let watching = Finding { monitor: true, ..finding(Disposition::Blocked) };
        assert_eq!(Passage::through(&[watching]), Passage::Open);
    }

    #[test]
    fn no_guard_takes_an_action_that_is_not_its_own() {
        assert!(GuardAction::Redact.suits(GuardKind::PersonalData));
        assert!(!GuardAction::Flag.suits(GuardKind::Consent), "consent is never a mere mark");
        assert!(!GuardAction::Redact.suits(GuardKind::Culture));
        for guard in GuardKind::ALL {
            assert!(GuardAction::ALL.iter().any(|action| action.suits(*guard)), "{guard:?}");
        }
    }
}
