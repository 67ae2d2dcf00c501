//! Ballots in, one answer out.
//!
//! **Invariant:** all arithmetic is in integers; the score is compared as a fraction, never rounded.
//! **Invariant:** nothing a verifier withholds helps delivery: an abstention weighs as full dissent.
//! **Invariant:** what the floor of the directives stops is not delivered, whatever else was cast.
//! **Invariant:** a reply without words is judged by those who judge actions. Nobody else needs to vote on it, but
//! everybody who is seated does.

use crate::ballot::one_each;
use crate::{Ballot, Bars, Cast, Seat, Vote};
use serde::{Deserialize, Serialize};

/// Why a consensus does not deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shortfall {
    /// Somebody voted harmful.
    Harmful,
    /// The safety score is under its bar.
    Score,
    /// The assurance is under its bar.
    Assurance,
    /// Too few votes were cast.
    Quorum,
    /// A verifier that must vote did not.
    RequiredMissing,
    /// The person is in crisis and the Crisis verifier objects.
    CrisisConcern,
    /// The floor of the directives stops the reply, whatever anybody voted.
    Floor,
}

/// The votes combined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consensus {
    /// `Σ w·conf` of safe votes, in weight-hundredths.
    pub safe_mass: u64,
    /// `Σ w·conf` of objections plus the whole weight of abstentions, in weight-hundredths.
    pub dissent_mass: u64,
    /// `Σ w` of everyone seated.
    pub seated_weight: u64,
    /// Valid votes.
    pub votes_cast: u8,
    /// The bars in force.
    pub bars: Bars,
    /// Why it does not deliver; empty means deliver.
    pub shortfalls: Vec<Shortfall>,
    /// Who vetoed.
    pub vetoes: Vec<String>,
}

impl Consensus {
    /// Whether the reply may leave.
    #[must_use]
    pub fn delivers(&self) -> bool {
        self.shortfalls.is_empty()
    }

    /// Whether enough of the panel spoke for its answer to mean something about the reply.
    #[must_use]
    pub fn stood(&self) -> bool {
        !self.shortfalls.iter().any(|s| matches!(s, Shortfall::Quorum | Shortfall::RequiredMissing))
    }

    /// `S / (S + D)` in ten-thousandths, rounded down; 0 if nobody sat.
    #[must_use]
    pub fn safety_score_e4(&self) -> u16 {
        let total = self.safe_mass + self.dissent_mass;
        ratio_e4(self.safe_mass, total)
    }

    /// `S / W` in ten-thousandths, rounded down.
    #[must_use]
    pub fn assurance_e4(&self) -> u16 {
        ratio_e4(self.safe_mass, self.seated_weight * 100)
    }

    /// Whether the score is under one half, compared exactly.
    #[must_use]
    pub fn is_mostly_dissent(&self) -> bool {
        self.safe_mass <= self.dissent_mass
            && self.safe_mass * 2 < self.safe_mass + self.dissent_mass
            || self.safe_mass + self.dissent_mass == 0
    }
}

fn ratio_e4(part: u64, whole: u64) -> u16 {
    if whole == 0 {
        return 0;
    }
    u16::try_from(part.saturating_mul(10_000) / whole).unwrap_or(10_000)
}

/// Combines the ballots of one panel under the bars in force.
///
/// `crisis` is whether the person is in crisis (score at least one half).
#[must_use]
pub fn decide(ballots: &[Ballot], bars: Bars, crisis: bool) -> Consensus {
    let counted = one_each(ballots);
    let mut sums = Consensus {
        safe_mass: 0,
        dissent_mass: 0,
        seated_weight: 0,
        votes_cast: 0,
        bars,
        shortfalls: Vec::new(),
        vetoes: Vec::new(),
    };
    for ballot in &counted {
        add(&mut sums, ballot);
    }
    let is_wordless = is_action_alone(ballots);
    sums.shortfalls = shortfalls(&counted, &sums, crisis, is_wordless);
    // Read from the ballots as they were cast: a second ballot under its name must not void it.
    if ballots.iter().any(Ballot::is_floor) {
        sums.shortfalls.push(Shortfall::Floor);
        if !sums.vetoes.iter().any(|name| name == Seat::FLOOR) {
            sums.vetoes.push(Seat::FLOOR.to_owned());
        }
    }
    sums
}

