//! `conclave bench`: speed on this machine.
//!
//! **Invariant:** what a core does is measured in the time this program had a core, where the kernel
//! tells: others on the machine do not make it slower.

use super::bench_reader::{self, ReaderSpeed};
use super::{Answer, checker, processor_time};
use crate::cli::BenchCommand;
use crate::config::SecondTier;
use crate::output;
use anyhow::{Context, bail};
use conclave_classify::{Ensemble, SlowTiers};
use conclave_core::{Mode, Role};
use conclave_detect::Detector;
use serde::Serialize;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Sentences to read: harmless and harmful, English and Japanese, one a line.
pub(super) const SENTENCES: &str = include_str!("bench_sentences.txt");
/// How long each figure is measured.
const MEASURE_FOR: Duration = Duration::from_millis(1_500);
/// Texts of each length, so that no two neighbours are the same.
const TEXTS: usize = 64;
/// The large plain text.
const PLAIN_BYTES: usize = 4 * 1024 * 1024;
/// A text of 64 tokens for the second tier: common words are one each.
const SIXTY_FOUR_TOKENS: &str = "when we came home from the market my mother had already put the soup on the table and \
    the children were playing in the garden with the neighbours who had brought bread and apples for all of us so we sat \
    down together and talked about the long summer and the old house near the river where we used to live before the war";
/// Readings of the second tier, of which the median counts.
const TIER_RUNS: usize = 21;
/// Starts of the program, of which the median counts.
const STARTS: usize = 5;

/// Measures the time on a core, or what comes nearest to it.
struct Stopwatch {
    start: Instant,
    on_core: Option<Duration>,
}

impl Stopwatch {
    fn start() -> Self {
        Self { start: Instant::now(), on_core: processor_time::of_thread() }
    }

    fn seconds(&self) -> f64 {
        let now = processor_time::of_thread();
        let on_core = self.on_core.zip(now).map(|(start, now)| now.saturating_sub(start));
        on_core.filter(|time| !time.is_zero()).unwrap_or_else(|| self.start.elapsed()).as_secs_f64()
    }

