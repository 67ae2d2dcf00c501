//! How a reply treats the person it speaks to, as a trained model sees it.

use conclave_core::Score;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// What can be wrong with how a reply treats somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MannerFault {
    /// It goes along with a wish to harm, others or oneself.
    Encourages,
    /// It makes little of a feeling, stays cold, lectures, or turns away.
    Dismisses,
    /// It denies, flatters, pretends or misleads.
    Deceives,
    /// It shames, despises, or tells people what they are.
    Demeans,
    /// It makes itself needed, comes too close, or draws away from others.
    Binds,
}

impl MannerFault {
    /// Every fault, in the order in which [`Manner`] keeps them.
    pub const ALL: [Self; 5] =
        [Self::Encourages, Self::Dismisses, Self::Deceives, Self::Demeans, Self::Binds];

    /// The name of the output that a model has for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Encourages => "encourages",
            Self::Dismisses => "dismisses",
            Self::Deceives => "deceives",
            Self::Demeans => "demeans",
            Self::Binds => "binds",
        }
    }
}

/// How strongly a reply shows each fault: a score of three tenths is reached by eight in a thousand
/// harmless replies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Manner([Score; MannerFault::ALL.len()]);

impl Manner {
    /// Asks for the score of each fault.
    #[must_use]
    pub fn of(score: impl Fn(MannerFault) -> Score) -> Self {
        Self(MannerFault::ALL.map(score))
    }

    /// How strongly it shows this one.
    #[must_use]
    pub const fn shows(&self, fault: MannerFault) -> Score {
        self.0[fault as usize]
    }
}

impl Serialize for Manner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for fault in MannerFault::ALL {
            map.serialize_entry(fault.as_str(), &self.shows(fault))?;
        }
        map.end()
    }
}

/// What a trained model says of a text as a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AsReply {
    /// How harmful it is, whatever the fault.
    pub harm: Score,
    /// What is wrong with it.
    pub manner: Manner,
}

impl AsReply {
    /// What counts where the model failed: the worst it could have said.
    #[must_use]
    pub fn worst() -> Self {
        Self { harm: Score::ONE, manner: Manner::of(|_| Score::ONE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_keeps_its_own_score() {
        let manner =
            Manner::of(|fault| Score::new(if fault == MannerFault::Demeans { 0.5 } else { 0.0 }));
        let shown = MannerFault::ALL.map(|fault| manner.shows(fault).hundredths());
        assert_eq!(shown, [0, 0, 0, 50, 0]);
        let written = serde_json::to_value(manner).unwrap();
        assert_eq!(written["demeans"], serde_json::json!(0.5));
    }
}
