//! How the sensors become one state.
//!
//! With `w` the share of a sensor in its layer's weight: silence = Σ(silence·intensity·w) /
//! Σ(intensity·w), timing and words likewise, and the intensity of the field = Σ(intensity·w).

use super::sensors::{Sensed, elements};
use super::state::{Elements, FieldState, Sensor, SensorState};
use super::traces::Traces;
use crate::draw::Draw;
use conclave_core::Score;

/// The Crisis sensor's weight in crisis. All others together weigh less than one, and its intensity
/// is at least one half, so that this outweighs them whatever they sense.
const DOMINANT_WEIGHT: f32 = 2.0;

/// How far the seed may move a number.
const JITTER: f32 = 0.02;

/// The state of the field.
pub(super) fn interfere(
    sensed: &[Sensed],
    traces: &Traces,
    crisis: Score,
    seed: u64,
) -> FieldState {
    let in_crisis = crisis.is_crisis();
    let weights: Vec<f32> =
        sensed.iter().map(|one| one.intensity * weight(one.sensor, in_crisis)).collect();
    let total: f32 = weights.iter().sum();
    let mean = |value: fn(&Sensed) -> f32, resting: f32| {
        if total > 0.0 {
            let sum: f32 = sensed.iter().zip(&weights).map(|(one, w)| value(one) * w).sum();
            sum / total
        } else {
            resting
        }
    };
    let mut draw = Draw::new(seed);
    let mut jitter = || JITTER * (2.0 * draw.unit() - 1.0);
    let state = FieldState {
        elements: rounded(elements(traces)),
        silence_probability: round(mean(|one| one.silence, 0.0)),
        word_density: round(density(mean(|one| one.words, 0.5), traces) + jitter()),
        fragmentation: round(traces.fragmentation),
        pace: round(1.0 - mean(|one| one.timing, 0.5) + jitter()),
        intensity: round(total),
        sensors: states(sensed, &weights, total),
    };
    if in_crisis { steady(state) } else { state }
}

/// The layer's weight, shared by its sensors.
fn weight(sensor: Sensor, in_crisis: bool) -> f32 {
    if in_crisis && sensor == Sensor::Crisis {
        return DOMINANT_WEIGHT;
    }
    let layer = sensor.layer();
    layer.weight() / f32::from(layer.sensors())
}

/// A person who says little is answered with little.
fn density(asked: f32, traces: &Traces) -> f32 {
    let length = traces.words / (traces.words + 20.0);
    0.6 * asked + 0.4 * length
}

/// In crisis: never silence, a full and clear answer, at once.
fn steady(state: FieldState) -> FieldState {
    FieldState {
        silence_probability: 0.0,
        word_density: state.word_density.max(0.6),
        fragmentation: 0.0,
        pace: state.pace.max(0.6),
        ..state
    }
}

fn states(sensed: &[Sensed], weights: &[f32], total: f32) -> Vec<SensorState> {
    let shares = shares(weights, total);
    sensed
        .iter()
        .zip(shares)
        .map(|(one, influence)| SensorState {
            name: one.sensor,
            layer: one.sensor.layer(),
            intensity: round(one.intensity),
            silence_pull: round(one.silence),
            timing: round(one.timing),
            words: round(one.words),
            influence,
        })
        .collect()
}

/// Each weight's share in whole thousandths that add up to one; what rounding leaves over goes to
/// those it took most from. Uniform where nothing is sensed.
fn shares(weights: &[f32], total: f32) -> Vec<f32> {
    let count = weights.len().max(1);
    let exact: Vec<f32> = weights
        .iter()
        .map(|weight| {
            if total > 0.0 { weight / total * 1000.0 } else { 1000.0 / super::traces::count(count) }
        })
        .collect();
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()).then(a.cmp(&b)));
    let floors: f32 = exact.iter().map(|share| share.floor()).sum();
    let mut left = 1000.0 - floors;
    let mut shares: Vec<f32> = exact.iter().map(|share| share.floor()).collect();
    for at in order {
        if left < 0.5 {
            break;
        }
        shares[at] += 1.0;
        left -= 1.0;
    }
    shares.iter().map(|share| share / 1000.0).collect()
}

fn rounded(elements: Elements) -> Elements {
    Elements {
        earth: round(elements.earth),
        water: round(elements.water),
        fire: round(elements.fire),
        air: round(elements.air),
    }
}

/// Whole thousandths within range: what is recorded is short and the same everywhere.
fn round(value: f32) -> f32 {
    (value.clamp(0.0, 1.0) * 1000.0).round() / 1000.0
}
