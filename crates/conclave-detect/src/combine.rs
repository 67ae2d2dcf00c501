//! From signals to scores.
//!
//! **Invariant:** crisis and injection never count in harm; asking how never counts at the floor; a
//! classifier alone stays below the floor, and so do hints, with or without one.

use crate::classifier::CLASSIFIER_CAP;
use crate::{Reading, Signal, SignalKind};
use conclave_core::{Category, FLOOR, Score};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What the strongest, second, ... independent signal of one category counts.
const HARM_SHARES: &[f32] = &[1.0, 0.5, 0.25];
/// The same for crisis, where hints add up.
const CRISIS_SHARES: &[f32] = &[1.0, 0.7, 0.5, 0.35, 0.25];
/// The same for injection.
const INJECTION_SHARES: &[f32] = &[1.0, 0.7, 0.5];
/// What the second gravest category adds.
const SECOND_CATEGORY: f32 = 0.2;
/// What asking how to do it makes of harm.
pub(crate) const HOWTO_FACTOR: f32 = 1.5;
/// From this injection on, in hundredths, a text tries to override instructions.
const OVERRIDES_FROM: u8 = 50;
/// What that makes of a classifier's suspicion.
const OVERRIDE_FACTOR: f32 = 2.0;
/// Up to here a factor counts in full. Above it the most that a score can be comes nearer ever more slowly, so that
/// what is worse is still told apart.
const FULL_HARM: f32 = 0.9;
/// The same for what a classifier suspects, which has a lower most.
const FULL_SUSPICION: f32 = 0.6;
/// A signal below this is too faint to be amplified.
const AMPLIFIABLE: f32 = 0.2;
/// A pattern from here on is enough for the floor by itself.
const FLOOR_PATTERN: f32 = 0.6;

/// The most that hints alone make of harm, in hundredths: below the strictest line.
const HINT_CAP_HARM: u8 = 12;
/// The same for crisis and for injection: below care and far below the line.
const HINT_CAP_OTHER: u8 = 20;
/// From here on, a signal that is no hint lets the hints beside it count in full.
const SUPPORTS_HINTS: f32 = 0.3;

/// A signal, and whether the text asks how to do it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) signal: Signal,
    pub(crate) howto: bool,
    /// Whether a rule of one's own saw it.
    pub(crate) is_own: bool,
}

/// The scores that follow from signals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scores {
    pub(crate) harm: Score,
    pub(crate) harm_unamplified: Score,
    pub(crate) crisis: Score,
    pub(crate) injection: Score,
    pub(crate) categories: BTreeMap<Category, Score>,
    pub(crate) floor: bool,
}

impl Scores {
    /// Combines signals.
    pub(crate) fn of(seen: &[Seen]) -> Self {
        let seen = &*restrain_hints(seen);
        let injection = joined(seen, Category::is_about_injection, INJECTION_SHARES);
        let seen = &*emboldened(seen);
        let categories = categories(seen);
        let harm_unamplified = harm(&categories);
        let howto = seen.iter().any(|one| one.howto && amplifiable(&one.signal));
        let factor = if howto { HOWTO_FACTOR } else { 1.0 };
        Self {
            harm: Score::new(nearing(harm_unamplified.get() * factor, FULL_HARM, 1.0))
                .max(harm_unamplified),
            harm_unamplified,
            crisis: joined(seen, Category::is_about_crisis, CRISIS_SHARES),
            injection,
            floor: reaches_floor(harm_unamplified, seen),
            categories,
        }
    }

    /// Writes the scores into a reading.
    pub(crate) fn fill(self, reading: &mut Reading) {
        reading.harm = self.harm;
        reading.harm_unamplified = self.harm_unamplified;
        reading.crisis = self.crisis;
        reading.injection = self.injection;
        reading.categories = self.categories;
        reading.floor = self.floor;
    }
}

