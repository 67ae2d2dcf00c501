//! Fakes that tests and benchmarks put in place of the outside world.
//!
//! **Invariant:** a fake is real where it meets the code under test: the mock model listens on a
//! real socket and speaks real HTTP, so that nothing of the transport is left out of a test.
//!
//! **Invariant:** nothing here depends on a Conclave crate, so every crate can test with it.

mod behaviour;
mod cluster;
mod completion;
mod gzip_bomb;
mod judge;
mod mock_model;
mod request;
mod response;
mod socket;

pub use behaviour::{Behaviour, Script};
pub use cluster::{Cluster, NoCluster};
pub use completion::{TOOL_CALL_ID, completion, completion_sse};
pub use judge::judge_vote;
pub use mock_model::{MockModel, SEEN_MAX};
pub use request::{SeenRequest, last_user_message};
