//! What is promised of every store, run against each of them for real.
//!
//! The PostgreSQL half needs PostgreSQL; `cargo xtask test` installs it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "../it/support.rs"]
#[expect(dead_code, reason = "shared with the tests of the spool")]
mod support;

/// Each promise is one test for each store.
macro_rules! promises {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name(&crate::place::Place::sqlite()).await })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name(&crate::place::Place::postgres()).await })*
        }
    };
}

mod balance;
mod faults;
mod forgetting;
mod governing;
mod grants;
mod money;
mod place;
mod promises;
mod records;
mod restore;
mod rotation;
mod upkeep;
