//! The use-cases' common ground: everything a matter needs, wired once.

use crate::deliberate::{Panel, Verdicts};
use crate::guards::{GuardEntry, PersonalData, Places};
use crate::matter::{KnownReadings, Matter, Memory};
use crate::per_tenant::PerTenant;
use crate::settings::Settings;
use crate::shares::Shares;
use conclave_core::{AuditId, Bars, TenantId, UserId};
use conclave_detect::{Course, Detector};
use conclave_instinct::Instinct;
use conclave_ledger::{Body, Draft, Kind, Value, tenant_number};
use conclave_money::Steward;
use conclave_ports::{
    Announcement, Archive, ArchiveError, Clock, Entropy, ErasureReceipt, Governance, Ledger,
    ModelDirectory, PolicySource, Subjects, SubjectsError, pseudonym,
};
use conclave_voice::{Field, Voices};
use std::sync::Arc;

/// Everything a matter needs. Immutable: a reload builds a new one beside it.
#[derive(Clone)]
pub struct Engine {
    /// The frozen directives every refusal rests on.
    pub instinct: Arc<Instinct>,
    /// Reads texts.
    pub detectors: PerTenant<Detector>,
    /// Senses how a reply should be shaped.
    pub field: Arc<Field>,
    /// Words the system's own messages, and knows where help can be found.
    pub voices: PerTenant<Voices>,
    /// Proposes replies.
    pub models: Arc<dyn ModelDirectory>,
    /// Who looks at every matter, in order.
    pub guards: Arc<[GuardEntry]>,
    /// Votes on replies.
    pub panel: Panel,
    /// What the panel said of the same case before.
    pub verdicts: Arc<Verdicts>,
    /// How texts of histories were read before.
    pub readings: Arc<KnownReadings>,
    /// Remembers.
    pub ledger: Arc<dyn Ledger>,
    /// Recalls.
    pub archive: Arc<dyn Archive>,
    /// Who may compute, and when.
    pub shares: Shares,
    /// What is remembered between turns.
    pub memory: Arc<Memory>,
    /// Names people.
    pub subjects: Arc<dyn Subjects>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// What the operator set.
    pub settings: Arc<Settings>,
    /// What tenants may do.
    pub policies: Arc<dyn PolicySource>,
    /// Keeps their money; absent where none is kept.
    pub steward: Option<Arc<Steward>>,
    /// Knows what people and communities have said; absent where nobody keeps it.
    pub governance: Option<Arc<dyn Governance>>,
    /// Where words may go.
    pub places: Arc<Places>,
    /// Finds what identifies people.
    pub personal_data: Arc<PersonalData>,
}

impl Engine {
    /// Where a person of a tenant stands; somebody who never wrote stands nowhere.
    ///
    /// # Errors
    /// When the archive does not answer.
    pub async fn course_of(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<Course, ArchiveError> {
        let found = self.subjects.find(tenant, user).await;
        let found = found.map_err(|error| ArchiveError(error.to_string()))?;
        let Some(subject) = found else { return Ok(Course::default()) };
        self.memory.course(tenant_number(tenant.as_str()), subject).await
    }

    /// Erases a person of a tenant, from memory too; `None` when nobody is known by this id.
    ///
    /// # Errors
    /// When it could not be finished; what was begun is resumed.
    pub async fn erase_subject(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<Option<ErasureReceipt>, SubjectsError> {
        let receipt = self.subjects.erase(tenant, user).await?;
        if let Some(receipt) = &receipt {
            self.memory.forget(receipt.subject, &receipt.sessions);
            self.verdicts.clear();
        }
        Ok(receipt)
    }

    /// Notes that somebody saw the words of a decision; the reader stands in the leaf as a pseudonym.
    pub fn note_transcript_read(&self, tenant: &TenantId, reader: &str, read: AuditId) {
        let key = &self.settings.pseudonym_key;
        let reader = pseudonym(key, b"reader", tenant.as_str(), reader);
        let draft = Draft {
            public: Value::map([
                ("what", Value::from("decision.read")),
                ("decision", Value::Bytes(read.0.into_bytes().to_vec())),
                ("reader", Value::Bytes(reader.to_vec())),
            ]),
            ..self.settings.draft(Kind::AdminAction, tenant_number(tenant.as_str()))
        };
        self.ledger.append_soon(draft, Body::empty());
    }

    /// The bars a matter's replies must reach: the scrutiny's own, raised by the operator and the tenant.
    #[must_use]
    pub fn bars<C: ?Sized>(&self, matter: &Matter<C>) -> Bars {
        let own = [self.settings.bars_min, matter.policy().bars_min];
        own.into_iter().flatten().fold(matter.scrutiny.bars(), Bars::raised_to)
    }

    /// A new id for a decision.
    pub fn new_audit_id(&self, now_ms: u64) -> AuditId {
        let mut random = [0; 10];
        self.entropy.fill(&mut random);
        AuditId::from_parts(now_ms, random)
    }

    /// Tells a tenant's webhooks; nobody waits for it.
    pub fn announce_soon(&self, tenant: &TenantId, announcement: Announcement) {
        let Some(governance) = self.governance.clone() else { return };
        let tenant = tenant.clone();
        tokio::spawn(async move {
            let kind = announcement.kind.as_str();
            if let Err(error) = governance.announce(&tenant, announcement).await {
                tracing::error!(kind, %error, "webhooks could not be told");
            }
        });
    }
}
