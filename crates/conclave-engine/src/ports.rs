//! What the use-cases need from the outside world, as traits.
//!
//! **Invariant:** every source of time, chance, text or storage is one of these, so that a test can
//! replace it and a decision can be replayed.

use conclave_core::{
    AuditId, Candidate, GenerationFailure, KeyId, Message, MicroUsd, Opinion, Reason, Score, Seat,
    SessionId, TenantId, Usage, UserId,
};
use conclave_ledger::{Body, Draft, EntryId};
use conclave_verifiers::Case;
use conclave_voice::FieldState;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc;

/// Wall-clock time.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> u64;
}

/// Randomness.
pub trait Entropy: Send + Sync {
    /// Fills `bytes` with unpredictable bytes.
    fn fill(&self, bytes: &mut [u8]);
}

/// One question to a model.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The client's request in OpenAI chat form: unknown fields pass through untouched.
    pub body: Arc<Map<String, Value>>,
    /// The conversation as it is judged.
    pub conversation: Arc<[Message]>,
    /// What the system adds: how to shape the reply, and what was wrong with the last one.
    pub guidance: Option<String>,
    /// Sampling temperature the field suggests, where the client set none.
    pub temperature: Option<f32>,
    /// How the turn was sensed: drives the built-in responder.
    pub field: Arc<FieldState>,
    /// Whether the person is in crisis.
    pub crisis: Score,
    /// What was wrong with the last attempt.
    pub reasons: Vec<Reason>,
    /// From 0: which attempt of the turn this is.
    pub attempt: u8,
    /// Makes the built-in responder deterministic.
    pub seed: u64,
    /// How long an answer may take.
    pub timeout: Duration,
}

/// Why a model gave no candidate, with a sentence for the log that holds no secret and no transcript.
#[derive(Clone, Debug, Error)]
#[error("{message}")]
pub struct ModelError {
    /// The kind, as the deliberation counts it.
    pub failure: GenerationFailure,
    /// What happened.
    pub message: String,
}

/// Something that proposes replies.
pub trait Model: Send + Sync {
    /// Asks for one candidate.
    fn generate(&self, request: ModelRequest) -> BoxFuture<'_, Result<Candidate, ModelError>>;
    /// Asks for one candidate and hands on its text while it is being written. A model that only answers
    /// whole hands nothing on. What was handed on, joined, is the beginning of the candidate's text.
    fn generate_in_pieces(
        &self,
        request: ModelRequest,
        _pieces: mpsc::Sender<String>,
    ) -> BoxFuture<'_, Result<Candidate, ModelError>> {
        self.generate(request)
    }
    /// Turns texts into vectors; `None` where the model cannot. Nothing of it is judged.
    fn embed(
        &self,
        _request: Arc<Map<String, Value>>,
        _timeout: Duration,
    ) -> BoxFuture<'_, Option<Result<Embedded, ModelError>>> {
        Box::pin(std::future::ready(None))
    }
}

/// What texts became.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// One for each text, in order.
    pub vectors: Vec<Embedding>,
    /// Tokens that were read.
    pub input_tokens: u64,
}

/// One text as a vector.
#[derive(Clone, Debug, PartialEq)]
pub enum Embedding {
    /// Numbers.
    Numbers(Vec<f64>),
    /// The same packed, as the client asked for it.
    Packed(String),
}

/// One model as clients know it.
#[derive(Clone)]
pub struct OfferedModel {
    /// What answers.
    pub model: Arc<dyn Model>,
    /// Who runs it.
    pub provider: Arc<str>,
    /// Its price per million tokens read.
    pub input_price: MicroUsd,
    /// Its price per million tokens written.
    pub output_price: MicroUsd,
}

impl OfferedModel {
    /// What these tokens cost.
    #[must_use]
    pub const fn cost(&self, usage: Usage) -> MicroUsd {
        MicroUsd::for_tokens(usage.input_tokens, self.input_price)
            .saturating_add(MicroUsd::for_tokens(usage.output_tokens, self.output_price))
    }
}

/// Which models there are.
pub trait ModelDirectory: Send + Sync {
    /// The model with this name.
    fn find(&self, name: &str) -> Option<OfferedModel>;
    /// Every name, with who runs it, sorted.
    fn names(&self) -> Vec<(String, Arc<str>)>;
    /// Everybody who may be asked under this name: who runs it, and who stands in.
    fn providers(&self, name: &str) -> Vec<Arc<str>> {
        self.find(name).map(|offered| offered.provider).into_iter().collect()
    }
}

