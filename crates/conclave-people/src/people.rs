//! What people agree to, lay down and decide, kept as records: [`Governance`] over [`Records`].
//!
//! **Invariant:** every change is a ledger entry that becomes durable with it, and says in numbers,
//! digests and names of closed lists what happened; no word of anybody stands in it.
//! **Invariant:** every question names its tenant; there is no way to ask for a record of another.

use crate::appeals::NoAppeal;
use crate::communities::ProtocolCache;
use conclave_core::{AuditId, SessionId, TenantId, UserId};
use conclave_govern::{
    ConsentAsk, ConsentState, CulturalAsk, CulturalFinding, NewReview, ReviewRefusal, Unfit,
};
use conclave_ledger::Value as Public;
use conclave_ports::{
    Announcement, Clock, Entropy, GovernError, Governance, RecordKey, Records, RecordsError,
    Subjects, pseudonym,
};
use futures_util::future::{BoxFuture, FutureExt, ready};
use std::sync::Arc;
use thiserror::Error;

/// Longer texts are looked at on another thread, so that nobody else waits.
const LOOK_BYTES_MAX: usize = 64 << 10;

/// Why something about people was not done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PeopleError {
    /// There is no such thing, or it is not for this caller to know that there is.
    #[error("{0}")]
    NotFound(&'static str),
    /// The caller may not.
    #[error("{0}")]
    Forbidden(&'static str),
    /// A review is not the caller's to decide now.
    #[error(transparent)]
    Refused(#[from] ReviewRefusal),
    /// What was given cannot be kept.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// A decision cannot be appealed now.
    #[error(transparent)]
    NoAppeal(#[from] NoAppeal),
    /// Somebody has too many of them waiting; they may come back later.
    #[error("{0}")]
    TooMany(&'static str),
    /// There are too many of them already.
    #[error("{0}")]
    Full(String),
    /// Somebody else changed it meanwhile.
    #[error("somebody else has changed this meanwhile; read it again")]
    Conflict,
    /// A record is not what this program writes: it was damaged, or a later version wrote it.
    #[error("the {} `{}` of {} cannot be read or written: {why}", key.kind.as_str(), key.id, key.tenant)]
    Malformed {
        /// Which.
        key: Box<RecordKey>,
        /// What is wrong with it.
        why: String,
    },
    /// The records, or the archive, do not answer.
    #[error("{0}")]
    Unavailable(String),
}

impl From<RecordsError> for PeopleError {
    fn from(error: RecordsError) -> Self {
        match error {
            RecordsError::Conflict => Self::Conflict,
            RecordsError::Invalid(why) => Self::Unfit(Unfit::new("this", why)),
            RecordsError::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

impl From<PeopleError> for GovernError {
    fn from(error: PeopleError) -> Self {
        Self(error.to_string())
    }
}

/// The use-cases of people; each has a file or folder of its own that adds its part.
pub struct People {
    pub(crate) records: Arc<dyn Records>,
    pub(crate) subjects: Arc<dyn Subjects>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    /// Keys pseudonyms and the secrets of webhooks.
    pub(crate) key: [u8; 32],
    pub(crate) protocol_cache: ProtocolCache,
    pub(crate) staff: Option<Arc<dyn Staff>>,
}

/// A key or an account of somebody who works in the house.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaffMember {
    /// The id of the key, or `person:` and the name of the account.
    pub holder: String,
    /// Whose it is; absent where nobody said.
    pub person: Option<String>,
}

/// Knows who decides reviews that belong to no community.
pub trait Staff: Send + Sync {
    /// The keys and accounts of reviewers of a tenant, as a [`Caller`](conclave_ports::Caller) holds them.
    fn reviewers<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<Vec<String>, GovernError>>;

    /// The keys and accounts that may decide such a review: of reviewers and of owners.
    fn deciders<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<Vec<StaffMember>, GovernError>>;

    /// Whether a tenant has anybody who may decide such a review: a reviewer or an owner.
    fn has_reviewers<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<bool, GovernError>>;
}

impl People {
    /// Keeps everything in these records; the key makes pseudonyms and the secrets of webhooks.
    #[must_use]
    pub fn new(
        records: Arc<dyn Records>,
        subjects: Arc<dyn Subjects>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        key: [u8; 32],
    ) -> Self {
        let protocol_cache = ProtocolCache::default();
        Self { records, subjects, clock, entropy, key, protocol_cache, staff: None }
    }

    /// Gives reviews that belong to no community to whoever of these has least to do.
    #[must_use]
    pub fn with_staff(self, staff: Arc<dyn Staff>) -> Self {
        Self { staff: Some(staff), ..self }
    }

    /// A new id that nobody can guess.
    pub(crate) fn new_id(&self, start: &str) -> String {
        let mut random = [0; 16];
        self.entropy.fill(&mut random);
        format!("{start}_{}", hex::encode(random))
    }

    /// What stands in a leaf instead of a name or a text.
    pub(crate) fn digest(&self, what: &[u8], tenant: &TenantId, text: &str) -> Public {
        Public::Bytes(pseudonym(&self.key, what, tenant.as_str(), text).to_vec())
    }

    /// The name of a person in the records; whoever is new gets one.
    pub(crate) async fn subject(
        &self,
        tenant: &TenantId,
        person: &str,
    ) -> Result<Option<[u8; 16]>, PeopleError> {
        let bad = |error: conclave_core::InvalidId| Unfit::new("subject", error.to_string());
        let user = UserId::new(person).map_err(bad)?;
        let session = SessionId::new("consent").map_err(bad)?;
        let named = self.subjects.name(tenant, Some(&user), &session).await;
        let named = named.map_err(|error| PeopleError::Unavailable(error.to_string()))?;
        Ok(named.subject)
    }
}

impl Governance for People {
    fn consent<'a>(
        &'a self,
        tenant: &'a TenantId,
        ask: ConsentAsk,
    ) -> BoxFuture<'a, Result<ConsentState, GovernError>> {
        async move { Ok(self.check_consent(tenant, &ask).await?) }.boxed()
    }

    fn look<'a>(
        &'a self,
        tenant: &'a TenantId,
        ask: CulturalAsk,
    ) -> BoxFuture<'a, Result<CulturalFinding, GovernError>> {
        async move {
            let protocols = self.protocols_in_force(tenant).await?;
            let bytes: usize = ask.texts.iter().map(String::len).sum();
            if bytes <= LOOK_BYTES_MAX {
                return Ok(conclave_govern::look(&protocols, &ask));
            }
            let looking = move || conclave_govern::look(&protocols, &ask);
            let looked = tokio::task::spawn_blocking(looking).await;
            looked.map_err(|error| GovernError(format!("looking at a long text failed: {error}")))
        }
        .boxed()
    }

    fn submit(&self, review: NewReview) -> BoxFuture<'_, Result<String, GovernError>> {
        async move { Ok(self.open_review(review).await?) }.boxed()
    }

    fn has_elders<'a>(
        &'a self,
        tenant: &'a TenantId,
        community: &'a str,
    ) -> BoxFuture<'a, Result<bool, GovernError>> {
        async move { Ok(!self.elders(tenant, community).await?.is_empty()) }.boxed()
    }

    fn has_reviewers<'a>(
        &'a self,
        tenant: &'a TenantId,
    ) -> BoxFuture<'a, Result<bool, GovernError>> {
        match &self.staff {
            Some(staff) => staff.has_reviewers(tenant),
            // Nobody keeps a list: whoever configured reviewers is believed.
            None => ready(Ok(true)).boxed(),
        }
    }

    fn why_token(&self, tenant: &TenantId, audit: AuditId) -> Option<String> {
        self.write_why_token(tenant, audit)
    }

    fn announce<'a>(
        &'a self,
        tenant: &'a TenantId,
        announcement: Announcement,
    ) -> BoxFuture<'a, Result<(), GovernError>> {
        async move { Ok(self.queue_event(tenant, &announcement).await?) }.boxed()
    }
}
