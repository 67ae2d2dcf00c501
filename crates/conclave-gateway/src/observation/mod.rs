//! What is noted of every request: counters for the page of metrics, and refusals for the ledger. Nothing
//! here changes an answer; whose trace a request belongs to is read where it comes in, in
//! [`routes`](crate::routes).

pub(crate) mod metrics;
pub(crate) mod refusals;
