//! The use-cases' common ground: everything a turn needs, wired once.

use crate::governed::Governed;
use crate::memory::Memory;
use crate::panel::Panel;
use crate::settings::Settings;
use crate::verdicts::Verdicts;
use crate::workshop::Workshop;
use conclave_core::{AuditId, TenantId, UserId};
use conclave_detect::{Course, Detector};
use conclave_instinct::Instinct;
use conclave_ledger::tenant_number;
use conclave_money::Steward;
use conclave_ports::{
    Archive, ArchiveError, Clock, Entropy, ErasureReceipt, Ledger, ModelDirectory, Subjects,
    SubjectsError,
};
use conclave_voice::{Field, Resources, Voices};
use std::sync::Arc;

/// Everything a turn needs. Immutable: a reload builds a new one beside it.
#[derive(Clone)]
pub struct Engine {
    /// The frozen directives every refusal rests on.
    pub instinct: Arc<Instinct>,
    /// Reads texts.
    pub detector: Arc<Detector>,
    /// Senses how a reply should be shaped.
    pub field: Arc<Field>,
    /// Words the system's own messages.
    pub voices: Arc<Voices>,
    /// Where help can be found.
    pub resources: Arc<Resources>,
    /// Proposes replies.
    pub models: Arc<dyn ModelDirectory>,
    /// Votes on them.
    pub panel: Panel,
    /// What the panel said of the same case before.
    pub verdicts: Arc<Verdicts>,
    /// Remembers.
    pub ledger: Arc<dyn Ledger>,
    /// Recalls.
    pub archive: Arc<dyn Archive>,
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
    /// Knows the policies of tenants and keeps their money; absent where none is kept.
    pub steward: Option<Arc<Steward>>,
    /// Who may what, as far as it is set up.
    pub governed: Governed,
    /// What recipes work with.
    pub workshop: Arc<Workshop>,
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

    pub(crate) fn new_audit_id(&self, now_ms: u64) -> AuditId {
        let mut random = [0; 10];
        self.entropy.fill(&mut random);
        AuditId::from_parts(now_ms, random)
    }
}
