//! The shapes clients send and get.

pub(crate) mod chat_reply;
pub(crate) mod chat_request;
pub(crate) mod completion;
pub(crate) mod dialect;
pub(crate) mod fields;
pub(crate) mod inquiry;
pub(crate) mod messages_reply;
pub(crate) mod messages_request;
pub(crate) mod moderation;
pub(crate) mod own_fields;
pub(crate) mod responses_reply;
pub(crate) mod responses_request;
