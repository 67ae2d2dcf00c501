//! `conclave usage`: what was used and spent, asked of a running gateway.

use super::Answer;
use super::gateway::{ask_gateway, escape};
use super::plain::{print_answer, printable};
use crate::cli::people::UsageArgs;
use crate::output;
use conclave_core::MicroUsd;
use serde_json::Value;

/// The numbers of a line, and how wide each stands.
const NUMBERS: [(&str, usize); 4] =
    [("requests", 9), ("delivered", 9), ("blocked", 8), ("failed", 7)];
/// How wide what it cost stands.
const COST_WIDTH: usize = 14;

/// Asks and prints.
///
/// # Errors
/// When the gateway cannot be reached or does not permit it.
pub fn run(args: &UsageArgs, as_json: bool) -> anyhow::Result<Answer> {
    let by = args.by.join(",");
    let given = [
        ("from", args.from.as_deref()),
        ("to", args.to.as_deref()),
        ("by", Some(by.as_str()).filter(|_| !args.by.is_empty())),
        ("user", args.user.as_deref()),
    ];
    let mut query: Vec<_> = given
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", escape(value?))))
        .collect();
    query.push(format!("limit={}&offset={}", args.limit, args.offset));
    let found = ask_gateway(&args.gateway, "GET", &format!("v1/usage?{}", query.join("&")), None)?;
    print_answer(&found, as_json, print_usage);
    Ok(Answer::Yes)
}

fn print_usage(found: &Value) {
    let empty = Vec::new();
    let by = found["by"].as_array().unwrap_or(&empty);
    let names: Vec<_> = by.iter().filter_map(Value::as_str).collect();
    let title: String = names.iter().map(|name| format!("{name:<20} ")).collect();
    let heads: String = NUMBERS.iter().map(|(name, width)| format!("{name:>width$} ")).collect();
    output::line(&format!("{title}{heads}{:>COST_WIDTH$}", "cost"));
    for row in found["data"].as_array().unwrap_or(&empty) {
        let groups = names.iter().map(|name| {
            let group = row[*name].as_str().map_or_else(|| "-".to_owned(), printable);
            format!("{group:<20} ")
        });
        output::line(&format!("{}{}", groups.collect::<String>(), numbers(row)));
    }
    let whole = format!("{:<width$}", "all", width = 21 * names.len());
    output::line(&format!("{whole}{}", numbers(found)));
    if let Some(next) = found["next_offset"].as_u64() {
        output::note(&format!("There is more: --offset {next}"));
    }
}

fn numbers(row: &Value) -> String {
    let number = |name: &str| row[name].as_u64().unwrap_or(0);
    let cost = MicroUsd(number("cost_microusd")).to_string();
    let counts: String =
        NUMBERS.iter().map(|(name, width)| format!("{:>width$} ", number(name))).collect();
    format!("{counts}{cost:>COST_WIDTH$}")
}
