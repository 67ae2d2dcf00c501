//! What one figure says of two groups of scores.
//!
//! **Invariant:** ties are never counted as success: in AUROC they are worth one half, and a
//! threshold that would flag too many by a tie moves above it.

/// How the scores of a measured group are held against those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// How often a measured row scores higher than one of the others.
    Auroc,
    /// The share of measured rows above the threshold that at most so many in a thousand of the
    /// others exceed.
    RecallAtFpr(usize),
    /// The share of the others at or above the threshold that so many in a thousand of the measured
    /// rows reach.
    FprAtRecall(usize),
}

impl Measure {
    /// The figure, unless a group is empty.
    #[must_use]
    pub fn of(self, measured: &[f32], against: &[f32]) -> Option<f64> {
        if measured.is_empty() || against.is_empty() {
            return None;
        }
        match self {
            Self::Auroc => Some(auroc(measured, against)),
            Self::RecallAtFpr(per_mille) => {
                let over = against.len() * per_mille / 1000;
                let threshold = *descending(against).get(over)?;
                Some(share(measured, |score| score > threshold))
            }
            Self::FprAtRecall(per_mille) => {
                let reached = (measured.len() * per_mille).div_ceil(1000).max(1);
                let threshold = *descending(measured).get(reached - 1)?;
                Some(share(against, |score| score >= threshold))
            }
        }
    }
}

fn auroc(measured: &[f32], against: &[f32]) -> f64 {
    let mut sorted = against.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    // Twice the number of pairs that are in order, so that half a pair is a whole number.
    let twice: usize = measured
        .iter()
        .map(|score| {
            let below = sorted.partition_point(|other| other < score);
            let up_to = sorted.partition_point(|other| other <= score);
            below + up_to
        })
        .sum();
    number(twice) / 2.0 / number(measured.len()) / number(against.len())
}

fn descending(scores: &[f32]) -> Vec<f32> {
    let mut sorted = scores.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    sorted
}

fn share(scores: &[f32], flagged: impl Fn(f32) -> bool) -> f64 {
    number(scores.iter().filter(|score| flagged(**score)).count()) / number(scores.len())
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: Option<f64>, wanted: f64) {
        let found = found.unwrap();
        assert!((found - wanted).abs() < 1e-12, "{found} is not {wanted}");
    }

    #[test]
    fn auroc_counts_pairs_and_halves_ties() {
        for (measured, against, wanted) in [
            (&[2.0, 3.0][..], &[0.0, 1.0][..], 1.0),
            (&[0.0, 1.0], &[2.0, 3.0], 0.0),
            (&[1.0, 1.0], &[1.0, 1.0, 1.0], 0.5),
            // Of six pairs four are in order and one is a tie.
            (&[1.0, 3.0], &[0.0, 1.0, 2.0], 0.75),
            (&[-0.0], &[0.0], 0.5),
        ] {
            close(Measure::Auroc.of(measured, against), wanted);
        }
    }

    #[test]
    fn recall_is_taken_where_so_few_of_the_others_are_flagged() {
        let against: Vec<f32> = (0..100u8).map(f32::from).collect();
        // Five of a hundred lie above 94.
        let measured = [94.0, 94.5, 95.0, 200.0];
        close(Measure::RecallAtFpr(50).of(&measured, &against), 0.75);
        // Fewer than one may be flagged: nothing but what exceeds them all.
        close(Measure::RecallAtFpr(9).of(&measured, &against), 0.25);
    }

    #[test]
    fn a_tie_at_the_threshold_flags_none_of_it() {
        let against = [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
        close(Measure::RecallAtFpr(500).of(&[1.0, 1.5], &against), 0.5);
    }

    #[test]
    fn false_alarms_are_counted_where_recall_is_reached() {
        let measured: Vec<f32> = (1..=10u8).map(f32::from).collect();
        // Seven of ten reach 4; a tie with it is flagged too.
        close(Measure::FprAtRecall(700).of(&measured, &[3.0, 3.5, 4.0, 9.0]), 0.5);
        // More than seven of ten needs an eighth.
        close(Measure::FprAtRecall(701).of(&measured, &[2.5, 3.0, 4.0, 9.0]), 0.75);
        close(Measure::FprAtRecall(1000).of(&measured, &[0.5, 1.0]), 0.5);
    }

    #[test]
    fn empty_groups_have_no_figure() {
        for measure in [Measure::Auroc, Measure::RecallAtFpr(50), Measure::FprAtRecall(700)] {
            assert_eq!(measure.of(&[], &[1.0]), None);
            assert_eq!(measure.of(&[1.0], &[]), None);
        }
    }
}
