//! Commands, programs and statements among the arguments of a call.

use super::facts::{Facts, Place, Told};
use super::rules::Finding;
use super::{Action, script, shell, sql};

/// What the commands and statements of a call would do.
#[must_use]
pub fn findings(action: Action<'_>, facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    let tool = Tool::of(facts);
    for told in &facts.texts {
        let text = told.text.as_str();
        if tool.asks || told.place != Place::Prose || told.key.contains("sql") {
            found.extend(
                sql::weigh(text).map(|(harm, reach, undo, rule)| {
                    Finding(harm, "stored data", reach, undo, rule)
                }),
            );
        }
        if tool.runs_text(told) {
            let line = with_program(action.name, text);
            let weights = [shell::weigh(&line), script::weigh(text)];
            found.extend(weights.into_iter().map(|(harm, reach, undo, rule)| {
                Finding(harm, "the machine it runs on", reach, undo, rule)
            }));
        }
    }
    found
}

/// Words of the names of tools that ask databases.
const ASKS: [&str; 9] =
    ["sql", "query", "database", "db", "postgres", "mysql", "sqlite", "bigquery", "クエリ"];

/// Words of the names of tools that do nothing but run programs.
const RUNS: [&str; 16] = [
    "bash",
    "shell",
    "sh",
    "zsh",
    "terminal",
    "powershell",
    "command",
    "cmd",
    "exec",
    "python",
    "node",
    "repl",
    "interpreter",
    "kubectl",
    "シェル",
    "コマンド",
];

/// What the name of a tool says about texts among its arguments.
struct Tool {
    /// They may be statements.
    asks: bool,
    /// They are run.
    runs: bool,
    /// They are run unless they are there to be read.
    may_run: bool,
}

impl Tool {
    fn of(facts: &Facts) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| facts.name.contains(*word));
        let others = facts.name.iter().any(|word| !word.is_ascii() && word.contains("実行"));
        let first = facts.name_order.first().map_or("", String::as_str);
        let may_run = has(&["run", "execute", "process", "subprocess"]);
        Self {
            asks: has(&ASKS),
            runs: has(&RUNS),
            may_run: may_run || others || PROGRAMS.contains(&first),
        }
    }

    /// Whether a text is run as a program.
    fn runs_text(&self, told: &Told) -> bool {
        let key = |words: &[&str]| words.iter().any(|word| told.key.contains(*word));
        self.runs
            || key(&["command", "cmd", "script", "code", "shell", "bash", "argv", "コマンド"])
            || self.may_run && told.place != Place::Prose
    }
}

/// Programs that tools are named after.
const PROGRAMS: [&str; 7] = ["kubectl", "git", "terraform", "aws", "docker", "helm", "systemctl"];

/// A tool named after a program is given that program's arguments alone.
fn with_program(name: &str, text: &str) -> String {
    if PROGRAMS.contains(&name) && !text.trim_start().starts_with(name) {
        format!("{name} {text}")
    } else {
        text.to_owned()
    }
}
