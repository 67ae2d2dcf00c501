//! A reply and its circumstances before they are read: what a case is made of.
//!
//! **Invariant:** everything that reaches the client in words is read, also what actions carry.

use crate::matter::said_before;
use conclave_core::{Candidate, Message, Mode, TurnContext};
use conclave_detect::{Detector, Reading};
use conclave_verifiers::{Case, words};
use std::sync::Arc;

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
        let reply = read(&words(&self.candidate));
        let (candidate, context) = (self.candidate.clone(), self.context.clone());
        Case::new(Arc::clone(&self.conversation), candidate, context, self.input.clone(), reply)
            .read_closely(read)
    }
}
