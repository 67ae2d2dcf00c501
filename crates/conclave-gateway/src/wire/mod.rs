//! The shapes clients send and get.

pub(crate) mod chat_reply;
pub(crate) mod chat_request;
pub(crate) mod own_fields;
pub(crate) mod sse;
