//! The part of the command line that is about API keys.

use super::{DataArgs, OpenArgs};
use clap::{Args, Subcommand, ValueEnum};
use conclave_engine::KeyRole;

/// `conclave keys`
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a key; it is shown once.
    Create(KeyCreateArgs),
    /// List keys, without their secrets.
    List(DataArgs),
    /// Revoke a key; takes effect within a second.
    Revoke {
        /// The id shown by `keys list`.
        id: String,
        /// Where.
        #[command(flatten)]
        data: DataArgs,
    },
    /// Make the successor of a key; the key itself goes on for a while.
    Rotate(KeyRotateArgs),
    /// Replace the root key and every key that wraps those of people; while no gateway runs.
    ///
    /// A copy of the data directory made before opens with nothing that exists afterwards.
    RotateEpoch(RotateEpochArgs),
}

/// `conclave keys rotate-epoch`
#[derive(Debug, Args)]
pub struct RotateEpochArgs {
    /// The new root key, `env:NAME` or `file:PATH`, where it is kept elsewhere: 64 hexadecimal digits.
    #[arg(long, value_name = "SECRET")]
    pub new_root_key: Option<String>,
    /// Where.
    #[command(flatten)]
    pub open: OpenArgs,
}

/// `conclave keys create`
#[derive(Debug, Args)]
pub struct KeyCreateArgs {
    /// What the key may do.
    #[arg(long, value_enum, default_value_t = RoleName::App)]
    pub role: RoleName,
    /// Whose it is.
    #[arg(long, default_value = "default")]
    pub tenant: String,
    /// A word for people.
    #[arg(long, default_value = "")]
    pub label: String,
    /// Whose hands it is in; where two people must agree, a key without a name cannot say yes.
    #[arg(long, value_name = "NAME")]
    pub person: Option<String>,
    /// Days until it ends.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub expires_in_days: Option<u32>,
    /// Where.
    #[command(flatten)]
    pub data: DataArgs,
}

/// `conclave keys rotate`
#[derive(Debug, Args)]
pub struct KeyRotateArgs {
    /// The id shown by `keys list`.
    pub id: String,
    /// Hours for which both open doors.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(0..=720))]
    pub overlap_hours: u32,
    /// Where.
    #[command(flatten)]
    pub data: DataArgs,
}

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoleName {
    /// Chat for its own tenant.
    App,
    /// Decide reviews.
    Reviewer,
    /// Decide for a community.
    Elder,
    /// Configure; reads no transcripts.
    Admin,
    /// Read proofs and public fields.
    Auditor,
    /// Everything.
    Owner,
}

impl RoleName {
    /// The role.
    #[must_use]
    pub const fn key_role(self) -> KeyRole {
        match self {
            Self::App => KeyRole::App,
            Self::Reviewer => KeyRole::Reviewer,
            Self::Elder => KeyRole::Elder,
            Self::Admin => KeyRole::Admin,
            Self::Auditor => KeyRole::Auditor,
            Self::Owner => KeyRole::Owner,
        }
    }
}
