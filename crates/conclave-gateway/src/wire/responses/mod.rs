//! OpenAI's responses interface, put into chat form and worded back.

pub(crate) mod items;
pub(crate) mod reply;
pub(crate) mod request;
