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
use crate::permission::Interface;
use crate::preflight::{Examination, Stop, is_crisis};
use crate::release::joined;
use crate::turn::Turn;
use conclave_core::{Action, FinishReason, Outcome, TenantId};
use conclave_detect::Course;
use conclave_govern::{
    CulturalAsk, CulturalFinding, Issue, NewReview, Priority, ReviewKind, TenantPolicy,
    community_id,
};
use conclave_ports::{Announcement, EventKind, Governance};
use conclave_recipes::{Guard, GuardOutcome, Phase, Taken};
use conclave_voice::Situation;
use serde_json::json;

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
}
