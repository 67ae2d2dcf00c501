//! Curves and their areas, against values reckoned by hand.

use super::*;
use proptest::prelude::*;

fn samples(rows: &[(f32, bool)]) -> Vec<Sample> {
    let sample = |&(score, harmful): &(f32, bool)| Sample {
        harmful,
        score,
        flagged: score >= 0.5,
        blocked: false,
        over_floor: false,
        latency_us: 1,
    };
    rows.iter().map(sample).collect()
}

fn ranking(rows: &[(f32, bool)]) -> Ranking {
    Ranking::of(&samples(rows)).unwrap()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn areas_are_those_reckoned_by_hand() {
    // By falling score: harmful, safe, harmful, safe. Pairs won: 2 + 1 of 4.
    let four = ranking(&[(0.9, true), (0.8, false), (0.7, true), (0.1, false)]);
    assert!(near(four.auroc().value, 0.75));
    // Precision 1/1 at the first harmful row, 2/3 at the second.
    assert!(near(four.auprc().value, (1.0 + 2.0 / 3.0) / 2.0));
    let best = ranking(&[(0.9, true), (0.8, true), (0.2, false)]);
    assert!(near(best.auroc().value, 1.0) && near(best.auprc().value, 1.0));
    let worst = ranking(&[(0.1, true), (0.8, false)]);
    assert!(near(worst.auroc().value, 0.0) && near(worst.auprc().value, 0.5));
}

#[test]
fn ties_count_half_and_are_one_step() {
    let flat = ranking(&[(0.5, true), (0.5, false), (0.5, false), (0.5, true)]);
    assert!(near(flat.auroc().value, 0.5) && near(flat.auprc().value, 0.5));
    assert_eq!(flat.points(200).len(), 2);
    assert!(near(flat.recall_at(0.05).unwrap().value, 0.0));
    // Harmful 0.8 beats both; harmful 0.5 ties with one and beats the other: 3.5 of 4.
    let partly = ranking(&[(0.8, true), (0.5, true), (0.5, false), (0.2, false)]);
    assert!(near(partly.auroc().value, 3.5 / 4.0));
    assert!(near(partly.auprc().value, f64::midpoint(1.0, 2.0 / 3.0)));
}

#[test]
fn delongs_variance_is_the_one_reckoned_by_hand() {
    // Harmful 0.9 and 0.7, safe 0.8 and 0.1: shares won 1, 1/2; shares lost 1/2, 1.
    // Both variances are 1/8, so the whole is 1/8/2 + 1/8/2 = 1/8.
    let four = ranking(&[(0.9, true), (0.8, false), (0.7, true), (0.1, false)]).auroc();
    let half = 1.959_963_984_540_054 * 0.125_f64.sqrt();
    assert!(near(four.low, 0.75 - half) && near(four.high, 1.0), "{four:?}");
}

#[test]
fn recall_is_read_where_the_false_alarms_allow() {
    let mut rows = vec![(0.9, true), (0.6, true), (0.3, true), (0.05, true)];
    rows.push((0.7, false));
    rows.extend((0..19_u8).map(|at| (0.2 - f32::from(at) / 1_000.0, false)));
    let many = ranking(&rows);
    assert!(near(many.recall_at(0.01).unwrap().value, 0.25));
    assert!(near(many.recall_at(0.05).unwrap().value, 0.75));
    assert!(near(many.recall_at(1.0).unwrap().value, 1.0));
}

#[test]
fn one_class_has_no_ranking() {
    assert!(Ranking::of(&samples(&[(0.4, true), (0.5, true)])).is_none());
    assert!(Ranking::of(&samples(&[(0.4, false)])).is_none());
    assert!(Ranking::of(&[]).is_none());
}

#[test]
fn points_are_thinned_and_keep_both_ends() {
    let rows: Vec<_> = (0..1_000_u16).map(|at| (f32::from(at) / 1_000.0, at % 3 == 0)).collect();
    let points = ranking(&rows).points(200);
    assert_eq!(points.len(), 200);
    assert_eq!((points[0].fpr, points[0].recall), (0.0, 0.0));
    assert_eq!((points[199].fpr, points[199].recall), (1.0, 1.0));
}

#[test]
fn the_bootstrap_is_the_same_every_time_and_narrows() {
    let rows = |n: u16| -> Vec<_> {
        (0..n).map(|at| (f32::from(at * 7 % 101) / 101.0, at % 5 < 2)).collect()
    };
    let (few, many) = (ranking(&rows(40)).auprc(), ranking(&rows(2_000)).auprc());
    assert_eq!(few, ranking(&rows(40)).auprc());
    assert!(many.high - many.low < few.high - few.low, "{few:?} {many:?}");
}

proptest! {
    /// The area, against counting every pair.
    #[test]
    fn auroc_is_the_share_of_pairs_won(rows in prop::collection::vec((0_u8..6, any::<bool>()), 2..60)) {
        let rows: Vec<_> = rows.iter().map(|(s, h)| (f32::from(*s) / 5.0, *h)).collect();
        let Some(ranking) = Ranking::of(&samples(&rows)) else { return Ok(()); };
        let (mut won, mut pairs) = (0.0, 0.0);
        for (high, _) in rows.iter().filter(|row| row.1) {
            for (low, _) in rows.iter().filter(|row| !row.1) {
                pairs += 1.0;
                won += if high > low { 1.0 } else if high < low { 0.0 } else { 0.5 };
            }
        }
        let auroc = ranking.auroc();
        prop_assert!(near(auroc.value, won / pairs));
        let auprc = ranking.auprc();
        for figure in [auroc, auprc] {
            prop_assert!(figure.low <= figure.value && figure.value <= figure.high);
            prop_assert!(figure.low >= 0.0 && figure.high <= 1.0 + 1e-12);
        }
    }
}
