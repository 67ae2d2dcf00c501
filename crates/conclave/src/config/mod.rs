//! `conclave.toml`: what an operator may set.
//!
//! **Invariant:** nothing here can express less than the directives' floor: thresholds are not in it,
//! and scrutiny and bars may only be raised.

mod check;
mod check_upstream;
mod database;
mod load;
mod named;
mod own_files;
mod rates;
mod recipes;
mod secret;
mod telemetry;
mod upstream;
mod verifiers;

pub use check::{Finding, exposure, findings};
pub use check_upstream::{OUTSIDE_TIMEOUT_MS, stand_ins};
pub use database::{DatabaseRef, database_url};
pub use load::{ConfigError, load, schema};
pub use own_files::PersonaFiles;
pub use rates::RateLimits;
pub use recipes::RecipeSection;
pub use secret::SecretRef;
pub use telemetry::Telemetry;
pub use upstream::{ModelConfig, Provider, ProviderKind, Temperature};
pub use verifiers::{GuardTemplate, OnFailure, SeatChange, VerifierKind};

use conclave_gateway::TlsFiles;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The whole file; every part may be left out.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where to listen and where to keep data.
    pub server: Server,
    /// How connections are encrypted.
    #[serde(skip_serializing_if = "Tls::is_default")]
    pub tls: Tls,
    /// Bounds on what clients can make grow.
    pub limits: Limits,
    /// How what is recorded is kept.
    pub storage: Storage,
    /// What single tenants want otherwise, by name.
    pub tenants: BTreeMap<String, Tenant>,
    /// Which directives are in force.
    pub directives: Directives,
    /// Where people in crisis find people.
    #[serde(skip_serializing_if = "ResourceSection::is_default")]
    pub resources: ResourceSection,
    /// How replies are deliberated.
    pub deliberation: Deliberation,
    /// How texts are read.
    pub detection: Detection,
    /// How the system's own messages are worded.
    #[serde(skip_serializing_if = "PersonaFiles::is_default")]
    pub personas: PersonaFiles,
    /// How requests are treated.
    pub policy: Policy,
    /// Servers that run models.
    #[serde(deserialize_with = "named::list")]
    #[schemars(schema_with = "named::schema::<Provider>")]
    pub providers: Vec<Provider>,
    /// Models offered to clients, beside `builtin`.
    #[serde(deserialize_with = "named::list")]
    #[schemars(schema_with = "named::schema::<ModelConfig>")]
    pub models: Vec<ModelConfig>,
    /// Changes to the seats of verifiers, and verifiers of one's own, by name.
    #[serde(deserialize_with = "named::table")]
    #[schemars(schema_with = "named::schema::<SeatChange>")]
    pub verifiers: BTreeMap<String, SeatChange>,
    /// How the ledger is signed and where its checkpoints are copied to.
    #[serde(skip_serializing_if = "LedgerConfig::is_default")]
    pub ledger: LedgerConfig,
    /// Who looks at what waits for a person.
    #[serde(skip_serializing_if = "Reviews::is_default")]
    pub reviews: Reviews,
    /// Where events may be sent to.
    #[serde(skip_serializing_if = "Webhooks::is_default")]
    pub webhooks: Webhooks,
    /// Which models recipes use, where words may go, and recipes of one's own.
    #[serde(skip_serializing_if = "RecipeSection::is_default")]
    pub recipes: RecipeSection,
    /// Where traces go.
    #[serde(skip_serializing_if = "Telemetry::is_default")]
    pub telemetry: Telemetry,
    /// How fast anybody may ask.
    #[serde(skip_serializing_if = "RateLimits::is_default")]
    pub rate_limits: RateLimits,
}

/// Who looks at what waits for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Reviews {
    /// Whether somebody looks at escalated replies: they become reviews then, and messages say so.
    pub staffed: bool,
}

