//! How the field shapes the prompt and the sampling of a real model.
//!
//! **Invariant:** guidance is made of the sentences below and of the catalogue of reasons, never of
//! anything a person or a model wrote, so that nobody can speak to the model through it.

use crate::{FieldState, Language, Sensor, SensorState};
use conclave_core::Reason;

/// Below this intensity the field has nothing to say, and the model is left alone.
const QUIET: f32 = 0.06;

/// What the field asks of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Shaping {
    /// System text: how to shape the reply. Empty when the field is quiet: then send none.
    pub guidance: String,
    /// Sampling temperature, for where the client set none.
    pub temperature: f32,
    /// About how many words to answer with; none where the person asked for something to be
    /// explained.
    pub max_words: Option<u16>,
}

impl Shaping {
    /// The guidance, and after it what the dissenters of the last attempt ask for.
    #[must_use]
    pub fn guidance_with(&self, reasons: &[Reason]) -> String {
        let mut asked: Vec<Reason> = reasons.to_vec();
        asked.sort_unstable();
        asked.dedup();
        if asked.is_empty() {
            return self.guidance.clone();
        }
        let mut lines = Vec::new();
        if !self.guidance.is_empty() {
            lines.push(self.guidance.clone());
        }
        lines.push("An earlier draft of this reply was not sent. In this one:".to_owned());
        lines.extend(asked.iter().map(|reason| format!("- {}", reason.guidance())));
        lines.join("\n")
    }
}

/// Shapes the reply by the field. `language` is BCP 47.
#[must_use]
pub fn shape(field: &FieldState, language: &str) -> Shaping {
    let crisis = influence(field, Sensor::Crisis) > 0.5;
    let asked = !crisis && is_asking(field);
    let max_words = if asked || (!crisis && is_quiet(field)) { None } else { Some(words(field)) };
    Shaping {
        guidance: guidance(field, crisis, asked, max_words, Language::of_tag(language)),
        temperature: temperature(field, crisis, asked),
        max_words,
    }
}

fn guidance(
    field: &FieldState,
    crisis: bool,
    asked: bool,
    max_words: Option<u16>,
    language: Language,
) -> String {
    if !crisis && is_quiet(field) {
        return String::new();
    }
    let mut lines = vec!["How to shape this reply, within the instructions you already have:"];
    if crisis {
        lines.extend(CRISIS);
    } else {
        lines.extend(leading(field).into_iter().filter_map(sensor_line));
        lines.extend(element_line(field));
        lines.extend(manner_lines(field, asked));
    }
    lines.extend(ALWAYS);
    lines.push(match language {
        Language::English => "- Answer in the language the person writes in.",
        Language::Japanese => "- Answer in natural, polite Japanese (です・ます).",
    });
    let mut text = lines.join("\n");
    if let Some(words) = max_words {
        text.push_str(&format!("\n- About {words} words are enough."));
    }
    text
}

const CRISIS: [&str; 5] = [
    "- The person may be in danger. Be present, warm and plain; do not stay silent.",
    "- Say that you have heard them, in three to six full sentences, before anything else.",
    "- Ask directly and calmly whether they are safe right now.",
    "- Say that help is available now and encourage contacting a person or a crisis line.",
    "- Describe no method, minimise nothing, argue with nothing, promise no rescue.",
];

const ALWAYS: [&str; 2] =
    ["- Claim no feelings of your own and do not diagnose.", "- Ask at most one question."];

const fn sensor_line(sensor: Sensor) -> Option<&'static str> {
    Some(match sensor {
        Sensor::Wisdom => "- Leave room for what is large here; do not hurry it to a conclusion.",
        Sensor::HigherSelf => {
            "- The person has a great deal at once. Give space: take up one thread."
        }
        Sensor::LowerSelf => {
            "- There is raw anger. Acknowledge it without feeding or correcting it."
        }
        Sensor::ConsciousMind => "- There is a question. Answer it clearly first.",
        Sensor::Unconscious => {
            "- Something is not yet clear to the person. Do not interpret it for them."
        }
        Sensor::Shadow => "- There is shame. Be matter-of-fact and kind; blame nobody.",
        Sensor::InnerChild => {
            "- There is fear or loneliness. Be steady, simple and close to their words."
        }
        Sensor::Anima => "- There is longing. Let it be said before anything is made of it.",
        Sensor::Attachment => {
            "- Someone matters and may be lost. Do not offer yourself in their place."
        }
        Sensor::Crisis => {
            "- The person is having a hard time. Say plainly that help can be reached."
        }
        Sensor::ElementalOracle => return None,
    })
}

