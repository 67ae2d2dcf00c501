//! The whole router, with every port in memory.
#![expect(clippy::unwrap_used, reason = "tests say what they expect")]

#[path = "../fixture/mod.rs"]
mod fixture;

mod assets;
mod decision;
mod decisions;
mod house;
mod markup;
mod overview;
mod reviews;
mod signing;
mod why;
