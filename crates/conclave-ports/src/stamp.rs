//! What every entry says about the program and configuration that wrote it.

use conclave_core::TenantId;
use conclave_ledger::{Draft, Kind, tenant_number};

/// What every entry says about the program and configuration that wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Digest of the policy in force.
    pub policy: [u8; 32],
    /// Digest of the directives in force.
    pub directives: [u8; 32],
    /// Which program.
    pub build: String,
}

impl Stamp {
    /// A draft about a tenant that says nothing yet.
    #[must_use]
    pub fn draft(&self, kind: Kind, tenant: &TenantId) -> Draft {
        Draft {
            policy: self.policy,
            directives: self.directives,
            build: self.build.clone(),
            ..Draft::new(kind, tenant_number(tenant.as_str()))
        }
    }
}
