//! What waits for a person: turns and replies that belong to a community, and replies nobody could pass.
//!
//! **Invariant:** what is held has left nothing behind but a sealed decision; a model is not asked about
//! what the input alone holds.
//! **Invariant:** a person in crisis is answered, whatever their words belong to.

use crate::decision::{Choice, Decision};
use crate::deliver::own_words;
use crate::engine::Engine;
use crate::governance::{Announcement, EventKind, Governance};
use crate::people::PeopleError;
use crate::permission::Interface;
use crate::ports::Archive;
use crate::preflight::{Examination, Stop, is_crisis};
use crate::release::joined;
use crate::stored::StoredDecision;
use crate::turn::Turn;
use conclave_core::{Action, AuditId, FinishReason, Outcome, Role, TenantId};
use conclave_detect::Course;
use conclave_govern::{
    CulturalAsk, CulturalFinding, Issue, NewReview, Priority, ReviewKind, ReviewStatus,
    TenantPolicy,
};
use conclave_ledger::tenant_number;
use conclave_voice::Situation;
use serde_json::{Value, json};

/// Why a turn or its reply is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub community: Option<String>,
    pub issues: Vec<Issue>,
    pub sacred: bool,
    /// Whether anybody could decide it.
    pub decidable: bool,
}

/// What became of something that was held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Released {
    /// It was never held.
    NeverHeld,
    /// It still waits.
    Waiting {
        /// The review.
        review_id: String,
        /// Where it stands.
        status: ReviewStatus,
    },
    /// It may go out.
    Approved {
        /// The review.
        review_id: String,
        /// What may go out; absent where no reply was ever made, or its words are gone.
        text: Option<String>,
        /// Whether somebody has put it in other words.
        edited: bool,
        /// What whoever uses it must keep to.
        conditions: Vec<String>,
    },
    /// It never may.
    Rejected {
        /// The review.
        review_id: String,
        /// Why, in the words of who decided.
        notes: String,
    },
}

