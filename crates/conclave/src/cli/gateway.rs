//! Which gateway is asked, and as whom: the same options for every command that asks one.

use clap::Args;

/// A running gateway, and the key it is asked with.
#[derive(Clone, Debug, Args)]
pub struct GatewayArgs {
    /// A running gateway.
    #[arg(long, value_name = "URL", env = "CONCLAVE_URL", default_value = "http://127.0.0.1:8420")]
    pub url: String,
    /// An API key of a role that may.
    #[arg(long, value_name = "KEY", env = "CONCLAVE_KEY", hide_env_values = true)]
    pub key: Option<String>,
}
