//! The few functions between the matrices.

use ndarray::ArrayViewMut1;

/// The table reaches this far on both sides of zero; beyond it the curve is straight.
const REACH: f32 = 8.0;
/// Points of the table for each whole step.
const FINENESS: f32 = 512.0;

/// The Gaussian error linear unit, from a table with straight lines between its points.
pub(super) struct Gelu {
    points: Vec<f32>,
}

impl Gelu {
    pub(super) fn new() -> Self {
        let steps = 2.0 * REACH * FINENESS;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small whole number"
        )]
        let count = steps as u16 + 2;
        let at = |step: u16| f32::from(step) / FINENESS - REACH;
        Self { points: (0..count).map(|step| exact(at(step))).collect() }
    }

    pub(super) fn of(&self, x: f32) -> f32 {
        if x >= REACH {
            return x;
        }
        // Not a number is looked up at zero and comes out below as what it is: a failure must be seen.
        let place = ((x + REACH) * FINENESS).max(0.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within the table"
        )]
        let step = place as usize;
        let part = place.fract();
        match self.points.get(step..step + 2) {
            Some([left, right]) if x > -REACH => left + (right - left) * part,
            _ if x <= -REACH => 0.0,
            _ => x,
        }
    }
}

fn exact(x: f32) -> f32 {
    let x = f64::from(x);
    #[expect(clippy::cast_possible_truncation, reason = "the network computes in single precision")]
    let y = (0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2))) as f32;
    y
}

/// The error function by its series near zero and its continued fraction far from it.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a < 3.0 {
        let mut term = a;
        let mut sum = a;
        for n in 1..80 {
            let n = f64::from(n);
            term *= -a * a / n;
            sum += term / (2.0 * n + 1.0);
        }
        return (sum * 2.0 / std::f64::consts::PI.sqrt()).copysign(x);
    }
    let fraction = (1..60).rev().fold(0.0, |below, n| f64::from(n) / 2.0 / (a + below));
    (1.0 - (-a * a).exp() / ((a + fraction) * std::f64::consts::PI.sqrt())).copysign(x)
}

/// Makes the values positive with the sum one, however they lie in memory.
pub(super) fn softmax(mut values: ArrayViewMut1<'_, f32>) {
    let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for value in &mut values {
        *value = (*value - most).exp();
        sum += *value;
    }
    values /= sum;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        for (x, y) in
            [(0.0, 0.0), (0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (3.5, 0.999_999_256_9)]
        {
            assert!((erf(x) - y).abs() < 1e-9 && (erf(-x) + y).abs() < 1e-9, "{x}");
        }
        let gelu = Gelu::new();
        for (x, y) in [(1.0, 0.841_344_7), (-1.0, -0.158_655_3), (20.0, 20.0), (-20.0, 0.0)] {
            assert!((gelu.of(x) - y).abs() < 1e-5, "{x}");
        }
        assert!(gelu.of(f32::NAN).is_nan());
    }

    #[test]
    fn softmax_sums_to_one_in_rows_that_are_not_contiguous_too() {
        let mut values = ndarray::array![[1.0, 4.0], [2.0, 5.0], [1000.0, 6.0]];
        softmax(values.column_mut(0));
        assert!((values.column(0).sum() - 1.0).abs() < 1e-6);
        assert_eq!(values.column(1).to_vec(), [4.0, 5.0, 6.0]);
    }
}
