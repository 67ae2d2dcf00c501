//! The way of a review: waiting, claimed, decided; by whom, and by when.
//!
//! **Invariant:** what was rejected stays rejected, and what was approved was approved by as many
//! different people as it needs, each holding a claim that was theirs at that moment.
//! **Invariant:** what belongs to several communities was approved by an elder of each.
//! **Invariant:** nobody decides what belongs to a community without being an elder of it, and nobody
//! decides what is their own, or an appeal against what they decided.

use crate::appeal::AppealAnswer;
use crate::culture::Issue;
use crate::names::{Unfit, sentence};
use crate::protocol::community_id;
use crate::review::{NewReview, ReviewKind, ReviewPriority};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How long a claim lasts.
pub const LEASE_MS: u64 = 15 * 60 * 1_000;
/// So long after it was due the council is called.
const GRACE_MS: u64 = 60 * 60 * 1_000;
/// The longest note, and the longest condition, in bytes.
const NOTES_BYTES_MAX: usize = 4_000;
/// So many conditions.
const CONDITIONS_MAX: usize = 16;
/// The longest text that somebody puts in place of another, in bytes.
const EDITED_BYTES_MAX: usize = 64 << 10;
/// So many rulings on one review; whoever has consulted so often must say yes or no.
const RULINGS_MAX: usize = 24;

/// Where a review stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewStatus {
    /// Nobody has it.
    Pending,
    /// Somebody has claimed it.
    InReview,
    /// It may go out.
    Approved,
    /// It never may.
    Rejected,
    /// It waits for the council.
    NeedsConsultation,
}

impl ReviewStatus {
    /// Every status.
    pub const ALL: [Self; 5] =
        [Self::Pending, Self::InReview, Self::Approved, Self::Rejected, Self::NeedsConsultation];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InReview => "in_review",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::NeedsConsultation => "needs_consultation",
        }
    }

    /// Finds the status with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether nothing more can happen.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Approved | Self::Rejected)
    }
}

/// Somebody who would decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decider {
    /// The person, however many keys they have.
    pub person: String,
    /// Whether they are known by name, not by the key they came with: such a key could be anybody's.
    pub named: bool,
    /// The key or account they came with.
    pub holder: String,
    /// Whether they decide what belongs to no community.
    pub reviewer: bool,
    /// The communities they are an elder of, by id.
    pub elder_of: Vec<String>,
}

/// Somebody's hold on a review for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Whose.
    pub by: String,
    /// Larger than every token before; only the latest decides.
    pub token: u64,
    /// Until when.
    pub until_ms: u64,
}

/// What somebody decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ruling", rename_all = "snake_case")]
pub enum Ruling {
    /// It may go out as it is, or as somebody before has edited it.
    Approve,
    /// It never may.
    Reject,
    /// The council shall look.
    NeedsConsultation,
    /// This may go out in its place.
    EditAndApprove {
        /// The text.
        text: String,
    },
}

impl Ruling {
    /// The stable name.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::NeedsConsultation => "needs_consultation",
            Self::EditAndApprove { .. } => "edit_and_approve",
        }
    }
}

/// A ruling with what is said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// What is decided.
    pub ruling: Ruling,
    /// Why.
    pub notes: String,
    /// What whoever uses it must keep to.
    pub conditions: Vec<String>,
    /// Whether they found identifying data that had been missed; absent where they did not look.
    pub pii_missed: Option<bool>,
    /// What the person who appealed is told; of appeals alone.
    pub answer: Option<AppealAnswer>,
}

/// A ruling that was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// By whom.
    pub by: String,
    /// When.
    pub at_ms: u64,
    /// Its name.
    pub ruling: String,
    /// Why.
    pub notes: String,
}

