//! What the sensors make of a conversation, as it is recorded with the decision.
//!
//! **Invariant:** numbers only: no word of the person is in it, so it may stand beside sealed text.

use serde::{Deserialize, Serialize};

/// One of the eleven sensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sensor {
    /// Depth: meaning, mortality, what a life is for.
    Wisdom,
    /// Earth, water, fire, air.
    ElementalOracle,
    /// Overwhelm, much said: asks for space.
    HigherSelf,
    /// Rage and raw words.
    LowerSelf,
    /// Questions.
    ConsciousMind,
    /// Dreams, dark, depth.
    Unconscious,
    /// Shame and secrets.
    Shadow,
    /// Fear and being alone.
    InnerChild,
    /// Longing and meaning.
    Anima,
    /// A person who may be in danger.
    Crisis,
    /// Leaving and being left.
    Attachment,
}

impl Sensor {
    /// Every sensor, by layer.
    pub const ALL: [Self; 11] = [
        Self::Wisdom,
        Self::ElementalOracle,
        Self::HigherSelf,
        Self::LowerSelf,
        Self::ConsciousMind,
        Self::Unconscious,
        Self::Shadow,
        Self::InnerChild,
        Self::Anima,
        Self::Crisis,
        Self::Attachment,
    ];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wisdom => "wisdom",
            Self::ElementalOracle => "elemental_oracle",
            Self::HigherSelf => "higher_self",
            Self::LowerSelf => "lower_self",
            Self::ConsciousMind => "conscious_mind",
            Self::Unconscious => "unconscious",
            Self::Shadow => "shadow",
            Self::InnerChild => "inner_child",
            Self::Anima => "anima",
            Self::Crisis => "crisis",
            Self::Attachment => "attachment",
        }
    }

    /// The layer it belongs to.
    #[must_use]
    pub const fn layer(self) -> Layer {
        match self {
            Self::Wisdom => Layer::Underground,
            Self::ElementalOracle => Layer::Sensing,
            Self::HigherSelf | Self::LowerSelf | Self::ConsciousMind | Self::Unconscious => {
                Layer::Consciousness
            }
            Self::Shadow | Self::InnerChild | Self::Anima => Layer::Archetype,
            Self::Crisis | Self::Attachment => Layer::Therapeutic,
        }
    }
}

/// A layer of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// What lies beneath.
    Underground,
    /// The elements.
    Sensing,
    /// The mind.
    Consciousness,
    /// The figures.
    Archetype,
    /// Care.
    Therapeutic,
}

impl Layer {
    /// Its share of the field; the five add up to one.
    #[must_use]
    pub const fn weight(self) -> f32 {
        match self {
            Self::Underground => 0.30,
            Self::Sensing => 0.25,
            Self::Consciousness => 0.20,
            Self::Archetype => 0.15,
            Self::Therapeutic => 0.10,
        }
    }

    /// How many sensors share it.
    #[must_use]
    pub const fn sensors(self) -> u8 {
        match self {
            Self::Underground | Self::Sensing => 1,
            Self::Consciousness => 4,
            Self::Archetype => 3,
            Self::Therapeutic => 2,
        }
    }
}

/// The elements in what was said, each within `0.0..=1.0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Elements {
    /// Body, home, work, the practical.
    pub earth: f32,
    /// Feeling, tears, closeness.
    pub water: f32,
    /// Anger, drive, heat.
    pub fire: f32,
    /// Thought, questions, distance.
    pub air: f32,
}

/// What one sensor makes of it; every number within `0.0..=1.0`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SensorState {
    /// Which sensor.
    pub name: Sensor,
    /// Its layer.
    pub layer: Layer,
    /// How much it senses.
    pub intensity: f32,
    /// How much it asks for silence.
    pub silence_pull: f32,
    /// How slowly it would answer.
    pub timing: f32,
    /// How many words it would use.
    pub words: f32,
    /// Its share of the field; the shares add up to one.
    pub influence: f32,
}

/// The state of the field; every number within `0.0..=1.0`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldState {
    /// The elements.
    pub elements: Elements,
    /// How likely silence is the fitting answer; 0 in crisis.
    pub silence_probability: f32,
    /// How full the answer should be.
    pub word_density: f32,
    /// How broken the person's words come.
    pub fragmentation: f32,
    /// How quickly to answer: 0 is slow.
    pub pace: f32,
    /// How much is sensed altogether.
    pub intensity: f32,
    /// The eleven sensors.
    pub sensors: Vec<SensorState>,
}
