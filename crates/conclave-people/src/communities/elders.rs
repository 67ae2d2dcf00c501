//! Who speaks for a community.
//!
//! The owner of the house names the first elders, and may correct whom they named until one of them has acted:
//! named or removed somebody, laid down a protocol, or taken up a review. From then on the elders name each other.
//! A community whose elders lost their keys, or have accounts only, is no dead end: the owner *proposes* somebody,
//! which is a review for the elders, and takes effect when they agree or when nobody decided for a long time.
//!
//! **Invariant:** once an elder has acted, nobody becomes an elder at once unless an elder says so.
//! **Invariant:** a proposal, its review and their ledger entries become durable together.

use super::{COMMUNITIES_MAX, community_key};
use crate::people::{People, PeopleError};
use crate::records::{key, query, read, read_or_report, recorded, unrecorded};
use conclave_core::TenantId;
use conclave_govern::{Issue, NewReview, Review, ReviewKind, ReviewPriority, ReviewStatus, Unfit};
use conclave_ledger::{Kind, Value as Public};
use conclave_ports::{Caller, KeyRole, Record, RecordChange, RecordKind};
use serde::{Deserialize, Serialize};

/// The most elders of one community, proposed ones with them.
const ELDERS_MAX: usize = 64;
/// The longest name of a key, an account or a person.
const HOLDER_BYTES_MAX: usize = 200;
/// After so many days a proposal takes effect that no elder has decided. It is longer than the review has
/// until it is overdue and the council was called.
const SILENCE_DAYS: u64 = 30;
const DAY_MS: u64 = 86_400_000;
const ONLY_ELDERS: PeopleError =
    PeopleError::Forbidden("Only the elders of a community name its elders.");

/// One elder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elder {
    /// The id of their key, or `person:` and the name of their account.
    pub holder: String,
    /// Who they are: two keys of one person are one person.
    pub person: String,
    /// Since when; of a proposal, from when on if nobody decides.
    pub since_ms: u64,
    /// The key or account that named them.
    pub named_by: String,
}

/// Somebody whom the owner proposes as an elder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElderProposal {
    /// Whom.
    pub elder: Elder,
    /// The review in which the elders decide.
    pub review_id: String,
}

/// Who speaks for a community, and who is proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommunityElders {
    /// Who speaks for it.
    pub elders: Vec<Elder>,
    /// Who does not yet.
    pub proposals: Vec<ElderProposal>,
}

/// Who speaks for a community, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Standing {
    community: String,
    pub(super) elders: Vec<Elder>,
    /// Whether an elder has acted. A record that does not say so is from before it was asked.
    #[serde(default = "yes")]
    is_handed_over: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    proposals: Vec<ElderProposal>,
}

const fn yes() -> bool {
    true
}

impl Standing {
    pub(super) fn has_seat(&self, caller: &Caller) -> bool {
        let is_held = |elder: &Elder| elder.holder == caller.holder;
        // The right key in another role is the wrong key.
        caller.role == KeyRole::Elder && self.elders.iter().any(is_held)
    }

    /// Whether somebody may change who speaks for the community, at once.
    fn admits(&self, caller: &Caller) -> bool {
        self.has_seat(caller) || (caller.role == KeyRole::Owner && !self.is_handed_over)
    }
}

/// A community with the record it was read from.
pub(super) struct StoredStanding {
    record: Record,
    pub(super) standing: Standing,
}

/// A seat among the elders of a community.
pub(crate) struct ElderSeat {
    /// The community's id.
    pub(crate) community: String,
    pub(crate) person: String,
}

impl People {
    /// The elders of a community.
    ///
    /// # Errors
    /// When the records do not answer.
    pub async fn elders(
        &self,
        tenant: &TenantId,
        community: &str,
    ) -> Result<Vec<Elder>, PeopleError> {
        Ok(self.standing(tenant, community).await?.standing.elders)
    }

    pub(super) async fn standing(
        &self,
        tenant: &TenantId,
        community: &str,
    ) -> Result<StoredStanding, PeopleError> {
        let id = community_key(community)?;
        let place = key(RecordKind::Standing, tenant, &id);
        if let Some(record) = self.records.get(place.clone()).await? {
            let standing = self.current_standing(tenant, read(&record)?).await?;
            return Ok(StoredStanding { record, standing });
        }
        let standing = Standing {
            community: community.to_owned(),
            elders: Vec::new(),
            is_handed_over: false,
            proposals: Vec::new(),
        };
        Ok(StoredStanding { record: self.new_record(place, "standing", &id), standing })
    }

