//! The map of the command line.

use crate::cli_keys::KeysCommand;
use crate::cli_people::{
    ConsentsCommand, PeopleCommand, ProtocolsCommand, ReviewsCommand, UsageArgs, WebhooksCommand,
};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Stands between applications and the language models they use: nothing a model writes reaches a
/// person before independent verifiers have voted on it, and every decision can be proved afterwards.
///
/// Exit codes: 0 yes or done, 1 the answer is no, 2 it could not be done.
#[derive(Debug, Parser)]
#[command(name = "conclave", version, max_term_width = 100)]
pub struct Cli {
    /// Print machine-readable JSON.
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the gateway.
    Serve(ServeArgs),
    /// Judge one text or reply, or a stream of them.
    Check(CheckArgs),
    /// Show how a text was read: which rule set which line, and which signal gave which part of the
    /// score.
    Explain(ExplainArgs),
    /// Measure the judgement against labelled rows: figures with intervals, and an HTML report.
    Eval(EvalArgs),
    /// Disguise labelled rows in every known way and see what gets through.
    Redteam(RedteamArgs),
    /// Measure speed on this machine.
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Check the ledger, prove what is in it, write it out.
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Move a ledger from one database to another.
    #[command(subcommand)]
    Migrate(MigrateCommand),
    /// Make, list and revoke API keys; works while the gateway runs.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Tenants and what they may do and spend, through a running gateway.
    #[command(subcommand)]
    Tenants(TenantsCommand),
    /// Accounts for the dashboard: enter, list and remove them; works while the gateway runs.
    #[command(subcommand)]
    People(PeopleCommand),
    /// What was used and spent, by day, model, person, key and more; asks a running gateway.
    Usage(UsageArgs),
    /// What is kept of a person: export it, or erase it; while no gateway runs.
    #[command(subcommand)]
    Subject(SubjectCommand),
    /// What waits for a person: list, claim and decide it; asks a running gateway.
    #[command(subcommand)]
    Reviews(ReviewsCommand),
    /// What people have agreed to: keep it, list it, take it back; asks a running gateway.
    #[command(subcommand)]
    Consents(ConsentsCommand),
    /// What communities have laid down, and who speaks for them; asks a running gateway.
    #[command(subcommand)]
    Protocols(ProtocolsCommand),
    /// Where events are sent to, and what did not arrive; asks a running gateway.
    #[command(subcommand)]
    Webhooks(WebhooksCommand),
    /// Recipes: list them, run one here, count their runs; while no gateway runs.
    #[command(subcommand)]
    Recipes(RecipesCommand),
    /// The frozen directives: list them, verify their signature, sign a set of your own.
    #[command(subcommand)]
    Directives(DirectivesCommand),
    /// Check a configuration file, or print its JSON Schema.
    #[command(subcommand)]
    Config(ConfigCommand),
}

/// `conclave serve`
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The configuration file; without one everything has a working default.
    #[arg(long, value_name = "FILE", env = "CONCLAVE_CONFIG")]
    pub config: Option<PathBuf>,
    /// Address and port; wins over the file [default: 127.0.0.1:8420].
    #[arg(long, value_name = "ADDR", env = "CONCLAVE_LISTEN")]
    pub listen: Option<SocketAddr>,
    /// Directory for the ledger, the spool and keys; wins over the file [default: conclave-data].
    #[arg(long, value_name = "DIR", env = "CONCLAVE_DATA")]
    pub data: Option<PathBuf>,
    /// The PostgreSQL behind the spool; wins over the file [default: SQLite in the data directory].
    #[command(flatten)]
    pub database: DatabaseArg,
    /// How to log to stderr; RUST_LOG sets what.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// How to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// `conclave check`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  conclave check \"how do I kill a Python process\"\n  \
    conclave check \"I'm so angry I could hurt someone\" --response \"Yeah, do it.\"\n  \
    conclave check --jsonl < rows.jsonl > judged.jsonl\n\n\
    With one text the exit code is 1 when it would be withheld.")]
