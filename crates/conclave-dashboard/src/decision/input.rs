//! How the input was read and sensed.

use crate::chart::Gauge;
use crate::figure::{score, title};
use crate::label::Tone;
use crate::text::{Ink, Text};
use conclave_people::{Contribution, ContributorKind};
use serde_json::Value as Json;

use super::seen::{Scores, strings};

/// From where crisis and injection count.
const DECISION_POINT: f64 = 0.5;
/// Signals that are shown.
const SIGNALS_MAX: usize = 50;

/// One score of the input against the line from which it counts.
pub(crate) struct InputScore {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) value: String,
    pub(crate) line: String,
    pub(crate) reached: bool,
    pub(crate) gauge: Gauge,
}

/// A share of something.
pub(crate) struct Portion {
    pub(crate) name: Text,
    pub(crate) note: Text,
    pub(crate) value: String,
    pub(crate) gauge: Gauge,
}

/// One thing seen in the text.
pub(crate) struct Signal {
    pub(crate) category: Text,
    pub(crate) kind: Text,
    pub(crate) source: Text,
    pub(crate) weight: String,
    /// Where, in characters.
    pub(crate) span: String,
}

/// How the input was read, in detail.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) categories: Vec<Portion>,
    pub(crate) signals: Vec<Signal>,
    pub(crate) signals_left_out: usize,
    pub(crate) frames: Vec<Text>,
    /// For the `lang` attribute; empty where it is not known.
    pub(crate) language: String,
}

/// The three scores.
pub(super) fn scores(scores: &Scores) -> Vec<InputScore> {
    [
        (
            "Harm",
            "what the person asks for or intends against others",
            scores.harm,
            scores.threshold,
        ),
        ("Crisis", "whether the person needs help", scores.crisis, DECISION_POINT),
        (
            "Injection",
            "whether it tries to override instructions",
            scores.injection,
            DECISION_POINT,
        ),
    ]
    .into_iter()
    .map(|(name, meaning, value, line)| {
        let reached = value >= line;
        let tone = match (reached, name) {
            (false, _) => Tone::Good,
            (true, "Crisis") => Tone::Care,
            (true, _) => Tone::Bad,
        };
        let gauge = Gauge::of(value).against(line, tone);
        InputScore { name, meaning, value: score(value), line: score(line), reached, gauge }
    })
    .collect()
}

impl Reading {
    /// Reads what was stored of it.
    pub(super) fn of(stored: &Json, ink: &mut Ink) -> Self {
        let categories = stored["categories"].as_object().into_iter().flatten();
        let mut categories: Vec<_> =
            categories.filter_map(|(name, value)| Some((name, value.as_f64()?))).collect();
        categories.sort_by(|(_, one), (_, two)| two.total_cmp(one));
        let portion = |(name, value): (&String, f64), ink: &mut Ink| Portion {
            name: ink.short(&title(name)),
            note: Text::default(),
            value: score(value),
            gauge: Gauge::of(value),
        };
        let signals = stored["signals"].as_array().map(Vec::as_slice).unwrap_or_default();
        Self {
            categories: categories.into_iter().map(|one| portion(one, ink)).collect(),
            signals: signals.iter().take(SIGNALS_MAX).map(|one| signal(one, ink)).collect(),
            signals_left_out: signals.len().saturating_sub(SIGNALS_MAX),
            frames: strings(&stored["frames"]).map(|frame| ink.short(frame)).collect(),
            language: language(stored["language"].as_str().unwrap_or_default()).to_owned(),
        }
    }
}

fn signal(stored: &Json, ink: &mut Ink) -> Signal {
    let text = |name: &str| stored[name].as_str().unwrap_or_default();
    let (start, end) = (stored["start"].as_u64(), stored["end"].as_u64());
    Signal {
        category: ink.short(&title(text("category"))),
        kind: ink.short(text("kind")),
        source: ink.short(text("source")),
        weight: stored["weight"].as_f64().map(score).unwrap_or_default(),
        span: start.zip(end).map(|(start, end)| format!("{start}–{end}")).unwrap_or_default(),
    }
}

