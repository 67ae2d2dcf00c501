//! The floor of the directives under every reply: its own seat, which no configuration knows.
//!
//! **Invariant:** no threshold, mode, weight or monitor flag is an argument here, so none can move it.
//! **Invariant:** only words that decline are excused, and only they: what stands beside a refusal is read
//! by itself, and a refusal that is followed by the thing itself is none.

use crate::acts::{Act, Acts};
use crate::passages::sentences;
use crate::{Case, content};
use conclave_core::{Ballot, Cast, Confidence, FLOOR, Priority, Reason, Seat, Vote};
use conclave_detect::Reading;

/// The ballot of the floor where it stops the reply; nobody sits there otherwise.
#[must_use]
pub fn ballot(case: &Case) -> Option<Ballot> {
    let harm = case.floor?.max(FLOOR);
    let confidence = Confidence::from_hundredths(harm).unwrap_or(Confidence::FULL);
    let seat = Seat::new(Seat::FLOOR, Priority::High);
    Some(Ballot {
        reasons: vec![Reason::HarmfulContent],
        reasoning:
            "The reply holds words that the directives never let pass, whatever is configured."
                .to_owned(),
        flagged_patterns: vec!["directives/floor".to_owned()],
        ..Ballot::bare(seat, Cast::Voted { vote: Vote::Harmful, confidence })
    })
}

/// How harmful a reply that the floor stops is, in hundredths; `None` for one that it does not stop.
pub fn stops(case: &Case, acts: &Acts, read: impl Fn(&str) -> Reading) -> Option<u8> {
    if !case.reply.floor {
        return None;
    }
    if !content::declines(acts) {
        return Some(case.reply.harm_unamplified.hundredths());
    }
    let mut beside = beside_refusal(&case.candidate.text, acts);
    beside.extend(case.carried().prose.iter().cloned());
    let rest = read(&beside.join(" "));
    rest.floor.then(|| rest.harm_unamplified.hundredths())
}

/// The sentences of a text but those that decline, and those that only warn or help.
fn beside_refusal(text: &str, whole: &Acts) -> Vec<String> {
    let kept = sentences(text).into_iter().filter(|sentence| {
        let acts = whole.of_part(sentence);
        let helps = [Act::Cautions, Act::KeepsSafe, Act::OffersHelp];
        let helps = helps.into_iter().any(|act| acts.does(act)) && !acts.does(Act::GivesMeans);
        !acts.does(Act::Refuses) && !helps
    });
    kept.map(str::to_owned).collect()
}
