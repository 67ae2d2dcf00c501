//! What is noted of every request: counters for the page of metrics, the trace it belongs to, and
//! refusals for the ledger. Nothing here changes an answer.

pub(crate) mod metrics;
pub(crate) mod refusals;
pub(crate) mod traced;