impl Reviews {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Where events may be sent to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Webhooks {
    /// Permits webhooks to private addresses, to this machine and without encryption.
    pub allow_private: bool,
}

impl Webhooks {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How the ledger is signed and where its checkpoints are copied to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LedgerConfig {
    /// The name of the log in its checkpoints, such as `example.com/conclave`; fixed when the
    /// signing key is made.
    pub origin: Option<String>,
    /// Where checkpoints are copied to.
    pub anchor: AnchorPlaces,
    /// Who else signs that checkpoints extend each other; 16 at most.
    pub witnesses: Vec<WitnessPlace>,
}

impl LedgerConfig {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A witness of somebody else's.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WitnessPlace {
    /// Where it takes checkpoints: what stands before `/add-checkpoint`.
    pub url: String,
    /// Its public key for cosignatures, `name+id+base64`.
    pub vkey: String,
    /// Permits a private address.
    #[serde(default)]
    pub allow_private: bool,
}

/// Where checkpoints are copied to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AnchorPlaces {
    /// A file, best on another machine's disk, that gets a line for each checkpoint.
    pub file: Option<PathBuf>,
    /// A URL that gets each checkpoint as a signed webhook.
    pub webhook: Option<String>,
    /// `env:NAME` or `file:PATH`: the secret the webhook is signed with, `whsec_` and base64.
    pub webhook_secret: Option<SecretRef>,
    /// Permits a private address for the webhook.
    pub allow_private: bool,
}

/// Where to listen and where to keep data.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Address and port.
    pub listen: SocketAddr,
    /// Directory for the ledger, the spool and keys.
    pub data: PathBuf,
    /// Whether browsers reach the dashboard over https, through a proxy: cookies are then bound to it.
    pub https: bool,
    /// Whether a proxy with TLS stands before it: listening beyond this machine is then no reason to warn.
    #[serde(skip_serializing_if = "is_zero")]
    pub behind_proxy: bool,
    /// Where people reach this program from outside, such as `https://conclave.example.org`: links that they
    /// are given begin with it. Without it they begin at the root of wherever they are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8420)),
            data: "conclave-data".into(),
            https: false,
            behind_proxy: false,
            public_url: None,
        }
    }
}

/// The certificate that connections are encrypted with; without one they are not.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// A file with the server's certificate, and those between it and a root, in PEM.
    pub certificate: Option<PathBuf>,
    /// A file with its private key, in PEM.
    pub key: Option<PathBuf>,
}

impl Tls {
    const fn is_default(&self) -> bool {
        self.certificate.is_none() && self.key.is_none()
    }

    /// Both files, where connections are to be encrypted.
    #[must_use]
    pub fn files(&self) -> Option<TlsFiles> {
        let (certificate, key) = (self.certificate.clone()?, self.key.clone()?);
        Some(TlsFiles { certificate, key })
    }
}

/// How what is recorded is kept, and where it goes when a disk fails.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Storage {
    /// The address of a PostgreSQL database; `env:NAME` or `file:PATH` where it holds a password.
    /// Without one, SQLite in the data directory.
    pub database: Option<DatabaseRef>,
    /// The key that opens the keys of people, as `env:NAME` or `file:PATH`: 64 hexadecimal digits.
    /// Without one, `root.key` in the data directory is made and used.
    pub root_key: Option<SecretRef>,
    /// Days after which the words of a decision are deleted; 0 keeps them.
    #[schemars(range(max = 36_500))]
    pub retention_days: u32,
    /// A second spool directory, best on another disk, for when the first cannot be written.
    pub spool_fallback: Option<PathBuf>,
    /// How many bytes the spool may take while the database does not answer.
    #[schemars(range(min = 201_326_592_u64, max = 1_099_511_627_776_u64))]
    pub spool_bytes_max: u64,
    /// How many bytes of what the database has taken are kept, for a database that comes back older;
    /// 0 keeps nothing.
    #[schemars(range(max = 1_099_511_627_776_u64))]
    pub kept_bytes_max: u64,
    /// For how many hours at most.
    #[schemars(range(min = 1, max = 720))]
    pub kept_hours: u64,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            database: None,
            root_key: None,
            retention_days: 0,
            spool_fallback: None,
            spool_bytes_max: 10 << 30,
            kept_bytes_max: 1 << 30,
            kept_hours: 24,
        }
    }
}

impl Storage {
    /// How much of what the database has taken is kept.
    #[must_use]
    pub fn kept(&self) -> conclave_store::KeptLimits {
        let age_max = std::time::Duration::from_secs(self.kept_hours.saturating_mul(3_600));
        conclave_store::KeptLimits { bytes_max: self.kept_bytes_max, age_max }
    }

