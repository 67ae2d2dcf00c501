//! Measures texts a second on texts of about a hundred characters, with and without something to
//! find.

#![expect(clippy::print_stdout, reason = "the figure is what this example is for")]

use conclave_pii::Finder;
use std::time::Instant;

const TEXTS: [&str; 6] = [
    "Could you help me plan a quiet weekend by the sea with two small children and a dog that is old?",
    "Please call me on 090-1234-5678 or write to jane.doe@example.com before the meeting on Friday at 10.",
    "The order 4471-22 was shipped on 2026-03-04 in 3 parcels of 2.5 kg for $19.99 each, version 1.2.3.",
    "My name is Anna Berg and I live at 12 Example Street, Springfield; my card is 4111 1111 1111 1111.",
    "fn main() { let total = values.iter().map(|v| v * 2).sum::<u64>(); println!(\"{total}\"); } // done",
    "明日の会議は午後三時からです。資料は田中さんに送ってください。電話は０９０－１２３４－５６７８です。",
];
const ROUNDS: usize = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let finder = Finder::builtin()?;
    let mut all = 0.0;
    for text in TEXTS {
        let start = Instant::now();
        let found: usize = (0..ROUNDS).map(|_| finder.find(text).len()).sum();
        let seconds = start.elapsed().as_secs_f64();
        all += seconds;
        let rate = ROUNDS as f64 / seconds;
        println!(
            "{rate:>9.0} texts/s, {} found, {} characters",
            found / ROUNDS,
            text.chars().count()
        );
    }
    println!("{:>9.0} texts/s over all", (ROUNDS * TEXTS.len()) as f64 / all);
    Ok(())
}
