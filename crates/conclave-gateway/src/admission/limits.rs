//! Bounds on everything a client can make grow.

use std::time::Duration;

/// What one gateway takes on.
#[derive(Clone, Debug)]
pub struct GatewayLimits {
    /// Bytes of one request body.
    pub body_bytes_max: usize,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// How long a body may come as slowly as it likes.
    pub body_grace: Duration,
    /// How many bytes a second must come after that.
    pub body_bytes_per_second_min: u32,
    /// Bytes of all bodies that are being answered, as far as they are large.
    pub bodies_bytes_max: usize,
    /// How long a client may read nothing of what it is sent.
    pub write_timeout: Duration,
    /// How long request headers may take to arrive.
    pub header_timeout: Duration,
    /// Turns in flight at once.
    pub turns_max: usize,
    /// Open connections.
    pub connections_max: usize,
    /// Open connections from one address; 0 for half of all.
    pub connections_per_address_max: usize,
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
            body_grace: Duration::from_secs(5),
            body_bytes_per_second_min: 1024,
            bodies_bytes_max: 512 * 1024 * 1024,
            write_timeout: Duration::from_secs(30),
            header_timeout: Duration::from_secs(10),
            turns_max: 1024,
            connections_max: 4096,
            connections_per_address_max: 0,
            drain_timeout: Duration::from_secs(30),
            drain_grace: Duration::ZERO,
        }
    }
}

impl GatewayLimits {
    /// Connections that one address may have open: never all, unless there is only one.
    pub(crate) fn connections_each_max(&self) -> usize {
        match self.connections_per_address_max {
            0 => self.connections_max.div_ceil(2),
            each => each,
        }
    }
}
