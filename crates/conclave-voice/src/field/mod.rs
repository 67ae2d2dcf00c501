//! The field: eleven sensors read a conversation and interfere into one state that shapes the
//! reply.
//!
//! **Invariant:** only additions, multiplications and divisions of numbers that come from counting,
//! so that the same conversation gives the same state on every machine.
//!
//! **Invariant:** in crisis the Crisis sensor has the largest influence and silence is impossible.

mod interference;
mod sensors;
mod state;
#[cfg(test)]
mod tests;
mod traces;

pub use state::{Elements, FieldState, Layer, Sensor, SensorState};

use crate::{VoiceError, error};
use conclave_core::{Message, Score};
use sensors::Temperaments;
use traces::Ears;

const EN: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/field/en.toml"));
const JA: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/field/ja.toml"));
const SENSORS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/field/sensors.toml"));

/// The sensors with their word lists.
#[derive(Clone, Debug)]
pub struct Field {
    temperaments: Temperaments,
    ears: Ears,
}

impl Field {
    /// The sensors compiled in.
    ///
    /// # Errors
    /// When a data file is broken.
    pub fn builtin() -> Result<Self, VoiceError> {
        Ok(Self {
            temperaments: error::parse("field/sensors.toml", SENSORS)?,
            ears: Ears::parse(&[("field/en.toml", EN), ("field/ja.toml", JA)])?,
        })
    }

    /// What the conversation makes of the field. The same turns, crisis and seed give the same
    /// state.
    #[must_use]
    pub fn sense(&self, turns: &[Message], crisis: Score, seed: u64) -> FieldState {
        let traces = self.ears.listen(turns);
        let sensed = sensors::sense_all(&self.temperaments, &traces, crisis);
        interference::interfere(&sensed, &traces, crisis, seed)
    }
}
