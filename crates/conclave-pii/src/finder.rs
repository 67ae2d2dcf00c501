//! Owns the search: every pattern and the names are tried, and the surest places that do not
//! overlap are kept.
//!
//! **Invariant:** places are sorted, do not overlap, lie on scalar values, and are at most
//! [`FOUND_MAX`]. The time is linear in the text; no input makes this fail.

use crate::kind::{Classes, Found, Kind};
use crate::names::{KnownNames, NameFinder};
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
        self.find_with_names(text, &KnownNames::default())
    }

    /// As [`Finder::find`], and every mention of names that are known.
    #[must_use]
    pub fn find_with_names(&self, text: &str, names: &KnownNames) -> Vec<Found> {
        let text = self.text(text);
        let places = self.places(&text, names);
        count_scalars(text.as_str(), places.values().take(FOUND_MAX))
    }

    /// Adds the names of those who speak in a text to what is known: `Mara Lopez: ...`,
    /// `[1] Mara: ...`, `田中さん：...`. Roles such as `Interviewer` are nobody.
    pub fn learn_speakers(&self, text: &str, names: &mut KnownNames) {
        if let Some(finder) = &self.names {
            finder.learn_text(text, names);
        }
    }

    /// Adds the name of a speaker that is given by itself.
    pub fn learn_speaker(&self, speaker: &str, names: &mut KnownNames) {
        if let Some(finder) = &self.names {
            finder.learn_speaker(speaker, names);
        }
    }

    /// All places of a field that holds the name of a speaker and nothing else. A known name counts
    /// there even where it is a word too.
    pub(crate) fn speaker_places(
        &self,
        field: &Text<'_>,
        names: &KnownNames,
    ) -> BTreeMap<usize, Place> {
        let places = self.places(field, names);
        let mut places: Vec<Place> = places.into_values().collect();
        if let Some(finder) = &self.names {
            finder.find_in_speaker(field.as_str(), names, &mut places);
        }
        keep_surest(places, field.as_str())
    }

    /// All places of a text by where they start, however many.
    pub(crate) fn places(&self, text: &Text<'_>, known: &KnownNames) -> BTreeMap<usize, Place> {
        let mut places = self.structured(text);
        if let Some(names) = &self.names {
            names.find(text, known, &mut places);
        }
        keep_surest(places, text.as_str())
    }

    pub(crate) fn text<'t>(&self, text: &'t str) -> Text<'t> {
        Text::new(text, &self.cues)
    }

    fn structured(&self, text: &Text<'_>) -> Vec<Place> {
        let mut places = Vec::new();
        for pattern in self.patterns.iter().filter(|pattern| is_open(pattern.gate, text)) {
            pattern.each(text, &mut |span, confidence| {
                let (start, end) = (span.start, span.end);
                places.push(Place { kind: pattern.kind, start, end, confidence });
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

/// The surest first, then the longest. What overlaps a kept place is dropped; of values that may
/// have run on into it the rest is kept, because it may identify by itself.
fn keep_surest(mut places: Vec<Place>, text: &str) -> BTreeMap<usize, Place> {
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
        } else {
            let rest = uncovered(place, &kept, text);
            kept.extend(rest.into_iter().map(|rest| (rest.start, rest)));
        }
    }
    kept
}

/// The parts of a place that no kept place covers, where they are enough to be a value.
fn uncovered(place: Place, kept: &BTreeMap<usize, Place>, text: &str) -> Vec<Place> {
    let signs_min = match place.kind {
        Kind::PersonName | Kind::Url | Kind::StreetAddress => 3,
        Kind::Phone => 8,
        _ => return Vec::new(),
    };
    let first = kept.range(..=place.start).next_back().map_or(place.start, |(at, _)| *at);
    let mut start = place.start;
    let mut parts = Vec::new();
    for other in kept.range(first..place.end).map(|(_, other)| other) {
        parts.push(start..other.start.max(start));
        start = start.max(other.end);
    }
    parts.push(start..place.end.max(start));
    let trimmed = parts.into_iter().filter_map(|part| {
        let is_between = |sign: char| !sign.is_alphanumeric();
        let written = text.get(part.clone())?;
        let value = written.trim_start_matches(is_between);
        let start = part.start + written.len() - value.len();
        let value = value.trim_end_matches(is_between);
        let signs = value.chars().filter(|sign| sign.is_alphanumeric()).count();
        // What is left of an address identifies by its number.
        let is_place = place.kind == Kind::StreetAddress
            && !value.contains(|sign: char| sign.is_ascii_digit());
        (signs >= signs_min && !is_place).then_some(Place {
            start,
            end: start + value.len(),
            ..place
        })
    });
    trimmed.collect()
}

/// Bytes turned into scalar values in one walk over the text.
fn count_scalars<'p>(text: &str, places: impl Iterator<Item = &'p Place>) -> Vec<Found> {
    let mut walked = (0, 0);
    let mut scalar_at = |byte: usize| {
        let more = text.get(walked.0..byte).map_or(0, |part| part.chars().count());
        walked = (byte, walked.1 + more);
        walked.1
    };
    let found = places.map(|place| Found {
        kind: place.kind,
        start: scalar_at(place.start),
        end: scalar_at(place.end),
        confidence: place.confidence,
    });
    found.collect()
}
