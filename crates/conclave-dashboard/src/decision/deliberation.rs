//! Attempts, ballots, and how the votes were counted.
//!
//! **Invariant:** every number on the page is either a vote or follows from the votes shown beside
//! it.

use super::seen::{self, strings};
use super::talk::Speech;
use crate::chart::Gauge;
use crate::figure::{duration, score, title};
use crate::label::{Badge, Shape, Tone, failure, reason};
use crate::text::{Ink, Text};

/// One reply's way from nothing to a verdict.
pub(crate) struct Course {
    pub(crate) outcome: Badge,
    pub(crate) attempts: Vec<Attempt>,
}

/// One attempt.
pub(crate) struct Attempt {
    pub(crate) number: usize,
    /// Why there is no candidate.
    pub(crate) failure: Option<&'static str>,
    pub(crate) candidate: Option<Speech>,
    pub(crate) panels: Vec<Panel>,
}

/// One run of the panel.
pub(crate) struct Panel {
    pub(crate) verdict: Badge,
    pub(crate) again: bool,
    pub(crate) ballots: Vec<Ballot>,
    pub(crate) sums: Option<Sums>,
    pub(crate) conditions: Vec<Condition>,
}

/// One ballot.
pub(crate) struct Ballot {
    pub(crate) verifier: Text,
    pub(crate) vote: Badge,
    pub(crate) veto: bool,
    pub(crate) required: bool,
    pub(crate) monitor: bool,
    pub(crate) confidence: Option<String>,
    pub(crate) weight: u64,
    pub(crate) priority: u8,
    pub(crate) reasoning: Text,
    pub(crate) reasons: Vec<Text>,
    pub(crate) patterns: Vec<Text>,
    pub(crate) latency: String,
}

/// What the votes come to.
pub(crate) struct Sums {
    pub(crate) safe: String,
    pub(crate) dissent: String,
    pub(crate) weight: u64,
}

/// Something that had to hold.
pub(crate) struct Condition {
    pub(crate) name: &'static str,
    /// How it was worked out.
    pub(crate) how: String,
    pub(crate) bar: String,
    pub(crate) met: Badge,
    pub(crate) gauge: Option<Gauge>,
}

impl Course {
    /// Reads one choice; `sums` are those of its panels in the leaf.
    pub(super) fn of(
        choice: &seen::Choice,
        crisis: bool,
        ink: &mut Ink,
        sums: impl Fn(usize, usize) -> Option<[u64; 3]>,
    ) -> Self {
        let attempts = choice.attempts.iter().enumerate().map(|(a, attempt)| {
            let panel = |(p, panel)| Panel::of(panel, p > 0, sums(a, p), crisis, ink);
            let panels = attempt.panels.iter().enumerate().map(panel).collect();
            Attempt {
                number: a + 1,
                failure: attempt.failure.as_deref().map(failure),
                candidate: Speech::of(&attempt.candidate, ink),
                panels,
            }
        });
        let attempts = attempts.collect();
        Self { outcome: Badge::outcome(choice.outcome.as_deref().unwrap_or_default()), attempts }
    }
}

impl Panel {
    fn of(
        panel: &seen::Panel,
        again: bool,
        sums: Option<[u64; 3]>,
        crisis: bool,
        ink: &mut Ink,
    ) -> Self {
        let verdict = if panel.approved {
            Badge::new(Tone::Good, Shape::Tick, "May leave")
        } else {
            Badge::new(Tone::Bad, Shape::Stop, "May not leave")
        };
        let sums = sums.map(Sums::of);
        Self {
            verdict,
            again,
            ballots: panel.verifying_agents.iter().map(|ballot| Ballot::of(ballot, ink)).collect(),
            conditions: conditions(panel, sums.as_ref(), crisis),
            sums,
        }
    }
}

impl Ballot {
    /// Whether nothing was said beside the vote.
    pub(crate) const fn is_mute(&self) -> bool {
        self.reasons.is_empty() && self.reasoning.is_empty() && self.patterns.is_empty()
    }

    fn of(ballot: &seen::Ballot, ink: &mut Ink) -> Self {
        Self {
            verifier: ink.short(&title(&ballot.agent)),
            vote: Badge::vote(&ballot.vote, ballot.abstained_because.as_deref()),
            veto: ballot.veto,
            required: ballot.required,
            monitor: ballot.monitor,
            confidence: ballot.confidence.map(score),
            weight: ballot.weight,
            priority: ballot.priority,
            reasoning: ink.text(ballot.reasoning.as_str().unwrap_or_default()),
            reasons: strings(&ballot.reasons).map(reason).collect(),
            patterns: strings(&ballot.flagged_patterns).map(|name| ink.short(name)).collect(),
            latency: duration(ballot.latency_ms),
        }
    }
}

impl Sums {
    fn of([safe, dissent, weight]: [u64; 3]) -> Self {
        let hundredths = |sum: u64| format!("{}.{:02}", sum / 100, sum % 100);
        Self { safe: hundredths(safe), dissent: hundredths(dissent), weight }
    }
}

/// The six conditions of delivery.
fn conditions(panel: &seen::Panel, sums: Option<&Sums>, crisis: bool) -> Vec<Condition> {
    let held = |shortfall: &str| !panel.shortfalls.iter().any(|short| short == shortfall);
    let bars = &panel.bars;
    let worked_out = |formula: &dyn Fn(&Sums) -> String, value: f64| match sums {
        Some(sums) => format!("{} = {}", formula(sums), score(value)),
        None => score(value),
    };
    let safety =
        worked_out(&|s| format!("{} ÷ ({} + {})", s.safe, s.safe, s.dissent), panel.safety_score);
    let assured = worked_out(&|s| format!("{} ÷ {}", s.safe, s.weight), panel.assurance);
    let mut all = vec![
        measured("Safety score", safety, panel.safety_score, bars.score, held("score")),
        measured("Assurance", assured, panel.assurance, bars.assurance, held("assurance")),
        Condition {
            name: "Votes cast",
            how: panel.votes_cast.to_string(),
            bar: format!("at least {}", bars.quorum),
            met: Badge::met(held("quorum")),
            gauge: None,
        },
        plain("No harmful vote", held("harmful")),
        plain("Everyone who must vote did", held("required_missing")),
    ];
    if crisis {
        all.push(plain("Crisis verifier agrees", held("crisis_concern")));
    }
    if !held("floor") {
        all.push(plain("The floor of the directives", false));
    }
    all
}

fn measured(name: &'static str, how: String, value: f64, bar: u8, met: bool) -> Condition {
    let line = f64::from(bar) / 100.0;
    let tone = if met { Tone::Good } else { Tone::Bad };
    Condition {
        name,
        how,
        bar: format!("at least {}", score(line)),
        met: Badge::met(met),
        gauge: Some(Gauge::of(value).against(line, tone)),
    }
}

fn plain(name: &'static str, met: bool) -> Condition {
    let how = if met { "holds" } else { "does not hold" };
    Condition { name, how: how.into(), bar: String::new(), met: Badge::met(met), gauge: None }
}