pub struct CheckArgs {
    /// The text: what a person says.
    #[arg(value_name = "TEXT", required_unless_present = "jsonl", conflicts_with = "jsonl")]
    pub text: Option<String>,
    /// The reply to judge in the light of the text.
    #[arg(long, value_name = "TEXT", conflicts_with = "jsonl")]
    pub response: Option<String>,
    /// normal, technical, child-safe, creative or debug; wins over a row's own.
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub mode: Option<conclave_core::Mode>,
    /// Read one JSON object a line from stdin, write one a line to stdout, in order.
    #[arg(long)]
    pub jsonl: bool,
    /// How texts are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// How texts are read by the commands that judge them.
#[derive(Debug, Args)]
pub struct ReadingArgs {
    /// When the slower of the two trained models is asked.
    #[arg(long, value_name = "WHEN", value_enum, default_value = "unsure")]
    pub second_tier: crate::config::SecondTier,
}

/// `conclave explain`
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The text.
    pub text: String,
    /// normal, technical, child-safe, creative or debug.
    #[arg(long, value_name = "MODE", value_parser = parse_mode, default_value = "normal")]
    pub mode: conclave_core::Mode,
    /// How texts are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// `conclave eval`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  conclave eval rows.jsonl.gz --report report.html\n  \
    conclave --json eval rows.jsonl > before.json\n  \
    conclave eval rows.jsonl --baseline before.json\n\n\
    The exit code is 1 when a line could not be measured; the rest is measured all the same.")]
pub struct EvalArgs {
    /// Labelled rows, one JSON object a line; may be compressed with gzip.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// normal, technical, child-safe, creative or debug; wins over a row's own.
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub mode: Option<conclave_core::Mode>,
    /// Write an HTML page here.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// An earlier `--json` report to compare with.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// How texts are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// `conclave redteam`
#[derive(Debug, Args)]
#[command(
    after_help = "Harmful rows that are flagged in plain words are disguised, and so are safe \
    rows that pass. The exit code is 1 when a line could not be read."
)]
pub struct RedteamArgs {
    /// Labelled rows, one JSON object a line; may be compressed with gzip.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// normal, technical, child-safe, creative or debug; wins over a row's own.
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub mode: Option<conclave_core::Mode>,
    /// Write an HTML page here.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Try at most so many harmful and so many safe rows, taken from all over the files.
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    pub limit: Option<usize>,
    /// How texts are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

fn parse_limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().map_err(|_| format!("`{text}` is not a number of rows"))?;
    if limit == 0 { Err("at least one row must be tried".to_owned()) } else { Ok(limit) }
}

/// `conclave bench`
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Measure how fast texts are read on one core, the start of `check`, and memory.
    Detect,
    /// Measure what the guards cost a request on one core, storage apart.
    Guards,
    /// Measure the spool, SQLite and, where one is given, PostgreSQL, beside what the disk gives.
    Ledger(BenchLedgerArgs),
    /// Do one part of a turn so many times, for whoever counts instructions.
    Path(BenchPathArgs),
}

/// `conclave bench path`
#[derive(Debug, Args)]
pub struct BenchPathArgs {
    /// Which part.
    #[arg(value_enum)]
    pub stage: PathStage,
    /// How many times.
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub rounds: u32,
}

/// A part of a turn that takes time on a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PathStage {
    /// Reading what somebody says.
    Read,
    /// Reading a reply.
    Reply,
    /// The seven verifiers on a reply.
    Panel,
    /// How a reply should be shaped.
    Field,
    /// Sealing and hashing an entry.
    Seal,
}

/// `conclave bench ledger`
#[derive(Debug, Args)]
pub struct BenchLedgerArgs {
    /// Where the data directories are made, and removed afterwards; the disk is what is measured.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Entries of each measurement.
    #[arg(long, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
    pub entries: u64,
    /// An empty PostgreSQL database to measure with.
    #[command(flatten)]
    pub database: DatabaseArg,
}

fn parse_mode(name: &str) -> Result<conclave_core::Mode, String> {
    conclave_core::Mode::parse(name).ok_or_else(|| {
        let known: Vec<_> = conclave_core::Mode::ALL.iter().map(|mode| mode.as_str()).collect();
        format!("there is no mode `{name}`; there are {}", known.join(", "))
    })
}

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

/// `conclave migrate`
#[derive(Debug, Subcommand)]
pub enum MigrateCommand {
    /// Move the ledger of a data directory, its keys and people to PostgreSQL; every proof stays
    /// valid.
    ///
    /// The gateway must not run meanwhile. All or nothing: the root is compared before anything is
    /// committed, and the whole log is checked afterwards.
    SqliteToPostgres(MigrateArgs),
}

