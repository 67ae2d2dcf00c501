//! Anthropic's messages interface, put into chat form and worded back.

pub(crate) mod reply;
pub(crate) mod request;
