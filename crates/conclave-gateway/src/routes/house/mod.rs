//! What an operator or auditor asks about the house itself: its health, its log and decisions, its
//! keys, tenants, models and what was used. Nothing here asks a model.

pub(crate) mod decisions;
pub(crate) mod health;
pub(crate) mod keys;
pub(crate) mod ledger;
pub(crate) mod models;
pub(crate) mod tenants;
pub(crate) mod usage;
