//! From logits to scores: at which logit so many harmless texts of a group lie below.
//!
//! **Invariant:** a score says the same everywhere: three tenths are reached by eight in a thousand
//! ordinary texts of each group that has enough of them.

use crate::cores::on_all_cores;
use crate::rows::Row;
use conclave_classify::{Calibration, Curve, Ensemble, Meeting, Pair, ReplyLogits, Second, group};
use conclave_detect::{MannerFault, plain_form};
use indicatif::ProgressBar;
use std::collections::BTreeMap;

/// The share of harmless texts that lie below, and the score there; for harm.
const HARM: [(f32, f32); 10] = [
    (0.0, 0.0),
    (0.50, 0.01),
    (0.80, 0.03),
    (0.90, 0.06),
    (0.95, 0.09),
    (0.98, 0.12),
    (0.987, 0.18),
    (0.993, 0.30),
    (0.996, 0.40),
    (0.999, 0.55),
];
/// The same for a frame, which harmless texts seldom resemble.
const FRAME: [(f32, f32); 6] =
    [(0.0, 0.0), (0.90, 0.01), (0.98, 0.05), (0.992, 0.12), (0.995, 0.30), (0.998, 0.50)];
/// The same for injection, whose decision point is one half.
const INJECTION: [(f32, f32); 6] =
    [(0.0, 0.0), (0.50, 0.01), (0.80, 0.03), (0.95, 0.10), (0.98, 0.50), (0.997, 0.80)];
/// The same for crisis. Most of it is a doubt that must not drown what else is said of a text.
const CRISIS: [(f32, f32); 7] = [
    (0.0, 0.0),
    (0.50, 0.004),
    (0.80, 0.01),
    (0.95, 0.02),
    (0.98, 0.04),
    (0.99, 0.12),
    (0.995, 0.45),
];
/// What the first tier's logit counts for crisis, of which the second knows more.
pub const CRISIS_FIRST: f32 = 0.5;
/// What the first tier's logit counts for a fault of a reply.
const FAULT_FIRST: f32 = 1.0;
/// A group with fewer harmless texts is measured with the rest of its language, or with all.
const ENOUGH: usize = 120;
/// Beyond the last point the score rises by so much again, over a wide distance: what is worse than nearly
/// all harmless texts should still be told apart.
const BEYOND: f32 = 0.14;
/// How wide that distance is, in logits.
const BEYOND_LOGITS: f32 = 6.0;

/// One text with what both tiers say of it.
struct Measured {
    group: &'static str,
    request: Pair,
    crisis: Pair,
    injection: Pair,
    frame: Pair,
}

/// Measures the harmless rows and draws the curves.
///
/// # Errors
/// When the built-in weights cannot be read.
pub fn calibrate(rows: &[Row]) -> anyhow::Result<Calibration> {
    let start = Calibration { unsure: (0.01, 0.65), ..Calibration::default() };
    let models = Ensemble::new(start.clone(), Second::Always)?;
    let harmless = |row: &&Row| !row.is_harmful();
    // Look-alikes are made to be mistaken; what is ordinary is measured on the others.
    let ordinary = |row: &&Row| !row.categories.iter().any(|kind| kind == "benign_lookalike");
    let texts: Vec<&Row> = rows
        .iter()
        .filter(harmless)
        .filter(ordinary)
        .filter(|row| matches!(row.task.as_str(), "prompt" | "text"))
        .collect();
    let replies: Vec<&Row> =
        rows.iter().filter(harmless).filter(|row| row.task == "response").collect();
    let bar = ProgressBar::new((texts.len() + replies.len()) as u64);
    let measured = on_all_cores(&texts, |row| {
        let (folded, language) = plain_form(&row.said());
        let logits = models.both(&folded)?;
        bar.inc(1);
        Ok(Measured {
            group: group(language, &folded),
            request: logits.request,
            crisis: logits.crisis,
            injection: logits.injection,
            frame: logits.frame,
        })
    });
    let measured: Vec<Measured> = measured.into_iter().collect::<anyhow::Result<_>>()?;
    let answered = on_all_cores(&replies, |row| {
        let reply = row.response.as_deref().unwrap_or_default();
        let ((asked, _), (reply, language)) = (plain_form(&row.said()), plain_form(reply));
        bar.inc(1);
        Ok((group(language, &reply), models.both_of_reply(&asked, &reply)?))
    });
    let answered: Vec<(&str, ReplyLogits)> = answered.into_iter().collect::<anyhow::Result<_>>()?;
    bar.finish_and_clear();
    let of = |part: fn(&Measured) -> Pair| measured.iter().map(move |one| (one.group, part(one)));
    Ok(Calibration {
        request: meeting(&of(|one| one.request).collect::<Vec<_>>(), 1.0, &HARM),
        crisis: meeting(&of(|one| one.crisis).collect::<Vec<_>>(), CRISIS_FIRST, &CRISIS),
        injection: meeting(&of(|one| one.injection).collect::<Vec<_>>(), 1.0, &INJECTION),
        frame: meeting(&of(|one| one.frame).collect::<Vec<_>>(), 1.0, &FRAME),
        reply: meeting(&replied(&answered, |logits| logits.harm), 1.0, &HARM),
        manner: MannerFault::ALL
            .iter()
            .zip(0usize..)
            .map(|(fault, at)| {
                let pairs = replied(&answered, |logits| logits.faults[at]);
                (fault.as_str().to_owned(), meeting(&pairs, FAULT_FIRST, &HARM))
            })
            .collect(),
        ..start
    })
}

