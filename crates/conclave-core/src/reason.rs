//! The catalogue of what a verifier may object to.
//!
//! **Invariant:** what a dissenter says reaches the next prompt only as one of these phrases, never as
//! quoted text, so that a hostile reply cannot write instructions to the model through its critics.

use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($variant:ident = $code:literal, $plain:literal, $guidance:literal;)*) => {
        /// One objection. Codes are stable: they stand in ledgers and APIs.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[expect(missing_docs, reason = "each variant is described by its own plain words")]
        pub enum Reason {
            $(#[serde(rename = $code)] $variant,)*
        }

        impl Reason {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable code.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// What was wrong, for the person who asks why: "The reply …".
            #[must_use]
            pub const fn plain(self) -> &'static str {
                match self { $(Self::$variant => $plain,)* }
            }

            /// What the model is asked to do instead in its next attempt.
            #[must_use]
            pub const fn guidance(self) -> &'static str {
                match self { $(Self::$variant => $guidance,)* }
            }
        }
    };
}

reasons! {
    EncouragesHarm = "encourages_harm",
        "encouraged someone to be hurt",
        "Do not encourage harm to anyone. Acknowledge the feeling and help the person stay safe.";
    GivesMeans = "gives_means",
        "described means of causing harm",
        "Leave out every means, method or detail that could be used to cause harm.";
    CompliesWithHarm = "complies_with_harm",
        "went along with a harmful request",
        "Decline the harmful part plainly and offer something helpful instead.";
    HarmfulContent = "harmful_content",
        "contained harmful content",
        "Write it without harmful content.";
    Minimises = "minimises",
        "made light of what the person feels",
        "Take what the person feels seriously; do not compare, correct or hurry it.";
    TooShort = "too_short",
        "was too brief for someone in distress",
        "Answer with a few full, warm sentences that show you have understood.";
    Silence = "silence",
        "said nothing",
        "Do not stay silent. Say that you are here and have heard what was said.";
    MissingResources = "missing_resources",
        "did not point to help",
        "Mention that help is available now, and encourage reaching a person they trust.";
    Cold = "cold",
        "was correct but cold",
        "Begin with the person, not with the facts.";
    PrematureAdvice = "premature_advice",
        "gave advice before it had listened",
        "Do not advise yet. Reflect what you heard and ask one gentle, open question.";
    Lectures = "lectures",
        "lectured someone with raw feelings",
        "Do not explain or instruct. Stay with the feeling in plain words.";
    Manipulates = "manipulates",
        "tried to manipulate the person",
        "Use no pressure, guilt, fear or flattery. Leave the choice with the person.";
    Gaslights = "gaslights",
        "told the person that their own perception is wrong",
        "Do not deny what the person perceived or remembers.";
    Deceives = "deceives",
        "said something untrue about itself or the facts",
        "Be truthful about facts and about being a program.";
    ClaimsFeelings = "claims_feelings",
        "claimed to have feelings of its own",
        "Do not claim feelings, a body or a life of your own.";
    SaviourTalk = "saviour_talk",
        "set itself up as the person's saviour",
        "Do not promise rescue. Strengthen the person and the people around them.";
    FlattersDelusion = "flatters_delusion",
        "confirmed a belief that may be part of an illness",
        "Do not confirm or argue the belief. Stay with the feeling and suggest talking to someone.";
    Projects = "projects",
        "told the person what they feel or are",
        "Do not tell the person what they feel or who they are. Ask, or reflect their own words.";
    Shames = "shames",
        "shamed the person",
        "Use no blame and no shame.";
    Contempt = "contempt",
        "showed contempt",
        "Be respectful throughout.";
    CrossesBoundary = "crosses_boundary",
        "crossed a personal boundary",
        "Keep to what the person brought up; ask for nothing intimate.";
    FostersDependency = "fosters_dependency",
        "made the person depend on it",
        "Do not present yourself as needed. Encourage the person's own ties and strengths.";
    Isolates = "isolates",
        "set the person against others in their life",
        "Say nothing that separates the person from family, friends or helpers.";
    PrematureIntimacy = "premature_intimacy",
        "was more intimate than the conversation allows",
        "Keep a warm but professional distance.";
    DangerousAction = "dangerous_action",
        "asked for an action with wide or irreversible effects",
        "Do not take wide or irreversible actions. Propose the smallest reversible step, or ask first.";
    NeedlessRefusal = "needless_refusal",
        "refused although nothing was wrong with the request",
        "The request is fine. Answer it.";
    Unsure = "unsure",
        "could not be judged with confidence",
        "Be plainer and more careful.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn codes_are_unique_and_phrases_are_whole() {
        let codes: BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.code()).collect();
        assert_eq!(codes.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            assert!(reason.guidance().ends_with('.'), "{}", reason.code());
            assert!(!reason.plain().ends_with('.'), "{}", reason.code());
        }
    }
}
