//! How sure a figure is: the same rows drawn again and again, for all trainings alike.
//!
//! **Invariant:** one draw is used for all three trainings, so that their difference is not blurred
//! by the luck of the draw; and the draws are the same in every run.

use super::measure::Measure;
use crate::chance::Chance;
use serde::Serialize;

/// How often the rows are drawn anew.
pub const RESAMPLES: usize = 200;
/// So many of them lie outside the interval on each side, which makes it one of 95 %.
const OUTSIDE: usize = RESAMPLES * 25 / 1000;
/// Where chance begins, for every figure.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// A figure with its interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// On all rows, each once.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// What one training says of the rows of a figure.
#[derive(Clone, Debug)]
pub struct Groups {
    /// Scores of the rows that are measured.
    pub measured: Vec<f32>,
    /// Scores of the rows that they are held against.
    pub against: Vec<f32>,
}

/// One figure of the three trainings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Without the corpus.
    pub public: Interval,
    /// From the corpus alone.
    pub corpus: Interval,
    /// From both.
    pub both: Interval,
    /// Both less public: what the corpus bought.
    pub gain: Interval,
}

/// Public, corpus, both, and both less public.
type Values = [f64; 4];

/// The figure of the three trainings (public, corpus, both), whose groups hold the same rows in the
/// same order; `None` where a group is empty.
#[must_use]
pub fn compare(measure: Measure, trainings: &[Groups; 3]) -> Option<Compared> {
    let [first, ..] = trainings;
    let every = |count: usize| (0..count).collect::<Vec<_>>();
    let (measured, against) = (first.measured.len(), first.against.len());
    let values = values(measure, trainings, &every(measured), &every(against))?;
    let mut chance = Chance::seeded(SEED);
    let mut draws = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let measured = drawn(measured, &mut chance);
        let against = drawn(against, &mut chance);
        draws.push(self::values(measure, trainings, &measured, &against)?);
    }
    let [public, corpus, both, gain] = std::array::from_fn(|at| interval(values, &draws, at));
    Some(Compared { public, corpus, both, gain })
}

/// So many rows, each drawn from all of them.
fn drawn(count: usize, chance: &mut Chance) -> Vec<usize> {
    (0..count).map(|_| chance.below(count)).collect()
}

fn values(
    measure: Measure,
    trainings: &[Groups; 3],
    measured: &[usize],
    against: &[usize],
) -> Option<Values> {
    let of = |scores: &Groups| {
        measure.of(&picked(&scores.measured, measured), &picked(&scores.against, against))
    };
    let [public, corpus, both] = trainings.each_ref().map(of);
    let (public, both) = (public?, both?);
    Some([public, corpus?, both, both - public])
}

fn picked(scores: &[f32], rows: &[usize]) -> Vec<f32> {
    rows.iter().filter_map(|row| scores.get(*row).copied()).collect()
}

fn interval(values: Values, draws: &[Values], at: usize) -> Interval {
    let mut drawn: Vec<f64> = draws.iter().map(|values| values[at]).collect();
    drawn.sort_unstable_by(f64::total_cmp);
    let end = |place: usize| drawn.get(place).copied().unwrap_or(values[at]);
    Interval { value: values[at], low: end(OUTSIDE), high: end(RESAMPLES - 1 - OUTSIDE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scores that overlap, and more so the more noise there is.
    fn groups(noise: u8) -> Groups {
        let mut chance = Chance::seeded(7);
        let mut score = |shift: f32| {
            let percent = u8::try_from(chance.below(100)).unwrap();
            shift + f32::from(noise) * f32::from(percent) / 100.0
        };
        let mut some = |shift| (0..60).map(|_| score(shift)).collect();
        Groups { measured: some(1.0), against: some(0.0) }
    }

    #[test]
    fn the_same_scores_give_the_same_intervals() {
        let trainings = [groups(6), groups(9), groups(3)];
        let compared = compare(Measure::Auroc, &trainings).unwrap();
        assert_eq!(compare(Measure::Auroc, &trainings), Some(compared));
        for one in [compared.public, compared.corpus, compared.both, compared.gain] {
            assert!(one.low < one.value && one.value < one.high, "{one:?}");
        }
        assert!(compared.corpus.value < compared.public.value);
        assert!(compared.gain.low > 0.0, "{compared:?}");
    }

    #[test]
    fn draws_are_shared_so_that_equal_trainings_never_differ() {
        let compared =
            compare(Measure::RecallAtFpr(50), &[groups(6), groups(9), groups(6)]).unwrap();
        assert_eq!(compared.gain, Interval { value: 0.0, low: 0.0, high: 0.0 });
        assert_eq!(compared.public, compared.both);
        assert!(compared.public.low < compared.public.high);
    }

    #[test]
    fn the_interval_of_a_share_is_as_wide_as_theory_has_it() {
        // A share of one half of 400 rows has a standard error of .025.
        let measured = (0..400u16).map(|at| f32::from(at % 2)).collect();
        let one = Groups { measured, against: vec![0.5] };
        let compared = compare(Measure::RecallAtFpr(0), &[one.clone(), one.clone(), one]).unwrap();
        let half_width = (compared.public.high - compared.public.low) / 2.0;
        assert!((half_width - 1.96 * 0.025).abs() < 0.012, "{half_width}");
    }

    #[test]
    fn an_empty_group_has_no_interval() {
        let none = Groups { measured: Vec::new(), against: vec![0.0] };
        assert_eq!(compare(Measure::Auroc, &[none.clone(), none.clone(), none]), None);
    }
}
