//! One decision as a page shows it.

mod deliberation;
mod input;
mod seen;
mod sheet;
mod talk;

pub(crate) use sheet::{Sheet, Sight};