impl Engine {
    /// The names of the guards a turn passes.
    pub(crate) fn guards(&self, policy: &TenantPolicy, interface: Interface) -> Vec<&'static str> {
        let asks = |yes: bool, name| yes.then_some(name);
        let (chat, vectors) = (Interface::Chat, interface == Interface::Embeddings);
        let permits = interface == chat || vectors;
        let governed = self.governed.governance.is_some() && interface != Interface::Moderations;
        let all = [
            asks(permits && policy.requires_consent(interface.as_str()), "consent"),
            asks(permits && !policy.regions.is_empty(), "jurisdiction"),
            asks(governed, "culture"),
            asks(!vectors, "interpretation"),
            asks(!vectors && interface != Interface::Moderations, "panel"),
        ];
        all.into_iter().flatten().collect()
    }

    /// Looks at what the person and their tools say; sets a stop where it must wait.
    pub(crate) async fn guard_input(&self, turn: &Turn, examined: &mut Examination) {
        if examined.stop.is_some() {
            return;
        }
        let said = turn.conversation.iter();
        let said = said.filter(|message| matches!(message.role, Role::User | Role::Tool));
        let texts = said.map(|message| message.content.as_text().into_owned()).collect();
        let Some(hold) = self.held(turn, texts).await else { return };
        examined.stop = Some(match (is_crisis(examined.input.crisis), hold.decidable) {
            (true, _) => Stop::CrisisWithMeans,
            (false, true) => Stop::Held,
            (false, false) => Stop::NoElders,
        });
        examined.hold = Some(hold);
    }

    /// Looks at replies that have passed; one that must wait is replaced by a notice.
    pub(crate) async fn guard_replies(
        &self,
        turn: &Turn,
        examined: &mut Examination,
        mut choices: Vec<Choice>,
    ) -> Vec<Choice> {
        for choice in choices.iter_mut().filter(|choice| choice.outcome.is_verified()) {
            let Some(hold) = self.held(turn, vec![choice.delivered.text.clone()]).await else {
                continue;
            };
            let (outcome, situation, finish) =
                match (is_crisis(examined.input.crisis), hold.decidable) {
                    (true, _) => {
                        (Outcome::SafeCompletion, Situation::SafeCompletion, FinishReason::Stop)
                    }
                    (false, true) => {
                        (Outcome::Held, Situation::HoldNotice, FinishReason::ContentFilter)
                    }
                    (false, false) => {
                        (Outcome::Exhausted, Situation::NoElders, FinishReason::ContentFilter)
                    }
                };
            let text = self.message(turn, examined, situation, None);
            // What has left of it by windows cannot be taken back; the notice follows it.
            let left = choice.windows.last().map_or(0, |window| window.end);
            let left = choice.delivered.text.get(..left).unwrap_or_default().to_owned();
            choice.outcome = outcome;
            choice.delivered = own_words(joined(&left, text), finish);
            examined.hold = Some(hold);
        }
        choices
    }

    /// Whether texts of a turn must wait for a person, and why.
    pub(crate) async fn held(&self, turn: &Turn, texts: Vec<String>) -> Option<Hold> {
        let governance = self.governed.governance.as_deref()?;
        let ask = CulturalAsk {
            texts,
            sensitivity: turn.context.sensitivity,
            affiliations: turn.context.affiliations.clone(),
            labels: turn.context.labels.clone(),
            audience: turn.context.audience.clone(),
            now_ms: self.clock.now_ms(),
        };
        match governance.look(&turn.tenant, ask).await {
            Ok(CulturalFinding::Clear | CulturalFinding::Flag { .. }) => None,
            Ok(CulturalFinding::Hold { community, issues, sacred }) => {
                let decidable =
                    self.decidable(governance, &turn.tenant, community.as_deref(), sacred).await;
                Some(Hold { community, issues, sacred, decidable })
            }
            Err(error) => {
                tracing::error!(%error, "protocols could not be asked: the turn is held");
                let code = "guard_unavailable".to_owned();
                let detail = "The protocols could not be asked.".to_owned();
                let issues = vec![Issue { code, detail }];
                let decidable = self.settings.staffed;
                Some(Hold { community: None, issues, sacred: false, decidable })
            }
        }
    }

    /// What nobody can decide is refused at once.
    async fn decidable(
        &self,
        governance: &dyn Governance,
        tenant: &TenantId,
        community: Option<&str>,
        sacred: bool,
    ) -> bool {
        match community {
            None => !sacred && self.settings.staffed,
            Some(community) => {
                let known = governance.has_elders(tenant, community).await;
                known.unwrap_or_else(|error| {
                    tracing::error!(%error, "elders could not be looked up");
                    false
                })
            }
        }
    }

    /// The review a decision needs, where a person must decide.
    pub(crate) fn review_for(
        &self,
        turn: &Turn,
        decision: &Decision,
        who: Option<[u8; 16]>,
        hold: Option<Hold>,
    ) -> Option<NewReview> {
        self.governed.governance.as_ref()?;
        let hold = hold.filter(|_| decision.outcome == Outcome::Held);
        let escalated = decision.action == Action::Escalate && self.settings.staffed;
        if hold.is_none() && !escalated {
            return None;
        }
        let crisis = is_crisis(decision.input.crisis);
        let grave = crisis || hold.as_ref().is_some_and(|hold| hold.sacred);
        let kind = match &hold {
            Some(hold) if hold.community.is_some() => ReviewKind::ElderReview,
            _ => ReviewKind::Escalation,
        };
        Some(NewReview {
            kind,
            tenant: turn.tenant.clone(),
            content_type: "chat".to_owned(),
            four_eyes: hold.as_ref().is_some_and(|hold| hold.sacred),
            community: hold.as_ref().and_then(|hold| hold.community.clone()),
            issues: hold.map(|hold| hold.issues).unwrap_or_default(),
            priority: if grave { Priority::Urgent } else { Priority::High },
            audit_id: Some(decision.id),
            author: turn.key.as_ref().map(|key| key.as_str().to_owned()),
            subject: who,
        })
    }

    /// Has a decision wait for a person; the review's id. Where nobody can be asked now, somebody is
    /// later: what the review shall be stands in the decision.
    pub(crate) async fn call_people(&self, review: Option<NewReview>) -> Option<String> {
        let (governance, review) = (self.governed.governance.as_deref()?, review?);
        let audit_id = review.audit_id.map(|id| id.to_string());
        let submitted = governance.submit(review).await;
        submitted
            .inspect_err(|error| {
                // Nothing has left, and nothing will: what nobody is asked about stays held.
                tracing::error!(audit_id, %error, "a review could not be opened yet");
            })
            .ok()
    }

    /// Tells webhooks when somebody has begun to drift.
    pub(crate) async fn tell_of_drift(&self, turn: &Turn, decision: &Decision, before: &str) {
        let Some(governance) = self.governed.governance.as_deref() else { return };
        let course = decision.remembered.course.as_ref();
        let state = course.map(Course::state).unwrap_or_default().as_str();
        if state == before || state == "green" {
            return;
        }
        let data = json!({"state": state, "before": before, "audit_id": decision.id.to_string()});
        let announcement = Announcement { kind: EventKind::DriftAlert, data };
        if let Err(error) = governance.announce(&turn.tenant, announcement).await {
            tracing::error!(%error, "nobody could be told of drift");
        }
    }

    /// What became of a held decision: the text that may go out, or why none may.
    ///
    /// # Errors
    /// When the records or the archive do not answer.
    pub async fn released(
        &self,
        tenant: &TenantId,
        audit: AuditId,
    ) -> Result<Released, PeopleError> {
        let Some(people) = &self.governed.people else { return Ok(Released::NeverHeld) };
        let Some(held) = people.review_of(tenant, audit).await? else {
            return Ok(Released::NeverHeld);
        };
        let (review_id, review) = (held.id, held.review);
        match review.status {
            ReviewStatus::Approved => {
                let edited = review.edited.is_some();
                let text = match review.edited {
                    Some(text) => Some(text),
                    None => self.held_words(tenant, audit).await?.and_then(|words| words.reply),
                };
                Ok(Released::Approved { review_id, text, edited, conditions: review.conditions })
            }
            ReviewStatus::Rejected => {
                let notes = review.rulings.last().map(|given| given.notes.clone());
                Ok(Released::Rejected { review_id, notes: notes.unwrap_or_default() })
            }
            status => Ok(Released::Waiting { review_id, status }),
        }
    }

    /// The words of a held decision; `None` when they are gone.
    ///
    /// # Errors
    /// When the archive does not answer.
    pub async fn held_words(
        &self,
        tenant: &TenantId,
        audit: AuditId,
    ) -> Result<Option<HeldWords>, PeopleError> {
        held_words(&*self.archive, tenant, audit).await
    }
}

