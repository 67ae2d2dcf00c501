//! What was held is handed out: replies and results of runs that people have approved.
//!
//! **Invariant:** that words leave is an entry of the ledger first; and what was agreed to when they were
//! made must still be agreed to now.
//! **Invariant:** where the protocols could not be asked before, they are asked before anything leaves.

use super::{DecisionReader, HeldText, ReviewRecord, ReviewStanding};
use crate::appeals::AppealRecord;
use crate::explain::{PanelVote, panel_votes};
use crate::people::{People, PeopleError};
use conclave_core::{AuditId, Outcome, Sensitivity, TenantId};
use conclave_govern::{
    Appeal, ConsentAsk, ConsentState, CulturalAsk, CulturalFinding, NewReview, Review, ReviewStatus,
};
use conclave_ledger::{Body, Draft, Kind, Value as Public, tenant_number};
use conclave_ports::{
    AppendError, Archive, CHAT_PURPOSE, CHAT_SCOPE, CONSENT_WORDS, Clock, ConsentBasis, ConsentGap,
    GovernError, Governance, HandOut, HandOutError, Hindrance, Ledger, PolicySource, REVIEW_WORDS,
    Stamp, StoredDecision, answer_in_time, array, pseudonym,
};
use conclave_voice::Language;
use futures_util::future::{BoxFuture, FutureExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Display;
use std::sync::Arc;

/// Told where protocols that could not be asked before answer now.
const FOR_ELDERS: &str = "The protocols can be asked again, and they say that only elders of the community may decide this.";

/// What became of something that was held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewResult {
    /// Nobody was asked about it.
    NoReview,
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
    /// It was approved, and somebody's consent does not cover it any more.
    WithoutConsent {
        /// The review.
        review_id: String,
        /// What is missing.
        gap: ConsentGap,
    },
}

/// Hands out what was held, under the configuration of one reload.
pub struct GuardedHandOut {
    /// Knows what people have decided.
    pub people: Arc<People>,
    /// Is asked about consent and culture once more.
    pub governance: Arc<dyn Governance>,
    /// Has the words.
    pub archive: Arc<dyn Archive>,
    /// Takes the entry.
    pub ledger: Arc<dyn Ledger>,
    /// Knows which tenants ask for consent.
    pub policies: Arc<dyn PolicySource>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What the entry says of this program.
    pub stamp: Stamp,
    /// Keys the pseudonym of the reader.
    pub pseudonym_key: [u8; 32],
}

impl GuardedHandOut {
    /// What became of a held decision: the text that may go out, or why none may. That it goes out is
    /// recorded first.
    ///
    /// # Errors
    /// When the records or the archive do not answer, or it cannot be recorded.
    pub async fn fetch_reply(
        &self,
        tenant: &TenantId,
        audit: AuditId,
        reader: &str,
    ) -> Result<ReviewResult, PeopleError> {
        let appeal = self.people.appeal_of(tenant, audit).await?;
        if let Some(ruled) = appeal.filter(|one| one.appeal.has_corrected_reply()) {
            return self.fetch_corrected(tenant, audit, reader, &ruled.appeal).await;
        }
        let Some(record) = self.people.review_of(tenant, audit).await? else {
            return Ok(ReviewResult::NoReview);
        };
        let ReviewRecord { id: review_id, review } = record;
        match review.status {
            ReviewStatus::Approved => {
                self.fetch_approved(tenant, audit, reader, review_id, review).await
            }
            ReviewStatus::Rejected => {
                let notes = review.rulings.last().map(|given| given.notes.clone());
                Ok(ReviewResult::Rejected { review_id, notes: notes.unwrap_or_default() })
            }
            status => Ok(ReviewResult::Waiting { review_id, status }),
        }
    }

