//! How something is said: negated, quoted, reported, supposed or asked.
//!
//! **Invariant:** a marker acts only within its sentence and its clause, and only on words that
//! are not its own: "you do not need your friends" carries its own negation.

use super::kind::Marker;
use super::lexicon::Lexicon;
use super::matcher::Hit;
use super::token::{Edge, Tokens};

/// Ways of speaking, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes(u8);

impl Modes {
    /// Nothing unusual.
    pub const PLAIN: Self = Self(0);
    /// Said not to be so.
    pub const NEGATED: Self = Self(1);
    /// In quotation marks.
    pub const QUOTED: Self = Self(2);
    /// Somebody else's word, or a passing thought.
    pub const REPORTED: Self = Self(4);
    /// Only supposed.
    pub const SUPPOSED: Self = Self(8);
    /// A question.
    pub const ASKED: Self = Self(16);

    const NAMES: [(&'static str, Self); 5] = [
        ("negated", Self::NEGATED),
        ("quoted", Self::QUOTED),
        ("reported", Self::REPORTED),
        ("supposed", Self::SUPPOSED),
        ("asked", Self::ASKED),
    ];

    /// The ways these names mean.
    ///
    /// # Errors
    /// When a name means nothing.
    pub fn parse(names: &[String]) -> Result<Self, String> {
        names.iter().try_fold(Self::PLAIN, |set, name| {
            let found = Self::NAMES.iter().find(|(known, _)| known == name);
            found
                .map(|(_, mode)| set.with(*mode))
                .ok_or_else(|| format!("there is no way of speaking {name:?}"))
        })
    }

    /// Both together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These without others.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether any of these is among them.
    #[must_use]
    pub const fn any_of(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Reads the ways of speaking around hits.
pub struct MarkerScope<'a> {
    lexicon: &'a Lexicon,
    tokens: &'a Tokens,
    markers: Vec<(Marker, Hit)>,
    /// A text that is one long quotation hides nothing behind its quotation marks.
    quotes_count: bool,
}

/// Further away than this no marker acts, whatever its reach.
const NEAR: usize = 24;
/// From which share of quoted words on quotation marks mean nothing.
const QUOTED_SHARE_MAX: usize = 60;

impl<'a> MarkerScope<'a> {
    /// Takes the markers out of all hits of a text.
    #[must_use]
    pub fn new(lexicon: &'a Lexicon, tokens: &'a Tokens, hits: &[Hit]) -> Self {
        let markers = hits
            .iter()
            .filter_map(|hit| lexicon.marker(hit.rule).map(|marker| (marker, *hit)))
            .collect();
        let quotes_count = tokens.quoted_share() <= QUOTED_SHARE_MAX;
        Self { lexicon, tokens, markers, quotes_count }
    }

    /// How the words of a hit are meant.
    #[must_use]
    pub fn modes(&self, hit: &Hit) -> Modes {
        let sentence = self.tokens.sentence_of[hit.start];
        let mut modes = Modes::PLAIN;
        if self.quotes_count && self.tokens.quoted[hit.start..hit.end].iter().all(|quoted| *quoted)
        {
            modes = modes.with(Modes::QUOTED);
        }
        if self.tokens.sentences[sentence].question {
            modes = modes.with(Modes::ASKED);
        }
        self.near(hit)
            .iter()
            .filter(|(_, marker)| self.tokens.sentence_of[marker.start] == sentence)
            .fold(modes, |modes, (kind, marker)| modes.with(self.effect(*kind, marker, hit)))
    }

    /// The markers that could reach a hit: they stand in text order, so a long text costs no more
    /// per hit than a short one.
    fn near(&self, hit: &Hit) -> &[(Marker, Hit)] {
        let from = self.markers.partition_point(|(_, marker)| marker.start + NEAR < hit.start);
        let to = self.markers.partition_point(|(_, marker)| marker.start <= hit.end + NEAR);
        &self.markers[from..to]
    }

    fn effect(&self, kind: Marker, marker: &Hit, hit: &Hit) -> Modes {
        let reach = self.lexicon.rules[marker.rule].reach;
        let forward = |mode| self.before(marker, hit, reach).then_some(mode);
        let backward = |mode| self.after(marker, hit, reach).then_some(mode);
        match kind {
            Marker::Negates => forward(Modes::NEGATED),
            Marker::NegatesBack => backward(Modes::NEGATED),
            Marker::Reports => forward(Modes::REPORTED),
            Marker::ReportsBack => backward(Modes::REPORTED),
            Marker::Supposes => forward(Modes::SUPPOSED),
            Marker::SupposesBack => backward(Modes::SUPPOSED),
        }
        .unwrap_or_default()
    }

    fn before(&self, marker: &Hit, hit: &Hit, reach: usize) -> bool {
        marker.end <= hit.start
            && hit.start - marker.end <= reach
            && !self.tokens.parted(marker.end, hit.start, Edge::Clause)
    }

    fn after(&self, marker: &Hit, hit: &Hit, reach: usize) -> bool {
        marker.start >= hit.end
            && marker.start - hit.end <= reach
            && !self.tokens.parted(hit.end, marker.start, Edge::Clause)
    }
}
