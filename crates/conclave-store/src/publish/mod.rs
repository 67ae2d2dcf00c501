//! Checkpoints: the key that signs them, the thread that publishes them, and what reads them.

mod checkpoints;
mod desk;
mod keyfile;
mod publisher;

pub use desk::Anchor;

pub(crate) use checkpoints::{Published, handovers, latest, published};
pub(crate) use desk::{Desk, DeskParts};
pub(crate) use keyfile::{Handover, KeyFile};
