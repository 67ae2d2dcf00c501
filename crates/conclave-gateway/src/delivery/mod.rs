//! How an answer leaves: response bodies that know whether their client got them, that keep a
//! connection alive while a decision is made, or that carry verified windows, and work that is finished
//! after its client has gone. What the bytes say is worded in [`wire`](crate::wire).

pub(crate) mod tracked_body;
pub(crate) mod unabandoned;
pub(crate) mod waiting_body;
pub(crate) mod windowed_body;
