//! Looks at texts in the light of protocols, labels and what the caller says.
//!
//! **Invariant:** when unsure, hold. A finding quotes nothing of what was looked at.

use crate::culture::{CulturalAsk, CulturalFinding, Issue};
use crate::labels::{LabelEffect, TraditionalLabel};
use crate::protocol::{Mention, Protocol, Restriction, Term, community_id};
use crate::season::{Calendar, calendar};
use crate::spelling::{is_unspaced, plain, unspaced};
use crate::telling::is_mention;
use aho_corasick::AhoCorasick;
use conclave_core::Sensitivity;
use std::collections::BTreeSet;

/// Protocols, ready to be looked with.
#[derive(Debug, Default)]
pub struct Protocols {
    all: Vec<Protocol>,
    /// For scripts that part words, and for those that do not.
    spaced: Finder,
    unspaced: Finder,
}

/// Finds many spellings at once.
#[derive(Debug, Default)]
struct Finder {
    automaton: Option<AhoCorasick>,
    /// Which protocol and term a spelling belongs to.
    owners: Vec<(usize, usize)>,
}

impl Finder {
    /// # Errors
    /// When there is more than can be looked for.
    fn new(spellings: Vec<(String, (usize, usize))>) -> Result<Self, String> {
        if spellings.is_empty() {
            return Ok(Self::default());
        }
        let (patterns, owners): (Vec<_>, Vec<_>) = spellings.into_iter().unzip();
        let automaton = AhoCorasick::new(&patterns).map_err(|error| error.to_string())?;
        Ok(Self { automaton: Some(automaton), owners })
    }

    fn find(
        &self,
        text: &str,
        fits: impl Fn(usize, usize) -> bool,
        found: &mut BTreeSet<(usize, usize)>,
    ) {
        let Some(automaton) = &self.automaton else { return };
        for hit in automaton.find_overlapping_iter(text) {
            let owner = self.owners[hit.pattern().as_usize()];
            if !found.contains(&owner) && fits(hit.start(), hit.end()) {
                found.insert(owner);
            }
        }
    }
}

impl Protocols {
    /// Every protocol.
    #[must_use]
    pub fn all(&self) -> &[Protocol] {
        &self.all
    }

    /// Makes ready what communities have laid down.
    ///
    /// # Errors
    /// When there are more spellings than can be looked for; whoever asks holds then.
    pub fn new(all: Vec<Protocol>) -> Result<Self, String> {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for (p, protocol) in all.iter().enumerate() {
            for (t, term) in protocol.terms.iter().enumerate() {
                for spelling in term.spellings.iter().map(|spelling| plain(spelling)) {
                    if spelling.chars().any(is_unspaced) {
                        without.push((unspaced(&spelling), (p, t)));
                    } else if !spelling.is_empty() {
                        with.push((spelling, (p, t)));
                    }
                }
            }
        }
        Ok(Self { all, spaced: Finder::new(with)?, unspaced: Finder::new(without)? })
    }

    fn named_in(&self, text: &str) -> BTreeSet<(usize, usize)> {
        // Most houses guard no words, and then no turn pays for them.
        if self.spaced.automaton.is_none() && self.unspaced.automaton.is_none() {
            return BTreeSet::new();
        }
        let (spaced, mut found) = (plain(text), BTreeSet::new());
        let whole_word = |from: usize, to: usize| {
            ends_word(spaced[..from].chars().next_back()) && begins_anew(&spaced[to..])
        };
        self.spaced.find(&spaced, whole_word, &mut found);
        if self.unspaced.automaton.is_some() {
            self.unspaced.find(&unspaced(&spaced), |_, _| true, &mut found);
        }
        found
    }
}

fn ends_word(c: Option<char>) -> bool {
    c.is_none_or(|c| c == ' ' || is_unspaced(c))
}

/// Whether a word ends here, be it with the ending of a plural or of a possessor.
fn begins_anew(rest: &str) -> bool {
    let endings = ["", "s", "es"].into_iter().filter_map(|ending| rest.strip_prefix(ending));
    endings.map(|rest| rest.chars().next()).any(ends_word)
}

/// What has been found so far.
#[derive(Default)]
struct Findings {
    /// Each with the community it concerns, and how it weighs.
    all: Vec<(Weight, Option<String>, Issue)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Flag,
    Hold,
    Sacred,
}