/// Where nothing else supports them, the hints of one score count as a single signal with a cap, which is
/// too faint to be amplified.
fn restrain_hints(seen: &[Seen]) -> Cow<'_, [Seen]> {
    if !seen.iter().any(is_hint) {
        return Cow::Borrowed(seen);
    }
    let mut kept = seen.to_vec();
    restrain_hints_of(is_harm, HINT_CAP_HARM, &mut kept);
    restrain_hints_of(Category::is_about_crisis, HINT_CAP_OTHER, &mut kept);
    restrain_hints_of(Category::is_about_injection, HINT_CAP_OTHER, &mut kept);
    Cow::Owned(kept)
}

/// Leaves of the unsupported hints of one score only the strongest, the first of equals, at no more than
/// the cap.
fn restrain_hints_of(belongs: fn(Category) -> bool, cap: u8, seen: &mut Vec<Seen>) {
    let weight = |one: &Seen| one.signal.weight.get();
    let counts = |one: &Seen| belongs(one.signal.category);
    let supports = |one: &Seen| !is_hint(one) && counts(one) && weight(one) >= SUPPORTS_HINTS;
    if seen.iter().any(supports) {
        return;
    }
    let hints = seen.iter().filter(|one| is_hint(one) && counts(one));
    let strongest = hints.map(weight).fold(0.0, f32::max);
    let mut is_kept = false;
    seen.retain_mut(|one| {
        if !is_hint(one) || !counts(one) {
            return true;
        }
        let keeps = !is_kept && weight(one) >= strongest;
        is_kept |= keeps;
        one.signal.weight = one.signal.weight.min(Score::from_hundredths(cap));
        keeps
    });
}

fn is_hint(one: &Seen) -> bool {
    one.signal.kind == SignalKind::Hint
}

/// Who talks a model out of its rules, as patterns see it, has a reason: what a classifier suspects then
/// counts more, up to its cap.
fn emboldened(seen: &[Seen]) -> Cow<'_, [Seen]> {
    let by_classifier = |one: &Seen| one.signal.kind == SignalKind::Classifier;
    let tries =
        seen.iter().filter(|one| !by_classifier(one) && one.signal.category.is_about_injection());
    let overrides = noisy_or(tries.map(|one| &one.signal).collect(), INJECTION_SHARES);
    if overrides.hundredths() < OVERRIDES_FROM {
        return Cow::Borrowed(seen);
    }
    let mut seen = seen.to_vec();
    let suspected = |one: &&mut Seen| by_classifier(one) && is_harm(one.signal.category);
    for one in seen.iter_mut().filter(suspected) {
        let most = Score::from_hundredths(CLASSIFIER_CAP).get();
        let more = nearing(one.signal.weight.get() * OVERRIDE_FACTOR, FULL_SUSPICION, most);
        one.signal.weight = Score::new(more).max(one.signal.weight);
    }
    Cow::Owned(seen)
}

/// The value itself up to `full`, from there on ever nearer to `most` without reaching it.
fn nearing(value: f32, full: f32, most: f32) -> f32 {
    let room = most - full;
    if value <= full { value } else { most - room * (-(value - full) / room).exp() }
}

/// Whether a category counts in harm.
pub(crate) fn is_harm(category: Category) -> bool {
    !category.is_about_crisis() && !category.is_about_injection()
}

fn amplifiable(signal: &Signal) -> bool {
    is_harm(signal.category) && signal.weight.get() >= AMPLIFIABLE
}

fn categories(seen: &[Seen]) -> BTreeMap<Category, Score> {
    let mut grouped: BTreeMap<Category, Vec<&Signal>> = BTreeMap::new();
    for one in seen {
        grouped.entry(one.signal.category).or_default().push(&one.signal);
    }
    grouped
        .into_iter()
        .map(|(category, signals)| {
            let shares = if category.is_about_crisis() {
                CRISIS_SHARES
            } else if category.is_about_injection() {
                INJECTION_SHARES
            } else {
                HARM_SHARES
            };
            (category, noisy_or(signals, shares))
        })
        .collect()
}

fn harm(categories: &BTreeMap<Category, Score>) -> Score {
    let mut scores: Vec<f32> = categories
        .iter()
        .filter(|(category, _)| is_harm(**category))
        .map(|(_, score)| score.get())
        .collect();
    scores.sort_by(|a, b| b.total_cmp(a));
    let first = scores.first().copied().unwrap_or(0.0);
    let second = scores.get(1).copied().unwrap_or(0.0);
    Score::new(1.0 - (1.0 - first) * (1.0 - SECOND_CATEGORY * second))
}

