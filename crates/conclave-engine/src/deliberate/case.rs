//! A reply and its circumstances before they are read: what a case is made of.
//!
//! **Invariant:** everything that reaches the client in words is read, also what actions carry.

use crate::matter::long_text::graver;
use crate::matter::{RefusedText, said_before};
use conclave_core::{Candidate, Message, Mode, TurnContext};
use conclave_detect::{Detector, Reading};
use conclave_verifiers::{Case, words};
use std::sync::Arc;

/// From this score of the model of replies on, in hundredths, a reply reads as an answer to what was refused.
const ANSWERS_FROM: u8 = 10;

/// How long a reading may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As long as every tier needs.
    Every,
    /// Not long: a slow tier is not asked.
    Little,
}

/// What a case is made of.
#[derive(Clone, Debug)]
pub(crate) struct CaseMaterial {
    /// The conversation so far.
    pub conversation: Arc<[Message]>,
    /// The reply.
    pub candidate: Candidate,
    /// The circumstances.
    pub context: TurnContext,
    /// What the person's words were read as.
    pub input: Arc<Reading>,
    /// What was said earlier and the model was not shown.
    pub refused: Arc<[RefusedText]>,
    /// How it is read.
    pub mode: Mode,
}

impl CaseMaterial {
    /// Reads the reply, closely.
    pub(crate) fn read(&self, detector: &Detector, patience: Patience) -> Case {
        let said = said_before(&self.conversation);
        let read = |text: &str| match patience {
            Patience::Every => detector.read_reply(&said, text, self.mode),
            Patience::Little => detector.read_reply_at_once(&said, text, self.mode),
        };
        let text = words(&self.candidate);
        let reply = read(&text);
        let input = self.input_borne_out(detector, &text);
        let (candidate, context) = (self.candidate.clone(), self.context.clone());
        Case::new(Arc::clone(&self.conversation), candidate, context, input, reply)
            .read_closely(read)
    }

    /// What the person asks: also what was refused earlier, where the reply reads as an answer to that. Any other
    /// reply is not held against it.
    fn input_borne_out(&self, detector: &Detector, text: &str) -> Arc<Reading> {
        let mut input = self.input.clone();
        for RefusedText { text: asked, reading } in self.refused.iter() {
            let Some(refused) = reading else { continue };
            let reply = detector.read_reply(asked, text, self.mode).as_reply;
            if reply.is_some_and(|reply| reply.harm.hundredths() >= ANSWERS_FROM) {
                input = Arc::new(graver(Reading::clone(&input), Reading::clone(refused)));
            }
        }
        input
    }
}
