//! A matter: somebody's words, asked for a purpose, on their way through the pipeline.
//!
//! Whoever brings it (chat, messages, responses, verify, embeddings, moderations, a recipe), it is
//! admitted here once and then guarded, deliberated and concluded by the same code. What it says is a
//! [`MatterContent`]: guards see texts and nothing of where they came from.
//!
//! Nothing is judged here. Reading says what a text means; [`crate::guards`] says what follows.

pub(crate) mod history;
pub(crate) mod long_text;
pub(crate) mod memory;
pub(crate) mod reading;
mod turn;

pub use history::{HistoryOrigin, HistoryReading, HistoryText, KnownReadings, RefusedText};
pub use memory::{Memory, Remembered};
pub use turn::Turn;
pub(crate) use turn::{TurnContent, TurnWork, brought, said_before, said_bytes};

use conclave_core::{
    AuditId, Disposition, Finding, GuardCode, GuardKind, GuardRule, KeyId, Passage, Phase, Score,
    Scrutiny, TenantId, TurnContext,
};
use conclave_detect::{DriftState, Reading};
use conclave_govern::{Issue, NewReview, TenantPolicy, community_id};
use conclave_money::RequestSize;
use conclave_pii::Tokens;
use conclave_ports::{PolicyInForce, Pseudonyms};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::time::Instant;

use crate::guards::{BUILTIN_MODEL, Payment};
use crate::shares::Sharer;

/// What a request is to those who count and permit it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// A conversation, whichever way it is spoken.
    #[default]
    Chat,
    /// Texts that become vectors.
    Embeddings,
    /// A reply made elsewhere.
    Verify,
    /// A text that is only read.
    Moderations,
    /// A run of the recipe with this name.
    Recipe(Arc<str>),
}

impl Purpose {
    /// The stable name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Chat => "chat",
            Self::Embeddings => "embeddings",
            Self::Verify => "verify",
            Self::Moderations => "moderations",
            Self::Recipe(name) => name,
        }
    }

    /// What a person must have agreed to it for, where that is not stated.
    #[must_use]
    pub const fn consent_purpose(&self) -> &'static str {
        match self {
            Self::Embeddings => "search",
            _ => "conversation",
        }
    }

    /// Whether it is a run of a recipe.
    #[must_use]
    pub const fn is_recipe(&self) -> bool {
        matches!(self, Self::Recipe(_))
    }
}

/// What a matter says, as guards see it.
///
/// **Invariant:** [`MatterContent::replace`] takes one slot for every text of [`MatterContent::texts`], in the same
/// order; what is replaced is replaced everywhere a model or a client would see it.
pub trait MatterContent: Send + Sync {
    /// Every text that a model (before) or a client (after) would be shown.
    fn texts(&self, phase: Phase) -> Vec<Cow<'_, str>>;
    /// Those of the texts that hold the name of whoever speaks, and nothing else.
    fn speakers(&self, _phase: Phase) -> HashSet<Cow<'_, str>> {
        HashSet::new()
    }
    /// Puts other texts in the place of those that have one.
    fn replace(&mut self, phase: Phase, texts: Vec<Option<String>>);
    /// What the caller asks in words of their own, without the material of others.
    fn own_words(&self) -> String {
        self.texts(Phase::Before).join("\n")
    }
    /// Whether a model would be shown images, sounds or files that nobody can judge.
    fn has_unjudged(&self) -> bool {
        false
    }
    /// How far the input is beyond what a model may read, where that is limited.
    fn excess_tokens(&self) -> Option<ExcessTokens> {
        None
    }
    /// How much a model can be made to read and write for it.
    fn size(&self, output_tokens_max: Option<u64>) -> RequestSize;
    /// Tells the model how much it may write, where nobody has.
    fn limit_output(&mut self, _tokens: u64) {}
}

/// An input that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExcessTokens {
    /// How many tokens it has, about.
    pub found: u64,
    /// How many it may have.
    pub limit: u64,
}

