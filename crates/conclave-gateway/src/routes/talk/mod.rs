//! What asks for a judgement: the interfaces that talk to a model, texts and replies that are only
//! read, recipes, and what every talk does on its way. Records of earlier decisions are in
//! [`house`](super::house), what people decide is in [`people`](super::people).

pub(crate) mod agents;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod embeddings;
pub(crate) mod messages;
pub(crate) mod moderations;
pub(crate) mod responses;
mod turns;
pub(crate) mod verify;
mod windowed;