    /// The address of the database, if there is one.
    ///
    /// # Errors
    /// When it cannot be read; the sentence does not repeat it.
    pub fn url(&self) -> Result<Option<conclave_store::DatabaseUrl>, String> {
        self.database.as_ref().map(DatabaseRef::url).transpose()
    }
}

/// What one tenant wants otherwise.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tenant {
    /// Days after which the words of a decision are deleted; 0 keeps them.
    #[schemars(range(max = 36_500))]
    pub retention_days: Option<u32>,
    /// Nothing of this tenant is deleted because of its age.
    pub legal_hold: bool,
    /// Nothing of these people is deleted because of its age.
    pub legal_hold_users: Vec<String>,
    /// What it may do and spend, as in `PUT /v1/tenants/{id}/policy`: the tenant's own policy is
    /// laid over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<serde_json::Value>,
    /// Pattern files of its own, beside everybody's; they can only make texts be read more strictly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub pattern_files: Vec<PathBuf>,
    /// How the system's own messages are worded for its people, where that differs.
    #[serde(skip_serializing_if = "PersonaFiles::is_default")]
    pub personas: PersonaFiles,
}

/// Which directives are in force.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Directives {
    /// An organisation's own set, with its signature beside it under the extension `.sig`; it must be
    /// signed by the key this program was built with. Without one, the set compiled in is in force.
    pub file: Option<PathBuf>,
}

/// Where people in crisis find people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResourceSection {
    /// Crisis lines of one's own, in the form of `data/resources`: each country it names takes the
    /// place of the built-in one, every other stays.
    pub file: Option<PathBuf>,
}

impl ResourceSection {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How texts are read.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Detection {
    /// When the slower trained models are asked.
    pub second_tier: SecondTier,
    /// Pattern files of your own, in the form of `data/patterns`; they can only make texts be read more
    /// strictly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub pattern_files: Vec<PathBuf>,
}

/// When the slower trained models are asked.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum SecondTier {
    /// Never: they take no memory.
    Never,
    /// The encoder for every text, the transformer where the answer is open.
    #[default]
    Unsure,
    /// Both for every text.
    Always,
}

/// Bounds on what clients can make grow.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of one request body.
    #[schemars(range(min = 1024, max = 67_108_864))]
    pub body_bytes_max: usize,
    /// Turns in flight at once.
    #[schemars(range(min = 1, max = 100_000))]
    pub turns_max: usize,
    /// Open connections.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections_max: usize,
    /// Open connections from one address; 0 for half of all.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(max = 1_000_000))]
    pub connections_per_address_max: usize,
    /// Milliseconds a long text waits for its key's share of the processor before it is refused.
    #[serde(skip_serializing_if = "is_share_wait_default")]
    #[schemars(range(min = 100, max = 300_000))]
    pub share_wait_ms: u64,
    /// Milliseconds running turns may take to finish after a request to stop.
    pub drain_timeout_ms: u64,
    /// Milliseconds connections are still accepted after a request to stop, while `/readyz` says 503.
    #[serde(skip_serializing_if = "is_zero")]
    pub drain_grace_ms: u64,
}

const SHARE_WAIT_MS: u64 = 20_000;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_share_wait_default(wait_ms: &u64) -> bool {
    *wait_ms == SHARE_WAIT_MS
}

// A file that does not set it keeps the digest it had before this could be set.
fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 8 * 1024 * 1024,
            turns_max: 1024,
            connections_max: 4096,
            connections_per_address_max: 0,
            share_wait_ms: SHARE_WAIT_MS,
            drain_timeout_ms: 30_000,
            drain_grace_ms: 0,
        }
    }
}

