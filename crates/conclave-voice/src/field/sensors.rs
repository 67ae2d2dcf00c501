//! What each sensor makes of the traces.

use super::state::{Elements, Sensor};
use super::traces::Traces;
use conclave_core::Score;
use serde::Deserialize;

/// What a sensor asks for when it senses something.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Temperament {
    silence: f32,
    timing: f32,
    words: f32,
}

/// The temperaments of the eleven.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Temperaments {
    wisdom: Temperament,
    elemental_oracle: Temperament,
    higher_self: Temperament,
    lower_self: Temperament,
    conscious_mind: Temperament,
    unconscious: Temperament,
    shadow: Temperament,
    inner_child: Temperament,
    anima: Temperament,
    crisis: Temperament,
    attachment: Temperament,
}

impl Temperaments {
    const fn of(&self, sensor: Sensor) -> Temperament {
        match sensor {
            Sensor::Wisdom => self.wisdom,
            Sensor::ElementalOracle => self.elemental_oracle,
            Sensor::HigherSelf => self.higher_self,
            Sensor::LowerSelf => self.lower_self,
            Sensor::ConsciousMind => self.conscious_mind,
            Sensor::Unconscious => self.unconscious,
            Sensor::Shadow => self.shadow,
            Sensor::InnerChild => self.inner_child,
            Sensor::Anima => self.anima,
            Sensor::Crisis => self.crisis,
            Sensor::Attachment => self.attachment,
        }
    }
}

/// What one sensor senses, before interference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sensed {
    pub(super) sensor: Sensor,
    pub(super) intensity: f32,
    pub(super) silence: f32,
    pub(super) timing: f32,
    pub(super) words: f32,
}

/// All eleven, in their order.
pub(super) fn sense_all(
    temperaments: &Temperaments,
    traces: &Traces,
    crisis: Score,
) -> Vec<Sensed> {
    Sensor::ALL
        .into_iter()
        .map(|sensor| {
            let temperament = temperaments.of(sensor);
            Sensed {
                sensor,
                intensity: intensity(sensor, traces, crisis),
                silence: silence(sensor, temperament.silence, traces),
                timing: temperament.timing,
                words: temperament.words,
            }
        })
        .collect()
}

/// The elements in what was said.
pub(super) fn elements(traces: &Traces) -> Elements {
    let heard = &traces.heard;
    Elements {
        earth: saturate(heard.earth),
        water: saturate(heard.water),
        fire: saturate(heard.fire + 0.5 * traces.loudness),
        air: saturate(heard.air + 0.5 * traces.questions),
    }
}

fn intensity(sensor: Sensor, traces: &Traces, crisis: Score) -> f32 {
    let heard = &traces.heard;
    // A message without words is heard beneath the words.
    let wordless = if traces.wordless { 3.0 } else { 0.0 };
    match sensor {
        Sensor::Wisdom => saturate(heard.wisdom + wordless),
        Sensor::ElementalOracle => {
            let elements = elements(traces);
            [elements.earth, elements.water, elements.fire, elements.air]
                .into_iter()
                .fold(0.0, f32::max)
        }
        Sensor::HigherSelf => saturate(1.5 * heard.higher_self + much_said(traces)),
        Sensor::LowerSelf => saturate(heard.lower_self + 0.5 * traces.loudness),
        Sensor::ConsciousMind => saturate(heard.conscious_mind + traces.questions),
        Sensor::Unconscious => saturate(heard.unconscious + wordless),
        Sensor::Shadow => saturate(heard.shadow),
        Sensor::InnerChild => saturate(heard.inner_child),
        Sensor::Anima => saturate(heard.anima),
        Sensor::Crisis => saturate(heard.crisis).max(crisis.get()),
        Sensor::Attachment => saturate(heard.attachment),
    }
}

/// Silence is no answer to a question; it may be one to a message without words.
fn silence(sensor: Sensor, pull: f32, traces: &Traces) -> f32 {
    if sensor == Sensor::Crisis {
        0.0
    } else if traces.questions > 0.0 {
        0.3 * pull
    } else if traces.wordless {
        1.0 - 0.2 * (1.0 - pull)
    } else {
        pull
    }
}

/// A very long message asks for space.
fn much_said(traces: &Traces) -> f32 {
    ((traces.words - 80.0) / 80.0).clamp(0.0, 2.0)
}

/// Counts become a strength that approaches one and never reaches it.
fn saturate(count: f32) -> f32 {
    count / (count + 1.5)
}
