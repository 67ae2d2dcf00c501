//! What waits for a person: turns and replies that belong to a community, and replies nobody could pass.
//!
//! **Invariant:** what is held has left nothing behind but a sealed decision; a model is not asked about
//! what the input alone holds.
//! **Invariant:** a person in crisis is answered, whatever their words belong to.

use crate::decision::{Choice, Decision};
use crate::deliver::own_words;
use crate::engine::Engine;
use crate::guard_culture::sentences;
use crate::guards::answer;
use crate::handing_out::Hindrance;
use crate::people::PeopleError;
use crate::permission::{Interface, Refusal};
use crate::preflight::{Examination, Stop, is_crisis};
use crate::release::joined;
use crate::turn::Turn;
use conclave_core::{Action, AuditId, FinishReason, Outcome, TenantId};
use conclave_detect::Course;
use conclave_govern::{
    CulturalAsk, CulturalFinding, Issue, NewReview, Priority, ReviewKind, ReviewStatus,
    TenantPolicy, community_id,
};
use conclave_ledger::{Value as Public, tenant_number};
use conclave_ports::Archive;
use conclave_ports::StoredDecision;
use conclave_ports::{Announcement, EventKind, Governance};
use conclave_recipes::{Guard, GuardOutcome, Phase, Taken};
use conclave_voice::Situation;
use serde_json::{Value, json};

/// Why a turn or its reply is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub community: Option<String>,
    /// Further communities, each of which must say yes.
    pub others: Vec<String>,
    pub issues: Vec<Issue>,
    pub sacred: bool,
    /// Whether anybody could decide it.
    pub decidable: bool,
}

impl Hold {
    /// A hold that nobody's protocol asks for.
    pub(crate) fn of_nobody(issue: Issue, decidable: bool) -> Self {
        let (community, others) = (None, Vec::new());
        Self { community, others, issues: vec![issue], sacred: false, decidable }
    }

    /// What is refused where nobody could decide it was blocked, not held.
    const fn taken(&self) -> Taken {
        if self.decidable { Taken::Held } else { Taken::Blocked }
    }

    /// Both together, where several replies of one turn are held: every community decides, and it is
    /// decidable only if both are.
    fn and(mut self, other: Self) -> Self {
        for community in other.community.into_iter().chain(other.others) {
            let id = community_id(&community);
            let mut known = self.community.iter().chain(&self.others);
            if known.any(|known| community_id(known) == id) {
                continue;
            }
            match &self.community {
                None => self.community = Some(community),
                Some(_) => self.others.push(community),
            }
        }
        let new = other.issues.into_iter().filter(|issue| !self.issues.contains(issue));
        let new: Vec<_> = new.collect();
        self.issues.extend(new);
        self.sacred |= other.sacred;
        self.decidable &= other.decidable;
        self
    }
}

/// What the guard of culture found in texts of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    Clear,
    /// It may go on, and is marked.
    Flagged(Vec<Issue>),
    /// It waits for elders.
    Held(Hold),
    /// Nobody could say, so it waits as well.
    Failed(Hold),
}

impl Looked {
    /// Whether it must wait.
    pub(crate) const fn waits(&self) -> bool {
        matches!(self, Self::Held(_) | Self::Failed(_))
    }
}

impl Examination {
    /// Notes what a guard did; once, however many replies it did it to.
    pub(crate) fn note(
        &mut self,
        at: (Guard, Phase),
        taken: Taken,
        code: &'static str,
        detail: String,
    ) {
        let outcome = GuardOutcome::found(at, taken, code, detail);
        if !self.outcomes.contains(&outcome) {
            self.outcomes.push(outcome);
        }
    }

