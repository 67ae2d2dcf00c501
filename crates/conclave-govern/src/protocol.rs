//! What a community has laid down about its knowledge: words, audiences, seasons, restrictions.
//!
//! **Invariant:** whoever reads a protocol without being of the community sees no word of it that the
//! community has not made public.

use crate::labels::TraditionalLabel;
use crate::names::{NAME_BYTES_MAX, Unfit, named_list, sentence};
use crate::season::Season;
use crate::spelling::{plain, unspaced};
use serde::{Deserialize, Serialize};

/// So many terms in one protocol.
const TERMS_MAX: usize = 500;
/// So many spellings of one term.
const SPELLINGS_MAX: usize = 16;
/// So many audiences, and so many labels.
const AUDIENCES_MAX: usize = 32;
/// So many seasons.
const SEASONS_MAX: usize = 16;
/// The longest public description, and the longest contact, in bytes.
const WORDS_BYTES_MAX: usize = 2_000;
/// A spelling needs so many characters to be found without finding everything.
const SPELLING_CHARS_MIN: usize = 2;

/// What becomes of a text that only speaks about a term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mention {
    /// It goes on and is marked.
    #[default]
    Flag,
    /// It waits like the telling itself.
    Hold,
}

/// Something that has a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// How it is written, in whatever scripts.
    pub spellings: Vec<String>,
    /// Whether it is sacred: two elders must agree then.
    #[serde(default)]
    pub sacred: bool,
    /// What becomes of a text that only speaks about it.
    #[serde(default)]
    pub mention: Mention,
    /// Whether others may know that it is on the list.
    #[serde(default)]
    pub public: bool,
}

/// What holds for everything that belongs to the community.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restriction {
    /// Elders look at all of it.
    ReviewAll,
    /// It is for the audience `community` only.
    CommunityOnly,
    /// It is not for the audience `commercial`.
    NonCommercial,
    /// The community is to be named.
    Attribution,
}

/// A community's protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protocol {
    /// Whose it is.
    pub community: String,
    /// What everybody may read about it.
    #[serde(default)]
    pub description: String,
    /// Whom to ask; public.
    #[serde(default)]
    pub contact: String,
    /// What is looked for.
    #[serde(default)]
    pub terms: Vec<Term>,
    /// Who may read what is told; everybody where empty.
    #[serde(default)]
    pub audiences: Vec<String>,
    /// When it may be told.
    #[serde(default)]
    pub seasons: Vec<Season>,
    /// What holds for everything.
    #[serde(default)]
    pub restrictions: Vec<Restriction>,
    /// Labels that stand on everything of theirs.
    #[serde(default)]
    pub labels: Vec<String>,
}

/// The form in which names of communities are compared.
#[must_use]
pub fn community_id(name: &str) -> String {
    plain(name)
}

impl Protocol {
    /// Whether it can be kept.
    ///
    /// # Errors
    /// When something in it is too long, too many, or cannot be looked for.
    pub fn check(&self) -> Result<(), Unfit> {
        sentence("community", &self.community, 1, NAME_BYTES_MAX)?;
        if community_id(&self.community).is_empty() {
            return Err(Unfit::new("community", "must have letters"));
        }
        sentence("description", &self.description, 0, WORDS_BYTES_MAX)?;
        sentence("contact", &self.contact, 0, WORDS_BYTES_MAX)?;
        named_list("audiences", &self.audiences, 0, AUDIENCES_MAX)?;
        named_list("labels", &self.labels, 0, AUDIENCES_MAX)?;
        if let Some(odd) = self.labels.iter().find(|label| TraditionalLabel::parse(label).is_none())
        {
            return Err(Unfit::new("labels", format!("must be TK labels; `{odd}` is none")));
        }
        if self.seasons.len() > SEASONS_MAX || self.restrictions.len() > AUDIENCES_MAX {
            return Err(Unfit::new("seasons", format!("must have 0 to {SEASONS_MAX} entries")));
        }
        self.seasons.iter().try_for_each(Season::check)?;
        if self.terms.len() > TERMS_MAX {
            return Err(Unfit::new("terms", format!("must have 0 to {TERMS_MAX} entries")));
        }
        self.terms.iter().try_for_each(Term::check)
    }

    /// What everybody may read.
    #[must_use]
    pub fn public(&self) -> Self {
        let terms = self.terms.iter().filter(|term| term.public).cloned().collect();
        Self { terms, ..self.clone() }
    }
}

impl Term {
    fn check(&self) -> Result<(), Unfit> {
        named_list("terms.spellings", &self.spellings, 1, SPELLINGS_MAX)?;
        let short =
            |spelling: &&String| unspaced(&plain(spelling)).chars().count() < SPELLING_CHARS_MIN;
        match self.spellings.iter().find(short) {
            None => Ok(()),
            Some(short) => {
                let why =
                    format!("must have {SPELLING_CHARS_MIN} letters or more; `{short}` has not");
                Err(Unfit::new("terms.spellings", why))
            }
        }
    }
}
