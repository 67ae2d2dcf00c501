//! Owns how good a result must be: limits by sensitivity and recipe, and what failing them means.
//!
//! **Invariant:** of two limits the stricter is in force; only the time allowed is the longer one.
//! **Invariant:** whole numbers only: tenths of a point, hundredths of a percent, milliseconds.

use conclave_core::Sensitivity;
use serde::{Deserialize, Serialize};

/// Limits in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Thresholds {
    /// The least empathy, in tenths of a point of five.
    pub empathy_min: u8,
    /// Under this it is critical.
    pub empathy_critical: u8,
    /// The most unsupported claims, in hundredths of a percent.
    pub hallucination_max: u32,
    /// The least cited claims, in hundredths of a percent.
    pub citations_min: u32,
    /// The least share of sacred material that was noticed, in hundredths of a percent.
    pub sacred_min: u32,
    /// The slowest of the fastest 95 %.
    pub p95_ms: u64,
    /// The most failed runs, in hundredths of a percent.
    pub errors_max: u32,
}

/// What a recipe asks for beyond its sensitivity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnThresholds {
    /// In tenths of a point of five.
    pub empathy_min: Option<u8>,
    /// In hundredths of a percent.
    pub hallucination_max: Option<u32>,
    /// In hundredths of a percent.
    pub citations_min: Option<u32>,
    /// In milliseconds.
    pub p95_ms: Option<u64>,
}

impl Thresholds {
    /// The limits of a sensitivity.
    #[must_use]
    pub const fn of(sensitivity: Sensitivity) -> Self {
        match sensitivity {
            Sensitivity::Low | Sensitivity::Medium => Self {
                empathy_min: 35,
                empathy_critical: 20,
                hallucination_max: 500,
                citations_min: 9_000,
                sacred_min: 9_500,
                p95_ms: 5_000,
                errors_max: 100,
            },
            Sensitivity::High | Sensitivity::Sacred => Self {
                empathy_min: 40,
                empathy_critical: 30,
                hallucination_max: 100,
                citations_min: 9_800,
                sacred_min: 9_900,
                p95_ms: 10_000,
                errors_max: 50,
            },
        }
    }

    /// The limits of a recipe at a sensitivity: the stricter of both, and the longer time.
    #[must_use]
    pub fn with(self, own: OwnThresholds) -> Self {
        let stricter = |limit: u32, own: Option<u32>| own.map_or(limit, |own| own.min(limit));
        Self {
            empathy_min: own.empathy_min.map_or(self.empathy_min, |own| own.max(self.empathy_min)),
            hallucination_max: stricter(self.hallucination_max, own.hallucination_max),
            citations_min: own
                .citations_min
                .map_or(self.citations_min, |own| own.max(self.citations_min)),
            p95_ms: own.p95_ms.map_or(self.p95_ms, |own| own.max(self.p95_ms)),
            ..self
        }
    }
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// How a text treats people.
    Empathy,
    /// Claims that nothing supports.
    Hallucination,
    /// Claims with a citation that holds.
    Citations,
    /// A quote that stands nowhere in its source.
    InventedQuote,
    /// Sacred material that was noticed.
    SacredDetection,
    /// How long runs take.
    Latency,
    /// How many runs fail.
    ErrorRate,
}

impl Metric {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Empathy => "empathy",
            Self::Hallucination => "hallucination",
            Self::Citations => "citations",
            Self::InventedQuote => "invented_quote",
            Self::SacredDetection => "sacred_detection",
            Self::Latency => "latency",
            Self::ErrorRate => "error_rate",
        }
    }
}

/// What was measured of a run; absent where there was nothing to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Measured {
    /// In tenths of a point of five.
    pub empathy: Option<u8>,
    /// In hundredths of a percent.
    pub hallucination: Option<u32>,
    /// In hundredths of a percent.
    pub citations: Option<u32>,
    /// How many quotes stand nowhere in their source.
    pub invented_quotes: u32,
    /// In hundredths of a percent.
    pub sacred_detection: Option<u32>,
    /// Over the latest runs of the recipe.
    pub p95_ms: Option<u64>,
    /// Over the latest runs of the recipe, in hundredths of a percent.
    pub errors: Option<u32>,
}

/// How a run did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evaluation {
    /// What was measured.
    pub measured: Measured,
    /// The limits in force.
    pub thresholds: Thresholds,
    /// Passed metrics of a hundred; absent where nothing was measured.
    pub score: Option<u8>,
    /// What failed.
    pub failing: Vec<Metric>,
    /// What failed so badly that a person must look.
    pub critical: Vec<Metric>,
}