/// Whose consent is needed, to what.
#[derive(Clone, Debug, Default)]
pub struct ConsentQuestion {
    /// Whether a policy or a recipe asks for it.
    pub is_required: bool,
    /// Everybody whose words would be used.
    pub subjects: Vec<String>,
    /// What it must cover.
    pub scopes: Vec<String>,
    /// What for.
    pub purpose: String,
    /// Who is given the result, where it was said.
    pub party: Option<String>,
    /// Whether the content states a consent of its own; `None` where it is not its place to.
    pub stated: Option<bool>,
    /// Whether stated consent is enough where nobody keeps records.
    pub passes_unverified: bool,
}

/// Why something waits for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// Communities whose elders must all say yes; empty where it is no community's.
    pub communities: Vec<String>,
    /// What was found.
    pub issues: Vec<Issue>,
    /// Whether it is sacred.
    pub sacred: bool,
}

impl Hold {
    /// Adds another reason: everybody whose words are in any part of it decides.
    pub fn merge(&mut self, other: Self) {
        for community in other.communities {
            let id = community_id(&community);
            if !self.communities.iter().any(|known| community_id(known) == id) {
                self.communities.push(community);
            }
        }
        for issue in other.issues {
            if !self.issues.contains(&issue) {
                self.issues.push(issue);
            }
        }
        self.sacred |= other.sacred;
    }
}

/// A review that people have approved: what it was about is not held for the same reason again.
#[derive(Clone, Debug)]
pub struct PriorApproval(pub NewReview);

impl PriorApproval {
    fn covers(&self, code: GuardCode, communities: &[String]) -> bool {
        let asked: Vec<_> =
            self.0.community.iter().chain(&self.0.others).map(|one| community_id(one)).collect();
        self.0.issues.iter().any(|issue| issue.code == code.as_str())
            && communities.iter().all(|community| asked.contains(&community_id(community)))
    }
}

/// One request on its way.
pub struct Matter<C: ?Sized = dyn MatterContent> {
    /// Under which it will be decided.
    pub id: AuditId,
    /// Whose application.
    pub tenant: TenantId,
    /// With which key.
    pub key: Option<KeyId>,
    /// Whose words, as the ledger knows them.
    pub who: Pseudonyms,
    /// What it is asked for.
    pub purpose: Purpose,
    /// The tenant's policy as it holds for this request, whatever changes meanwhile.
    pub policy: PolicyInForce,
    /// The circumstances that were stated.
    pub context: TurnContext,
    /// What a recipe wants of guards; empty elsewhere.
    pub rules: Vec<GuardRule>,
    /// Whose consent is needed.
    pub consent: ConsentQuestion,
    /// Countries whose rules hold, besides the provider's.
    pub regions: Vec<String>,
    /// What people agreed to before.
    pub approval: Option<PriorApproval>,
    /// The model that is asked; `None` where this program does the work itself.
    pub model: Option<String>,
    /// Who is asked where it does not answer.
    pub fallback: Option<String>,
    /// Whether verifiers elsewhere would be shown what comes back.
    pub is_judged_elsewhere: bool,
    /// What the person's words were read as.
    pub reading: Arc<Reading>,
    /// What is remembered, this message included.
    pub remembered: Remembered,
    /// Where the person stood before this message.
    pub drift_before: DriftState,
    /// How strictly it is treated.
    pub scrutiny: Scrutiny,
    /// Whether the person is long known and calm: fewer verifiers are asked then.
    pub is_established: bool,
    /// What was said earlier and a model is not shown.
    pub refused: Arc<[RefusedText]>,
    /// What guards found.
    pub findings: Vec<Finding>,
    /// Which guards looked, whatever they found.
    pub looked: Vec<GuardKind>,
    /// Why it waits for a person, where it does.
    pub hold: Option<Hold>,
    /// What stands behind the tokens in its texts.
    pub tokens: Tokens,
    /// Who has agreed, as the records say.
    pub consented: Vec<String>,
    /// How it is paid for.
    pub payment: Payment,
    /// Whether it brings so much text that it computes in places of its own.
    pub is_long: bool,
    /// When it came.
    pub started: Instant,
    /// What it says.
    pub content: C,
}

