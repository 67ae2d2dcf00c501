//! The HTTP API: wire types, authentication, limits, OpenAPI.
//!
//! **Invariant:** every request to a judged endpoint leaves a trace in the ledger: a decision, or a
//! refusal before any decision.

mod auth;
mod connections;
mod doors;
mod error;
mod framing;
mod idempotency;
mod identity;
mod intake;
mod limits;
mod metrics;
mod paced_body;
mod pacing;
mod patient_stream;
mod rates;
mod refusals;
mod routes;
mod serve;
mod state;
mod strict_json;
mod tokens;
mod traced;
mod tracked_body;
mod unabandoned;
mod waiting_body;
mod windowed_body;
mod wire;

pub use doors::Doors;
pub use limits::GatewayLimits;
pub use routes::{OPENAPI, ROUTES, router};
pub use serve::serve;
pub use state::{Gateway, Manners, Services};
