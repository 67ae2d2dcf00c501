//! Why a text was read as it was: for people, auditors and `explain`.

use crate::combine::{Scores, Seen, is_harm};
use crate::detector::FRAME_RELAXATION;
use crate::sight::{PatternShares, Sight};
use crate::{Reading, Signal, SignalKind, TierPart, TieredScore};
use conclave_core::{Mode, Threshold};
use serde::Serialize;
use std::fmt::Write as _;

/// A smaller part of a score is not printed.
const SHOWN_FROM: f32 = 0.005;

/// One step by which the line came to stand where it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThresholdStep {
    /// Which rule moved it, e.g. `mode normal`, `frame fiction`.
    pub rule: String,
    /// By how much, in hundredths; the first step is the line itself.
    pub hundredths: i16,
}

/// What one signal gave to the score it counts in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SignalContribution {
    /// Which score: `harm`, `crisis` or `injection`.
    pub score: String,
    /// The signal.
    pub signal: Signal,
    /// The words that were seen, as they stand in the original.
    pub quote: String,
    /// By how much it raised the score; 0 for words that a stronger signal had counted already.
    pub part: f32,
}

/// A dangerous word that was read in a harmless way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replacement {
    /// How it was read instead: `technical`, `figurative`, `negated`, ...
    pub reading: String,
    /// Which rule said so.
    pub source: String,
    /// Where it starts in the original, in Unicode scalar values.
    pub start: usize,
    /// Where it ends, exclusive.
    pub end: usize,
    /// The words.
    pub quote: String,
}

/// Everything that led to a reading.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadingExplanation {
    /// The reading itself.
    pub reading: Reading,
    /// `harmful` or `safe`.
    pub verdict: String,
    /// How the line in force came about.
    pub threshold: Vec<ThresholdStep>,
    /// Which signal gave which part.
    pub contributions: Vec<SignalContribution>,
    /// How the tiers of the trained models made their scores.
    pub tiers: Vec<TieredScore>,
    /// What patterns that are not nearly certain count for, given how much the trained models find.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern_shares: Option<PatternShares>,
    /// What was read harmlessly.
    pub replaced: Vec<Replacement>,
    /// The factor that asking how to do it put on the harm, in hundredths.
    pub amplified_by: u16,
    /// The disguises that were seen through: `zero-width`, `base64`, ...
    pub disguises: Vec<String>,
}

impl ReadingExplanation {
    /// Puts together why a text was read as it was.
    pub(crate) fn of(text: &str, sight: &Sight, reading: Reading) -> Self {
        let original: Vec<char> = text.chars().collect();
        let amplified = reading.harm_unamplified.get() < reading.harm.get();
        Self {
            verdict: if reading.is_harmful() { "harmful" } else { "safe" }.into(),
            threshold: threshold_steps(&reading),
            contributions: contributions(sight, &reading, &original),
            tiers: Vec::new(),
            pattern_shares: sight.pattern_shares,
            replaced: sight.replaced.clone(),
            amplified_by: if amplified { 150 } else { 100 },
            disguises: sight.disguises.iter().map(|&name| name.to_owned()).collect(),
            reading,
        }
    }