impl Findings {
    fn add(&mut self, weight: Weight, community: Option<&str>, code: &str, detail: &str) {
        let issue = Issue { code: code.to_owned(), detail: detail.to_owned() };
        let known = (weight, community.map(str::to_owned), issue);
        if !self.all.contains(&known) {
            self.all.push(known);
        }
    }

    /// The gravest decides, and whose it is; the first of equals. Whoever else has something in it that
    /// must wait is named too: no community decides for another.
    fn sum(self) -> CulturalFinding {
        let Some(gravest) = self.all.iter().map(|(weight, ..)| *weight).max() else {
            return CulturalFinding::Clear;
        };
        let of_weight = self.all.iter().filter(|(weight, ..)| *weight == gravest);
        let community = of_weight.filter_map(|(_, community, _)| community.clone()).next();
        let others = self.others(community.as_deref());
        let issues = self.all.into_iter().map(|(.., issue)| issue).collect();
        match gravest {
            Weight::Flag => CulturalFinding::Flag { community, issues },
            Weight::Hold => CulturalFinding::Hold { community, others, issues, sacred: false },
            Weight::Sacred => CulturalFinding::Hold { community, others, issues, sacred: true },
        }
    }

    /// The communities besides the first that something was held for.
    fn others(&self, first: Option<&str>) -> Vec<String> {
        let mut known: BTreeSet<String> = first.map(community_id).into_iter().collect();
        let held = self.all.iter().filter(|(weight, ..)| *weight >= Weight::Hold);
        let named = held.filter_map(|(_, community, _)| community.as_ref());
        named.filter(|community| known.insert(community_id(community))).cloned().collect()
    }
}

/// Looks at what is asked.
#[must_use]
pub fn look(protocols: &Protocols, ask: &CulturalAsk) -> CulturalFinding {
    let mut findings = Findings::default();
    let owners = owners_of(protocols, ask);
    for owner in &owners {
        if ask.sensitivity == Sensitivity::Sacred {
            let detail = "The caller says that it is sacred.";
            findings.add(Weight::Sacred, owner.as_deref(), "sensitivity_sacred", detail);
        }
        for label in &ask.labels {
            weigh_label(label, owner.as_deref(), protocols, ask, &mut findings);
        }
    }
    unknown_affiliations(protocols, ask, &mut findings);
    let named: Vec<_> = ask.texts.iter().map(|text| protocols.named_in(text)).collect();
    for (at, protocol) in protocols.all.iter().enumerate() {
        let told = weigh_terms(protocols, at, ask, &named, &mut findings);
        if told || is_of(protocol, ask) {
            weigh_protocol(protocol, protocols, ask, &mut findings);
        }
    }
    findings.sum()
}

fn is_of(protocol: &Protocol, ask: &CulturalAsk) -> bool {
    let id = community_id(&protocol.community);
    ask.affiliations.iter().any(|affiliation| community_id(affiliation) == id)
}

/// The communities that the content is said to belong to, those with a protocol first; `None` where nobody
/// said.
fn owners_of(protocols: &Protocols, ask: &CulturalAsk) -> Vec<Option<String>> {
    let known = protocols.all.iter().filter(|protocol| is_of(protocol, ask));
    let known = known.map(|protocol| &protocol.community);
    let mut ids = BTreeSet::new();
    let all = known.chain(&ask.affiliations).filter(|one| ids.insert(community_id(one)));
    let owners: Vec<_> = all.cloned().map(Some).collect();
    if owners.is_empty() { vec![None] } else { owners }
}

fn unknown_affiliations(protocols: &Protocols, ask: &CulturalAsk, findings: &mut Findings) {
    let weight = if ask.sensitivity >= Sensitivity::High { Weight::Hold } else { Weight::Flag };
    for affiliation in &ask.affiliations {
        let id = community_id(affiliation);
        if !protocols.all.iter().any(|known| community_id(&known.community) == id) {
            let detail = "It belongs to a community that has laid down no protocol here.";
            findings.add(weight, Some(affiliation), "protocol_unknown", detail);
        }
    }
}

