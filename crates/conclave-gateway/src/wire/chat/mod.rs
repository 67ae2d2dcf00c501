//! OpenAI's chat interface, which is also the form that every other interface is put into.

pub(crate) mod reply;
pub(crate) mod request;
