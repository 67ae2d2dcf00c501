//! Bounds on everything a client can make grow.

use std::time::Duration;

/// What one gateway takes on.
#[derive(Clone, Debug)]
pub struct GatewayLimits {
    /// Bytes of one request body.
    pub body_bytes_max: usize,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// How long request headers may take to arrive.
    pub header_timeout: Duration,
    /// Turns in flight at once.
    pub turns_max: usize,
    /// Open connections.
    pub connections_max: usize,
    /// How long running turns may take to finish after a request to stop.
    pub drain_timeout: Duration,
    /// How long connections are still accepted after a request to stop, so that whoever spreads the
    /// load can see in `/readyz` that it should go elsewhere.
    pub drain_grace: Duration,
}

impl Default for GatewayLimits {
    fn default() -> Self {
        Self {
            body_bytes_max: 8 * 1024 * 1024,
            body_timeout: Duration::from_secs(60),
            header_timeout: Duration::from_secs(10),
            turns_max: 1024,
            connections_max: 4096,
            drain_timeout: Duration::from_secs(30),
            drain_grace: Duration::ZERO,
        }
    }
}