    /// Who speaks for a community now: whoever was agreed to, or waited long enough, is an elder, and
    /// whoever was rejected is forgotten. It is stored so with the next change.
    async fn current_standing(
        &self,
        tenant: &TenantId,
        mut standing: Standing,
    ) -> Result<Standing, PeopleError> {
        for proposal in std::mem::take(&mut standing.proposals) {
            let place = key(RecordKind::Review, tenant, &proposal.review_id);
            let review = match self.records.get(place).await? {
                Some(record) => Some(read::<Review>(&record)?),
                None => None,
            };
            let decided_ms = review.as_ref().and_then(|review| review.decided_ms);
            let since_ms = decided_ms.unwrap_or(proposal.elder.since_ms);
            match review.map(|review| review.status) {
                Some(ReviewStatus::Rejected) => {}
                Some(ReviewStatus::Approved) => {
                    standing.elders.push(Elder { since_ms, ..proposal.elder });
                }
                _ if since_ms <= self.clock.now_ms() => standing.elders.push(proposal.elder),
                _ => standing.proposals.push(proposal),
            }
        }
        Ok(standing)
    }

    /// Where a caller is an elder.
    pub(crate) async fn elder_seats(&self, caller: &Caller) -> Result<Vec<ElderSeat>, PeopleError> {
        if caller.role != KeyRole::Elder {
            return Ok(Vec::new());
        }
        let all = query(RecordKind::Standing, Some(&caller.tenant), COMMUNITIES_MAX);
        let mut seats = Vec::new();
        for record in self.records.list(all).await? {
            // Whose seat cannot be read has none: nobody decides by a record that nobody understands.
            let Some(standing) = read_or_report(&record) else { continue };
            let standing = self.current_standing(&caller.tenant, standing).await?;
            let own = standing.elders.into_iter().find(|elder| elder.holder == caller.holder);
            let community = record.key.id;
            seats.extend(own.map(|elder| ElderSeat { community, person: elder.person }));
        }
        Ok(seats)
    }

    /// Names an elder, or proposes one where only elders may name.
    ///
    /// # Errors
    /// When the caller may not, or it cannot be kept.
    pub async fn name_elder(
        &self,
        caller: &Caller,
        community: &str,
        holder: &str,
        person: &str,
    ) -> Result<CommunityElders, PeopleError> {
        for (place, name) in [("holder", holder), ("person", person)] {
            let fits = (1..=HOLDER_BYTES_MAX).contains(&name.len());
            if !fits || name.chars().any(char::is_control) {
                let why =
                    format!("must be 1 to {HOLDER_BYTES_MAX} bytes without control characters");
                return Err(Unfit::new(place, why).into());
            }
        }
        let mut stored = self.standing(&caller.tenant, community).await?;
        let standing = &mut stored.standing;
        let elder = Elder {
            holder: holder.to_owned(),
            person: person.to_owned(),
            since_ms: self.clock.now_ms(),
            named_by: caller.holder.clone(),
        };
        let is_named_at_once = standing.admits(caller);
        if !is_named_at_once && caller.role != KeyRole::Owner {
            let is_new = standing.elders.is_empty();
            let first =
                PeopleError::Forbidden("The first elder of a community is named by the owner.");
            return Err(if is_new { first } else { ONLY_ELDERS });
        }
        standing.proposals.retain(|proposal| proposal.elder.holder != holder);
        if is_named_at_once {
            standing.elders.retain(|elder| elder.holder != holder);
        }
        if standing.elders.len() + standing.proposals.len() >= ELDERS_MAX {
            return Err(PeopleError::Full(format!("a community has at most {ELDERS_MAX} elders")));
        }
        if !is_named_at_once {
            return self.propose_elder(caller, stored, elder).await;
        }
        standing.elders.push(elder);
        self.keep_standing(caller, stored, "elder_named", holder, Vec::new()).await
    }

