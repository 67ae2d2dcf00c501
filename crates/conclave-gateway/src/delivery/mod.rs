//! How an answer leaves: response bodies that know whether their client got them, that keep a connection
//! alive while a decision is made, or that carry verified windows. What the bytes say is worded in
//! [`wire`](crate::wire).

pub(crate) mod tracked_body;
pub(crate) mod waiting_body;
pub(crate) mod windowed_body;
