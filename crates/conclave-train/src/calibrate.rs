//! From what the tiers say to scores: what each tier counts, learned from rows that trained none of them; and at
//! which sum so many harmless texts of a group lie below.
//!
//! **Invariant:** a score says the same everywhere: three tenths are reached by seven in a thousand
//! ordinary texts of each group that has enough of them.

use crate::combine::{Answer, fit_weights};
use crate::cores::on_all_cores;
use crate::examples::SourceWeights;
use crate::rows::Row;
use conclave_classify::{
    Calibration, Curve, Ensemble, Joint, Question, ReplyLogits, SlowTiers, TextLogits, TierLogits,
    group,
};
use conclave_detect::{MannerFault, plain_form};
use indicatif::ProgressBar;
use std::collections::BTreeMap;
use std::io::Write;

/// The share of harmless texts that lie below, and the score there; for harm of a text. At three tenths a text is
/// looked at with care, at six tenths it is refused.
const HARM: [(f32, f32); 9] = [
    (0.0, 0.0),
    (0.50, 0.01),
    (0.80, 0.03),
    (0.90, 0.07),
    (0.95, 0.10),
    (0.97, 0.13),
    (0.98, 0.30),
    (0.99, 0.42),
    (0.997, 0.57),
];
/// The same for a reply, which is withheld where a text would only be looked at with care.
const REPLY: [(f32, f32); 10] = [
    (0.0, 0.0),
    (0.50, 0.01),
    (0.80, 0.02),
    (0.90, 0.04),
    (0.95, 0.06),
    (0.98, 0.10),
    (0.987, 0.16),
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
    (0.97, 0.10),
    (0.98, 0.25),
    (0.993, 0.50),
];
/// Grief, tiredness and idiom sound like danger: so many of the corpus's rows that do must lie below as well, by
/// score.
const SOUNDS_LIKE_CRISIS: [(f32, f32); 3] = [(0.70, 0.10), (0.82, 0.25), (0.91, 0.50)];

/// From which score of the quicker tiers on the transformer is asked: for requests, for crisis, for the other
/// questions about texts, and for replies.
const OPEN_REQUEST: f32 = 0.05;
const OPEN_CRISIS: f32 = 0.02;
const OPEN_OTHER: f32 = 0.10;
const OPEN_REPLY: f32 = 0.04;
/// A group with fewer harmless texts is measured with the rest of its language, or with all.
const ENOUGH: usize = 120;
/// The same for replies of one length: of the few that were collected, one or two would draw the upper points.
const ENOUGH_REPLIES_OF_A_LENGTH: usize = 400;
/// Beyond the last point the score rises by so much again, over a wide distance: what is worse than nearly
/// all harmless texts should still be told apart.
const BEYOND: f32 = 0.14;
/// How wide that distance is, in logits.
const BEYOND_LOGITS: f32 = 6.0;

/// One row with what every tier says of it.
struct Measured<'a, T> {
    row: &'a Row,
    group: &'static str,
    logits: T,
}