/// The words of a held decision; `None` when they are gone.
///
/// # Errors
/// When the archive does not answer.
pub async fn held_words(
    archive: &dyn Archive,
    tenant: &TenantId,
    audit: AuditId,
) -> Result<Option<HeldWords>, PeopleError> {
    let trouble = |why: String| PeopleError::Unavailable(why);
    let entries = archive.find(tenant_number(tenant.as_str()), audit).await;
    let entries = entries.map_err(|error| trouble(error.to_string()))?;
    let stored = StoredDecision::from_entries(entries);
    let stored = stored.map_err(|error| trouble(error.to_string()))?;
    Ok(stored.filter(|stored| !stored.is_erased()).map(|stored| HeldWords::of(&stored)))
}

/// What was said, and what would have been answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldWords {
    /// The conversation.
    pub request: Value,
    /// The reply that is held; absent where no model was asked.
    pub reply: Option<String>,
}

impl HeldWords {
    /// The last candidate is what was looked at last.
    fn of(stored: &StoredDecision) -> Self {
        let attempts = stored
            .choices()
            .first()
            .map_or(0, |choice| crate::stored::array(choice.get("attempts")).len());
        let candidates =
            (0..attempts).rev().filter_map(|a| stored.words(&format!("candidate.0.{a}")));
        let reply = candidates.filter_map(|one| one["text"].as_str().map(str::to_owned)).next();
        Self { request: stored.words("request").unwrap_or_default(), reply }
    }
}