/// Why a verifier could not judge.
#[derive(Clone, Debug, Error)]
#[error("verifier failed: {0}")]
pub struct VerifierError(pub String);

/// What a verifier answered, and what asking it cost.
#[derive(Clone, Debug)]
pub struct Hearing {
    /// Its opinion, nothing to judge, or why it could not.
    pub answer: Result<Option<Opinion>, VerifierError>,
    /// What was spent, also where no opinion came of it.
    pub cost: MicroUsd,
}

/// Where a verifier sends what it judges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// Who runs it.
    pub provider: Arc<str>,
    /// The model that reads it, or the verifier's own name where it is no model.
    pub model: Arc<str>,
}

/// What it counts as when a verifier gives no valid vote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFailing {
    /// Full dissent.
    #[default]
    Dissents,
    /// Nothing: the others decide. Never for a verifier that is required.
    LeftOut,
}

/// Something that votes. It is shown the case and nothing else: no ballot of anybody.
pub trait Verifier: Send + Sync {
    /// Its place on the panel.
    fn seat(&self) -> &Seat;
    /// How long it may take.
    fn timeout(&self) -> Duration;
    /// Its opinion, or `None` when there is nothing in its field to judge.
    fn judge(&self, case: Arc<Case>) -> BoxFuture<'_, Result<Option<Opinion>, VerifierError>>;
    /// The same with what it cost; this is what the panel asks.
    fn hear(&self, case: Arc<Case>) -> BoxFuture<'_, Hearing> {
        Box::pin(async move { Hearing { answer: self.judge(case).await, cost: MicroUsd(0) } })
    }
    /// The most that hearing it on a case can cost: charged where nobody saw the end of the call.
    fn most(&self, _case: &Case) -> MicroUsd {
        MicroUsd(0)
    }
    /// What a failure counts as.
    fn when_failing(&self) -> WhenFailing {
        WhenFailing::Dissents
    }
    /// Whether it need not be asked about people who are long known and calm.
    fn may_be_spared(&self) -> bool {
        false
    }
    /// Whether it answers at once, here, and costs nothing: then nobody need remember what it said.
    fn is_quick(&self) -> bool {
        false
    }
    /// Who is shown the case besides this program; nobody where it stays here.
    fn elsewhere(&self) -> Option<Elsewhere> {
        None
    }
    /// The digest of the fixed instructions it judges by, where it has any.
    fn basis(&self) -> Option<[u8; 32]> {
        None
    }
}

/// Where an entry came to stand once it was durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Its id within the replica.
    pub id: EntryId,
    /// The RFC 6962 hash of its leaf.
    pub leaf_hash: [u8; 32],
}

/// Why an entry could not be made durable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AppendError {
    /// It cannot be an entry, or the ledger is closed: trying again does not help.
    #[error("the ledger could not take the entry: {0}")]
    Refused(String),
    /// No disk took it. Its number stays used, and a later entry states that it is missing.
    #[error("the ledger could not take the entry: {0}")]
    Unwritable(String),
}

/// Something about the ledger that a person should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LedgerAlert {
    /// One of a closed list; see the reference of `/health`.
    pub code: &'static str,
    /// A sentence.
    pub message: String,
}

/// How the ledger's way to the disk is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerState {
    /// Bytes that are durable and wait for the database.
    pub waiting_bytes: u64,
    /// How many there may be.
    pub waiting_bytes_max: u64,
    /// How long the oldest entry has waited.
    pub oldest_waiting_ms: u64,
    /// Files given up because a write or sync failed, since start.
    pub failed_segments: u64,
    /// Numbers whose entries could not be written anywhere, since start.
    pub lost_entries: u64,
    /// Entries written while the clock stood behind the entry before, since start.
    pub clock_behind: u64,
    /// Questions to witnesses that brought no cosignature, since start.
    pub witness_failures: u64,
    /// How many entries the last cosigned checkpoint covers, of those since start.
    pub witnessed_size: u64,
    /// What a person should know now, gravest first.
    pub alerts: Vec<LedgerAlert>,
}