impl<C: ?Sized> Matter<C> {
    /// The same matter about other texts, with nothing found in them yet.
    #[must_use]
    pub fn with_content<D>(&self, content: D) -> Matter<D> {
        Matter {
            id: self.id,
            tenant: self.tenant.clone(),
            key: self.key.clone(),
            who: self.who,
            purpose: self.purpose.clone(),
            policy: self.policy.clone(),
            context: self.context.clone(),
            rules: self.rules.clone(),
            consent: self.consent.clone(),
            regions: self.regions.clone(),
            approval: self.approval.clone(),
            model: self.model.clone(),
            fallback: self.fallback.clone(),
            is_judged_elsewhere: self.is_judged_elsewhere,
            reading: Arc::clone(&self.reading),
            remembered: self.remembered.clone(),
            drift_before: self.drift_before,
            scrutiny: self.scrutiny,
            is_established: self.is_established,
            refused: self.refused.clone(),
            findings: Vec::new(),
            looked: Vec::new(),
            hold: None,
            tokens: self.tokens.clone(),
            consented: self.consented.clone(),
            payment: self.payment.clone(),
            is_long: self.is_long,
            started: self.started,
            content,
        }
    }

    /// The tenant's policy.
    #[must_use]
    pub fn policy(&self) -> &TenantPolicy {
        &self.policy.policy
    }

    /// With whom it shares the processor.
    #[must_use]
    pub fn sharer(&self) -> Sharer {
        Sharer { tenant: self.tenant.clone(), key: self.key.clone() }
    }

    /// What a recipe wants of a guard.
    #[must_use]
    pub fn rule(&self, guard: GuardKind) -> Option<&GuardRule> {
        self.rules.iter().find(|rule| rule.guard == guard)
    }

    /// How far the person is in crisis.
    #[must_use]
    pub fn crisis(&self) -> Score {
        self.reading.crisis
    }

    /// What follows from everything that was found so far.
    #[must_use]
    pub fn passage(&self) -> Passage {
        Passage::through(&self.findings)
    }

    /// The strictest finding: its code is what the client is told.
    #[must_use]
    pub fn gravest(&self) -> Option<&Finding> {
        self.findings.iter().filter(|one| one.counts()).max_by_key(|one| one.disposition)
    }

    /// Whether a guard let it pass with a mark.
    #[must_use]
    pub fn is_flagged(&self) -> bool {
        self.has(|finding| finding.disposition == Disposition::Flagged)
    }

    /// Whether it was let pass in doubt about what the person asks for.
    #[must_use]
    pub fn is_doubted(&self) -> bool {
        self.has(|finding| {
            finding.disposition == Disposition::Flagged && finding.code == Some(GuardCode::Doubt)
        })
    }

    /// Whether anything was replaced in what came back.
    #[must_use]
    pub fn is_redacted_after(&self) -> bool {
        self.has(|finding| {
            finding.disposition == Disposition::Redacted && finding.phase == Phase::After
        })
    }

    fn has(&self, test: impl Fn(&Finding) -> bool) -> bool {
        self.findings.iter().any(|finding| finding.counts() && test(finding))
    }

    /// Whether people have said yes to this very thing. What a model writes afterwards nobody has seen
    /// yet, so that a yes from before does not cover it.
    #[must_use]
    pub fn is_approved(&self, phase: Phase, code: GuardCode, communities: &[String]) -> bool {
        let asks_nobody = self.model.as_deref().is_none_or(|model| model == BUILTIN_MODEL);
        let is_seen = phase == Phase::Before || asks_nobody;
        is_seen && self.approval.as_ref().is_some_and(|one| one.covers(code, communities))
    }

    /// Whether everybody whose words are used has agreed, as the records say.
    #[must_use]
    pub fn is_consent_verified(&self) -> bool {
        !self.consented.is_empty() && self.consented.len() == self.consent.subjects.len()
    }

    /// Notes what a guard found; once, however many replies it found it in.
    pub fn note(&mut self, finding: Finding) {
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Notes one more reason to wait.
    pub fn add_hold(&mut self, hold: Hold) {
        match &mut self.hold {
            Some(known) => known.merge(hold),
            None => self.hold = Some(hold),
        }
    }
}