fn add(sums: &mut Consensus, ballot: &Ballot) {
    let weight = u64::from(ballot.seat.weight);
    sums.seated_weight += weight;
    match ballot.cast {
        Cast::Voted { vote, confidence } => {
            let mass = weight * u64::from(confidence.hundredths());
            match vote {
                Vote::Safe => sums.safe_mass += mass,
                Vote::Concern | Vote::Harmful => sums.dissent_mass += mass,
            }
            sums.votes_cast = sums.votes_cast.saturating_add(1);
        }
        Cast::Abstained(_) => sums.dissent_mass += weight * 100,
        Cast::Excused(_) | Cast::NotApplicable => {}
    }
    if ballot.is_veto() {
        sums.vetoes.push(ballot.seat.verifier.to_string());
    }
}

/// Whether the reply only asks for an action: Crisis found no words to judge, and the verifier of actions has
/// judged it. Its ballot counts here also where it is only watched: it shows that there is an action.
fn is_action_alone(ballots: &[Ballot]) -> bool {
    let casts = |name: &'static str| {
        ballots.iter().filter(move |b| *b.seat.verifier == *name).map(|b| b.cast)
    };
    let judged = casts(Seat::COUNTERFACTUAL).any(|cast| matches!(cast, Cast::Voted { .. }));
    let mut crisis = casts(Seat::CRISIS).peekable();
    judged && crisis.peek().is_some() && crisis.all(|cast| cast == Cast::NotApplicable)
}

fn shortfalls(
    counted: &[Ballot],
    sums: &Consensus,
    crisis: bool,
    is_wordless: bool,
) -> Vec<Shortfall> {
    let bars = sums.bars;
    let total = sums.safe_mass + sums.dissent_mass;
    let voted = |b: &Ballot| matches!(b.cast, Cast::Voted { .. });
    let crisis_voted = counted.iter().any(|b| *b.seat.verifier == *Seat::CRISIS && voted(b));
    let required_voted =
        counted.iter().filter(|b| b.seat.required).all(voted) && (crisis_voted || is_wordless);
    // Where there are no words, fewer sit than a quorum asks for; then all of them must vote.
    let seated = u8::try_from(counted.len()).unwrap_or(u8::MAX);
    let quorum = if is_wordless { bars.quorum.min(seated) } else { bars.quorum };
    let checks = [
        (
            counted.iter().any(|b| matches!(b.cast, Cast::Voted { vote: Vote::Harmful, .. })),
            Shortfall::Harmful,
        ),
        (total == 0 || sums.safe_mass * 100 < u64::from(bars.score) * total, Shortfall::Score),
        (
            sums.seated_weight == 0
                || sums.safe_mass < u64::from(bars.assurance) * sums.seated_weight,
            Shortfall::Assurance,
        ),
        (sums.votes_cast < quorum, Shortfall::Quorum),
        (!required_voted, Shortfall::RequiredMissing),
        (crisis && counted.iter().any(is_crisis_concern), Shortfall::CrisisConcern),
    ];
    checks.into_iter().filter_map(|(falls_short, why)| falls_short.then_some(why)).collect()
}

fn is_crisis_concern(ballot: &Ballot) -> bool {
    *ballot.seat.verifier == *Seat::CRISIS
        && matches!(ballot.cast, Cast::Voted { vote, confidence }
            if vote != Vote::Safe && confidence.hundredths() >= 50)
}

#[cfg(test)]
#[path = "consensus_tests.rs"]
mod tests;
