//! The use-cases' common ground: everything a turn needs, wired once.

use crate::memory::Memory;
use crate::panel::Panel;
use crate::ports::{Archive, ArchiveError, Clock, Entropy, Ledger, ModelDirectory};
use crate::pseudonym;
use crate::settings::Settings;
use crate::verdicts::Verdicts;
use conclave_core::{AuditId, TenantId, UserId};
use conclave_detect::{Course, Detector};
use conclave_instinct::Instinct;
use conclave_ledger::tenant_number;
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
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// What the operator set.
    pub settings: Arc<Settings>,
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
        let subject = pseudonym::subject(&self.settings, tenant, user);
        self.memory.course(tenant_number(tenant.as_str()), subject).await
    }

    pub(crate) fn new_audit_id(&self, now_ms: u64) -> AuditId {
        let mut random = [0; 10];
        self.entropy.fill(&mut random);
        AuditId::from_parts(now_ms, random)
    }
}
