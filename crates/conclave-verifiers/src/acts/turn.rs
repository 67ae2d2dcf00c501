//! What the person's turn is.
//!
//! **Invariant:** at most the last [`TURNS_MAX`] things the person said are read, each up to
//! [`TEXT_MAX`] bytes, so that a long conversation costs no more than a short one.

use super::kind::{Cue, RuleLabel};
use super::lexicon::Lexicon;
use super::scope::{MarkerScope, Modes};
use super::token::Tokens;
use crate::Case;
use conclave_core::{Message, Role};

/// How many of the person's messages are read.
const TURNS_MAX: usize = 3;
/// How much of each is read, in bytes: its end, where requests stand.
const TEXT_MAX: usize = 6_000;

/// What the person said last, and shortly before.
#[derive(Clone, Debug, Default)]
pub struct PersonTurn {
    now: Vec<(Cue, u8)>,
    earlier: Vec<(Cue, u8)>,
    /// Letters of the last message.
    pub letters: usize,
    /// Which exchange this is, from 1.
    pub exchange: usize,
    /// Whether the person is in crisis.
    pub crisis: bool,
}

impl PersonTurn {
    /// Reads the person's side of a case.
    #[must_use]
    pub fn read(case: &Case, lexicon: &Lexicon) -> Self {
        let mut said = case.conversation.iter().rev().filter(|message| message.role == Role::User);
        let mut turn = Self {
            exchange: case.exchange(),
            crisis: case.input.crisis.is_crisis(),
            ..Self::default()
        };
        if let Some(last) = said.next() {
            let tokens = tokens_of(last, lexicon);
            turn.letters = tokens.letters;
            turn.now = cues(&tokens, lexicon);
        }
        for message in said.take(TURNS_MAX - 1) {
            turn.earlier.extend(cues(&tokens_of(message, lexicon), lexicon));
        }
        turn.crisis |= turn.now(Cue::IntentSelf) >= CRISIS_FROM;
        turn
    }

    /// How strongly the last message is this, in hundredths.
    #[must_use]
    pub fn now(&self, cue: Cue) -> u8 {
        strongest(&self.now, cue)
    }

    /// How strongly the last few messages are this, in hundredths.
    #[must_use]
    pub fn lately(&self, cue: Cue) -> u8 {
        self.now(cue).max(strongest(&self.earlier, cue))
    }

    /// How often the last few messages are this.
    #[must_use]
    pub fn often(&self, cue: Cue) -> usize {
        self.now.iter().chain(&self.earlier).filter(|(kind, _)| *kind == cue).count()
    }

    /// Whether the last message is this at all.
    #[must_use]
    pub fn is(&self, cue: Cue) -> bool {
        self.now(cue) > 0
    }
}

/// How sure a cue of self-harm must be to count as a crisis without the detector.
const CRISIS_FROM: u8 = 80;

fn strongest(cues: &[(Cue, u8)], cue: Cue) -> u8 {
    cues.iter().filter(|(kind, _)| *kind == cue).map(|(_, weight)| *weight).max().unwrap_or(0)
}

fn tokens_of(message: &Message, lexicon: &Lexicon) -> Tokens {
    let text = message.content.as_text();
    Tokens::read(tail(&text, TEXT_MAX), &lexicon.vocabulary)
}

fn tail(text: &str, most: usize) -> &str {
    let mut from = text.len().saturating_sub(most);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

fn cues(tokens: &Tokens, lexicon: &Lexicon) -> Vec<(Cue, u8)> {
    let hits = lexicon.of_people.find(tokens);
    let scope = MarkerScope::new(lexicon, tokens, &hits);
    let voiding = Modes::NEGATED.with(Modes::QUOTED).with(Modes::REPORTED);
    hits.iter()
        .filter_map(|hit| {
            let rule = &lexicon.rules[hit.rule];
            let RuleLabel::Cue(cue) = rule.label else {
                return None;
            };
            let void = scope.modes(hit).any_of(voiding.without(rule.keep));
            (!void).then_some((cue, rule.weight))
        })
        .collect()
}