    /// The explanation in plain sentences.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_text(&mut out);
        out
    }

    fn write_text(&self, out: &mut String) -> std::fmt::Result {
        let reading = &self.reading;
        writeln!(
            out,
            "{}: harm {:.2} against a line of {:.2}; crisis {:.2}; injection {:.2}; language {}",
            self.verdict,
            reading.harm.get(),
            f32::from(reading.threshold.hundredths()) / 100.0,
            reading.crisis.get(),
            reading.injection.get(),
            reading.language,
        )?;
        for step in &self.threshold {
            writeln!(out, "  line: {} {:+.2}", step.rule, f32::from(step.hundredths) / 100.0)?;
        }
        // What would be printed as nothing explains nothing.
        for one in self.contributions.iter().filter(|one| one.part >= SHOWN_FROM) {
            writeln!(
                out,
                "  {}: {:+.2} by {} ({}), characters {}..{}: \u{201c}{}\u{201d}",
                one.score,
                one.part,
                one.signal.source,
                one.signal.category.as_str(),
                one.signal.start,
                one.signal.end,
                one.quote,
            )?;
        }
        self.write_tiers(out)?;
        if self.amplified_by != 100 {
            writeln!(
                out,
                "  harm: x{:.1} because it asks how",
                f32::from(self.amplified_by) / 100.0
            )?;
        }
        for one in &self.replaced {
            writeln!(
                out,
                "  read as {}: \u{201c}{}\u{201d} ({})",
                one.reading, one.quote, one.source
            )?;
        }
        for name in &self.disguises {
            writeln!(out, "  seen through a disguise: {name}")?;
        }
        if reading.floor {
            writeln!(out, "  the floor of the directives stops this in every mode")?;
        }
        Ok(())
    }

    fn write_tiers(&self, out: &mut String) -> std::fmt::Result {
        for one in self.tiers.iter().filter(|one| one.value.get() >= SHOWN_FROM) {
            write!(out, "  trained models, {}:", one.score)?;
            for TierPart { tier, part } in &one.tiers {
                match part {
                    Some(part) => write!(out, " {tier} {part:+.2},")?,
                    None => write!(out, " {tier} not asked,")?,
                }
            }
            writeln!(out, " together {:.2}", one.value.get())?;
        }
        let Some(PatternShares { harm, crisis }) = self.pattern_shares else {
            return Ok(());
        };
        let patterns = self.reading.signals.iter().filter(|one| one.kind == SignalKind::Pattern);
        let categories: Vec<_> = patterns.map(|one| one.category).collect();
        for (score, share, has_any) in [
            ("harm", harm, categories.iter().any(|one| is_harm(*one))),
            ("crisis", crisis, categories.iter().any(|one| one.is_about_crisis())),
        ] {
            if share < 1.0 && has_any {
                writeln!(
                    out,
                    "  {score}: patterns count for {share:.2}, because the trained models find little"
                )?;
            }
        }
        Ok(())
    }
}

fn threshold_steps(reading: &Reading) -> Vec<ThresholdStep> {
    let line = Threshold::for_mode(reading.mode);
    let mut steps = vec![ThresholdStep {
        rule: format!("mode {}", reading.mode.as_str()),
        hundredths: i16::from(line.hundredths()),
    }];
    let relaxed = i16::from(reading.threshold.hundredths()) - i16::from(line.hundredths());
    let names: Vec<&str> = reading.frames.iter().map(|frame| frame.as_str()).collect();
    if relaxed != 0 {
        steps.push(ThresholdStep {
            rule: format!("frame {}", names.join(", ")),
            hundredths: relaxed,
        });
    } else if !names.is_empty() && reading.mode == Mode::ChildSafe {
        let rule = format!("frame {} (not where children read)", names.join(", "));
        steps.push(ThresholdStep { rule, hundredths: 0 });
    }
    debug_assert!(relaxed <= i16::from(FRAME_RELAXATION), "frames relax by a bounded amount");
    steps
}

/// What each signal gave: how much it raised its score when signals are taken in order of weight, so
/// that the parts add up to the score, and words that were already counted add nothing.
fn contributions(sight: &Sight, reading: &Reading, original: &[char]) -> Vec<SignalContribution> {
    let mut order: Vec<&Seen> = sight.seen.iter().collect();
    order.sort_by(|a, b| b.signal.weight.get().total_cmp(&a.signal.weight.get()));
    let factor = reading.harm.get() / reading.harm_unamplified.get().max(f32::MIN_POSITIVE);
    let mut taken: Vec<Seen> = Vec::with_capacity(order.len());
    let mut before = Scores::default();
    let mut parts = Vec::with_capacity(order.len());
    for seen in order {
        taken.push(seen.clone());
        let after = Scores::of(&taken);
        let category = seen.signal.category;
        let (score, part) = if category.is_about_crisis() {
            ("crisis", after.crisis.get() - before.crisis.get())
        } else if category.is_about_injection() {
            ("injection", after.injection.get() - before.injection.get())
        } else {
            let raised = after.harm_unamplified.get() - before.harm_unamplified.get();
            ("harm", raised * factor)
        };
        let signal = seen.signal.clone();
        let quote = original.get(signal.start..signal.end).unwrap_or_default().iter().collect();
        parts.push(SignalContribution { score: score.into(), signal, quote, part });
        before = after;
    }
    parts
}
