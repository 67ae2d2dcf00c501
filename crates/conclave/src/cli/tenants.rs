//! The part of the command line that is about tenants.

use super::gateway::GatewayArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `conclave tenants`
#[derive(Debug, Subcommand)]
pub enum TenantsCommand {
    /// List tenants with their users and projects.
    List(GatewayArgs),
    /// Enter a tenant; one that is there already stays as it is, with exit code 1.
    Add(TenantAddArgs),
    /// Replace the users of a tenant, its projects, or both; what is not named stays as it is.
    Change(TenantChangeArgs),
    /// What a tenant may do and spend.
    #[command(subcommand)]
    Policy(TenantPolicyCommand),
}

/// `conclave tenants add`
#[derive(Debug, Args)]
pub struct TenantAddArgs {
    /// The tenant's name.
    pub id: String,
    /// A user of it; may stand several times.
    #[arg(long, value_name = "NAME")]
    pub user: Vec<String>,
    /// A project of it; may stand several times.
    #[arg(long, value_name = "NAME")]
    pub project: Vec<String>,
    /// Which gateway.
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// `conclave tenants change`
#[derive(Debug, Args)]
pub struct TenantChangeArgs {
    /// The tenant's name.
    pub id: String,
    /// A user it shall have; may stand several times. Those who are not named are removed.
    #[arg(long, value_name = "NAME", required_unless_present = "project")]
    pub user: Option<Vec<String>>,
    /// A project it shall have; may stand several times. Those that are not named are removed.
    #[arg(long, value_name = "NAME")]
    pub project: Option<Vec<String>>,
    /// Which gateway.
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// `conclave tenants policy`
#[derive(Debug, Subcommand)]
pub enum TenantPolicyCommand {
    /// Show what holds for a tenant.
    Show {
        /// The tenant's name.
        id: String,
        /// Which gateway.
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Set a tenant's policy as a whole, from a file in TOML or JSON.
    Set {
        /// The tenant's name.
        id: String,
        /// The file.
        file: PathBuf,
        /// Which gateway.
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}
