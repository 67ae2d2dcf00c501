//! The shapes clients send and get, a folder or a file for each interface. Requests are read into one
//! [`Inquiry`](inquiry::Inquiry) in chat form, and replies are worded through one
//! [`Dialect`](dialect::Dialect). Nothing here asks the engine anything or knows a connection.

pub(crate) mod chat;
pub(crate) mod completion;
pub(crate) mod dialect;
pub(crate) mod fields;
pub(crate) mod inquiry;
pub(crate) mod messages;
pub(crate) mod moderation;
pub(crate) mod own_fields;
pub(crate) mod responses;