/// How replies are deliberated.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Deliberation {
    /// Candidates asked of a model for one reply.
    #[schemars(range(min = 1, max = 5))]
    pub attempts_max: u8,
    /// Milliseconds a model may be silent: before the first of a reply comes, and between two pieces of it.
    #[schemars(range(min = 1_000, max = 600_000))]
    pub turn_deadline_ms: u64,
    /// Milliseconds a whole reply may take that keeps coming; not less than `turn_deadline_ms`.
    #[schemars(range(min = 1_000, max = 600_000))]
    pub reply_timeout_ms: u64,
    /// Milliseconds a turn may take when the person is in crisis; at most 8,000.
    #[schemars(range(min = 1_000, max = 8_000))]
    pub crisis_deadline_ms: u64,
    /// Milliseconds a panel may take.
    #[schemars(range(min = 10, max = 10_000))]
    pub panel_deadline_ms: u64,
    /// The least scrutiny of every turn.
    pub scrutiny_min: ScrutinyName,
}

impl Default for Deliberation {
    fn default() -> Self {
        Self {
            attempts_max: 3,
            turn_deadline_ms: 120_000,
            reply_timeout_ms: 600_000,
            crisis_deadline_ms: 8_000,
            panel_deadline_ms: 500,
            scrutiny_min: ScrutinyName::Normal,
        }
    }
}

/// Levels of scrutiny.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScrutinyName {
    Normal,
    Raised,
    Strict,
}

/// How requests are treated.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Modes a request may ask for.
    pub modes_allowed: Vec<ModeName>,
    /// What a blocked input is answered with.
    pub on_input_block: OnInputBlock,
    /// What an attempt to override instructions leads to.
    pub on_injection: OnInjection,
    /// What an input leads to that may be meant to do harm, where one weak sign alone says so.
    #[serde(skip_serializing_if = "OnDoubtName::is_default")]
    pub on_doubt: OnDoubtName,
    /// What happens to images, sounds and files that nobody can judge.
    #[serde(skip_serializing_if = "UnjudgedName::is_default")]
    pub unjudged: UnjudgedName,
    /// Permits images and files at private, link-local and loopback addresses, for a provider that fetches them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_private_urls: bool,
    /// Leaves the `conclave` key out of replies, for clients that refuse unknown fields.
    pub omit_own_fields: bool,
    /// What happens to a reply whose decision no disk takes.
    pub audit_failure: AuditFailureName,
    /// When the parts of a streamed reply leave.
    #[serde(skip_serializing_if = "StreamName::is_default")]
    pub stream: StreamName,
}

/// When the parts of a streamed reply leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamName {
    /// When the whole reply has passed.
    #[default]
    Buffered,
    /// Window by window, each when it has passed with all text before it.
    Windowed,
}

impl StreamName {
    // A policy that does not set it keeps the digest it had before this could be set.
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Policy {
    fn default() -> Self {
        use ModeName::{ChildSafe, Creative, Normal, Technical};
        Self {
            modes_allowed: vec![Normal, Technical, ChildSafe, Creative],
            on_input_block: OnInputBlock::Error,
            on_injection: OnInjection::Flag,
            on_doubt: OnDoubtName::Flag,
            unjudged: UnjudgedName::Pass,
            allow_private_urls: false,
            omit_own_fields: false,
            audit_failure: AuditFailureName::Hold,
            stream: StreamName::Buffered,
        }
    }
}

/// What happens to a reply whose decision no disk takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditFailureName {
    /// 503 `audit_unavailable`; where the trouble is known already, no model is asked.
    #[default]
    Hold,
    /// It is delivered, counted and reported.
    DeliverAndAlert,
}

/// Modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModeName {
    Normal,
    Technical,
    ChildSafe,
    Creative,
    Debug,
}

/// What a blocked input is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnInputBlock {
    /// 400 `content_filter`.
    Error,
    /// 200 with `finish_reason: content_filter`.
    Reply,
}

/// What an input leads to that may be meant to do harm, where one weak sign alone says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDoubtName {
    /// It is marked and treated as strictly as possible.
    #[default]
    Flag,
    /// It is refused.
    Block,
}

impl OnDoubtName {
    // A policy that does not set it keeps the digest it had before this could be set.
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What happens to images, sounds and files that nobody can judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnjudgedName {
    /// They are passed on, and the decision says so.
    #[default]
    Pass,
    /// The request is refused.
    Refuse,
}

impl UnjudgedName {
    // A policy that does not set it keeps the digest it had before this could be set.
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What an attempt to override instructions leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnInjection {
    /// It is marked and treated more strictly.
    Flag,
    /// It is refused.
    Block,
}