/// The write side of the ledger.
pub trait Ledger: Send + Sync {
    /// Makes an entry durable; resolves only after it is on disk.
    fn append(&self, draft: Draft, body: Body) -> BoxFuture<'_, Result<Appended, AppendError>>;
    /// Hands over an entry that nobody waits for; it is durable soon after. Never blocks; an entry that
    /// finds the queue full is counted and reported, see [`Ledger::dropped`].
    fn append_soon(&self, draft: Draft, body: Body);
    /// How many entries [`Ledger::append_soon`] had to drop since start.
    fn dropped(&self) -> u64;
    /// Whether entries can be taken; the sentence says what is wrong.
    ///
    /// # Errors
    /// When the last entry could not be made durable, or the next soon cannot.
    fn health(&self) -> Result<(), AppendError>;
    /// How the way to the disk is doing.
    fn state(&self) -> LedgerState {
        LedgerState::default()
    }
}

/// Whose turn it is, as the ledger knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pseudonyms {
    /// The tenant's number.
    pub tenant: u64,
    /// The conversation.
    pub session: [u8; 16],
    /// The person; absent for anonymous ones.
    pub subject: Option<[u8; 16]>,
}

/// Why nobody could be named.
#[derive(Clone, Debug, Error)]
#[error("the keys of people cannot be used: {0}")]
pub struct SubjectsError(pub String);

/// The names that stand in the ledger instead of people.
pub trait Subjects: Send + Sync {
    /// Names a person and a conversation; whoever is new gets a name that is durable before this
    /// resolves. A known person costs no IO.
    fn name(
        &self,
        tenant: &TenantId,
        user: Option<&UserId>,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Pseudonyms, SubjectsError>>;
    /// The name of a person, if they have one.
    fn find(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> BoxFuture<'_, Result<Option<[u8; 16]>, SubjectsError>>;
    /// Every name of a person: whoever several replicas met while their database was away has several.
    fn find_all(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> BoxFuture<'_, Result<Vec<[u8; 16]>, SubjectsError>> {
        let found = self.find(tenant, user);
        Box::pin(async move { Ok(found.await?.into_iter().collect()) })
    }
    /// The name under which words of people without an id are sealed now; the words are gone with it.
    fn nobody(&self, tenant: &TenantId) -> BoxFuture<'_, Result<[u8; 16], SubjectsError>>;
    /// Whether a name is still in use: not once the person was erased.
    fn is_current(&self, subject: [u8; 16]) -> bool;
    /// Erases a person: the key of their words first, so that nothing can be read any more, then the
    /// words. `None` when nobody is known by this id. Resolves when all of it is done.
    fn erase(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> BoxFuture<'_, Result<Option<ErasureReceipt>, SubjectsError>>;
}

/// What was erased, and where that is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErasureReceipt {
    /// The pseudonym that nobody has any more.
    pub subject: [u8; 16],
    /// How many decisions of theirs there are; what was decided stays.
    pub decisions: u64,
    /// The words of how many of them were still there.
    pub bodies: u64,
    /// When.
    pub erased_ms: u64,
    /// The entry that says so.
    pub entry: EntryId,
    /// The hash of its leaf.
    pub leaf_hash: [u8; 32],
    /// The conversations they had, to be let go from memory.
    pub sessions: Vec<[u8; 16]>,
}

impl ErasureReceipt {
    /// The receipt for people and machines.
    #[must_use]
    pub fn to_json(&self) -> Value {
        serde_json::json!({
            "object": "subject.erasure",
            "subject": hex::encode(self.subject),
            "decisions": self.decisions,
            "bodies": self.bodies,
            "erased_at_ms": self.erased_ms,
            "horizon": {"live_days_max": 7, "backups_days_max": 30},
            "entry_id": self.entry.to_string(),
            "leaf_hash": hex::encode(self.leaf_hash),
        })
    }
}

/// One entry as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    /// Its position in the log.
    pub seq: u64,
    /// The exact bytes of the leaf.
    pub leaf: Vec<u8>,
    /// The body beside it, opened; absent when there is none or it was erased.
    pub body: Option<Vec<u8>>,
}

/// Whose decision is looked for, by pseudonym.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// That of a conversation.
    Session([u8; 16]),
    /// That of a person.
    Subject([u8; 16]),
}

/// Which decisions to list, newest first.
#[derive(Clone, Debug, Default)]
pub struct DecisionFilter {
    /// Only this tenant (see [`conclave_ledger::tenant_number`]).
    pub tenant: Option<u64>,
    /// Only this outcome.
    pub outcome: Option<String>,
    /// Only this action.
    pub action: Option<String>,
    /// Only this subject pseudonym.
    pub subject: Option<[u8; 16]>,
    /// Only decisions older than this one.
    pub before: Option<AuditId>,
    /// At most this many.
    pub limit: u32,
}

