//! Checkpoints: the key that signs them, the thread that publishes them, and what reads them.

mod checkpoints;
mod cosigned;
mod desk;
mod keyfile;
mod publisher;

pub use desk::Anchor;

pub(crate) use checkpoints::{Published, handovers, was_signed};
pub(crate) use cosigned::Cosigned;
pub(crate) use desk::{Desk, DeskParts};
pub(crate) use keyfile::{Handover, KeyFile};
pub(crate) use publisher::{LAST_FILE, last_note};