    /// What became of the appeal against a decision, and the corrected reply where there is one.
    ///
    /// # Errors
    /// When the records or the archive do not answer, or it cannot be recorded.
    pub async fn fetch_appealed(
        &self,
        tenant: &TenantId,
        audit: AuditId,
        reader: &str,
    ) -> Result<ReviewResult, PeopleError> {
        let Some(AppealRecord { appeal, .. }) = self.people.appeal_of(tenant, audit).await? else {
            return Ok(ReviewResult::NoReview);
        };
        let review_id = appeal.review_id.clone();
        match &appeal.ruling {
            None => Ok(ReviewResult::Waiting { review_id, status: ReviewStatus::Pending }),
            Some(ruling) if !ruling.outcome.is_for_person() => {
                Ok(ReviewResult::Rejected { review_id, notes: ruling.words.clone() })
            }
            Some(_) => self.fetch_corrected(tenant, audit, reader, &appeal).await,
        }
    }

    /// The reply that somebody wrote after an appeal.
    async fn fetch_corrected(
        &self,
        tenant: &TenantId,
        audit: AuditId,
        reader: &str,
        appeal: &Appeal,
    ) -> Result<ReviewResult, PeopleError> {
        let review_id = appeal.review_id.clone();
        let ruling = appeal.ruling.as_ref();
        let conditions = ruling.map(|ruling| ruling.conditions.clone()).unwrap_or_default();
        let corrected = ruling.and_then(|ruling| ruling.corrected.clone());
        let stored = unerased(&*self.archive, tenant, audit).await?;
        let (Some(stored), Some(text)) = (stored, corrected) else {
            return Ok(ReviewResult::Approved { review_id, text: None, edited: false, conditions });
        };
        let hindrance = self.hand_out(tenant, &stored, vec![text.clone()], reader).await;
        Ok(match hindrance.map_err(unavailable)? {
            Some(Hindrance::Consent(gap)) => ReviewResult::WithoutConsent { review_id, gap },
            Some(Hindrance::Elders) => {
                ReviewResult::Rejected { review_id, notes: FOR_ELDERS.to_owned() }
            }
            None => {
                ReviewResult::Approved { review_id, text: Some(text), edited: true, conditions }
            }
        })
    }

    async fn fetch_approved(
        &self,
        tenant: &TenantId,
        audit: AuditId,
        reader: &str,
        review_id: String,
        review: Review,
    ) -> Result<ReviewResult, PeopleError> {
        let standing = ReviewStanding::of_review(&review);
        let edited = review.edited.is_some();
        let conditions = review.conditions;
        let Some(stored) = unerased(&*self.archive, tenant, audit).await? else {
            return Ok(ReviewResult::Approved { review_id, text: None, edited, conditions });
        };
        let held = held_text_of(&stored);
        let approved =
            held.as_ref().and_then(|text| text.open_decided(standing, DecisionReader::Words));
        let text = review.edited.or_else(|| approved.map(str::to_owned));
        let words = text.iter().cloned().collect();
        let hindrance = match &text {
            Some(_) => self.hand_out(tenant, &stored, words, reader).await,
            None => self.hindrance(tenant, &stored, words).await.map_err(HandOutError::from),
        };
        Ok(match hindrance.map_err(unavailable)? {
            Some(Hindrance::Consent(gap)) => ReviewResult::WithoutConsent { review_id, gap },
            Some(Hindrance::Elders) => {
                ReviewResult::Rejected { review_id, notes: FOR_ELDERS.to_owned() }
            }
            None => ReviewResult::Approved { review_id, text, edited, conditions },
        })
    }

    /// Records that words of a decision leave after all, before they do.
    async fn record(
        &self,
        tenant: &TenantId,
        stored: &StoredDecision,
        reader: &str,
    ) -> Result<(), AppendError> {
        let is_run = stored.public("recipe").is_some();
        let what = if is_run { "run.delivered" } else { "reply.released" };
        let reader = pseudonym(&self.pseudonym_key, b"reader", tenant.as_str(), reader);
        let decision =
            stored.leaf.draft.audit.map_or(Public::Null, |id| Public::Bytes(id.to_vec()));
        let draft = Draft {
            public: Public::map([
                ("what", Public::from(what)),
                ("decision", decision),
                ("reader", Public::Bytes(reader.to_vec())),
            ]),
            ..self.stamp.draft(Kind::AdminAction, tenant)
        };
        self.ledger.append(draft, Body::empty()).await.map(drop)
    }

