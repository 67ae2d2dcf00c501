//! The HTTP API: wire types, authentication, limits, OpenAPI.
//!
//! **Invariant:** every request to a judged endpoint leaves a trace in the ledger: a decision, or a
//! refusal before any decision.

mod auth;
mod error;
mod identity;
mod intake;
mod limits;
mod metrics;
mod refusals;
mod routes;
mod serve;
mod state;
mod strict_json;
mod traced;
mod tracked_body;
mod unabandoned;
mod windowed_body;
mod wire;

pub use limits::GatewayLimits;
pub use routes::{OPENAPI, ROUTES, router};
pub use serve::serve;
pub use state::{Gateway, Manners};