fn joined(seen: &[Seen], belongs: fn(Category) -> bool, shares: &[f32]) -> Score {
    let signals = seen.iter().map(|one| &one.signal).filter(|signal| belongs(signal.category));
    noisy_or(signals.collect(), shares)
}

/// Independent signals add up, each counting less than the one before.
fn noisy_or(mut signals: Vec<&Signal>, shares: &[f32]) -> Score {
    signals.sort_by(|a, b| b.weight.get().total_cmp(&a.weight.get()));
    let mut kept: Vec<&Signal> = Vec::with_capacity(shares.len());
    let mut rest = 1.0;
    for signal in signals {
        let Some(share) = shares.get(kept.len()) else {
            break;
        };
        if kept.iter().all(|other| independent(other, signal)) {
            rest *= 1.0 - share * signal.weight.get();
            kept.push(signal);
        }
    }
    Score::new(1.0 - rest)
}

/// Two signals are independent when they are not about the same words, or not of the same kind. A
/// classifier's doubts about one message and the next are one doubt.
fn independent(a: &Signal, b: &Signal) -> bool {
    match (a.kind == SignalKind::Classifier, b.kind == SignalKind::Classifier) {
        (true, true) => false,
        (false, false) => a.end <= b.start || b.end <= a.start,
        _ => true,
    }
}

