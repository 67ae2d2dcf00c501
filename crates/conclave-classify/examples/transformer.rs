//! Reads lines of `said<TAB>judged` and prints the logits that a file of weights gives them, with the
//! time of each; what the training script predicts can be held against it.
#![expect(clippy::print_stdout, reason = "an example prints")]

use conclave_classify::Transformer;
use std::io::BufRead;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("give a file of weights")?;
    let started = Instant::now();
    let model = Transformer::parse(&std::fs::read(path)?)?;
    println!("# loaded in {:.1} ms: {}", ms(started), model.outputs().join(" "));
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (said, judged) = line.split_once('\t').unwrap_or(("", &line));
        let started = Instant::now();
        let logits = model.logits(said, judged);
        let logits: Vec<String> = logits.iter().map(|logit| format!("{logit:.3}")).collect();
        println!("{:.1} ms\t{}", ms(started), logits.join(" "));
    }
    Ok(())
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