/// Weighs the terms of one protocol, as they are named in each text; says whether any of them is told.
fn weigh_terms(
    protocols: &Protocols,
    at: usize,
    ask: &CulturalAsk,
    named: &[BTreeSet<(usize, usize)>],
    findings: &mut Findings,
) -> bool {
    let protocol = &protocols.all[at];
    let mut told_any = false;
    for (text, named) in ask.texts.iter().zip(named) {
        for found in named.iter().copied().filter(|(p, _)| *p == at) {
            let term: &Term = &protocol.terms[found.1];
            let names = |sentence: &str| protocols.named_in(sentence).contains(&found);
            let told = term.mention == Mention::Hold || !is_mention(text, names);
            told_any |= told;
            let community = Some(protocol.community.as_str());
            match (told, term.sacred) {
                (true, true) => {
                    let detail = "Something that the community holds sacred may be told.";
                    findings.add(Weight::Sacred, community, "term_sacred", detail);
                }
                (true, false) => {
                    let detail = "Something that the community guards may be told.";
                    findings.add(Weight::Hold, community, "term_told", detail);
                }
                (false, _) => {
                    let detail = "Something that the community guards is spoken about.";
                    findings.add(Weight::Flag, community, "term_mentioned", detail);
                }
            }
        }
    }
    told_any
}

/// Weighs what holds for everything that belongs to a community.
fn weigh_protocol(
    protocol: &Protocol,
    protocols: &Protocols,
    ask: &CulturalAsk,
    findings: &mut Findings,
) {
    let community = Some(protocol.community.as_str());
    let mut hold = |code: &str, detail: &str| findings.add(Weight::Hold, community, code, detail);
    if calendar(&protocol.seasons, ask.now_ms) == Calendar::Closed {
        hold("season_closed", "It may not be told at this time of the year.");
    }
    if !protocol.audiences.is_empty() {
        match &ask.audience {
            None => hold("audience_unknown", "Nobody said who would read it."),
            Some(audience) if !protocol.audiences.iter().any(|one| same(one, audience)) => {
                hold("audience_not_permitted", "It is not for those who would read it.");
            }
            Some(_) => {}
        }
    }
    let is_for = |name| ask.audience.as_deref().is_some_and(|one| same(one, name));
    for restriction in &protocol.restrictions {
        match restriction {
            Restriction::ReviewAll => {
                hold("community_reviews_all", "The community looks at everything of its own.");
            }
            Restriction::CommunityOnly if !is_for("community") => {
                hold("community_only", "It is for the community alone.");
            }
            Restriction::NonCommercial if ask.audience.is_none() || is_for("commercial") => {
                hold("non_commercial", "It may not be used for gain, and nobody said otherwise.");
            }
            _ => {}
        }
    }
    if protocol.restrictions.contains(&Restriction::Attribution) {
        findings.add(Weight::Flag, community, "attribution", "The community is to be named.");
    }
    for label in &protocol.labels {
        weigh_label(label, community, protocols, ask, findings);
    }
}

fn same(one: &str, other: &str) -> bool {
    plain(one) == plain(other)
}

fn weigh_label(
    written: &str,
    owner: Option<&str>,
    protocols: &Protocols,
    ask: &CulturalAsk,
    findings: &mut Findings,
) {
    let Some(label) = TraditionalLabel::parse(written) else {
        let detail = "A label stands on it that is not on the list of TK labels.";
        return findings.add(Weight::Hold, owner, "label_unknown", detail);
    };
    let is_for = |name: &str| ask.audience.as_deref().is_some_and(|one| same(one, name));
    let (weight, code) = match label.effect {
        LabelEffect::Tells => return,
        LabelEffect::OnlyFor(name) | LabelEffect::FlagUnlessFor(name) if is_for(name) => return,
        LabelEffect::NotFor(name) if ask.audience.is_some() && !is_for(name) => return,
        LabelEffect::InSeason if in_season(owner, protocols, ask) => return,
        LabelEffect::Flag | LabelEffect::FlagUnlessFor(_) => (Weight::Flag, "label_flag"),
        LabelEffect::Hold => (Weight::Hold, "label_restricted"),
        LabelEffect::HoldSacred => (Weight::Sacred, "label_sacred"),
        LabelEffect::OnlyFor(_) | LabelEffect::NotFor(_) => (Weight::Hold, "label_audience"),
        LabelEffect::InSeason => (Weight::Hold, "label_season"),
    };
    findings.add(weight, owner, code, &format!("It bears the label {}.", label.name));
}

fn in_season(owner: Option<&str>, protocols: &Protocols, ask: &CulturalAsk) -> bool {
    let Some(id) = owner.map(community_id) else { return false };
    let theirs = protocols.all.iter().find(|known| community_id(&known.community) == id);
    theirs.is_some_and(|known| calendar(&known.seasons, ask.now_ms) == Calendar::Open)
}

#[cfg(test)]
#[path = "looking_tests.rs"]
mod tests;