    async fn propose_elder(
        &self,
        caller: &Caller,
        mut stored: StoredStanding,
        mut elder: Elder,
    ) -> Result<CommunityElders, PeopleError> {
        let StoredStanding { standing, .. } = &mut stored;
        if standing.elders.iter().any(|known| known.holder == elder.holder) {
            return Err(ONLY_ELDERS);
        }
        elder.since_ms += SILENCE_DAYS * DAY_MS;
        let detail = format!(
            "The owner proposes {} ({}) as an elder. If nobody decides within {SILENCE_DAYS} days, it takes \
             effect.",
            elder.person, elder.holder
        );
        let review = NewReview {
            kind: ReviewKind::ElderReview,
            tenant: caller.tenant.clone(),
            content_type: "elder".to_owned(),
            community: Some(standing.community.clone()),
            others: Vec::new(),
            issues: vec![Issue { code: "elder_proposed".to_owned(), detail }],
            priority: ReviewPriority::Low,
            audit_id: None,
            author: Some(caller.holder.clone()),
            subject: None,
            four_eyes: false,
        };
        let review_id = self.new_id("rev");
        let changes = self.opening_changes(&review_id, &review).await?;
        let holder = elder.holder.clone();
        standing.proposals.push(ElderProposal { elder, review_id });
        self.keep_standing(caller, stored, "elder_proposed", &holder, changes).await
    }

    /// Removes an elder. Once an elder has acted the last one stays, because nobody could name another.
    ///
    /// # Errors
    /// When the caller may not, or there is no such elder.
    pub async fn remove_elder(
        &self,
        caller: &Caller,
        community: &str,
        holder: &str,
    ) -> Result<CommunityElders, PeopleError> {
        let mut stored = self.standing(&caller.tenant, community).await?;
        let standing = &mut stored.standing;
        if !standing.admits(caller) {
            return Err(ONLY_ELDERS);
        }
        let before = standing.elders.len();
        standing.elders.retain(|elder| elder.holder != holder);
        if standing.elders.len() == before {
            return Err(PeopleError::NotFound(
                "Nobody of that name is an elder of this community.",
            ));
        }
        if standing.elders.is_empty() && caller.role != KeyRole::Owner {
            return Err(PeopleError::Forbidden("The last elder of a community cannot be removed."));
        }
        self.keep_standing(caller, stored, "elder_removed", holder, Vec::new()).await
    }

    /// Stores who speaks for a community, with what happens at the same time.
    async fn keep_standing(
        &self,
        caller: &Caller,
        stored: StoredStanding,
        what: &str,
        whom: &str,
        mut changes: Vec<RecordChange>,
    ) -> Result<CommunityElders, PeopleError> {
        let StoredStanding { mut record, mut standing } = stored;
        let tenant = &caller.tenant;
        if record.version == 0 {
            let all = query(RecordKind::Standing, Some(tenant), COMMUNITIES_MAX);
            if self.records.list(all).await?.len() >= COMMUNITIES_MAX as usize {
                let sentence = format!("a tenant has at most {COMMUNITIES_MAX} communities");
                return Err(PeopleError::Full(sentence));
            }
        }
        standing.is_handed_over |= caller.role == KeyRole::Elder;
        self.rewrite(&mut record, &standing)?;
        let public = Public::map([
            ("what", Public::from(what)),
            ("community", self.digest(b"community", tenant, &record.key.id)),
            ("whom", self.digest(b"reader", tenant, whom)),
            ("by", self.digest(b"reader", tenant, &caller.holder)),
            ("elders", Public::Uint(standing.elders.len() as u64)),
        ]);
        changes.push(recorded(record, Kind::ProtocolChange, public));
        self.records.put(changes).await?;
        let Standing { elders, proposals, .. } = standing;
        Ok(CommunityElders { elders, proposals })
    }

    /// What is to be stored where an elder acts for these communities for the first time; the change that
    /// is stored with it tells the ledger who did what.
    pub(crate) async fn handover_changes(
        &self,
        caller: &Caller,
        communities: impl Iterator<Item = String>,
    ) -> Result<Vec<RecordChange>, PeopleError> {
        let mut changes = Vec::new();
        for community in communities {
            let StoredStanding { mut record, mut standing } =
                self.standing(&caller.tenant, &community).await?;
            if standing.has_seat(caller) && !standing.is_handed_over {
                standing.is_handed_over = true;
                self.rewrite(&mut record, &standing)?;
                changes.push(unrecorded(record));
            }
        }
        Ok(changes)
    }
}
