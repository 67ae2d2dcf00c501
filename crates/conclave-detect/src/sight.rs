//! What is seen in one text, through every disguise.
//!
//! **Invariant:** ordinary text is scanned once; another view of it is only made when a cheap test says
//! that it could matter.

use crate::combine::Seen;
use crate::fold::chars::is_emoji;
use crate::fold::{
    Folded, caesar, decode, fold, repair, reversed, rot13, rot13_word, tag_text, tags_in_place,
    without_signs_between,
};
use crate::language::identify;
use crate::matching::{Hit, apply_readings, find_hits};
use crate::pattern::{Book, Role, Rule};
use crate::scan::Scan;
use crate::{DriftMarks, Frame, Replacement, Signal, SignalKind};
use conclave_core::{Category, Score};
use serde::Serialize;

/// Longer texts are scanned in windows of this many bytes.
const WINDOW_BYTES: usize = 32 * 1024;
/// Neighbouring windows share this many bytes.
const OVERLAP_BYTES: usize = 512;
/// How much of a classifier's doubt about a message is left after the next one.
const DOUBT_KEPT: f32 = 0.5;
/// More signals say nothing new.
const SIGNALS_MAX: usize = 64;
/// How much of a text is looked at to tell how it is written.
const SAMPLE_BYTES: usize = 4096;
/// Shorter speech in a scene is not looked at by itself.
const SPOKEN_BYTES_MIN: usize = 16;
/// Hidden letters that hold fewer known words say nothing.
const HIDDEN_WORDS_MIN: usize = 2;
/// A view with a smaller share of known words is no language.
const CLEAR: f32 = 0.5;
/// By so much a view must be clearer than the text to stand for it.
const CLEARER: f32 = 0.25;
/// This many words of a turned alphabet make it worth turning.
const MARKERS: usize = 2;

/// What is seen in one text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sight {
    pub(crate) seen: Vec<Seen>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) replaced: Vec<Replacement>,
    pub(crate) disguises: Vec<&'static str>,
    pub(crate) language: &'static str,
    /// The plain form for a classifier, or what it says through a disguise that hides all of it.
    pub(crate) plain: String,
    /// What it says through disguises, for a classifier.
    pub(crate) unmasked: Vec<(&'static str, String)>,
    /// What somebody says in a scene that it sets.
    pub(crate) spoken: Option<String>,
    /// Whether it is about protection, or wants no method.
    pub(crate) careful: bool,
    /// What a classifier sees in it of slow movements.
    pub(crate) drift: DriftMarks,
    /// What patterns count for beside a classifier that knows meaning.
    pub(crate) pattern_shares: Option<PatternShares>,
}

/// What patterns that are not nearly certain count for, given what a classifier that knows meaning finds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PatternShares {
    /// Those of harm.
    pub harm: f32,
    /// Those of crisis.
    pub crisis: f32,
}

/// What one view showed.
#[derive(Default)]
struct Findings {
    hits: Vec<Hit>,
    replaced: Vec<crate::matching::Replaced>,
    frames: Vec<Frame>,
    roles: [usize; 6],
}

impl Sight {
    /// Looks at a text.
    pub(crate) fn of(book: &Book, text: &str) -> Self {
        let base = fold(text);
        let mut sight = Self { language: identify(&base.text), ..Self::default() };
        let findings = findings(book, &base.text);
        sight.take(book, &base, &findings, None);
        sight.note_traces(&base);
        for (name, view) in views(book, text, &base, &findings) {
            let findings = self::findings(book, &view.text);
            sight.take(book, &view, &findings, Some(name));
            sight.unmasked.push((name, view.text));
        }
        sight.plain = base.text;
        sight.clear(book);
        sight.careful = findings.count(Role::Careful) > 0;
        if findings.count(Role::Scene) > 0 {
            sight.spoken = spoken(&sight.plain).map(str::to_owned);
        }
        sight.seen.sort_by_key(|one| (one.signal.start, one.signal.end));
        sight.seen.truncate(SIGNALS_MAX);
        sight.frames.sort_unstable();
        sight.frames.dedup();
        sight
    }

    /// Keeps what a classifier can read. Where the text is gibberish beside what it says through a
    /// disguise, only that is its text; a view that is no language itself says nothing.
    fn clear(&mut self, book: &Book) {
        let clarity = |text: &str| book.vocabulary.clarity(sample(text));
        if self.unmasked.is_empty() {
            return;
        }
        let mut clearest = (clarity(&self.plain) + CLEARER, None);
        let mut kept = Vec::with_capacity(self.unmasked.len());
        for (name, text) in self.unmasked.drain(..) {
            let clear = clarity(&text);
            if clear >= CLEAR {
                if clear >= clearest.0 {
                    clearest = (clear, Some(kept.len()));
                }
                kept.push((name, text));
            }
        }
        if let (_, Some(at)) = clearest {
            self.plain = kept.swap_remove(at).1;
            self.language = identify(&self.plain);
        }
        self.unmasked = kept;
    }