/// The element that colours what was said, where one does.
fn element_line(field: &FieldState) -> Option<&'static str> {
    let elements = field.elements;
    [
        (elements.earth, "- Stay with the concrete: the day, the body, the next hour."),
        (elements.water, "- Let feeling be feeling; do not explain it away."),
        (elements.fire, "- Keep your own tone calm; short sentences."),
        (elements.air, "- Bring one thought at a time."),
    ]
    .into_iter()
    .max_by(|a, b| a.0.total_cmp(&b.0))
    .filter(|(strength, _)| *strength >= 0.4)
    .map(|(_, line)| line)
}

fn manner_lines(field: &FieldState, asked: bool) -> Vec<&'static str> {
    let mut lines = Vec::new();
    if !asked && field.pace < 0.45 {
        lines.push("- Listen before you advise: reflect what was said, in the person's own words.");
    }
    if field.fragmentation > 0.4 {
        lines.push("- The words come broken. Use short, simple sentences.");
    }
    lines
}

/// The two sensors that lead, where they lead clearly.
fn leading(field: &FieldState) -> Vec<Sensor> {
    let mut sensors: Vec<&SensorState> = field
        .sensors
        .iter()
        .filter(|one| one.name != Sensor::ElementalOracle && one.intensity >= 0.3)
        .collect();
    sensors.sort_by(|a, b| b.intensity.total_cmp(&a.intensity));
    sensors.iter().take(2).map(|one| one.name).collect()
}

fn influence(field: &FieldState, sensor: Sensor) -> f32 {
    field.sensors.iter().find(|one| one.name == sensor).map_or(0.0, |one| one.influence)
}

fn is_quiet(field: &FieldState) -> bool {
    field.intensity < QUIET
}

/// Whether the question outweighs the feeling.
fn is_asking(field: &FieldState) -> bool {
    leading(field).first() == Some(&Sensor::ConsciousMind)
}

/// From some 60 words to some 200, as dense as the field.
fn words(field: &FieldState) -> u16 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within 60..=200 by the clamp"
    )]
    let tens = (6.0 + 14.0 * field.word_density.clamp(0.0, 1.0)) as u16;
    tens * 10
}

/// The more is at stake, the less is left to chance.
fn temperature(field: &FieldState, crisis: bool, asked: bool) -> f32 {
    let raw = if crisis {
        0.3
    } else if asked {
        0.5
    } else {
        0.7 - 0.3 * field.intensity
    };
    (raw * 20.0).round() / 20.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Field;
    use conclave_core::{Message, Role, Score};

    fn shaped(text: &str, crisis: f32, language: &str) -> Shaping {
        let turns = [Message::text(Role::User, text)];
        let field = Field::builtin().unwrap();
        shape(&field.sense(&turns, Score::new(crisis), 1), language)
    }

    #[test]
    fn a_quiet_field_leaves_the_model_alone() {
        let shaping = shaped("Translate: Guten Tag", 0.0, "en");
        assert_eq!(shaping.guidance, "");
        assert_eq!(shaping.max_words, None);
        assert_eq!(shaping.guidance_with(&[]), "");
    }

    #[test]
    fn a_crisis_is_shaped_for_presence_in_any_language() {
        for (text, language) in [("I want to die", "en"), ("死にたい", "ja"), ("…", "fr")] {
            let shaping = shaped(text, 0.8, language);
            assert!(shaping.guidance.contains("safe right now"), "{shaping:?}");
            assert!(shaping.guidance.contains("help is available"), "{shaping:?}");
            assert!(shaping.temperature <= 0.3);
            assert!(shaping.max_words.unwrap() >= 120);
        }
        assert!(shaped("死にたい", 0.8, "ja").guidance.contains("です・ます"));
    }

    #[test]
    fn questions_are_answered_and_feelings_heard() {
        let asked = shaped("What is the difference, and how do I decide?", 0.0, "en");
        assert!(asked.guidance.contains("Answer it clearly"), "{asked:?}");
        assert_eq!(asked.max_words, None);
        let felt = shaped("I'm scared and so alone. I cried, it's too much.", 0.0, "en");
        assert!(felt.guidance.contains("fear or loneliness"), "{felt:?}");
        assert!(felt.max_words.is_some());
        assert!(felt.temperature < 0.7);
    }

    #[test]
    fn reasons_are_added_once_in_the_words_of_the_catalogue() {
        let shaping = shaped("I'm scared", 0.0, "en");
        let text = shaping.guidance_with(&[Reason::Cold, Reason::Lectures, Reason::Cold]);
        assert!(text.starts_with(&shaping.guidance));
        assert_eq!(text.matches(Reason::Cold.guidance()).count(), 1);
        assert!(text.contains(Reason::Lectures.guidance()));
        let quiet = shaped("Tokyo", 0.0, "en").guidance_with(&[Reason::Cold]);
        assert!(quiet.starts_with("An earlier draft"));
    }
}