/// One line of the list of decisions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecisionRow {
    /// Its id.
    pub id: AuditId,
    /// Position in the log.
    pub seq: u64,
    /// When, in milliseconds since the Unix epoch.
    pub timestamp_ms: u64,
    /// How it ended.
    pub outcome: String,
    /// What was done.
    pub action: String,
    /// In `0..=1`; absent where no panel sat.
    pub safety_score: Option<f64>,
    /// How often a model was asked.
    pub attempts: u32,
    /// Whether the person was in crisis.
    pub crisis: bool,
    /// How strictly it was treated.
    pub scrutiny: String,
    /// The model asked for.
    pub model: String,
    /// How long the turn took.
    pub latency_ms: u32,
    /// Whose, see [`conclave_ledger::tenant_number`].
    #[serde(skip)]
    pub tenant: u64,
}

/// Counts for the overview.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Decisions by outcome.
    pub outcomes: Vec<(String, u64)>,
    /// Decisions by hour: (hour start in ms, delivered, withheld).
    pub hours: Vec<(u64, u64, u64)>,
    /// Entries in the log.
    pub entries: u64,
    /// The root of the log's tree.
    pub root: [u8; 32],
}

/// Why the archive could not answer.
#[derive(Clone, Debug, Error)]
#[error("the archive could not answer: {0}")]
pub struct ArchiveError(pub String);

/// The read side of the ledger. Reads see everything appended before the call.
pub trait Archive: Send + Sync {
    /// All entries of one decision (the decision first, then its delivery), of this tenant only.
    fn find(
        &self,
        tenant: u64,
        id: AuditId,
    ) -> BoxFuture<'_, Result<Vec<StoredEntry>, ArchiveError>>;
    /// A page of decisions, newest first.
    fn list(&self, filter: DecisionFilter)
    -> BoxFuture<'_, Result<Vec<DecisionRow>, ArchiveError>>;
    /// The latest decision of a conversation or a person of this tenant, or the latest at a position under
    /// `before`; needs not see the newest entries.
    fn latest(
        &self,
        tenant: u64,
        whose: Whose,
        before: Option<u64>,
    ) -> BoxFuture<'_, Result<Option<StoredEntry>, ArchiveError>>;
    /// Counts since a time, for this tenant or all.
    fn tally(
        &self,
        tenant: Option<u64>,
        since_ms: u64,
    ) -> BoxFuture<'_, Result<Tally, ArchiveError>>;
    /// Whether the store behind it answers; the sentence says what is wrong.
    fn health(&self) -> BoxFuture<'_, Result<(), ArchiveError>>;
}

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyRole {
    /// Chat for its own tenant.
    App,
    /// Decides reviews.
    Reviewer,
    /// Decides for a community.
    Elder,
    /// Configures; reads no transcripts.
    Admin,
    /// Reads proofs and public fields.
    Auditor,
    /// Everything.
    Owner,
}

impl KeyRole {
    /// Every role.
    pub const ALL: [Self; 6] =
        [Self::App, Self::Reviewer, Self::Elder, Self::Admin, Self::Auditor, Self::Owner];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Reviewer => "reviewer",
            Self::Elder => "elder",
            Self::Admin => "admin",
            Self::Auditor => "auditor",
            Self::Owner => "owner",
        }
    }

    /// Finds the role with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

/// One API key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// The public part.
    pub id: KeyId,
    /// Whose.
    pub tenant: TenantId,
    /// What it may do.
    pub role: KeyRole,
    /// A word for people.
    pub label: String,
    /// Whose hands it is in, where that is known: one person may have several keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// When it was made.
    pub created_ms: u64,
    /// When it ends.
    pub expires_ms: Option<u64>,
    /// When it was withdrawn.
    pub revoked_ms: Option<u64>,
}

impl KeyRecord {
    /// Whether it opens anything at this time.
    #[must_use]
    pub fn is_valid_at(&self, now_ms: u64) -> bool {
        self.revoked_ms.is_none() && self.expires_ms.is_none_or(|end| now_ms < end)
    }
}

/// Looks keys up by the keyed hash of the whole key; answers from memory.
pub trait KeyRing: Send + Sync {
    /// The key with this hash, valid or not.
    fn find(&self, key: &str) -> Option<KeyRecord>;
    /// The key with this public part, valid or not.
    fn find_id(&self, id: &KeyId) -> Option<KeyRecord>;
    /// The keyed hash of a text that is no key, with a secret that all replicas share: whoever shows the
    /// text with it was given it here.
    fn mark(&self, text: &str) -> [u8; 32];
}
