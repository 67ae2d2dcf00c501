//! Anthropic's Messages: the request made of one in OpenAI's form, and the reply read back.
//!
//! **Invariant:** only what is named here is sent: a field we do not translate cannot reach the provider,
//! so none can choose a host or a key, and no header but the one that names betas.
//!
//! **Invariant:** what cannot be translated is refused with a sentence, never left out in silence.

mod body;
mod content;
mod reply;
mod stream;

pub(crate) use body::{betas, body};
pub(crate) use reply::read_reply;
pub(crate) use stream::MessageStream;

/// The tool by which a reply is made to fit a schema: its arguments are the reply.
const REPLY_TOOL: &str = "conclave_reply";