/// Why somebody may not do what they would.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReviewRefusal {
    /// It is not theirs to decide.
    #[error("only an elder of the community decides this")]
    NotAnElder,
    /// It is not theirs to decide.
    #[error("only a reviewer decides this")]
    NotAReviewer,
    /// It is their own.
    #[error("nobody decides what is their own")]
    OwnWork,
    /// They have said yes already.
    #[error("two different people must agree, and you are one of them already")]
    SamePerson,
    /// Nobody knows who they are, where two must agree.
    #[error("two different people must agree, and this key does not say whose it is")]
    Unnamed,
    /// They decided what the appeal is against.
    #[error("an appeal is decided by somebody who did not decide before, and you did")]
    DecidedBefore,
    /// Nobody knows who they are, where somebody must not be who decided before.
    #[error(
        "an appeal is decided by somebody who did not decide before, and this key does not say whose it is"
    )]
    UnknownPerson,
    /// Somebody else has it.
    #[error("somebody else has claimed this; their claim ends by itself")]
    Claimed,
    /// They have no claim, or another was made since.
    #[error("this claim is not yours any more; claim it again")]
    Stale,
    /// It is decided.
    #[error("this is decided already")]
    Decided,
    /// It was consulted about so often that only yes and no are left.
    #[error("this has been consulted about too often; approve or reject it")]
    Exhausted,
    /// What was said cannot be kept.
    #[error(transparent)]
    Unfit(#[from] Unfit),
}

/// What somebody should be told as time goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Half of the time is over.
    Half,
    /// It is due.
    Due,
    /// It is overdue, and the council is called.
    Overdue,
}

/// Something that waits for a person, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// Why it waits.
    pub kind: ReviewKind,
    /// What it is.
    pub content_type: String,
    /// The community whose elders decide.
    pub community: Option<String>,
    /// Further communities that it belongs to; an elder of each must say yes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// What is the matter.
    pub issues: Vec<Issue>,
    /// How soon.
    pub priority: ReviewPriority,
    /// The decision whose sealed words are held.
    pub audit_id: Option<String>,
    /// Who is told of the ruling.
    pub author: Option<String>,
    /// Whether two people must agree.
    pub four_eyes: bool,
    /// Where it stands.
    pub status: ReviewStatus,
    /// Whether the council was called: two people must agree then.
    pub council: bool,
    /// Since when.
    pub created_ms: u64,
    /// When the present wait began.
    pub waiting_since_ms: u64,
    /// By when.
    pub due_ms: u64,
    /// How many notices of the present wait were given.
    pub noticed: u8,
    /// To whom it was given.
    pub assigned_to: Option<String>,
    /// Who has it.
    pub claim: Option<Claim>,
    /// The last token that was given.
    pub fence: u64,
    /// Who has said yes to what would go out now.
    pub approvals: Vec<String>,
    /// For which communities they have said it, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spoken_for: Vec<String>,
    /// What would go out in place of what was held.
    pub edited: Option<String>,
    /// What whoever uses it must keep to.
    pub conditions: Vec<String>,
    /// Every ruling.
    pub rulings: Vec<Given>,
    /// When it was decided.
    pub decided_ms: Option<u64>,
    /// Whether somebody found identifying data that had been missed; absent where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pii_missed: Option<bool>,
    /// Who may not decide it, because they decided what it is against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<String>,
    /// What may not go out in place of what was held: the very words that a check vetoed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vetoed: Option<String>,
    /// What the person who appealed would be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AppealAnswer>,
}

impl Review {
    /// Has something wait from now on.
    #[must_use]
    pub fn open(new: &NewReview, now_ms: u64) -> Self {
        Self {
            kind: new.kind,
            content_type: new.content_type.clone(),
            community: new.community.clone(),
            others: new.others.clone(),
            issues: new.issues.clone(),
            priority: new.priority,
            audit_id: new.audit_id.map(|id| id.to_string()),
            author: new.author.clone(),
            four_eyes: new.four_eyes,
            status: ReviewStatus::Pending,
            council: false,
            created_ms: now_ms,
            waiting_since_ms: now_ms,
            due_ms: now_ms.saturating_add(new.priority.due_in_ms()),
            noticed: 0,
            assigned_to: None,
            claim: None,
            fence: 0,
            approvals: Vec::new(),
            spoken_for: Vec::new(),
            edited: None,
            pii_missed: None,
            conditions: Vec::new(),
            rulings: Vec::new(),
            decided_ms: None,
            excluded: Vec::new(),
            vetoed: None,
            answer: None,
        }
    }

