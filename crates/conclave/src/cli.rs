//! The map of the command line.

pub mod appeals;
pub mod directives;
pub mod gateway;
pub mod keys;
pub mod ledger;
pub mod people;
pub mod tenants;
mod typed;

use appeals::AppealsCommand;
use clap::{Args, Parser, Subcommand, ValueEnum};
use conclave_eval::JOBS_MAX;
use directives::DirectivesCommand;
use keys::KeysCommand;
use ledger::LedgerCommand;
use people::{
    ConsentsCommand, PeopleCommand, ProtocolsCommand, ReviewsCommand, UsageArgs, WebhooksCommand,
};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use tenants::TenantsCommand;

/// Stands between applications and the language models they use: nothing a model writes reaches a
/// person before independent verifiers have voted on it, and every decision can be proved afterwards.
///
/// Exit codes: 0 yes or done; 1 the answer is no, also where a gateway refuses; 2 it could not be done.
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
    /// What persons appeal: list it, file it, rule on it; asks a running gateway.
    #[command(subcommand)]
    Appeals(AppealsCommand),
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
    /// With --jsonl, judge on so many threads, 1 to 256 [default: one a core].
    // That it requires --jsonl would not be asked where a text, which excludes that flag, is given.
    #[arg(long, value_name = "N", value_parser = parse_jobs, requires = "jsonl", conflicts_with = "text")]
    pub jobs: Option<NonZeroUsize>,
    /// How texts are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// How texts are read by the commands that judge them.
#[derive(Debug, Args)]
pub struct ReadingArgs {
    /// When the slower trained models are asked.
    #[arg(long, value_name = "WHEN", value_enum, default_value = "unsure")]
    pub second_tier: crate::config::SecondTier,
    /// Read with this pattern file of your own as well; may be given more than once.
    #[arg(long, value_name = "FILE")]
    pub patterns: Vec<PathBuf>,
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
    /// Judge on so many threads, 1 to 256 [default: one a core].
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    pub jobs: Option<NonZeroUsize>,
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
    /// Judge on so many threads, 1 to 256 [default: one a core].
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    pub jobs: Option<NonZeroUsize>,
    /// How texts are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

fn parse_jobs(text: &str) -> Result<NonZeroUsize, String> {
    let jobs = text.parse().ok().filter(|jobs: &NonZeroUsize| jobs.get() <= JOBS_MAX);
    jobs.ok_or_else(|| format!("`{text}` is not a number of threads from 1 to {JOBS_MAX}"))
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