    /// Adds what was seen in a later message, which begins at `offset`.
    pub(crate) fn absorb(&mut self, later: Self, offset: usize) {
        // A doubt about an earlier message fades; a pattern seen in it does not.
        for one in &mut self.seen {
            if one.signal.kind == SignalKind::Classifier {
                one.signal.weight = Score::new(one.signal.weight.get() * DOUBT_KEPT);
            }
        }
        self.seen.extend(later.seen.into_iter().map(|mut one| {
            one.signal.start += offset;
            one.signal.end += offset;
            one
        }));
        self.frames.extend(later.frames);
        self.frames.sort_unstable();
        self.frames.dedup();
        self.disguises.extend(later.disguises);
        self.language = later.language;
    }

    /// Adds only what could override instructions, for texts that are data; it has no place in the
    /// person's own words and points at their beginning.
    pub(crate) fn absorb_injection(&mut self, data: Self) {
        let injected = data.seen.into_iter().filter(|one| one.signal.category.is_about_injection());
        self.seen.extend(injected.map(|mut one| {
            (one.signal.start, one.signal.end) = (0, 0);
            one
        }));
    }

    /// Takes over what a view showed, unless a plainer view showed it already.
    fn take(
        &mut self,
        book: &Book,
        view: &Folded,
        found: &Findings,
        disguise: Option<&'static str>,
    ) {
        let before = self.seen.len();
        for hit in &found.hits {
            self.hit(book, view, *hit, disguise, before);
        }
        if let Some(name) = disguise.filter(|_| self.seen.len() > before) {
            self.disguises.push(name);
        }
        if disguise.is_none() {
            self.frames.extend(&found.frames);
            self.replaced.extend(found.replaced.iter().map(|one| replacement(view, one)));
        }
    }

    fn hit(
        &mut self,
        book: &Book,
        view: &Folded,
        hit: Hit,
        disguise: Option<&'static str>,
        before: usize,
    ) {
        let rule = &book.rules[hit.rule];
        let (start, end) = view.span(hit.start, hit.end);
        let source = match disguise {
            Some(name) => format!("{} through {name}", rule.source),
            None => rule.source.clone(),
        };
        for &category in &rule.categories {
            let plain = disguise.is_some()
                && self.seen[..before].iter().any(|one| one.signal.source == rule.source);
            if !plain && !self.widen(&source, category, start, end) {
                let signal = Signal {
                    kind: kind_of_signal(rule, disguise),
                    category,
                    start,
                    end,
                    weight: rule.class.weight(),
                    source: source.clone(),
                };
                self.seen.push(Seen { signal, howto: hit.howto, is_own: rule.is_own });
            }
        }
    }

    /// Widens the signal of the same rule at the same words, if there is one.
    fn widen(&mut self, source: &str, category: Category, start: usize, end: usize) -> bool {
        let same = |one: &&mut Seen| {
            let signal = &one.signal;
            signal.source == source
                && signal.category == category
                && signal.start < end
                && start < signal.end
        };
        let Some(one) = self.seen.iter_mut().find(same) else {
            return false;
        };
        one.signal.start = one.signal.start.min(start);
        one.signal.end = one.signal.end.max(end);
        true
    }

    /// Hidden letters are a small sign of an attempt to smuggle, whatever they say.
    fn note_traces(&mut self, base: &Folded) {
        let traces = base.traces;
        if traces.hidden_in_words > 0 {
            self.disguises.push("zero-width");
        }
        if traces.mixed_words > 0 {
            self.disguises.push("look-alike");
        }
        if traces.tags >= 4 {
            let (start, end) = base.span(0, base.text.len());
            // By itself a doubt, because some editors leave such letters behind.
            let weight = Score::from_hundredths(45);
            let signal = Signal {
                kind: SignalKind::Disguise,
                category: Category::Injection,
                start,
                end,
                weight,
                source: "any/injection/hidden-text".into(),
            };
            self.seen.push(Seen { signal, howto: false, is_own: false });
        }
    }
}

/// A hint stays one through a disguise: hiding ordinary words does not make them say more.
fn kind_of_signal(rule: &Rule, disguise: Option<&str>) -> SignalKind {
    match disguise {
        _ if rule.hint => SignalKind::Hint,
        Some(_) => SignalKind::Disguise,
        None => SignalKind::Pattern,
    }
}

fn replacement(view: &Folded, one: &crate::matching::Replaced) -> Replacement {
    let (start, end) = view.span(one.start, one.end);
    Replacement {
        reading: one.kind.clone(),
        source: one.source.clone(),
        start,
        end,
        quote: view.text.get(one.start..one.end).unwrap_or_default().to_owned(),
    }
}

/// What somebody says in a scene: the longest words between quotation marks, or what follows a colon.
fn spoken(text: &str) -> Option<&str> {
    let quoted = text.split(['"', '「', '」', '\n']).skip(1);
    let quoted = quoted.filter(|said| !said.contains(": ")).max_by_key(|said| said.len());
    let after_colon = text.split_once(": ").map(|(_, said)| said.lines().next().unwrap_or(said));
    let long_enough = |said: &&str| said.len() >= SPOKEN_BYTES_MIN;
    quoted.filter(long_enough).or(after_colon.filter(long_enough))
}

