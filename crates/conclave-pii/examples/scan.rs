//! Reads JSON lines with `text`, writes what was found in each: for looking at misses and false
//! alarms.

use conclave_pii::{Finder, is_identifying};
use serde_json::{Value, json};
use std::io::{BufRead, Write, stdin, stdout};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let finder = Finder::builtin()?;
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        let row: Value = serde_json::from_str(&line?)?;
        let text = row["text"].as_str().unwrap_or_default();
        let signs: Vec<char> = text.chars().collect();
        let found = finder.find(text).into_iter().map(|place| {
            let value: String = signs[place.start..place.end].iter().collect();
            json!({
                "kind": place.kind,
                "value": value,
                "confidence": place.confidence,
                "identifying": is_identifying(&place),
            })
        });
        let found: Vec<Value> = found.collect();
        writeln!(
            out,
            "{}",
            json!({"id": row["id"], "label": row["label"], "text": text, "found": found})
        )?;
    }
    Ok(())
}