    /// Consent as it stands now, where there had to be some.
    async fn consent_gap(
        &self,
        tenant: &TenantId,
        stored: &StoredDecision,
    ) -> Result<Option<ConsentGap>, GovernError> {
        let basis = if stored.public("recipe").is_some() {
            read_words(stored, CONSENT_WORDS)?
        } else {
            self.chat_basis(tenant, stored)
        };
        let Some(ConsentBasis { subjects, scopes, purpose, party }) = basis else {
            return Ok(None);
        };
        for subject in subjects {
            let ask = ConsentAsk {
                subject,
                scopes: scopes.clone(),
                purpose: purpose.clone(),
                party: party.clone(),
                now_ms: self.clock.now_ms(),
            };
            match answer_in_time(async { self.governance.consent(tenant, ask).await }).await? {
                ConsentState::Granted { .. } => {}
                ConsentState::Withdrawn { .. } => return Ok(Some(ConsentGap::Withdrawn)),
                _ => return Ok(Some(ConsentGap::Required)),
            }
        }
        Ok(None)
    }

    /// What a person must have agreed to for a conversation, where the tenant asks for it.
    fn chat_basis(&self, tenant: &TenantId, stored: &StoredDecision) -> Option<ConsentBasis> {
        // Other ways in name themselves, and ask for no consent of their own.
        if stored.public("agent").is_some()
            || !self.policies.in_force(tenant).policy.requires_consent(CHAT_SCOPE)
        {
            return None;
        }
        let user = stored.words("who")?["user"].as_str()?.to_owned();
        Some(ConsentBasis {
            subjects: vec![user],
            scopes: vec![CHAT_SCOPE.to_owned()],
            purpose: CHAT_PURPOSE.to_owned(),
            party: None,
        })
    }

    /// Whether protocols that could not be asked before say now that elders must decide.
    async fn is_for_elders(
        &self,
        tenant: &TenantId,
        stored: &StoredDecision,
        texts: Vec<String>,
    ) -> Result<bool, GovernError> {
        let review: Option<NewReview> = read_words(stored, REVIEW_WORDS)?;
        let nobody_looked = review.is_some_and(|review| {
            let failed = |code: &str| matches!(code, "guard_failed" | "guard_unavailable");
            review.issues.iter().any(|issue| failed(&issue.code))
        });
        if !nobody_looked || texts.is_empty() {
            return Ok(false);
        }
        let who: Option<WhoWords> = read_words(stored, "who")?;
        let Circumstances { sensitivity, affiliations, labels, audience } =
            who.unwrap_or_default().context;
        let now_ms = self.clock.now_ms();
        let ask = CulturalAsk { texts, sensitivity, affiliations, labels, audience, now_ms };
        let found = answer_in_time(async { self.governance.look(tenant, ask).await }).await?;
        Ok(matches!(found, CulturalFinding::Hold { .. }))
    }
}

impl HandOut for GuardedHandOut {
    fn hindrance<'a>(
        &'a self,
        tenant: &'a TenantId,
        stored: &'a StoredDecision,
        words: Vec<String>,
    ) -> BoxFuture<'a, Result<Option<Hindrance>, GovernError>> {
        async move {
            if let Some(gap) = self.consent_gap(tenant, stored).await? {
                return Ok(Some(Hindrance::Consent(gap)));
            }
            Ok(self.is_for_elders(tenant, stored, words).await?.then_some(Hindrance::Elders))
        }
        .boxed()
    }

    fn hand_out<'a>(
        &'a self,
        tenant: &'a TenantId,
        stored: &'a StoredDecision,
        words: Vec<String>,
        reader: &'a str,
    ) -> BoxFuture<'a, Result<Option<Hindrance>, HandOutError>> {
        async move {
            let hindrance = self.hindrance(tenant, stored, words).await?;
            if hindrance.is_none() {
                self.record(tenant, stored, reader).await?;
            }
            Ok(hindrance)
        }
        .boxed()
    }
}