/// Holds what was measured against the limits.
#[must_use]
pub fn evaluate(measured: Measured, limits: Thresholds) -> Evaluation {
    let over = |value: u32, most: u32, factor: u32| value > most.saturating_mul(factor);
    // Of each metric that was measured: whether it failed, and whether critically.
    let mut seen: Vec<(Metric, bool, bool)> = Vec::new();
    if let Some(got) = measured.empathy {
        seen.push((Metric::Empathy, got < limits.empathy_min, got < limits.empathy_critical));
    }
    if let Some(got) = measured.hallucination {
        let most = limits.hallucination_max;
        seen.push((Metric::Hallucination, over(got, most, 1), over(got, most, 2)));
    }
    if let Some(got) = measured.citations {
        seen.push((Metric::Citations, got < limits.citations_min, false));
    }
    if measured.invented_quotes > 0 {
        seen.push((Metric::InventedQuote, true, true));
    }
    if let Some(got) = measured.sacred_detection {
        let low = u64::from(got) * 10 < u64::from(limits.sacred_min) * 9;
        seen.push((Metric::SacredDetection, got < limits.sacred_min, low));
    }
    if let Some(got) = measured.p95_ms {
        seen.push((Metric::Latency, got > limits.p95_ms, false));
    }
    if let Some(got) = measured.errors {
        let most = limits.errors_max;
        seen.push((Metric::ErrorRate, over(got, most, 1), over(got, most, 5)));
    }
    let passed = seen.iter().filter(|(_, failed, _)| !failed).count();
    let score = (!seen.is_empty()).then(|| u8::try_from(passed * 100 / seen.len()).unwrap_or(100));
    let named = |which: fn(&(Metric, bool, bool)) -> bool| {
        seen.iter().filter(|one| which(one)).map(|(metric, ..)| *metric).collect()
    };
    Evaluation {
        measured,
        thresholds: limits,
        score,
        failing: named(|(_, failed, _)| *failed),
        critical: named(|(_, _, critical)| *critical),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_those_of_the_specification() {
        for sensitivity in [Sensitivity::Low, Sensitivity::Medium] {
            let t = Thresholds::of(sensitivity);
            assert_eq!((t.empathy_min, t.empathy_critical), (35, 20));
            assert_eq!((t.hallucination_max, t.citations_min, t.sacred_min), (500, 9_000, 9_500));
            assert_eq!((t.p95_ms, t.errors_max), (5_000, 100));
        }
        for sensitivity in [Sensitivity::High, Sensitivity::Sacred] {
            let t = Thresholds::of(sensitivity);
            assert_eq!((t.empathy_min, t.empathy_critical), (40, 30));
            assert_eq!((t.hallucination_max, t.citations_min, t.sacred_min), (100, 9_800, 9_900));
            assert_eq!((t.p95_ms, t.errors_max), (10_000, 50));
        }
    }

    #[test]
    fn the_strictest_of_sensitivity_and_recipe_wins_and_latency_keeps_the_larger() {
        let own = OwnThresholds {
            empathy_min: Some(45),
            hallucination_max: Some(10),
            citations_min: Some(9_500),
            p95_ms: Some(8_000),
        };
        let low = Thresholds::of(Sensitivity::Low).with(own);
        assert_eq!((low.empathy_min, low.hallucination_max), (45, 10));
        assert_eq!((low.citations_min, low.p95_ms), (9_500, 8_000));
        let sacred = Thresholds::of(Sensitivity::Sacred).with(own);
        assert_eq!((sacred.citations_min, sacred.p95_ms), (9_800, 10_000));
        let lax = OwnThresholds { empathy_min: Some(1), ..OwnThresholds::default() };
        assert_eq!(Thresholds::of(Sensitivity::Low).with(lax).empathy_min, 35, "no way down");
    }

    #[test]
    fn score_is_passed_of_measured_metrics() {
        let limits = Thresholds::of(Sensitivity::Low);
        let nothing = evaluate(Measured::default(), limits);
        assert_eq!((nothing.score, nothing.failing.len()), (None, 0));
        let measured = Measured {
            empathy: Some(40),
            hallucination: Some(0),
            citations: Some(8_999),
            p95_ms: Some(100),
            ..Measured::default()
        };
        let done = evaluate(measured, limits);
        assert_eq!((done.score, done.failing), (Some(75), vec![Metric::Citations]));
        assert!(done.critical.is_empty());
    }

    #[test]
    fn critical_failures_are_those_of_the_specification() {
        let limits = Thresholds::of(Sensitivity::Low);
        let base = Measured::default();
        for (measured, failing, critical) in [
            (Measured { empathy: Some(20), ..base }, true, false),
            (Measured { empathy: Some(19), ..base }, true, true),
            (Measured { hallucination: Some(501), ..base }, true, false),
            (Measured { hallucination: Some(1_001), ..base }, true, true),
            (Measured { sacred_detection: Some(8_550), ..base }, true, false),
            (Measured { sacred_detection: Some(8_549), ..base }, true, true),
            (Measured { errors: Some(500), ..base }, true, false),
            (Measured { errors: Some(501), ..base }, true, true),
            (Measured { invented_quotes: 1, ..base }, true, true),
            (Measured { p95_ms: Some(99_999), ..base }, true, false),
            (Measured { citations: Some(0), ..base }, true, false),
        ] {
            let done = evaluate(measured, limits);
            assert_eq!(!done.failing.is_empty(), failing, "{measured:?}");
            assert_eq!(!done.critical.is_empty(), critical, "{measured:?}");
        }
    }
}
