//! What a decision keeps of how its person was heard: by the sensors, and over time.

use crate::stored::StoredDecision;
use conclave_detect::{Course, DriftAlert, Trend};
use conclave_voice::Sensor;
use serde::{Deserialize, Serialize};

/// The name under which a decision keeps what is remembered after it.
pub const MEMORY_WORDS: &str = "time";

/// From this intensity on a sensor has heard something; below it is what any text sounds like.
const HEARD_MIN: f64 = 0.2;

/// One sensor that shaped a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct SensorShare {
    /// Which.
    pub name: String,
    /// How much, larger than 0.
    pub influence: f64,
    /// How strongly it heard what it listens for, 0 to 1.
    pub intensity: f64,
    /// The one of that name; absent where another version had it.
    pub sensor: Option<Sensor>,
}

/// Where a conversation and its person stood after a decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StandingOverTime {
    /// How the conversation moved.
    pub trend: Trend,
    /// Where the person was drifting to; absent for whoever has no id.
    pub drift_alerts: Option<Vec<DriftAlert>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MemoryWords {
    trend: Trend,
    course: Option<Course>,
}

impl StoredDecision {
    /// The sensors that heard what they listen for; none where the words were erased, or where all there was
    /// is the noise that every text makes.
    #[must_use]
    pub fn sensors(&self) -> Vec<SensorShare> {
        let field = self.words("field").unwrap_or_default();
        let known = field["sensors"].as_array().into_iter().flatten();
        known
            .filter_map(|sensor| {
                let influence = sensor["influence"].as_f64().filter(|share| *share > 0.0)?;
                let intensity = sensor["intensity"].as_f64().unwrap_or_default();
                if intensity < HEARD_MIN {
                    return None;
                }
                let name = sensor["name"].as_str()?.to_owned();
                let sensor = Sensor::ALL.into_iter().find(|sensor| sensor.as_str() == name);
                Some(SensorShare { name, influence, intensity, sensor })
            })
            .collect()
    }

    /// Where the conversation and its person stood; the beginning where the words were erased.
    #[must_use]
    pub fn over_time(&self) -> StandingOverTime {
        let words = self.words(MEMORY_WORDS).unwrap_or_default();
        let MemoryWords { trend, course } = serde_json::from_value(words).unwrap_or_default();
        StandingOverTime { trend, drift_alerts: course.map(|course| course.alerts()) }
    }
}