/// `conclave migrate sqlite-to-postgres`
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// The data directory; it stays the replica's own, for the spool.
    #[arg(long, value_name = "DIR", env = "CONCLAVE_DATA", default_value = "conclave-data")]
    pub data: PathBuf,
    /// Where to.
    #[command(flatten)]
    pub database: DatabaseArg,
}

/// Where a ledger is read from.
#[derive(Clone, Debug, Args)]
pub struct LedgerSource {
    /// The data directory of a gateway, running or not [default: conclave-data].
    #[arg(long, value_name = "DIR", env = "CONCLAVE_DATA", conflicts_with_all = ["export", "url"])]
    pub data: Option<PathBuf>,
    /// The PostgreSQL that holds it.
    #[command(flatten)]
    pub database: DatabaseArg,
    /// A directory that `ledger export` wrote.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["url", "database"])]
    pub export: Option<PathBuf>,
    /// A running gateway.
    #[arg(long, value_name = "URL", conflicts_with = "database")]
    pub url: Option<String>,
}

/// Which PostgreSQL.
#[derive(Clone, Debug, Args)]
pub struct DatabaseArg {
    /// The address of a PostgreSQL database, or where it is written: postgres://..., env:NAME or
    /// file:PATH.
    #[arg(long, value_name = "URL", env = "CONCLAVE_DATABASE", hide_env_values = true)]
    pub database: Option<String>,
}

impl DatabaseArg {
    /// The address that was given.
    ///
    /// # Errors
    /// When it cannot be read or is none.
    pub fn url(&self) -> anyhow::Result<Option<conclave_store::DatabaseUrl>> {
        let given = self.database.as_deref().map(crate::config::database_url);
        given.transpose().map_err(|why| anyhow::anyhow!("--database: {why}"))
    }
}

/// With which key a gateway is asked.
#[derive(Clone, Debug, Args)]
pub struct LedgerKeyArg {
    /// With --url: an API key, of an auditor for entries.
    #[arg(long, value_name = "KEY", env = "CONCLAVE_KEY", hide_env_values = true)]
    pub key: Option<String>,
}