/// Every other way to look at the text that could matter.
fn views(
    book: &Book,
    text: &str,
    base: &Folded,
    findings: &Findings,
) -> Vec<(&'static str, Folded)> {
    let mut views = Vec::new();
    let words = &book.vocabulary;
    let pictures = !text.is_ascii() && base.text.chars().filter(|c| is_emoji(*c)).nth(2).is_some();
    let swaps = words.sees_swapped(sample(&base.text));
    if base.traces.repairable || pictures || swaps {
        views.extend(repair(base, words, swaps).map(|view| ("respelling", view)));
    }
    if base.traces.repairable || pictures {
        views.extend(without_signs_between(text).map(|view| ("respelling", view)));
    }
    if let Some((view, names)) = decode(text, words) {
        let name = names.first().copied().unwrap_or("code");
        views.extend(repair(&view, words, false).map(|view| (name, view)));
        views.push((name, view));
    }
    if !text.is_ascii() {
        let says_something = |view: &Folded| words.known_words(&view.text) >= HIDDEN_WORDS_MIN;
        views.extend(tag_text(text).filter(says_something).map(|view| ("hidden", view)));
        let is_clear = |view: &Folded| words.clarity(sample(&view.text)) >= CLEAR;
        views.extend(tags_in_place(text).filter(is_clear).map(|view| ("hidden", view)));
    }
    let straight = sample(&base.text);
    let turned_round = |word: &str, out: &mut String| out.extend(word.chars().rev());
    if findings.count(Role::Rot13) >= MARKERS || words.is_turned(straight, rot13_word) {
        views.push(("rot13", rot13(base)));
    }
    if findings.count(Role::Reversed) >= MARKERS
        || words.is_turned(straight, turned_round)
        || begins_with_its_end(text)
    {
        views.push(("reversed", reversed(base)));
    }
    if findings.count(Role::Cipher) > 0 && base.text.len() <= 4096 {
        views.extend(best_shift(book, base).map(|view| ("cipher", view)));
    }
    views
}

/// Whether a text begins with the sign that ends sentences, as one does that stands backwards.
fn begins_with_its_end(text: &str) -> bool {
    let ends = |c: char| matches!(c, '?' | '!' | '.' | '？' | '！' | '。' | '؟' | '।');
    let mut chars = text.trim().chars();
    chars.next().is_some_and(ends)
        && chars.next().is_some_and(char::is_alphabetic)
        && !chars.next_back().is_some_and(ends)
}

/// The beginning of a text, long enough to tell how it is written.
fn sample(text: &str) -> &str {
    &text[..boundary(text, text.len().min(SAMPLE_BYTES))]
}

/// The shift of the alphabet that makes the most known words out of unknown ones.
fn best_shift(book: &Book, base: &Folded) -> Option<Folded> {
    let known = |folded: &Folded| {
        let words = folded.text.split(|c: char| !c.is_ascii_alphabetic());
        words.filter(|word| word.len() > 2 && book.vocabulary.knows(word)).count()
    };
    (1..=26)
        .map(|shift| caesar(base, shift))
        .map(|view| (known(&view), view))
        .max_by_key(|(known, _)| *known)
        .filter(|(known, _)| *known >= MARKERS)
        .map(|(_, view)| view)
}

impl Findings {
    fn count(&self, role: Role) -> usize {
        self.roles[role as usize]
    }
}

/// Scans a folded text, window by window.
fn findings(book: &Book, text: &str) -> Findings {
    let mut findings = Findings::default();
    let mut start = 0;
    while start < text.len() {
        let end = boundary(text, (start + WINDOW_BYTES).min(text.len()));
        let mut scan = Scan::new(book, &text[start..end]);
        for &(concept, role) in &book.roles {
            findings.roles[role as usize] += scan.of(concept).len();
        }
        let replaced = apply_readings(book, &mut scan);
        let frames = book.frames.iter().filter(|(concept, _)| scan.has(*concept));
        findings.frames.extend(frames.map(|(_, frame)| *frame));
        let room = SIGNALS_MAX.saturating_sub(findings.replaced.len());
        findings.replaced.extend(replaced.into_iter().take(room).map(|mut one| {
            (one.start, one.end) = (one.start + start, one.end + start);
            one
        }));
        let room = (SIGNALS_MAX * 4).saturating_sub(findings.hits.len());
        findings.hits.extend(find_hits(book, &scan).into_iter().take(room).map(|mut hit| {
            (hit.start, hit.end) = (hit.start + start, hit.end + start);
            hit
        }));
        if end == text.len() {
            break;
        }
        start = boundary(text, end - OVERLAP_BYTES);
    }
    findings
}

/// The nearest character boundary at or before a byte.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}