/// Learns what each tier counts and draws the curves, from rows that trained none of the tiers. What every tier
/// says of every row goes to `tiers`, one JSON object a line.
///
/// # Errors
/// When the built-in weights cannot be read.
pub fn calibrate(rows: &[Row], tiers: Option<&mut dyn Write>) -> anyhow::Result<Calibration> {
    let models = Ensemble::new(Calibration::default(), SlowTiers::Always)?;
    let bar = ProgressBar::new(rows.len() as u64);
    let measured = Measurements::of(&models, rows, &bar)?;
    bar.finish_and_clear();
    if let Some(out) = tiers {
        measured.write(out)?;
    }
    let weights = SourceWeights::count(rows);
    let text = |name: &'static str, part: fn(&TextLogits) -> TierLogits, open_from, points| {
        let learn = measured.texts.iter().filter_map(|one| {
            Some(Answer {
                group: one.group,
                logits: part(&one.logits),
                harmful: target(&one.row.text_targets()?, &crate::rows::TEXT_OUTPUTS, name)?,
                weight: weights.weight_of(one.row),
            })
        });
        let harmless = measured.texts.iter().filter(|one| is_ordinary(one.row));
        let harmless: Vec<_> = harmless.map(|one| (one.group, part(&one.logits))).collect();
        question(&learn.collect::<Vec<_>>(), &harmless, open_from, points, ENOUGH)
    };
    let reply = |name: &str, part: &dyn Fn(&ReplyLogits) -> TierLogits| {
        let learn = measured.replies.iter().filter_map(|one| {
            Some(Answer {
                group: one.group,
                logits: part(&one.logits),
                harmful: target(&one.row.reply_targets()?, &crate::rows::REPLY_OUTPUTS, name)?,
                weight: weights.weight_of(one.row),
            })
        });
        let harmless = measured.replies.iter().filter(|one| !one.row.is_harmful());
        let harmless: Vec<_> = harmless.map(|one| (one.group, part(&one.logits))).collect();
        question(
            &learn.collect::<Vec<_>>(),
            &harmless,
            OPEN_REPLY,
            &REPLY,
            ENOUGH_REPLIES_OF_A_LENGTH,
        )
    };
    let mut crisis = text("crisis", |logits| logits.crisis, OPEN_CRISIS, &CRISIS);
    let alike: Vec<_> = measured
        .texts
        .iter()
        .filter(|one| one.row.task == "crisis" && !one.row.is_harmful())
        .filter(|one| one.row.source.starts_with("corpus_"))
        .map(|one| (one.group, one.logits.crisis))
        .collect();
    for stage in Stage::ALL {
        raise_curves(stage.of(&mut crisis), stage, &alike);
    }
    let manner = MannerFault::ALL.into_iter().map(|fault| {
        let name = fault.as_str();
        (name.to_owned(), reply(name, &|logits| logits.faults[fault as usize]))
    });
    Ok(Calibration {
        request: text("request", |logits| logits.request, OPEN_REQUEST, &HARM),
        crisis,
        injection: text("injection", |logits| logits.injection, OPEN_OTHER, &INJECTION),
        frame: text("jailbreak", |logits| logits.frame, OPEN_OTHER, &FRAME),
        reply: reply("reply", &|logits| logits.harm),
        manner: manner.collect(),
    })
}

/// Look-alikes are made to be mistaken; what is ordinary is measured on the others.
fn is_ordinary(row: &Row) -> bool {
    !row.is_harmful()
        && !row.is("benign_lookalike")
        && matches!(row.task.as_str(), "prompt" | "text")
}

fn target(targets: &[Option<bool>], outputs: &[&str], name: &str) -> Option<bool> {
    outputs.iter().zip(targets).find(|(output, _)| **output == name).and_then(|(_, target)| *target)
}

/// What every tier says of every row.
struct Measurements<'a> {
    texts: Vec<Measured<'a, TextLogits>>,
    replies: Vec<Measured<'a, ReplyLogits>>,
}