    /// Whether a guard let it pass with a mark.
    pub(crate) fn is_flagged(&self) -> bool {
        self.outcomes.iter().any(|outcome| outcome.taken == Taken::Flagged)
    }
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
    /// It was approved, and may not be handed out any more.
    Refused {
        /// The review.
        review_id: String,
        /// Why.
        refusal: Refusal,
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

    /// Looks at everything a model would be shown, whoever said it; sets a stop where it must wait.
    pub(crate) async fn guard_input(&self, turn: &Turn, examined: &mut Examination) {
        if examined.stop.is_some() {
            return;
        }
        let said = turn.conversation.iter().map(|message| message.content.as_text().into_owned());
        let texts = said.filter(|text| !text.is_empty()).collect();
        let Some(hold) = self.noted(turn, texts, Phase::Pre, examined).await else { return };
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
            let calls = choice.delivered.tool_calls.iter().map(|call| call.arguments.clone());
            let texts = std::iter::once(choice.delivered.text.clone()).chain(calls).collect();
            let hold = self.noted(turn, texts, Phase::Post, examined).await;
            let Some(hold) = hold else { continue };
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
            // One review holds them all, so everybody whose words are in any of them decides.
            if outcome == Outcome::Held {
                examined.hold = Some(match examined.hold.take() {
                    Some(known) => known.and(hold),
                    None => hold,
                });
            }
        }
        choices
    }

    /// Looks at texts of a turn and notes what was found; says why they must wait, where they must.
    async fn noted(
        &self,
        turn: &Turn,
        texts: Vec<String>,
        phase: Phase,
        examined: &mut Examination,
    ) -> Option<Hold> {
        let (code, issues, taken, hold) = match self.look(turn, texts).await {
            Looked::Clear => return None,
            Looked::Flagged(issues) => ("cultural", issues, Taken::Flagged, None),
            Looked::Held(hold) => {
                let code = if hold.sacred { "sacred" } else { "cultural" };
                (code, hold.issues.clone(), hold.taken(), Some(hold))
            }
            Looked::Failed(hold) => {
                ("guard_failed", hold.issues.clone(), Taken::Failed, Some(hold))
            }
        };
        examined.note((Guard::Cultural, phase), taken, code, sentences(&issues));
        hold
    }

    /// What the protocols say of texts of a turn.
    pub(crate) async fn look(&self, turn: &Turn, texts: Vec<String>) -> Looked {
        let Some(governance) = self.governed.governance.as_deref() else { return Looked::Clear };
        let ask = CulturalAsk {
            texts,
            sensitivity: turn.context.sensitivity,
            affiliations: turn.context.affiliations.clone(),
            labels: turn.context.labels.clone(),
            audience: turn.context.audience.clone(),
            now_ms: self.clock.now_ms(),
        };
        match answer(async { governance.look(&turn.tenant, ask).await }).await {
            Ok(CulturalFinding::Clear) => Looked::Clear,
            Ok(CulturalFinding::Flag { issues, .. }) => Looked::Flagged(issues),
            Ok(CulturalFinding::Hold { community, others, issues, sacred }) => {
                let mut hold = Hold { community, others, issues, sacred, decidable: false };
                hold.decidable = self.decidable(governance, &turn.tenant, &hold).await;
                Looked::Held(hold)
            }
            Err(why) => {
                tracing::error!(%why, "protocols could not be asked: the turn is held");
                let code = "guard_unavailable".to_owned();
                let detail = "The protocols could not be asked.".to_owned();
                Looked::Failed(Hold::of_nobody(Issue { code, detail }, self.settings.staffed))
            }
        }
    }

