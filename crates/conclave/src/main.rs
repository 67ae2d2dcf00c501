//! One binary: gateway, checks, ledger, keys.

mod anchor;
mod anchor_file;
mod assemble;
mod bare;
mod cli;
mod commands;
mod config;
mod governing;
mod memory;
mod outbox;
mod output;
mod own_files;
mod prices;
mod reload;
mod staff;
mod system;
mod telemetry;
mod upstream;
mod witness;

use clap::Parser;
use cli::{Cli, Command, LogFormat};
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// The system's allocator makes the workers wait for each other's locks (ADR 9).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    if matches!(cli.command, Command::Serve(_)) {
        memory::give_back_at_once();
    }
    start_logging(&cli);
    let result = match &cli.command {
        Command::Serve(args) => commands::serve::run(args),
        Command::Check(args) => commands::check::run(args, cli.json),
        Command::Explain(args) => commands::explain::run(args, cli.json),
        Command::Eval(args) => commands::eval::run(args, cli.json),
        Command::Redteam(args) => commands::redteam::run(args, cli.json),
        Command::Bench(command) => commands::bench::run(command, cli.json),
        Command::Ledger(command) => commands::ledger::run(command, cli.json),
        Command::Migrate(command) => commands::migrate::run(command, cli.json),
        Command::Keys(command) => commands::keys::run(command, cli.json),
        Command::Tenants(command) => commands::tenants::run(command, cli.json),
        Command::People(command) => commands::accounts::run(command, cli.json),
        Command::Usage(args) => commands::usage::run(args, cli.json),
        Command::Subject(command) => commands::subject::run(command, cli.json),
        Command::Reviews(command) => commands::reviews::run(command, cli.json),
        Command::Appeals(command) => commands::appeals::run(command, cli.json),
        Command::Consents(command) => commands::consents::run(command, cli.json),
        Command::Protocols(command) => commands::protocols::run(command, cli.json),
        Command::Webhooks(command) => commands::webhooks::run(command, cli.json),
        Command::Recipes(command) => commands::recipes::run(command, cli.json),
        Command::Directives(command) => commands::directives::run(command, cli.json),
        Command::Config(command) => commands::config::run(command, cli.json),
    };
    if let Err(error) = &result {
        output::note(&format!("conclave: {error:#}"));
    }
    ExitCode::from(commands::exit_code(&result))
}

fn start_logging(cli: &Cli) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let plain = std::env::var_os("NO_COLOR").is_some() || !std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(!plain)
        .with_target(false);
    let as_json =
        matches!(&cli.command, Command::Serve(args) if args.log_format == LogFormat::Json);
    if as_json {
        builder.json().init();
    } else {
        builder.init();
    }
}