fn reaches_floor(harm: Score, seen: &[Seen]) -> bool {
    let counts = |one: &&Seen| is_harm(one.signal.category) && !is_hint(one);
    let counted: Vec<&Signal> = seen.iter().filter(counts).map(|one| &one.signal).collect();
    let grave = counted.iter().any(|signal| {
        signal.kind != SignalKind::Classifier && signal.weight.get() >= FLOOR_PATTERN
    });
    let two = counted
        .iter()
        .enumerate()
        .any(|(at, a)| counted[at + 1..].iter().take(64).any(|b| independent(a, b)));
    harm.hundredths() >= FLOOR && (grave || two)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(category: Category, weight: u8, start: usize, kind: SignalKind) -> Seen {
        Seen {
            signal: Signal {
                kind,
                category,
                start,
                end: start + 4,
                weight: Score::from_hundredths(weight),
                source: "test".into(),
            },
            howto: false,
            is_own: false,
        }
    }

    fn pattern(category: Category, weight: u8, start: usize) -> Seen {
        seen(category, weight, start, SignalKind::Pattern)
    }

    #[test]
    fn each_score_keeps_to_its_own_categories() {
        let scores = Scores::of(&[
            pattern(Category::CrisisSuicide, 100, 0),
            pattern(Category::Jailbreak, 60, 10),
        ]);
        assert_eq!(scores.harm, Score::ZERO);
        assert_eq!(scores.crisis, Score::ONE);
        assert_eq!(scores.injection.hundredths(), 60);
        assert!(!scores.floor);
    }

    #[test]
    fn the_same_words_count_once_and_other_words_count_less() {
        let same =
            Scores::of(&[pattern(Category::Violence, 60, 0), pattern(Category::Violence, 60, 2)]);
        assert_eq!(same.harm.hundredths(), 60);
        let apart =
            Scores::of(&[pattern(Category::Violence, 60, 0), pattern(Category::Violence, 60, 9)]);
        assert_eq!(apart.harm.hundredths(), 72);
        assert!(apart.floor);
    }

    #[test]
    fn asking_how_amplifies_but_never_at_the_floor() {
        let mut one = pattern(Category::Weapons, 60, 0);
        one.howto = true;
        let scores = Scores::of(&[one]);
        assert_eq!(scores.harm.hundredths(), 90);
        assert_eq!(scores.harm_unamplified.hundredths(), 60);
        assert!(!scores.floor);
    }

    #[test]
    fn what_is_worse_is_told_apart_however_much_it_is_amplified() {
        let amplified = |weight| {
            let mut one = pattern(Category::Weapons, weight, 0);
            one.howto = true;
            Scores::of(&[one]).harm.get()
        };
        assert!(amplified(70) > amplified(60) && amplified(80) > amplified(70));
        let emboldened = |weight| {
            let override_ = pattern(Category::Jailbreak, 60, 0);
            Scores::of(&[override_, seen(Category::Fraud, weight, 0, SignalKind::Classifier)])
        };
        assert!(emboldened(50).harm > emboldened(40).harm);
        assert!(emboldened(69).harm.hundredths() <= CLASSIFIER_CAP);
    }

    #[test]
    fn a_classifier_needs_company_to_reach_the_floor() {
        let alone = Scores::of(&[seen(Category::Violence, 69, 0, SignalKind::Classifier)]);
        assert!(!alone.floor);
        let together = Scores::of(&[
            seen(Category::Violence, 69, 0, SignalKind::Classifier),
            pattern(Category::Violence, 30, 0),
        ]);
        assert!(together.floor);
    }

    fn hint(category: Category, weight: u8, start: usize) -> Seen {
        Seen { howto: true, ..seen(category, weight, start, SignalKind::Hint) }
    }

    #[test]
    fn hints_alone_stay_below_every_line_however_many_and_however_asked() {
        let scores = Scores::of(&[
            hint(Category::Violence, 100, 0),
            hint(Category::Violence, 60, 10),
            hint(Category::Fraud, 60, 20),
            hint(Category::CrisisSuicide, 100, 30),
            hint(Category::CrisisDistress, 60, 40),
            hint(Category::Jailbreak, 100, 50),
            hint(Category::Injection, 60, 60),
        ]);
        assert_eq!(scores.harm.hundredths(), 12);
        assert_eq!(scores.harm_unamplified.hundredths(), 12);
        assert_eq!(scores.crisis.hundredths(), 20);
        assert_eq!(scores.injection.hundredths(), 20);
        assert!(!scores.floor);
    }

    #[test]
    fn a_hint_fainter_than_the_cap_is_not_raised_to_it() {
        assert_eq!(Scores::of(&[hint(Category::Violence, 10, 0)]).harm.hundredths(), 10);
    }

    #[test]
    fn a_hint_counts_in_full_beside_a_signal_of_the_same_score() {
        for other in [
            pattern(Category::Fraud, 30, 20),
            seen(Category::Fraud, 30, 20, SignalKind::Classifier),
        ] {
            let scores = Scores::of(&[hint(Category::Violence, 60, 0), other]);
            assert_eq!(scores.harm_unamplified.hundredths(), 62);
            assert_eq!(scores.harm.hundredths(), 93);
        }
    }

    #[test]
    fn faint_signals_and_those_of_another_score_support_no_hint() {
        let faint =
            Scores::of(&[hint(Category::Violence, 60, 0), pattern(Category::Violence, 20, 20)]);
        assert_eq!(faint.harm.hundredths(), 25, "a hint only adds its capped part");
        let other = Scores::of(&[
            hint(Category::Violence, 60, 0),
            pattern(Category::CrisisSuicide, 100, 20),
            pattern(Category::Injection, 60, 40),
        ]);
        assert_eq!(other.harm.hundredths(), 12);
    }

    #[test]
    fn a_hint_is_neither_grave_nor_a_second_signal_at_the_floor() {
        let scores = Scores::of(&[
            hint(Category::Violence, 100, 0),
            seen(Category::Violence, 69, 0, SignalKind::Classifier),
        ]);
        assert_eq!(scores.harm_unamplified, Score::ONE);
        assert!(!scores.floor);
        let scores =
            Scores::of(&[hint(Category::Violence, 60, 0), pattern(Category::Violence, 60, 20)]);
        assert!(scores.floor, "what is no hint is grave by itself");
    }

    #[test]
    fn a_hint_of_an_override_does_not_double_what_a_classifier_suspects() {
        let scores = Scores::of(&[
            hint(Category::Injection, 100, 0),
            seen(Category::Violence, 20, 0, SignalKind::Classifier),
        ]);
        assert_eq!(scores.harm.hundredths(), 20);
    }
}
