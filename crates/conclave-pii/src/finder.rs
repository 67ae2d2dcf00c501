//! Owns the search: every pattern and the names are tried, and the surest places that do not
//! overlap are kept.
//!
//! **Invariant:** places are sorted, do not overlap, lie on scalar values, and are at most
//! [`FOUND_MAX`]. The time is linear in the text; no input makes this fail.

use crate::kind::{Classes, Found, Kind};
use crate::names::NameFinder;
use crate::patterns::{self, Gate, Pattern};
use crate::text::{CueFinder, Text};
use std::collections::BTreeMap;

/// The most places that are reported for one text; the first ones in the text are kept.
pub const FOUND_MAX: usize = 10_000;

/// Why a finder could not be built. It can only be a mistake in the patterns that come with it.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A pattern does not compile.
    #[error("a built-in pattern does not compile: {0}")]
    Pattern(#[from] regex::Error),
    /// The words that give numbers their meaning do not compile.
    #[error("the built-in words do not compile: {0}")]
    Words(#[from] aho_corasick::BuildError),
}

/// Finds identifying data in a text. Build it once and share it.
#[derive(Debug)]
pub struct Finder {
    classes: Classes,
    patterns: Vec<Pattern>,
    names: Option<NameFinder>,
    cues: CueFinder,
}

/// A proposal, in bytes of the folded text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) confidence: f32,
}

impl Finder {
    /// A finder of every class.
    ///
    /// # Errors
    /// When a built-in pattern does not compile.
    pub fn builtin() -> Result<Self, BuildError> {
        Self::with(Classes::all())
    }

    /// A finder of these classes only.
    ///
    /// # Errors
    /// When a built-in pattern does not compile.
    pub fn with(classes: Classes) -> Result<Self, BuildError> {
        let mut patterns = patterns::all()?;
        patterns.retain(|pattern| classes.contains(pattern.kind.class()));
        let wants_names = classes.contains(Kind::PersonName.class());
        let names = wants_names.then(NameFinder::new).transpose()?;
        Ok(Self { classes, patterns, names, cues: CueFinder::new()? })
    }

    /// The classes it looks for.
    #[must_use]
    pub fn classes(&self) -> Classes {
        self.classes
    }

    /// What identifies somebody in this text, in order.
    #[must_use]
    pub fn find(&self, text: &str) -> Vec<Found> {
        let text = Text::new(text, &self.cues);
        let mut places = self.structured(&text);
        if let Some(names) = &self.names {
            names.find(text.as_str(), &mut places);
        }
        count_scalars(text.as_str(), &keep_surest(places))
    }

    fn structured(&self, text: &Text<'_>) -> Vec<Place> {
        let mut places = Vec::new();
        for pattern in self.patterns.iter().filter(|pattern| is_open(pattern.gate, text)) {
            let mut budget = FOUND_MAX;
            pattern.each(text, &mut |span, confidence| {
                let (start, end) = (span.start, span.end);
                places.push(Place { kind: pattern.kind, start, end, confidence });
                budget -= 1;
                budget > 0
            });
        }
        places
    }
}

fn is_open(gate: Gate, text: &Text<'_>) -> bool {
    match gate {
        Gate::Open => true,
        Gate::Digit => text.has_digit(),
        Gate::Near(cue) => text.has(cue),
    }
}

/// The surest first, then the longest; what overlaps a kept place is dropped.
fn keep_surest(mut places: Vec<Place>) -> BTreeMap<usize, Place> {
    places.retain(|place| place.start < place.end);
    let length = |place: &Place| place.end - place.start;
    places.sort_by(|left, right| {
        let sure = right.confidence.total_cmp(&left.confidence);
        sure.then(length(right).cmp(&length(left))).then(left.start.cmp(&right.start))
    });
    let mut kept: BTreeMap<usize, Place> = BTreeMap::new();
    for place in places {
        let before = kept.range(..place.end).next_back();
        if before.is_none_or(|(_, other)| other.end <= place.start) {
            kept.insert(place.start, place);
        }
    }
    kept
}

/// Bytes turned into scalar values in one walk over the text.
fn count_scalars(text: &str, places: &BTreeMap<usize, Place>) -> Vec<Found> {
    let mut walked = (0, 0);
    let mut scalar_at = |byte: usize| {
        let more = text.get(walked.0..byte).map_or(0, |part| part.chars().count());
        walked = (byte, walked.1 + more);
        walked.1
    };
    let found = places.values().take(FOUND_MAX).map(|place| Found {
        kind: place.kind,
        start: scalar_at(place.start),
        end: scalar_at(place.end),
        confidence: place.confidence,
    });
    found.collect()
}
