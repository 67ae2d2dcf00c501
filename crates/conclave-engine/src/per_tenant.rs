//! What all tenants share, and what some have of their own instead.

use conclave_core::TenantId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One of a kind for everybody, and another for each tenant that has its own.
#[derive(Debug)]
pub struct PerTenant<T> {
    shared: Arc<T>,
    own: BTreeMap<TenantId, Arc<T>>,
}

// Derived, it would ask that what is shared can be cloned.
impl<T> Clone for PerTenant<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), own: self.own.clone() }
    }
}

impl<T> PerTenant<T> {
    /// The same for everybody.
    #[must_use]
    pub fn shared(one: T) -> Self {
        Self { shared: Arc::new(one), own: BTreeMap::new() }
    }

    /// Gives a tenant its own.
    #[must_use]
    pub fn with(mut self, tenant: TenantId, own: T) -> Self {
        self.own.insert(tenant, Arc::new(own));
        self
    }

    /// The one for this tenant.
    #[must_use]
    pub fn of(&self, tenant: &TenantId) -> &Arc<T> {
        self.own.get(tenant).unwrap_or(&self.shared)
    }
}