impl<'a> Measurements<'a> {
    fn write(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let said = |logits: TierLogits| {
            let TierLogits { ngrams, encoder, depth } = logits;
            serde_json::json!({ "ngrams": ngrams, "encoder": encoder, "depth": depth })
        };
        for Measured { row, group, logits } in &self.texts {
            let TextLogits { request, crisis, injection, frame } = *logits;
            let line = serde_json::json!({
                "id": row.id, "group": group, "request": said(request), "crisis": said(crisis),
                "injection": said(injection), "frame": said(frame),
            });
            writeln!(out, "{line}")?;
        }
        for Measured { row, group, logits } in &self.replies {
            let faults: BTreeMap<_, _> = MannerFault::ALL
                .into_iter()
                .map(|fault| (fault.as_str(), said(logits.faults[fault as usize])))
                .collect();
            let line = serde_json::json!({
                "id": row.id, "group": group, "reply": said(logits.harm), "faults": faults,
            });
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn of(models: &Ensemble, rows: &'a [Row], bar: &ProgressBar) -> anyhow::Result<Self> {
        let texts: Vec<&Row> = rows.iter().filter(|row| row.text_targets().is_some()).collect();
        let texts = on_all_cores(&texts, |row| {
            let (folded, language) = plain_form(&row.said());
            bar.inc(1);
            let logits = models.all_of_text(&folded, language)?;
            Ok(Measured { row, group: group(language, &folded), logits })
        });
        let replies: Vec<&Row> = rows.iter().filter(|row| row.reply_targets().is_some()).collect();
        let replies = on_all_cores(&replies, |row| {
            let asked = plain_form(&row.said()).0;
            let (reply, language) = plain_form(row.response.as_deref().unwrap_or_default());
            bar.inc(1);
            let logits = models.all_of_reply(&asked, &reply, language)?;
            Ok(Measured { row, group: group(language, &reply), logits })
        });
        Ok(Self {
            texts: texts.into_iter().collect::<anyhow::Result<_>>()?,
            replies: replies.into_iter().collect::<anyhow::Result<_>>()?,
        })
    }
}

fn question(
    learn: &[Answer],
    harmless: &[(&'static str, TierLogits)],
    open_from: f32,
    points: &[(f32, f32)],
    enough_of_a_length: usize,
) -> Question {
    let joint = |stage: Stage| {
        let answers = learn
            .iter()
            .filter_map(|answer| Some(Answer { logits: stage.asked(answer.logits)?, ..*answer }));
        let weights = fit_weights(&answers.collect::<Vec<_>>());
        let joint = Joint { weights, ..Joint::default() };
        let enough = stage.enough_of_a_length(enough_of_a_length);
        Joint { curves: curves(sums(&joint, stage, harmless), points, enough), ..joint }
    };
    Question {
        open_from,
        one: joint(Stage::Ngrams),
        two: joint(Stage::Encoder),
        three: joint(Stage::Depth),
    }
}

/// Which tiers were asked.
#[derive(Clone, Copy)]
enum Stage {
    Ngrams,
    Encoder,
    Depth,
}

impl Stage {
    const ALL: [Self; 3] = [Self::Ngrams, Self::Encoder, Self::Depth];

    /// What the tiers of this stage say, where they all could be asked.
    fn asked(self, logits: TierLogits) -> Option<TierLogits> {
        match self {
            Self::Ngrams => Some(TierLogits { encoder: None, depth: None, ..logits }),
            Self::Encoder => Some(TierLogits { depth: None, ..logits }),
            Self::Depth => logits.depth.map(|_| logits),
        }
    }

    /// How many harmless texts of one length have a curve of their own. Who counts words says more of a longer text;
    /// who knows meaning does not, and one curve for all lengths keeps texts of different lengths in order.
    const fn enough_of_a_length(self, of_ngrams: usize) -> usize {
        match self {
            Self::Ngrams => of_ngrams,
            Self::Encoder | Self::Depth => usize::MAX,
        }
    }

    const fn of(self, question: &mut Question) -> &mut Joint {
        match self {
            Self::Ngrams => &mut question.one,
            Self::Encoder => &mut question.two,
            Self::Depth => &mut question.three,
        }
    }
}

fn sums(
    joint: &Joint,
    stage: Stage,
    texts: &[(&'static str, TierLogits)],
) -> Vec<(&'static str, f32)> {
    let sum = |(group, logits): &(&'static str, TierLogits)| {
        Some((*group, joint.weights_of(group).sum(&stage.asked(*logits)?)))
    };
    texts.iter().filter_map(sum).collect()
}

/// Moves the upper points of crisis up where texts that only sound like it lie higher than ordinary ones.
fn raise_curves(joint: &mut Joint, stage: Stage, alike: &[(&'static str, TierLogits)]) {
    let mut by_language: BTreeMap<&str, Vec<f32>> = BTreeMap::new();
    for (group, sum) in sums(joint, stage, alike) {
        for name in [group.split('/').next().unwrap_or_default(), "any"] {
            by_language.entry(name).or_default().push(sum);
        }
    }
    for (name, curve) in &mut joint.curves {
        let language = name.split('/').next().unwrap_or_default();
        if let Some(logits) = by_language.get_mut(language) {
            logits.sort_by(f32::total_cmp);
            let least: Vec<_> = SOUNDS_LIKE_CRISIS
                .iter()
                .map(|&(share, score)| (quantile(logits, share), score))
                .collect();
            *curve = curve.raised(&least);
        }
    }
}

fn curves(
    logits: Vec<(&'static str, f32)>,
    points: &[(f32, f32)],
    enough_of_a_length: usize,
) -> BTreeMap<String, Curve> {
    let mut groups: BTreeMap<String, Vec<f32>> = BTreeMap::new();
    for (group, logit) in logits {
        let language = group.split('/').next().unwrap_or_default();
        for name in [group, language, "any"] {
            groups.entry(name.to_owned()).or_default().push(logit);
        }
    }
    groups.retain(|name, logits| {
        let enough = if name.contains('/') { enough_of_a_length } else { ENOUGH };
        name == "any" || logits.len() >= enough
    });
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
