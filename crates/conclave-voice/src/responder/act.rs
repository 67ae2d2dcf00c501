//! What kind of message it is: what an answer has to be about.

use super::howto::Howtos;
use super::reading::Reading;
use super::script::{Cue, Script};
use crate::Language;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// The person may be in danger.
    Crisis,
    /// Anger that could turn against someone.
    HarmOthers,
    /// A practical question that is in the file.
    Howto(usize),
    /// A request that needs a model.
    Task,
    /// What should I do?
    Advice,
    SelfKind,
    SelfFeel,
    SelfTaste,
    SelfCan,
    Private,
    Greeting,
    HowAreYou,
    Thanks,
    Goodbye,
    Goodnight,
    Apology,
    Listen,
    /// No more of this.
    Stop,
    Pushback,
    Praise,
    GoodNews,
    Better,
    Yes,
    No,
    Unsure,
    Wordless,
    OtherScript,
    /// Something is told.
    Share,
}

/// What is known when a message is weighed.
pub(super) struct Weighing<'a> {
    pub(super) script: &'a Script,
    pub(super) howtos: &'a Howtos,
    pub(super) reading: &'a Reading,
    pub(super) text: &'a str,
    pub(super) crisis: bool,
    /// Something of the person's life has been talked about before.
    pub(super) emotional_before: bool,
}

impl Weighing<'_> {
    /// The kind of the message; the weightiest wins.
    pub(super) fn act(&self) -> Act {
        self.grave()
            .or_else(|| self.practical())
            .or_else(|| self.about_the_talk())
            .or_else(|| self.courtesy())
            .or_else(|| self.brief())
            .unwrap_or(Act::Share)
    }

    fn has(&self, cue: Cue) -> bool {
        self.reading.has(cue)
    }

    /// Whether it opens as such a message does: in English with the word, in Japanese anywhere,
    /// since there the verb comes last.
    fn opens(&self, cue: Cue) -> bool {
        match self.script.language {
            Language::English => self.reading.begins_with(cue),
            Language::Japanese => self.reading.has(cue),
        }
    }

    fn is_heavy(&self) -> bool {
        self.reading.is_heavy(self.script)
    }

    fn is_emotional(&self) -> bool {
        self.reading.is_emotional(self.script)
    }

    fn grave(&self) -> Option<Act> {
        if self.crisis || self.has(Cue::Crisis) {
            Some(Act::Crisis)
        } else if !self.reading.has_words {
            Some(Act::Wordless)
        } else if self.reading.foreign {
            Some(Act::OtherScript)
        } else if self.has(Cue::HarmOthers) && self.has(Cue::Intent) {
            Some(Act::HarmOthers)
        } else {
            None
        }
    }

    fn practical(&self) -> Option<Act> {
        let asks = self.reading.question || self.has(Cue::Request) || self.opens(Cue::TaskStart);
        if asks
            && !self.is_heavy()
            && self.reading.words <= 40
            && let Some(howto) = self.howtos.find(self.script.language, self.text)
        {
            return Some(Act::Howto(howto));
        }
        if self.has(Cue::Advice) && !self.has(Cue::SelfKind) {
            let personal = self.emotional_before || self.is_emotional();
            return Some(if personal { Act::Advice } else { Act::Task });
        }
        None
    }

    /// Questions about the responder, and wishes about how to talk.
    fn about_the_talk(&self) -> Option<Act> {
        let short = self.reading.words <= 16;
        let cues = [
            (Cue::Private, Act::Private, true),
            (Cue::Stop, Act::Stop, short),
            (Cue::Pushback, Act::Pushback, short),
            (Cue::SelfKind, Act::SelfKind, short),
            (Cue::SelfFeel, Act::SelfFeel, short),
            (Cue::Listen, Act::Listen, !self.is_heavy() && !self.has(Cue::Thanks) && short),
            (Cue::SelfTaste, Act::SelfTaste, !self.is_heavy()),
        ];
        cues.into_iter()
            .find(|(cue, _, fits)| *fits && self.has(*cue))
            .map(|(_, act, _)| act)
            .or_else(|| self.is_task().then_some(Act::Task))
    }

    /// Something is to be written, looked up or explained, and it is not about the person's own
    /// life.
    fn is_task(&self) -> bool {
        let ordered = self.opens(Cue::TaskStart) && !(self.has(Cue::Personal) && self.is_heavy());
        let of_the_world = !self.has(Cue::Personal) && self.reading.words >= 4;
        let asked = self.opens(Cue::QuestionStart)
            && (self.reading.question || self.has(Cue::Request) || of_the_world)
            && !self.is_emotional();
        let out_of_the_blue =
            self.reading.question && !self.is_emotional() && !self.emotional_before;
        (ordered || asked || out_of_the_blue)
            && !self.has(Cue::SelfCan)
            && !self.has(Cue::HowAreYou)
    }

    fn courtesy(&self) -> Option<Act> {
        let light = !self.is_heavy();
        let bare = !self.is_emotional() && self.reading.words <= 14;
        let cues = [
            (Cue::Goodnight, Act::Goodnight, light),
            (Cue::Goodbye, Act::Goodbye, light),
            (Cue::GoodNews, Act::GoodNews, light),
            (Cue::Better, Act::Better, light),
            (Cue::Praise, Act::Praise, light),
            (Cue::Thanks, Act::Thanks, bare),
            (Cue::Apology, Act::Apology, light && self.reading.words <= 14),
            (Cue::HowAreYou, Act::HowAreYou, bare),
            (Cue::SelfCan, Act::SelfCan, bare),
            (Cue::Greeting, Act::Greeting, bare && !self.reading.has_content()),
        ];
        cues.into_iter().find(|(cue, _, fits)| *fits && self.has(*cue)).map(|(_, act, _)| act)
    }

    /// An answer of a word or two.
    fn brief(&self) -> Option<Act> {
        if self.reading.has_content() || self.reading.words > 10 {
            return None;
        }
        let few = self.reading.words <= 6;
        [(Cue::Unsure, Act::Unsure, true), (Cue::Yes, Act::Yes, few), (Cue::No, Act::No, few)]
            .into_iter()
            .find(|(cue, _, fits)| *fits && self.has(*cue))
            .map(|(_, act, _)| act)
    }
}