/// What both tiers say of a text of this group.
type Grouped = (&'static str, Pair);

fn replied(
    answered: &[(&'static str, ReplyLogits)],
    part: impl Fn(&ReplyLogits) -> Pair,
) -> Vec<Grouped> {
    answered.iter().map(|(group, logits)| (*group, part(logits))).collect()
}

fn meeting(pairs: &[Grouped], first_weight: f32, points: &[(f32, f32)]) -> Meeting {
    let mut meeting = Meeting { first_weight, second_weight: 1.0, ..Meeting::default() };
    let first = pairs.iter().map(|(group, (first, _))| (*group, *first)).collect();
    let both = pairs
        .iter()
        .filter_map(|(group, (first, second))| Some((*group, meeting.sum(*first, (*second)?))));
    let both = both.collect();
    meeting.first = curves(first, points);
    meeting.both = curves(both, points);
    meeting
}

fn curves(logits: Vec<(&'static str, f32)>, points: &[(f32, f32)]) -> BTreeMap<String, Curve> {
    let mut groups: BTreeMap<String, Vec<f32>> = BTreeMap::new();
    for (group, logit) in logits {
        let language = group.split('/').next().unwrap_or_default();
        for name in [group, language, "any"] {
            groups.entry(name.to_owned()).or_default().push(logit);
        }
    }
    groups.retain(|name, logits| name == "any" || logits.len() >= ENOUGH);
    groups.into_iter().map(|(name, logits)| (name, curve(logits, points))).collect()
}

fn curve(mut logits: Vec<f32>, points: &[(f32, f32)]) -> Curve {
    logits.sort_by(f32::total_cmp);
    let mut drawn: Vec<(f32, f32)> =
        points.iter().map(|&(share, score)| (quantile(&logits, share), score)).collect();
    for at in 1..drawn.len() {
        // Points that fall together are kept apart, so that the curve rises.
        drawn[at].0 = drawn[at].0.max(drawn[at - 1].0 + 1e-3);
    }
    if let Some(&(last, high)) = drawn.last() {
        drawn.push((last + BEYOND_LOGITS, high + BEYOND));
    }
    Curve::through(drawn.into_iter().map(|(logit, score)| (rounded(logit), score)).collect())
}

fn rounded(logit: f32) -> f32 {
    (logit * 1e4).round() / 1e4
}

/// The logit below which this share lies, with a straight line between neighbours.
fn quantile(sorted: &[f32], share: f32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "some thousand texts")]
    let place = share * sorted.len().saturating_sub(1) as f32;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the slice")]
    let below = place as usize;
    let (low, high) = (sorted.get(below), sorted.get(below + 1));
    match (low, high) {
        (Some(low), Some(high)) => low + (high - low) * place.fract(),
        (Some(low), None) => *low,
        _ => 0.0,
    }
}