    fn is_over(&self) -> bool {
        self.start.elapsed() >= MEASURE_FOR
    }
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
struct Speed {
    /// Whether the program was built for speed.
    optimised: bool,
    /// Building the checker, in this process.
    build_ms: f64,
    /// A whole `conclave check` of one short text, from start to exit; the median.
    check_cold_start_ms: f64,
    /// Resident memory with the checker built and used; Linux only.
    #[serde(skip_serializing_if = "Option::is_none")]
    rss_mb: Option<f64>,
    /// One core, texts of 100 characters, the first tier alone.
    messages_per_second_100: f64,
    /// One core, texts of 2,000 characters, the first tier alone.
    messages_per_second_2000: f64,
    /// One core, finding every word of the patterns in one large plain text.
    scan_mb_per_second: f64,
    /// One core, folding and patterns alone on one large plain text.
    plain_mb_per_second: f64,
    /// One core, the encoder on a text of 60 words; the median.
    encoder_ms: f64,
    /// One core, the transformer on a text of 64 tokens; the median.
    transformer_ms: f64,
    /// Resident memory with every tier loaded; Linux only.
    #[serde(skip_serializing_if = "Option::is_none")]
    all_tiers_rss_mb: Option<f64>,
    /// Every tier, asked as `check` asks it.
    reader: ReaderSpeed,
}

/// Runs the command.
///
/// # Errors
/// When the data files compiled in are broken or the program cannot start itself.
pub fn run(command: &BenchCommand, as_json: bool) -> anyhow::Result<Answer> {
    match command {
        BenchCommand::Ledger(args) => return super::bench_ledger::run(args, as_json),
        BenchCommand::Guards => return super::bench_guards::run(as_json),
        BenchCommand::Path(args) => return super::bench_path::run(args, as_json),
        BenchCommand::Detect => {}
    }
    let speed = measure()?;
    if as_json {
        output::json(&speed);
    } else {
        print(&speed);
    }
    Ok(Answer::Yes)
}

fn measure() -> anyhow::Result<Speed> {
    let start = Instant::now();
    let detector = Arc::new(checker::detector(SecondTier::Never)?);
    let checker = checker::with(detector.clone())?;
    let build_ms = milliseconds(start.elapsed());
    let short = rate(&detector, &texts(100));
    let long = rate(&detector, &texts(2_000));
    let rss_mb = rss_mb();
    drop(checker);
    let models = Ensemble::builtin(SlowTiers::Always).context("trained models")?;
    let encoder = models.encoder()?;
    let encoder_ms = median_ms(|| Ok(encoder.text_logits(&bench_reader::sixty_words())?))?;
    let transformer = models.transformer()?;
    let transformer_ms = median_ms(|| Ok(transformer.logits("", SIXTY_FOUR_TOKENS)?))?;
    let patterns = Detector::builtin()?;
    Ok(Speed {
        optimised: !cfg!(debug_assertions),
        build_ms,
        check_cold_start_ms: cold_start_ms()?,
        rss_mb,
        messages_per_second_100: short,
        messages_per_second_2000: long,
        scan_mb_per_second: plain_rate(|text| {
            std::hint::black_box(patterns.count_words(text));
        }),
        plain_mb_per_second: plain_rate(|text| {
            std::hint::black_box(patterns.read(text, Mode::Normal));
        }),
        encoder_ms,
        transformer_ms,
        all_tiers_rss_mb: self::rss_mb(),
        reader: bench_reader::measure()?,
    })
}

fn print(speed: &Speed) {
    if !speed.optimised {
        output::note("this is a debug build: its figures say little about speed");
    }
    let lines = [
        ("first tier, 100 characters, one core", format!("{:.0}/s", speed.messages_per_second_100)),
        (
            "first tier, 2,000 characters, one core",
            format!("{:.0}/s", speed.messages_per_second_2000),
        ),
        ("words of the patterns, plain text", format!("{:.0} MB/s", speed.scan_mb_per_second)),
        ("the same, folded and judged", format!("{:.1} MB/s", speed.plain_mb_per_second)),
        ("encoder, 60 words", format!("{:.2} ms", speed.encoder_ms)),
        ("transformer, 64 tokens", format!("{:.2} ms", speed.transformer_ms)),
        ("`check` from start to exit", format!("{:.0} ms", speed.check_cold_start_ms)),
        ("building the checker", format!("{:.0} ms", speed.build_ms)),
    ];
    lines.iter().for_each(|(name, figure)| output::line(&format!("{name:<40}{figure:>10}")));
    if let Some(rss) = speed.rss_mb {
        output::line(&format!("{:<40}{:>10}", "resident memory", format!("{rss:.0} MB")));
    }
    if let Some(rss) = speed.all_tiers_rss_mb {
        let name = "with every tier";
        output::line(&format!("{name:<40}{:>10}", format!("{rss:.0} MB")));
    }
    speed.reader.print();
}

/// Texts of a length, each from other sentences in another order.
fn texts(chars: usize) -> Vec<String> {
    let sentences: Vec<_> = SENTENCES.lines().filter(|line| !line.is_empty()).collect();
    let text = |start: usize| {
        // A step that shares no divisor with their number visits all of them.
        let order = (0..).map(|at| sentences[(start * 7 + at * 11) % sentences.len()]);
        let joined = order.flat_map(|sentence| sentence.chars().chain([' ']));
        joined.take(chars).collect()
    };
    (0..TEXTS).map(text).collect()
}

/// Texts read in a second of a core; all are read once before.
pub(super) fn rate(detector: &Detector, texts: &[String]) -> f64 {
    let read = |text: &String| {
        let turns = [(Role::User, text.as_str())];
        std::hint::black_box(detector.read_conversation(&turns, Mode::Normal));
    };
    texts.iter().for_each(read);
    let watch = Stopwatch::start();
    let mut rounds = 0_u32;
    while rounds == 0 || !watch.is_over() {
        texts.iter().for_each(read);
        rounds += 1;
    }
    let count = u32::try_from(texts.len()).unwrap_or(u32::MAX);
    f64::from(rounds) * f64::from(count) / watch.seconds()
}

/// The median of some readings; the first one is not counted.
fn median_ms(read: impl Fn() -> anyhow::Result<Vec<f32>>) -> anyhow::Result<f64> {
    let mut times: Vec<f64> = (0..=TIER_RUNS)
        .map(|_| {
            let watch = Stopwatch::start();
            std::hint::black_box(read()?);
            Ok(watch.seconds() * 1e3)
        })
        .collect::<anyhow::Result<_>>()?;
    times.remove(0);
    times.sort_unstable_by(f64::total_cmp);
    Ok(times.get(TIER_RUNS / 2).copied().unwrap_or_default())
}

/// Megabytes of plain text read in a second.
fn plain_rate(read: impl Fn(&str)) -> f64 {
    let ascii = SENTENCES.lines().filter(|line| line.is_ascii() && !line.is_empty());
    let harmless: String = ascii.take(12).flat_map(|line| [line, "\n"]).collect();
    let text = harmless.repeat(PLAIN_BYTES / harmless.len().max(1) + 1);
    let watch = Stopwatch::start();
    let mut rounds = 0_u32;
    while rounds == 0 || !watch.is_over() {
        read(&text);
        rounds += 1;
    }
    let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
    f64::from(rounds) * f64::from(bytes) / 1e6 / watch.seconds()
}

/// Starts the program as a user would; the median of a few times.
fn cold_start_ms() -> anyhow::Result<f64> {
    let program = std::env::current_exe().context("the program's own path")?;
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let start = Instant::now();
        let status = Command::new(&program)
            .args(["check", "What is the weather like in spring?"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .context("starting `conclave check`")?;
        times.push(milliseconds(start.elapsed()));
        if !status.success() {
            bail!("`conclave check` ended with {status}");
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times.get(STARTS / 2).copied().unwrap_or_default())
}

/// What the kernel says this process holds in memory.
fn rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024.0 / 1e6)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_their_length_and_differ() {
        for chars in [100, 2_000] {
            let texts = texts(chars);
            assert!(texts.iter().all(|text| text.chars().count() == chars));
            assert!(texts.windows(2).all(|pair| pair[0] != pair[1]));
        }
        let sentences = SENTENCES.lines().filter(|line| !line.is_empty()).count();
        assert!(sentences >= 40 && !sentences.is_multiple_of(11), "{sentences}");
    }
}