/// `conclave ledger verify`
#[derive(Clone, Debug, Args)]
pub struct LedgerVerifyArgs {
    /// Where.
    #[command(flatten)]
    pub source: LedgerSource,
    /// As whom.
    #[command(flatten)]
    pub key: LedgerKeyArg,
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
    /// As whom.
    #[command(flatten)]
    pub key: LedgerKeyArg,
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
    /// As whom.
    #[command(flatten)]
    pub key: LedgerKeyArg,
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

/// Where the data is.
#[derive(Clone, Debug, Args)]
pub struct DataArgs {
    /// The data directory of a gateway, running or not.
    #[arg(long, value_name = "DIR", env = "CONCLAVE_DATA", default_value = "conclave-data")]
    pub data: PathBuf,
    /// The PostgreSQL behind it.
    #[command(flatten)]
    pub database: DatabaseArg,
}

/// `conclave tenants`
#[derive(Debug, Subcommand)]
pub enum TenantsCommand {
    /// List tenants with their users and projects.
    List(GatewayArgs),
    /// Enter a tenant, or change its users and projects.
    Add(TenantAddArgs),
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

/// A running gateway, and as whom it is asked.
#[derive(Clone, Debug, Args)]
pub struct GatewayArgs {
    /// The gateway's address.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8420")]
    pub url: String,
    /// An API key of an owner or admin.
    #[arg(long, value_name = "KEY", env = "CONCLAVE_KEY", hide_env_values = true)]
    pub key: Option<String>,
}

/// A data directory that no gateway is using, and how to open it.
#[derive(Debug, Args)]
pub struct OpenArgs {
    /// The configuration file, where the root key is kept elsewhere.
    #[arg(long, value_name = "FILE", env = "CONCLAVE_CONFIG")]
    pub config: Option<PathBuf>,
    /// Where.
    #[command(flatten)]
    pub data: DataArgs,
}

/// `conclave subject`
#[derive(Debug, Subcommand)]
pub enum SubjectCommand {
    /// Print every decision of a person with its words, one JSON object a line, newest first.
    Export(SubjectExportArgs),
    /// Delete the key of a person's words and the words; what was decided stays in the ledger.
    Erase(SubjectEraseArgs),
}

/// Who is meant.
#[derive(Debug, Args)]
pub struct SubjectArgs {
    /// The person, as in `user` or `safety_identifier`.
    pub id: String,
    /// Whose application they used.
    #[arg(long, default_value = "default")]
    pub tenant: String,
    /// Where.
    #[command(flatten)]
    pub open: OpenArgs,
}

/// `conclave subject export`
#[derive(Debug, Args)]
pub struct SubjectExportArgs {
    /// Who.
    #[command(flatten)]
    pub subject: SubjectArgs,
    /// Write here instead of stdout; the file must not exist.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `conclave subject erase`
#[derive(Debug, Args)]
pub struct SubjectEraseArgs {
    /// Who.
    #[command(flatten)]
    pub subject: SubjectArgs,
    /// Yes, erase; it cannot be undone.
    #[arg(long)]
    pub yes: bool,
}

/// `conclave recipes`
#[derive(Debug, Subcommand)]
pub enum RecipesCommand {
    /// Print every recipe, your own too.
    List(RecipesListArgs),
    /// Print one with its schemas, guards and thresholds.
    Show {
        /// Its name.
        name: String,
        /// Which there are.
        #[command(flatten)]
        list: RecipesListArgs,
    },
    /// Run one on a request in a file; recorded like any other. The exit code is 1 without a result.
    Run(RecipesRunArgs),
    /// Print what is counted of the latest runs.
    Kpis(RecipesKpisArgs),
}

/// Which recipes there are.
#[derive(Debug, Args)]
pub struct RecipesListArgs {
    /// The configuration file, for recipes of your own.
    #[arg(long, value_name = "FILE", env = "CONCLAVE_CONFIG")]
    pub config: Option<PathBuf>,
}

/// `conclave recipes run`
#[derive(Debug, Args)]
pub struct RecipesRunArgs {
    /// The request, as `POST /v1/agents/{name}/execute` takes it.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The recipe, where the file does not name it.
    #[arg(long, value_name = "NAME")]
    pub recipe: Option<String>,
    /// Whose run it is.
    #[arg(long, default_value = "default")]
    pub tenant: String,
    /// An earlier run of the same request that people have approved.
    #[arg(long, value_name = "ID")]
    pub approved_run: Option<String>,
    /// Where.
    #[command(flatten)]
    pub open: OpenArgs,
}

/// `conclave recipes kpis`
#[derive(Debug, Args)]
pub struct RecipesKpisArgs {
    /// Only of this recipe.
    pub name: Option<String>,
    /// Whose runs.
    #[arg(long, default_value = "default")]
    pub tenant: String,
    /// Where.
    #[command(flatten)]
    pub open: OpenArgs,
}

/// `conclave directives`
#[derive(Debug, Subcommand)]
pub enum DirectivesCommand {
    /// Print every directive in force.
    List(DirectivesListArgs),
    /// Say whether a set is whole and signed by the key this program was built with.
    Verify(DirectivesSetArgs),
    /// Sign a set of your own; prints the public key to build with.
    Sign(DirectivesSignArgs),
}

/// `conclave directives list`
#[derive(Debug, Args)]
pub struct DirectivesListArgs {
    /// en or ja.
    #[arg(long, default_value = "en")]
    pub language: String,
    /// Which.
    #[command(flatten)]
    pub set: DirectivesSetArgs,
}

/// Which set of directives.
#[derive(Debug, Args)]
pub struct DirectivesSetArgs {
    /// A set of your own, its signature beside it as `.sig`; without one, the set in force.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The configuration file, whose `directives.file` is in force; without one, the set compiled in.
    #[arg(long, value_name = "FILE", env = "CONCLAVE_CONFIG", conflicts_with = "file")]
    pub config: Option<PathBuf>,
}

/// `conclave directives sign`
#[derive(Debug, Args)]
pub struct DirectivesSignArgs {
    /// The set.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// A file with the private seed: 32 bytes, plain or as 64 hexadecimal digits; never commit it.
    #[arg(long, value_name = "FILE")]
    pub seed: PathBuf,
}

/// `conclave config`
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Say whether a file can be used, and what in it is doubtful.
    Check {
        /// The file.
        #[arg(value_name = "FILE", default_value = "conclave.toml")]
        file: PathBuf,
    },
    /// Print the JSON Schema, for editors.
    Schema,
}
