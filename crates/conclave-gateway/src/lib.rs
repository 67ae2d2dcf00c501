//! The HTTP API: wire types, authentication, limits, OpenAPI.
//!
//! **Invariant:** every request to a judged endpoint leaves a trace in the ledger: a decision, or a
//! refusal before any decision.

mod admission;
mod connection;
mod delivery;
mod error;
mod observation;
mod routes;
mod state;
mod wire;

pub use admission::limits::GatewayLimits;
pub use connection::serve::{ServerState, serve};
pub use connection::tls::{TlsError, TlsFiles, TlsIdentity};
pub use routes::{OPENAPI, ROUTES, Route, router};
pub use state::{Gateway, GatewaySettings, LinkCheck, Services};
