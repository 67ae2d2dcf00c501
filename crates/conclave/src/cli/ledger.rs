//! The part of the command line that is about the ledger.

use super::gateway::GatewayArgs;
use super::typed::{is_given, is_typed, refuse_together};
use super::{DataArgs, OpenArgs};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use std::path::PathBuf;

/// `conclave ledger`
#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// Re-hash every entry, tile and body, check every checkpoint, and run every consensus again.
    ///
    /// Exit 0: everything holds. Exit 1: the first altered, missing or reordered entry is named.
    /// Exit 2: it could not be checked.
    Verify(LedgerVerifyArgs),
    /// Print the proof that a decision is in the log, as a C2SP tlog-proof.
    Prove(LedgerProveArgs),
    /// Print the receipt of a decision, or check one offline.
    Receipt(LedgerReceiptArgs),
    /// Print the entries of a key's own tenant, one receipt a line, each checked first.
    ///
    /// A running gateway is asked with a key of an auditor or owner. Exit 1 at the first that is not proved.
    Entries(LedgerEntriesArgs),
    /// Write the log to a directory that anybody can check: tiles, bundles, bodies, JSON lines.
    Export(LedgerExportArgs),
    /// Print the last signed checkpoint.
    Checkpoint(LedgerSource),
    /// Print the keys that sign checkpoints, the one in force first.
    Vkey(LedgerSource),
    /// Hand the signing of checkpoints over to a new key; the gateway must not run meanwhile.
    RotateKey(LedgerRotateArgs),
    /// Derive the query tables again from the log; the log is only read.
    ///
    /// With SQLite the gateway must not run meanwhile; with PostgreSQL replicas wait for it.
    Rebuild(DataArgs),
    /// Go on with a database that came back older than it was, and give up what it lost.
    ///
    /// Only where the gateway says `restored_database` and cannot make it whole by itself. What is still
    /// in the data directory is handed over again; the log gets an entry that names both sizes and roots.
    /// No gateway may run on the directory. Exit 1: there is nothing to accept.
    AcceptRestore(OpenArgs),
}

/// Where a ledger is read from.
#[derive(Clone, Debug)]
pub enum LedgerSource {
    /// A data directory, or the PostgreSQL behind it.
    Data {
        args: DataArgs,
        /// Whether somebody named the directory, typed or in the environment.
        is_named: bool,
    },
    /// A directory that `ledger export` wrote.
    Export(PathBuf),
    /// A running gateway.
    Gateway(GatewayArgs),
}

/// What can be typed to choose a [`LedgerSource`].
#[derive(Debug, Args)]
struct LedgerSourceArgs {
    /// Where the data is, unless another option says to look elsewhere.
    #[command(flatten)]
    data: DataArgs,
    /// Instead: a directory that `ledger export` wrote.
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    /// Which gateway is asked instead.
    #[command(flatten)]
    gateway: GatewayArgs,
}

impl Args for LedgerSource {
    fn augment_args(command: Command) -> Command {
        for_ledger(LedgerSourceArgs::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        for_ledger(LedgerSourceArgs::augment_args_for_update(command))
    }
}

/// Says what the options of a gateway mean where one is only asked if somebody says so.
fn for_ledger(command: Command) -> Command {
    command
        .mut_arg("url", |url| url.help("Instead: a running gateway").hide_default_value(true))
        .mut_arg("key", |key| {
            key.help("With --url: an API key, of an auditor of the house for entries")
        })
}

impl FromArgMatches for LedgerSource {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        refuse_together(matches, "export", &["data", "database", "url"])?;
        refuse_together(matches, "url", &["data", "database"])?;
        let LedgerSourceArgs { data, export, gateway } =
            LedgerSourceArgs::from_arg_matches(matches)?;
        // What is typed wins over every variable, and a ledger at hand over one that is asked for.
        let data_is_given = is_given(matches, "data") || is_given(matches, "database");
        let asks_gateway = is_typed(matches, "url") || (is_given(matches, "url") && !data_is_given);
        Ok(match export {
            Some(dir) => Self::Export(dir),
            None if asks_gateway => Self::Gateway(gateway),
            None => Self::Data { args: data, is_named: is_given(matches, "data") },
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// `conclave ledger verify`
#[derive(Clone, Debug, Args)]
pub struct LedgerVerifyArgs {
    /// Where.
    #[command(flatten)]
    pub source: LedgerSource,
    /// The key that must have signed, from a place you trust; without it, the ledger's own word is
    /// taken.
    #[arg(long, value_name = "VKEY")]
    pub vkey: Option<String>,
    /// With --export and --url: a checkpoint kept from last time; the log must begin with it. It is
    /// replaced by the new one when everything holds.
    #[arg(long, value_name = "FILE")]
    pub since: Option<PathBuf>,
    /// A second checkpoint of this log, from somebody else: must tell the same story. If it does not,
    /// both notes are printed as evidence.
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
}

/// `conclave ledger prove`
#[derive(Clone, Debug, Args)]
pub struct LedgerProveArgs {
    /// The decision.
    #[arg(value_name = "AUDIT_ID")]
    pub id: String,
    /// Where.
    #[command(flatten)]
    pub source: LedgerSource,
}

/// `conclave ledger receipt`
#[derive(Clone, Debug, Args)]
pub struct LedgerReceiptArgs {
    /// The decision.
    #[arg(value_name = "AUDIT_ID", required_unless_present = "check", conflicts_with = "check")]
    pub id: Option<String>,
    /// Check this receipt or tlog-proof offline; exit 1 when it proves nothing.
    #[arg(long, value_name = "FILE", requires = "vkey")]
    pub check: Option<PathBuf>,
    /// With --check: the key that must have signed, from a place you trust.
    #[arg(long, value_name = "VKEY")]
    pub vkey: Option<String>,
    /// Where.
    #[command(flatten)]
    pub source: LedgerSource,
}

/// `conclave ledger entries`
#[derive(Clone, Debug, Args)]
pub struct LedgerEntriesArgs {
    /// The place in the log to begin at.
    #[arg(long, value_name = "INDEX", default_value_t = 0)]
    pub from: u64,
    /// The key that must have signed, from a place you trust; without it, the gateway's own word is taken.
    #[arg(long, value_name = "VKEY")]
    pub vkey: Option<String>,
    /// Which gateway.
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// `conclave ledger export`
#[derive(Clone, Debug, Args)]
pub struct LedgerExportArgs {
    /// A new or empty directory.
    #[arg(value_name = "DIR")]
    pub to: PathBuf,
    /// Leave out the words: leaves, tiles and checkpoints only.
    #[arg(long)]
    pub without_bodies: bool,
    /// Where.
    #[command(flatten)]
    pub data: DataArgs,
}

/// `conclave ledger rotate-key`
#[derive(Clone, Debug, Args)]
pub struct LedgerRotateArgs {
    /// Instead of making a new key, end the time in which the old one signs as well.
    #[arg(long)]
    pub end_overlap: bool,
    /// Where.
    #[command(flatten)]
    pub data: DataArgs,
}