/// Words of a decision as what they were written from; `None` where there are none, or they are gone.
pub(super) fn read_words<T: DeserializeOwned>(
    stored: &StoredDecision,
    name: &str,
) -> Result<Option<T>, GovernError> {
    let Some(words) = stored.words(name) else { return Ok(None) };
    let read = serde_json::from_value(words);
    read.map(Some).map_err(|error| {
        GovernError(format!("`{name}` of entry {} cannot be read: {error}", stored.leaf.id))
    })
}

/// Whose words they are, as far as this needs to know.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WhoWords {
    context: Circumstances,
}

/// What was said of the words; turns and runs name it differently.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Circumstances {
    #[serde(alias = "sensitivity_level")]
    sensitivity: Sensitivity,
    #[serde(alias = "cultural_affiliations")]
    affiliations: Vec<String>,
    labels: Vec<String>,
    audience: Option<String>,
}

/// What was said, and what would have been answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldWords {
    /// The conversation.
    pub request: Value,
    /// The reply that is held; absent where no model was asked.
    pub reply: Option<HeldText>,
    /// How the panel voted on it.
    pub votes: Vec<PanelVote>,
    /// Whether the person seemed to be in danger.
    pub crisis: bool,
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
    let stored = unerased(archive, tenant, audit).await?;
    Ok(stored.map(|stored| HeldWords::read_from(&stored)))
}

/// A decision whose words are still there.
async fn unerased(
    archive: &dyn Archive,
    tenant: &TenantId,
    audit: AuditId,
) -> Result<Option<StoredDecision>, PeopleError> {
    let entries = archive.find(tenant_number(tenant.as_str()), audit).await;
    let stored = StoredDecision::from_entries(entries.map_err(unavailable)?);
    Ok(stored.map_err(unavailable)?.filter(|stored| !stored.is_erased()))
}

pub(crate) fn unavailable(error: impl Display) -> PeopleError {
    PeopleError::Unavailable(error.to_string())
}

impl HeldWords {
    fn read_from(stored: &StoredDecision) -> Self {
        let request = stored.words("request").unwrap_or_default();
        Self {
            request,
            reply: held_text_of(stored),
            votes: panel_votes(stored, Language::English),
            crisis: stored.public("crisis").and_then(Public::as_bool) == Some(true),
        }
    }
}

/// What people decide about is what would go out: the result of a run as its guards left it, else every
/// reply that is held.
pub(crate) fn held_text_of(stored: &StoredDecision) -> Option<HeldText> {
    if stored.public("recipe").is_some() {
        let response = stored.held_result()?;
        let data = Some(&response["data"]).filter(|data| !data.is_null());
        return data.map(|data| HeldText::new(format!("{data:#}")));
    }
    let choices = stored.choices().iter().enumerate();
    let held = choices.clone().filter(|(_, choice)| is_held(choice));
    let mut at: Vec<_> = held.map(|(at, _)| at).collect();
    if at.is_empty() {
        at.extend(choices.map(|(at, _)| at).next());
    }
    let replies: Vec<_> = at.into_iter().filter_map(|at| last_reply(stored, at)).collect();
    (!replies.is_empty()).then(|| HeldText::new(replies.join("\n\n")))
}

fn is_held(choice: &Public) -> bool {
    let outcome = choice.get("outcome").and_then(Public::as_str).unwrap_or_default();
    [Outcome::Held, Outcome::Escalated].iter().any(|held| held.as_str() == outcome)
}

/// The last candidate of a choice is what was looked at last.
fn last_reply(stored: &StoredDecision, choice: usize) -> Option<String> {
    let attempts = array(stored.choices().get(choice)?.get("attempts")).len();
    let mut candidates =
        (0..attempts).rev().filter_map(|at| stored.words(&format!("candidate.{choice}.{at}")));
    candidates.find_map(|one| one["text"].as_str().map(str::to_owned))
}