    /// What nobody can decide is refused at once.
    async fn decidable(&self, governance: &dyn Governance, tenant: &TenantId, hold: &Hold) -> bool {
        if hold.community.is_none() {
            return !hold.sacred && self.settings.staffed;
        }
        for community in hold.community.iter().chain(&hold.others) {
            let known = answer(async { governance.has_elders(tenant, community).await }).await;
            let known = known.unwrap_or_else(|why| {
                tracing::error!(%why, "elders could not be looked up");
                false
            });
            if !known {
                return false;
            }
        }
        true
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
            others: hold.as_ref().map(|hold| hold.others.clone()).unwrap_or_default(),
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

    /// What became of a held decision: the text that may go out, or why none may. That it goes out is
    /// recorded first.
    ///
    /// # Errors
    /// When the records or the archive do not answer, or it cannot be recorded.
    pub async fn released(
        &self,
        tenant: &TenantId,
        audit: AuditId,
        reader: &str,
    ) -> Result<Released, PeopleError> {
        let Some(people) = &self.governed.people else { return Ok(Released::NeverHeld) };
        let Some(held) = people.review_of(tenant, audit).await? else {
            return Ok(Released::NeverHeld);
        };
        let (review_id, review) = (held.id, held.review);
        match review.status {
            ReviewStatus::Approved => {
                let edited = review.edited.is_some();
                let Some(stored) = sealed(&*self.archive, tenant, audit).await? else {
                    let conditions = review.conditions;
                    return Ok(Released::Approved { review_id, text: None, edited, conditions });
                };
                let text = review.edited.or_else(|| HeldWords::of(&stored).reply);
                let words = text.iter().cloned().collect();
                match self.hindrance(tenant, &stored, words).await.map_err(unavailable)? {
                    Some(Hindrance::Refused(refusal)) => {
                        return Ok(Released::Refused { review_id, refusal });
                    }
                    Some(Hindrance::Elders) => {
                        return Ok(Released::Rejected { review_id, notes: FOR_ELDERS.to_owned() });
                    }
                    None => {}
                }
                if text.is_some() {
                    let noted = self.note_handed_out(tenant, &stored, audit, reader).await;
                    noted.map_err(unavailable)?;
                }
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
    let stored = sealed(archive, tenant, audit).await?;
    Ok(stored.map(|stored| HeldWords::of(&stored)))
}

/// A decision whose words are still there.
async fn sealed(
    archive: &dyn Archive,
    tenant: &TenantId,
    audit: AuditId,
) -> Result<Option<StoredDecision>, PeopleError> {
    let entries = archive.find(tenant_number(tenant.as_str()), audit).await;
    let stored = StoredDecision::from_entries(entries.map_err(unavailable)?);
    Ok(stored.map_err(unavailable)?.filter(|stored| !stored.is_erased()))
}

fn unavailable(error: impl std::fmt::Display) -> PeopleError {
    PeopleError::Unavailable(error.to_string())
}

/// Told where protocols that could not be asked before answer now.
const FOR_ELDERS: &str = "The protocols can be asked again, and they say that only elders of the community may decide this.";

/// What was said, and what would have been answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldWords {
    /// The conversation.
    pub request: Value,
    /// The reply that is held; absent where no model was asked.
    pub reply: Option<String>,
}

impl HeldWords {
    /// What people decide about is what would go out: the result of a run as its guards left it, else every
    /// reply that is held.
    fn of(stored: &StoredDecision) -> Self {
        let request = stored.words("request").unwrap_or_default();
        if stored.public("recipe").is_some() {
            let response = stored.words("response").unwrap_or_default();
            let data = Some(&response["data"]).filter(|data| !data.is_null());
            let reply = data.and_then(|data| serde_json::to_string_pretty(data).ok());
            return Self { request, reply };
        }
        let choices = stored.choices().iter().enumerate();
        let held = choices.clone().filter(|(_, choice)| is_held(choice));
        let mut at: Vec<_> = held.map(|(at, _)| at).collect();
        if at.is_empty() {
            at.extend(choices.map(|(at, _)| at).next());
        }
        let replies: Vec<_> = at.into_iter().filter_map(|at| last_reply(stored, at)).collect();
        Self { request, reply: (!replies.is_empty()).then(|| replies.join("\n\n")) }
    }
}

fn is_held(choice: &Public) -> bool {
    let outcome = choice.get("outcome").and_then(Public::as_str).unwrap_or_default();
    [Outcome::Held, Outcome::Escalated].iter().any(|held| held.as_str() == outcome)
}

/// The last candidate of a choice is what was looked at last.
fn last_reply(stored: &StoredDecision, choice: usize) -> Option<String> {
    let attempts = stored.choices().get(choice)?.get("attempts");
    let attempts = (0..conclave_ports::array(attempts).len()).rev();
    let mut candidates =
        attempts.filter_map(|at| stored.words(&format!("candidate.{choice}.{at}")));
    candidates.find_map(|one| one["text"].as_str().map(str::to_owned))
}