    /// How many different people must say yes.
    #[must_use]
    pub const fn approvals_needed(&self) -> usize {
        if self.four_eyes || self.council { 2 } else { 1 }
    }

    /// Whether it is somebody's to decide at all.
    ///
    /// # Errors
    /// When it is not.
    pub fn admits(&self, who: &Decider) -> Result<(), ReviewRefusal> {
        match &self.community {
            Some(_) if !self.communities().any(|id| who.elder_of.contains(&id)) => {
                return Err(ReviewRefusal::NotAnElder);
            }
            // What belongs to a community that nobody could name is decided by no stranger.
            None if self.kind == ReviewKind::ElderReview => return Err(ReviewRefusal::NotAnElder),
            None if !who.reviewer => return Err(ReviewRefusal::NotAReviewer),
            Some(_) | None => {}
        }
        let own = |author: &String| *author == who.person || *author == who.holder;
        if self.author.as_ref().is_some_and(own) { Err(ReviewRefusal::OwnWork) } else { Ok(()) }
    }

    /// Whether somebody may take it up who is free to decide such reviews: not who decided before.
    ///
    /// # Errors
    /// When they did, or nobody can tell.
    pub fn accepts(&self, who: &Decider) -> Result<(), ReviewRefusal> {
        if self.excluded.is_empty() {
            return Ok(());
        }
        if self.excluded.iter().any(|one| *one == who.person || *one == who.holder) {
            return Err(ReviewRefusal::DecidedBefore);
        }
        if who.named { Ok(()) } else { Err(ReviewRefusal::UnknownPerson) }
    }

