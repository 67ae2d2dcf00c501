//! The passages of a reply that have something against them.
//!
//! A cruel sentence between kind ones is still said to somebody. Judged as one text, its neighbours speak
//! for it: they make the text long, they offer help, and to a trained model the whole looks gentle.
//!
//! **Invariant:** a reply in which no rule sees anything adverse costs nothing more.
//! **Invariant:** an action without words is judged by whoever judges actions, and by nobody else.
//! **Invariant:** at most [`PASSAGES_MAX`] passages, each of at most two sentences.

use crate::acts::Acts;
use crate::{Case, Judge};
use conclave_core::{Opinion, Seat, Vote, sentence_end};

/// How many passages are looked at; of more, the gravest.
const PASSAGES_MAX: usize = 6;
/// A sentence this short says too little without the one before it, in bytes.
const SENTENCE_BYTES_MIN: usize = 24;
/// How sure a verifier must be of a passage to be heard about it.
const HEARD_FROM: f64 = 0.80;

/// Every passage with something adverse in it and what it does, in order.
pub fn passages<'text>(text: &'text str, whole: &Acts) -> Vec<(&'text str, Acts)> {
    if whole.gravest() == 0 {
        return Vec::new();
    }
    let sentences = sentences(text);
    if sentences.len() < 2 {
        return Vec::new();
    }
    let read = sentences.into_iter().map(|sentence| (sentence, whole.of_part(sentence)));
    let mut adverse: Vec<_> = read.filter(|(_, acts)| acts.gravest() > 0).enumerate().collect();
    adverse.sort_by_key(|(at, (_, acts))| (std::cmp::Reverse(acts.gravest()), *at));
    adverse.truncate(PASSAGES_MAX);
    adverse.sort_by_key(|(at, _)| *at);
    adverse.into_iter().map(|(_, passage)| passage).collect()
}

/// The sentences of a text; a very short one stands with the one before it.
pub fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let (mut start, mut before) = (0, 0);
    while start < text.len() {
        let end = sentence_end(text, start).unwrap_or(text.len());
        let is_short = end - start < SENTENCE_BYTES_MIN;
        let from = if is_short { before } else { start };
        let sentence = text.get(from..end).unwrap_or_default().trim();
        if !sentence.is_empty() {
            sentences.push(sentence);
        }
        (before, start) = (start, end);
    }
    sentences
}

/// A judge of whole replies that also looks at their passages.
pub struct Closely<J> {
    judge: J,
    judges_actions: bool,
}

impl<J> Closely<J> {
    /// A judge of words: it does not sit where there are none.
    pub const fn of_words(judge: J) -> Self {
        Self { judge, judges_actions: false }
    }

    /// A judge of words that also has something to say of an action without any.
    pub const fn of_words_and_actions(judge: J) -> Self {
        Self { judge, judges_actions: true }
    }
}

impl<J: Judge> Judge for Closely<J> {
    fn seat(&self) -> Seat {
        self.judge.seat()
    }

    fn judge(&self, case: &Case) -> Option<Opinion> {
        if !self.judges_actions && !case.has_words() {
            return None;
        }
        let whole = self.judge.judge(case);
        if whole.as_ref().is_some_and(|opinion| opinion.vote == Vote::Harmful) {
            return whole;
        }
        let opinions = case.passages().iter().filter_map(|passage| self.judge.judge(passage));
        let harmful = opinions
            .filter(|opinion| opinion.vote == Vote::Harmful && opinion.confidence >= HEARD_FROM);
        harmful.max_by(|a, b| a.confidence.total_cmp(&b.confidence)).or(whole)
    }
}
