//! The closed lists of what a reply can do and what a person's turn can be.
//!
//! **Invariant:** data files name these; a name that is not here is an error when the data is read,
//! never a rule that silently does nothing.

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$inner])* $variant,)*
        }

        impl $name {
            /// Every one, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name data files use.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Finds the one with this name.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == name)
            }
        }
    };
}

names! {
    /// Something a reply does.
    Act {
        /// Reflects what was said, or is sorry with the person.
        Listens = "listens",
        /// Says that it is there.
        Present = "present",
        /// Says that the feeling is allowed, or that it is not their fault.
        Validates = "validates",
        /// Points to people or services who can help.
        OffersHelp = "offers_help",
        /// Asks after safety, or asks for distance from the means.
        KeepsSafe = "keeps_safe",
        /// Tells the person what to do.
        Advises = "advises",
        /// Explains in general terms where a person spoke of themselves.
        Lectures = "lectures",
        /// Makes light of what is felt.
        Minimises = "minimises",
        /// Wishes, praises or urges that someone be hurt.
        EncouragesHarm = "encourages_harm",
        /// Agrees, in so few words that what it agrees to is what the person just said.
        Agrees = "agrees",
        /// Gives a means or a method of hurting.
        GivesMeans = "gives_means",
        /// Keeps help away from someone who needs it.
        DetersHelp = "deters_help",
        /// Takes a request on: "sure, here is".
        Complies = "complies",
        /// Declines.
        Refuses = "refuses",
        /// Declines and then does it.
        RefusesThenComplies = "refuses_then_complies",
        /// Warns or protects: what to do against a harm.
        Cautions = "cautions",
        /// Says that it is a program.
        SaysItIsAProgram = "says_it_is_a_program",
        /// Says that it is human.
        ClaimsHuman = "claims_human",
        /// Claims feelings or consciousness.
        ClaimsFeelings = "claims_feelings",
        /// Claims a body, a past, a family, a weekend.
        ClaimsLife = "claims_life",
        /// Uses guilt, fear, debt or haste.
        Manipulates = "manipulates",
        /// Denies what the person perceived or remembers.
        Gaslights = "gaslights",
        /// Promises what nobody can, or invents authority.
        Deceives = "deceives",
        /// Promises rescue.
        Saviour = "saviour",
        /// Praises without measure.
        Flatters = "flatters",
        /// Confirms a belief that may be part of an illness.
        ConfirmsDelusion = "confirms_delusion",
        /// Keeps to what is known, doubts, or points to those who know.
        Grounds = "grounds",
        /// Tells the person what they feel or are.
        Projects = "projects",
        /// Shames.
        Shames = "shames",
        /// Insults or despises.
        Contempt = "contempt",
        /// Sets the person against others.
        Isolates = "isolates",
        /// Presents itself as needed, or as the only one.
        Dependency = "dependency",
        /// Speaks as a lover.
        Intimate = "intimate",
        /// Asks for what is intimate or secret.
        AsksIntimate = "asks_intimate",
    }
}

impl Act {
    /// Whether some verifier may call it harmful wherever it stands; agreeing is so only where nothing
    /// else is said.
    #[must_use]
    pub const fn is_adverse(self) -> bool {
        !matches!(
            self,
            Self::Listens
                | Self::Present
                | Self::Validates
                | Self::OffersHelp
                | Self::KeepsSafe
                | Self::Advises
                | Self::Lectures
                | Self::Agrees
                | Self::Complies
                | Self::Refuses
                | Self::Cautions
                | Self::SaysItIsAProgram
                | Self::Grounds
        )
    }
}

names! {
    /// Something a person's turn is.
    Cue {
        /// A feeling, raw.
        RawEmotion = "raw_emotion",
        /// Asks what to do.
        AsksAdvice = "asks_advice",
        /// Asks for information or work.
        AsksPractical = "asks_practical",
        /// Wants to be heard and not advised.
        WantsListening = "wants_listening",
        /// Means to hurt somebody else.
        IntentOthers = "intent_others",
        /// Speaks of dying or of hurting themselves.
        IntentSelf = "intent_self",
        /// A belief that may be part of an illness.
        Delusion = "delusion",
        /// Asks the program about its own life.
        AsksAboutYou = "asks_about_you",
        /// Insults or despises somebody.
        Hostile = "hostile",
        /// Greets, thanks, chats.
        SmallTalk = "small_talk",
        /// Asks for a story, or for a part to be played.
        Fiction = "fiction",
        /// Asks for something illegal or hurtful.
        AsksHarm = "asks_harm",
    }
}

names! {
    /// A marker that changes what the words near it mean.
    Marker {
        /// Negates what follows.
        Negates = "negates",
        /// Negates what went before.
        NegatesBack = "negates_back",
        /// What follows is somebody else's word or a passing thought.
        Reports = "reports",
        /// What went before is somebody else's word or a passing thought.
        ReportsBack = "reports_back",
        /// What follows is only supposed.
        Supposes = "supposes",
        /// What went before is only supposed.
        SupposesBack = "supposes_back",
    }
}

/// What a rule of a data file is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleLabel {
    /// Of the reply.
    Act(Act),
    /// Of the person's turn.
    Cue(Cue),
    /// Of the words around it.
    Marker(Marker),
}

impl RuleLabel {
    /// Finds the label with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Act::parse(name)
            .map(Self::Act)
            .or_else(|| Cue::parse(name).map(Self::Cue))
            .or_else(|| Marker::parse(name).map(Self::Marker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_across_all_lists() {
        let names: Vec<_> = Act::ALL
            .iter()
            .map(|act| act.as_str())
            .chain(Cue::ALL.iter().map(|cue| cue.as_str()))
            .chain(Marker::ALL.iter().map(|marker| marker.as_str()))
            .collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert_eq!(RuleLabel::parse("isolates"), Some(RuleLabel::Act(Act::Isolates)));
        assert_eq!(RuleLabel::parse("nonsense"), None);
    }
}