    /// The communities it belongs to, by id.
    pub fn communities(&self) -> impl Iterator<Item = String> + '_ {
        self.community.iter().chain(&self.others).map(|community| community_id(community))
    }

    /// Whether enough people have said yes, and somebody for each community.
    fn is_agreed(&self) -> bool {
        let all = self.communities().all(|id| self.spoken_for.contains(&id));
        self.approvals.len() >= self.approvals_needed() && all
    }

    /// Claims it; whoever has it already gets a new token, and the old one is void.
    ///
    /// # Errors
    /// When it is not theirs to decide, decided, or somebody else's for now.
    pub fn claim(&mut self, who: &Decider, now_ms: u64) -> Result<u64, ReviewRefusal> {
        self.admits(who)?;
        if self.status.is_final() {
            return Err(ReviewRefusal::Decided);
        }
        self.accepts(who)?;
        if self.approvals.contains(&who.person) {
            return Err(ReviewRefusal::SamePerson);
        }
        let held = self.claim.as_ref().filter(|claim| now_ms < claim.until_ms);
        if held.is_some_and(|claim| claim.by != who.person) {
            return Err(ReviewRefusal::Claimed);
        }
        self.fence += 1;
        let until_ms = now_ms.saturating_add(LEASE_MS);
        self.claim = Some(Claim { by: who.person.clone(), token: self.fence, until_ms });
        self.status = ReviewStatus::InReview;
        Ok(self.fence)
    }

    /// Gives it back.
    ///
    /// # Errors
    /// When the claim is not theirs any more.
    pub fn release(&mut self, who: &Decider, token: u64, now_ms: u64) -> Result<(), ReviewRefusal> {
        self.holds(who, token, now_ms)?;
        self.let_go();
        Ok(())
    }

    /// Whether somebody holds the latest claim, and it has not ended.
    ///
    /// # Errors
    /// When they do not.
    pub fn holds(&self, who: &Decider, token: u64, now_ms: u64) -> Result<(), ReviewRefusal> {
        if self.status.is_final() {
            return Err(ReviewRefusal::Decided);
        }
        let theirs = |claim: &Claim| {
            claim.by == who.person && claim.token == token && now_ms < claim.until_ms
        };
        if self.claim.as_ref().is_some_and(theirs) { Ok(()) } else { Err(ReviewRefusal::Stale) }
    }

    /// Whether somebody has a claim now, whatever its token: they may see what is held.
    #[must_use]
    pub fn is_claimed_by(&self, who: &Decider, now_ms: u64) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.by == who.person && now_ms < claim.until_ms)
    }

    /// Takes a ruling in.
    ///
    /// # Errors
    /// When it is not theirs to decide, their claim is void, or what they say cannot be kept.
    pub fn decide(
        &mut self,
        who: &Decider,
        token: u64,
        said: Said,
        now_ms: u64,
    ) -> Result<(), ReviewRefusal> {
        self.admits(who)?;
        self.holds(who, token, now_ms)?;
        self.accepts(who)?;
        if self.approvals.contains(&who.person) {
            return Err(ReviewRefusal::SamePerson);
        }
        let says_yes = matches!(said.ruling, Ruling::Approve | Ruling::EditAndApprove { .. });
        if says_yes && self.approvals_needed() > 1 && !who.named {
            return Err(ReviewRefusal::Unnamed);
        }
        said.check()?;
        self.check_answer(&said)?;
        if self.rulings.len() >= RULINGS_MAX && said.ruling == Ruling::NeedsConsultation {
            return Err(ReviewRefusal::Exhausted);
        }
        // One who found something is not outvoted by others who did not.
        self.pii_missed = match (self.pii_missed, said.pii_missed) {
            (Some(before), Some(now)) => Some(before || now),
            (before, now) => before.or(now),
        };
        if said.answer.is_some() && said.answer != self.answer {
            // Whoever said yes before said it to other words.
            self.forget_approvals();
            self.answer = said.answer;
        }
        let ruling = said.ruling.as_str().to_owned();
        self.rulings.push(Given {
            by: who.person.clone(),
            at_ms: now_ms,
            ruling,
            notes: said.notes,
        });
        match said.ruling {
            Ruling::Reject => self.close(ReviewStatus::Rejected, now_ms),
            Ruling::NeedsConsultation => {
                self.forget_approvals();
                self.edited = None;
                self.answer = None;
                self.conditions.clear();
                self.claim = None;
                self.status = ReviewStatus::NeedsConsultation;
                self.call_council(now_ms);
            }
            Ruling::Approve => self.approve(who, said.conditions, now_ms),
            Ruling::EditAndApprove { text } => {
                if self.edited.as_ref() != Some(&text) {
                    // Whoever said yes before said it to another text.
                    self.forget_approvals();
                    self.edited = Some(text);
                }
                self.approve(who, said.conditions, now_ms);
            }
        }
        Ok(())
    }

    /// Whether what the person is told fits what is decided: appeals need it, and nothing else has it.
    fn check_answer(&self, said: &Said) -> Result<(), Unfit> {
        let is_appeal = self.kind == ReviewKind::Appeal;
        let answer = match (&said.answer, &said.ruling) {
            (Some(_), _) if !is_appeal => {
                return Err(Unfit::new("words", "belongs to appeals alone"));
            }
            (Some(_), Ruling::NeedsConsultation) => {
                return Err(Unfit::new("words", "belongs to a ruling, and this is none yet"));
            }
            _ if !is_appeal => return Ok(()),
            (_, Ruling::NeedsConsultation) => return Ok(()),
            // Whoever agrees to what another has ruled need not say it again.
            (said, Ruling::Approve) => said.as_ref().or(self.answer.as_ref()),
            (said, _) => said.as_ref(),
        };
        let missing = || Unfit::new("words", "must say to the person why it was ruled so");
        let answer = answer.ok_or_else(missing)?;
        answer.check()?;
        if answer.outcome.is_for_person() == matches!(said.ruling, Ruling::Reject) {
            return Err(Unfit::new("ruling", "is not what the person would be told"));
        }
        match (&said.ruling, &self.vetoed) {
            (Ruling::EditAndApprove { text }, Some(vetoed)) if is_same_text(text, vetoed) => {
                Err(Unfit::new("text", "is the reply that a check vetoed; put it in other words"))
            }
            _ => Ok(()),
        }
    }

    fn forget_approvals(&mut self) {
        self.approvals.clear();
        self.spoken_for.clear();
    }

    fn approve(&mut self, who: &Decider, conditions: Vec<String>, now_ms: u64) {
        for condition in conditions {
            if !self.conditions.contains(&condition) {
                self.conditions.push(condition);
            }
        }
        self.approvals.push(who.person.clone());
        let spoken_for: Vec<_> =
            self.communities().filter(|id| who.elder_of.contains(id)).collect();
        self.spoken_for.extend(spoken_for);
        if self.is_agreed() {
            self.close(ReviewStatus::Approved, now_ms);
        } else {
            self.assigned_to = None;
            self.let_go();
        }
    }

    fn let_go(&mut self) {
        self.claim = None;
        self.status = ReviewStatus::Pending;
    }

    fn close(&mut self, status: ReviewStatus, now_ms: u64) {
        self.status = status;
        self.claim = None;
        self.decided_ms = Some(now_ms);
    }

    fn call_council(&mut self, now_ms: u64) {
        self.council = true;
        self.assigned_to = None;
        self.waiting_since_ms = now_ms;
        self.due_ms = now_ms.saturating_add(self.priority.due_in_ms());
        self.noticed = 0;
    }

    /// Lets time go by: a claim that has ended is given up, and what should be told now is returned.
    pub fn pass(&mut self, now_ms: u64) -> Option<Notice> {
        if self.status.is_final() {
            return None;
        }
        if self.claim.as_ref().is_some_and(|claim| now_ms >= claim.until_ms) {
            self.let_go();
        }
        let half_ms = self.waiting_since_ms + self.due_ms.saturating_sub(self.waiting_since_ms) / 2;
        if now_ms >= self.due_ms.saturating_add(GRACE_MS) {
            self.priority = ReviewPriority::Urgent;
            self.call_council(now_ms);
            return Some(Notice::Overdue);
        }
        if now_ms >= self.due_ms && self.noticed < 2 {
            self.noticed = 2;
            return Some(Notice::Due);
        }
        if now_ms >= half_ms && self.noticed < 1 {
            self.noticed = 1;
            return Some(Notice::Half);
        }
        None
    }

    /// When time next matters to it: a claim ends, or something should be told.
    #[must_use]
    pub fn next_ms(&self) -> Option<u64> {
        if self.status.is_final() {
            return None;
        }
        let half_ms = self.waiting_since_ms + self.due_ms.saturating_sub(self.waiting_since_ms) / 2;
        let notice = match self.noticed {
            0 => half_ms,
            1 => self.due_ms,
            _ => self.due_ms.saturating_add(GRACE_MS),
        };
        let claim = self.claim.as_ref().map_or(u64::MAX, |claim| claim.until_ms);
        Some(notice.min(claim))
    }
}

/// Whether two texts are the same but for what stands between their words.
fn is_same_text(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

impl Said {
    fn check(&self) -> Result<(), Unfit> {
        sentence("notes", &self.notes, 0, NOTES_BYTES_MAX)?;
        if self.conditions.len() > CONDITIONS_MAX {
            return Err(Unfit::new(
                "conditions",
                format!("must have 0 to {CONDITIONS_MAX} entries"),
            ));
        }
        for condition in &self.conditions {
            sentence("conditions", condition, 1, NOTES_BYTES_MAX)?;
        }
        match &self.ruling {
            Ruling::EditAndApprove { text } => sentence("text", text, 1, EDITED_BYTES_MAX),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "review_tests.rs"]
mod tests;
