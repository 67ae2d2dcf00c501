//! What a tenant may do and spend.

use conclave_core::TenantId;
use conclave_govern::TenantPolicy;
use std::sync::Arc;

/// The policy that holds for a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyInForce {
    /// The version of the tenant's own policy; 0 where it has set none.
    pub version: u64,
    /// The tenant's own policy over the operator's.
    pub policy: Arc<TenantPolicy>,
}

/// Knows the policy of every tenant, without waiting for a database.
pub trait PolicySource: Send + Sync {
    /// What holds for a tenant now.
    fn in_force(&self, tenant: &TenantId) -> PolicyInForce;
}
