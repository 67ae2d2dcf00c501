//! What the corpus is held to, a module for each kind of rule.
//!
//! **Invariant:** a check takes rows and gives problems, each a line that names files and ids. It
//! reads no file, so that made-up rows can prove that it finds what it looks for.

pub mod balance;
pub mod contacts;
pub mod duplicates;
pub mod readings;
pub mod row;
pub mod schema;
pub mod splits;
pub mod telephone;
pub mod templates;
pub mod wording;