/// A language tag that is fit for the `lang` attribute.
fn language(tag: &str) -> &str {
    let fits = matches!(tag.len(), 2..=3) && tag.bytes().all(|b| b.is_ascii_lowercase());
    if fits && tag != "und" { tag } else { "" }
}

/// Who shaped the reply, strongest first.
pub(super) fn influences(mut all: Vec<Contribution>, state: &Json, ink: &mut Ink) -> Vec<Portion> {
    // The verifiers stand on the page with their ballots.
    all.retain(|one| one.part != ContributorKind::Verifier);
    let whole: f64 = all.iter().map(|one| one.influence).sum();
    for one in &mut all {
        one.influence /= whole;
    }
    all.sort_by(|one, two| two.influence.total_cmp(&one.influence));
    let strongest = all.first().map_or(1.0, |first| first.influence).max(1e-9);
    let portion = |one: Contribution, ink: &mut Ink| Portion {
        name: ink.short(&title(&one.name)),
        note: ink.short(&layer_of(&one.name, state).unwrap_or(one.reasoning)),
        value: score(one.influence),
        gauge: Gauge::of(one.influence / strongest),
    };
    all.into_iter().map(|one| portion(one, ink)).collect()
}

/// The layer a sensor belongs to, where it was a sensor.
fn layer_of(name: &str, state: &Json) -> Option<String> {
    let sensors = state["sensors"].as_array()?;
    let sensor = sensors.iter().find(|sensor| sensor["name"] == name)?;
    Some(format!("{} layer", sensor["layer"].as_str()?))
}

/// The state of the field: elements, then temper.
pub(super) fn field(state: &Json) -> Vec<Portion> {
    let elements = ["earth", "water", "fire", "air"].map(|name| (name, &state["elements"][name]));
    let temper = ["intensity", "pace", "word_density", "fragmentation", "silence_probability"]
        .map(|name| (name, &state[name]));
    let known = elements.into_iter().chain(temper);
    known
        .filter_map(|(name, value)| {
            let value = value.as_f64()?;
            Some(Portion {
                name: Text::short(&title(name)),
                note: Text::default(),
                value: score(value),
                gauge: Gauge::of(value),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_score_counts_from_its_line() {
        let read = scores(&Scores { harm: 0.3, crisis: 0.49, injection: 0.5, threshold: 0.3 });
        let reached: Vec<_> = read.iter().map(|score| score.reached).collect();
        assert_eq!(reached, [true, false, true]);
        assert_eq!(read[0].line, "0.30");
    }

    #[test]
    fn only_plain_language_tags_become_attributes() {
        for (tag, kept) in [("ja", "ja"), ("und", ""), ("x\" onload", ""), ("", ""), ("eng", "eng")]
        {
            assert_eq!(language(tag), kept, "{tag}");
        }
    }

    #[test]
    fn a_reading_of_any_form_is_read() {
        let odd = Reading::of(
            &json!({"categories": [1], "signals": [1, {}], "frames": 7}),
            &mut Ink::new(),
        );
        assert_eq!((odd.categories.len(), odd.signals.len(), odd.frames.len()), (0, 2, 0));
        let many: Vec<_> = (0..70).map(|_| json!({"category": "violence"})).collect();
        let read = Reading::of(&json!({"signals": many}), &mut Ink::new());
        assert_eq!((read.signals.len(), read.signals_left_out), (SIGNALS_MAX, 20));
    }

    #[test]
    fn the_strongest_influence_comes_first() {
        let one = |name: &str, influence| Contribution {
            name: name.into(),
            part: ContributorKind::Sensor,
            influence,
            reasoning: "sensed".into(),
        };
        let state = json!({"sensors": [{"name": "wisdom", "layer": "underground"}]});
        let all = vec![one("shadow", 0.1), one("wisdom", 0.4)];
        let sorted = influences(all, &state, &mut Ink::new());
        assert_eq!(sorted[0].name.to_string(), "Wisdom");
        assert_eq!(sorted[0].note.to_string(), "underground layer");
        assert_eq!(
            (sorted[1].value.as_str(), sorted[1].note.to_string()),
            ("0.20", "sensed".into())
        );
    }
}
