//! Logistic regression by stochastic gradients with a rate of its own for every weight.
//!
//! **Invariant:** the same examples in the same order give the same weights.

use crate::chance::Chance;
use conclave_classify::{bucket, share};

/// One row as the model sees it.
#[derive(Clone, Debug)]
pub struct Example {
    /// Its features.
    pub features: Vec<u32>,
    /// What it teaches about each output.
    pub targets: Vec<Option<bool>>,
    /// How much it counts for each output.
    pub weights: Vec<f32>,
}

/// How to learn.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many buckets there are, as a power of two.
    pub bits: u32,
    /// How often each example is seen.
    pub epochs: u32,
    /// The first step's size.
    pub rate: f32,
    /// What every weight starts with in the sum of its squared slopes: more makes first steps smaller.
    pub caution: f32,
    /// How strongly weights are drawn to zero.
    pub decay: f32,
}

/// What was learned: bucket by bucket, one weight for each output.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// Of each output.
    pub biases: Vec<f32>,
    /// Of each bucket and output.
    pub weights: Vec<f32>,
    bits: u32,
}

impl Fitted {
    /// The logits of an example.
    #[must_use]
    pub fn logits(&self, features: &[u32]) -> Vec<f32> {
        let count = self.biases.len();
        let mut sums = vec![0.0; count];
        for &feature in features {
            let at = bucket(feature, self.bits) * count;
            for (sum, weight) in sums.iter_mut().zip(&self.weights[at..at + count]) {
                *sum += weight;
            }
        }
        let share = share(features.len());
        sums.iter().zip(&self.biases).map(|(sum, bias)| sum * share + bias).collect()
    }
}

/// Learns from the examples, shuffled anew in each epoch by a fixed seed.
pub fn fit(examples: &[Example], outputs: usize, plan: Plan, mut seen: impl FnMut()) -> Fitted {
    let size = outputs << plan.bits;
    let mut fitted =
        Fitted { biases: vec![0.0; outputs], weights: vec![0.0; size], bits: plan.bits };
    let mut squares = vec![plan.caution; size];
    let mut bias_squares = vec![1e-2f32; outputs];
    let mut order: Vec<usize> = (0..examples.len()).collect();
    let mut chance = Chance::seeded(0x2545_f491_4f6c_dd1d);
    for _ in 0..plan.epochs {
        shuffle(&mut order, &mut chance);
        for &at in &order {
            step(&mut fitted, &examples[at], plan, &mut squares, &mut bias_squares);
            seen();
        }
    }
    fitted
}

fn step(
    fitted: &mut Fitted,
    example: &Example,
    plan: Plan,
    squares: &mut [f32],
    bias_squares: &mut [f32],
) {
    let count = fitted.biases.len();
    let logits = fitted.logits(&example.features);
    let slopes: Vec<f32> = (0..count)
        .map(|output| match example.targets[output] {
            None => 0.0,
            Some(target) => {
                let wanted = f32::from(u8::from(target));
                (sigmoid(logits[output]) - wanted) * example.weights[output]
            }
        })
        .collect();
    let share = share(example.features.len());
    for &feature in &example.features {
        let at = bucket(feature, plan.bits) * count;
        let rows = fitted.weights[at..at + count].iter_mut().zip(&mut squares[at..at + count]);
        for ((weight, square), slope) in rows.zip(&slopes) {
            if *slope != 0.0 {
                let gradient = slope * share + plan.decay * *weight;
                *square += gradient * gradient;
                *weight -= plan.rate * gradient / square.sqrt();
            }
        }
    }
    for ((bias, square), slope) in fitted.biases.iter_mut().zip(bias_squares).zip(&slopes) {
        *square += slope * slope;
        *bias -= plan.rate * 0.2 * slope / square.sqrt();
    }
}

/// The logistic function.
#[must_use]
pub fn sigmoid(logit: f32) -> f32 {
    1.0 / (1.0 + (-logit).exp())
}

fn shuffle(order: &mut [usize], chance: &mut Chance) {
    for at in (1..order.len()).rev() {
        let other = chance.below(at + 1);
        order.swap(at, other);
    }
}
