//! The description of the interface as a source of requests, and as a judge of replies.

pub mod draw;
pub mod schema;
