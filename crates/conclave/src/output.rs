//! Writing to the terminal: one place, so that a closed pipe is no crash.

use std::io::{self, IsTerminal, Write};

/// Writes a line to stdout; a reader that went away is not an error of ours.
pub fn line(text: &str) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// Writes a line to stderr.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes pretty JSON to stdout.
pub fn json(value: &impl serde::Serialize) {
    line(&serde_json::to_string_pretty(value).unwrap_or_default());
}

/// Colours only where a person looks.
#[must_use]
pub fn coloured(text: &str, ansi: &str) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some() || !io::stdout().is_terminal();
    if plain { text.to_owned() } else { format!("\u{1b}[{ansi}m{text}\u{1b}[0m") }
}
