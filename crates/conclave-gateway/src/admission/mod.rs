//! Whether a request may go on: its key or token, its body and JSON, who speaks in which session, how
//! fast they ask, and whether the same request was answered before. Nothing is judged here and no
//! model is asked; what an interface means by its fields is read in [`wire`](crate::wire).

pub(crate) mod body;
pub(crate) mod circumstances;
pub(crate) mod entrance;
pub(crate) mod idempotency;
pub(crate) mod limits;
pub(crate) mod rates;
pub(crate) mod tokens;
