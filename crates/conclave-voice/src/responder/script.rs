//! The responder's words in one language: what it listens for and what it can say.

use crate::lexicon::Lexicon;
use crate::{Language, VoiceError, error};
use serde::Deserialize;
use std::collections::BTreeMap;

macro_rules! cues {
    ($($(#[$doc:meta])* $variant:ident = $field:ident,)*) => {
        /// Something in a message that shows what kind of message it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Cue { $($(#[$doc])* $variant,)* }

        impl Cue {
            pub(super) const ALL: &'static [Self] = &[$(Self::$variant,)*];
        }

        /// The words of each cue, as the file names them.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct CueFile { $($field: Vec<String>,)* }

        impl CueFile {
            fn lists(&self) -> Vec<&[String]> { vec![$(&self.$field,)*] }
        }
    };
}

cues! {
    Greeting = greeting,
    HowAreYou = how_are_you,
    Thanks = thanks,
    Goodbye = goodbye,
    Goodnight = goodnight,
    Apology = apology,
    Yes = yes,
    No = no,
    Unsure = unsure,
    Listen = listen,
    Stop = stop,
    Pushback = pushback,
    SelfKind = self_kind,
    SelfFeel = self_feel,
    SelfTaste = self_taste,
    SelfCan = self_can,
    Private = private,
    Advice = advice,
    GoodNews = good_news,
    Better = better,
    Praise = praise,
    HarmOthers = harm_others,
    Intent = intent,
    Crisis = crisis,
    Abuse = abuse,
    Panic = panic,
    SafeNow = safe_now,
    Personal = personal,
    Feels = feel_words,
    /// Small words of other languages.
    Foreign = foreign,
    /// Small words of this language.
    Native = native,
    Request = request,
    TaskStart = task_start,
    QuestionStart = question_start,
    She = she,
    He = he,
}

macro_rules! pools {
    ($($field:ident,)*) => {
        /// The sentences for each kind of message.
        #[derive(Clone, Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Pools { $(pub(super) $field: Vec<String>,)* }

        impl Pools {
            fn all(&self) -> Vec<(&'static str, &[String])> {
                vec![$((stringify!($field), &self.$field),)*]
            }
        }
    };
}

pools! {
    prelude_greeting, prelude_thanks, prelude_apology, prelude_listen,
    greeting_first, greeting_again, how_are_you, thanks, goodbye, goodnight, apology, yes, no,
    unsure, wordless, listen, stop, pushback, self_kind, self_feel, self_taste, self_can, private,
    praise,
    better, better_ask, good_news, good_news_ask, task, other_script, harm_others,
    crisis_present, crisis_heavy, crisis_help, crisis_safe, crisis_safe_ack, crisis_stay,
    abuse_present, abuse_help, panic_present,
    reflect_any, thread, person_reflect, person_ask, thing_reflect, thing_ask,
    validate_any, ask_any, ask_light, ask_later, invite_any, invite_light,
    person_light, loss_reflect, loss_ask, loss_options,
    advice_early, advice_lead, advice_any, advice_close, plan, plan_ask,
}

/// A feeling and what can be said to it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Feeling {
    words: Vec<String>,
    /// A pleasant one.
    #[serde(default)]
    pub(super) good: bool,
    pub(super) reflect: Vec<String>,
    /// What lets it be, where the person has named it.
    #[serde(default)]
    pub(super) named: Vec<String>,
    /// What lets it be, named or not.
    pub(super) validate: Vec<String>,
    pub(super) ask: Vec<String>,
}

/// Somebody or something that is talked about.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Topic {
    /// Each word, and how it is said back to the person.
    words: BTreeMap<String, String>,
    /// Somebody, not something.
    #[serde(default)]
    pub(super) person: bool,
    /// Nothing that weighs by itself.
    #[serde(default)]
    pub(super) light: bool,
    pub(super) reflect: Vec<String>,
    pub(super) ask: Vec<String>,
    pub(super) options: Vec<String>,
}

/// Something that happened.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Event {
    words: Vec<String>,
    /// The feeling that may be let be, where the person names none.
    pub(super) feeling: Option<String>,
    #[serde(default)]
    tone: Tone,
    /// Somebody was lost: after it, the lost are not spoken of as if they were there.
    #[serde(default)]
    pub(super) loss: bool,
    /// Something the person means to do.
    #[serde(default)]
    pub(super) plan: bool,
    /// Said back after the others: it tells how something happened.
    #[serde(default)]
    pub(super) follows: bool,
    pub(super) reflect: Vec<String>,
    pub(super) ask: Vec<String>,
    /// What may be offered to somebody who asks what to do about it.
    #[serde(default)]
    pub(super) options: Vec<String>,
}

/// How something that happened sounds by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Tone {
    /// Unwelcome.
    #[default]
    Heavy,
    /// Neither.
    Plain,
    /// Welcome.
    Good,
}

impl Event {
    pub(super) fn is_good(&self) -> bool {
        self.tone == Tone::Good
    }

    pub(super) fn is_heavy(&self) -> bool {
        self.tone == Tone::Heavy
    }

    pub(super) fn is_plain(&self) -> bool {
        self.tone == Tone::Plain
    }

    /// The unwelcome first, and what tells how something happened after it.
    pub(super) const fn order(&self) -> (u8, bool) {
        (self.tone as u8, self.follows)
    }
}

/// Names that only one of the pronouns can stand for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Gender {
    pub(super) female: Vec<String>,
    pub(super) male: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    cues: CueFile,
    pools: Pools,
    gender: Gender,
    feeling: BTreeMap<String, Feeling>,
    topic: BTreeMap<String, Topic>,
    event: BTreeMap<String, Event>,
}

/// Everything the responder knows in one language.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) language: Language,
    pub(super) pools: Pools,
    pub(super) gender: Gender,
    pub(super) feelings: Vec<(String, Feeling)>,
    pub(super) topics: Vec<Topic>,
    pub(super) events: Vec<Event>,
    /// For each word of the topic lexicon: which topic, and how it is said back.
    pub(super) names: Vec<(usize, String)>,
    pub(super) cue_words: Lexicon,
    pub(super) feeling_words: Lexicon,
    pub(super) topic_words: Lexicon,
    pub(super) event_words: Lexicon,
}

impl Script {
    pub(super) fn parse(language: Language, name: &str, text: &str) -> Result<Self, VoiceError> {
        let file: ScriptFile = error::parse(name, text)?;
        check(name, &file)?;
        let feelings: Vec<_> = file.feeling.into_iter().collect();
        let topics: Vec<_> = file.topic.into_values().collect();
        let events: Vec<_> = file.event.into_values().collect();
        let names = names(&topics);
        Ok(Self {
            cue_words: lexicon(name, file.cues.lists().into_iter())?,
            feeling_words: lexicon(name, feelings.iter().map(|(_, one)| one.words.as_slice()))?,
            topic_words: topic_lexicon(name, &topics)?,
            event_words: lexicon(name, events.iter().map(|one| one.words.as_slice()))?,
            language,
            pools: file.pools,
            gender: file.gender,
            feelings,
            topics,
            events,
            names,
        })
    }

    /// The feeling of this name.
    pub(super) fn feeling(&self, name: &str) -> Option<&Feeling> {
        self.feelings.iter().find(|(other, _)| other == name).map(|(_, feeling)| feeling)
    }

    /// What stands between two sentences.
    pub(super) const fn joint(&self) -> &'static str {
        match self.language {
            Language::English => " ",
            Language::Japanese => "",
        }
    }
}

/// Refuses a file in which something could not be answered.
fn check(name: &str, file: &ScriptFile) -> Result<(), VoiceError> {
    if let Some((pool, _)) = file.pools.all().iter().find(|(_, pool)| pool.is_empty()) {
        return Err(VoiceError::missing(name, format!("sentences in pool {pool}")));
    }
    let unknown = file
        .event
        .iter()
        .filter_map(|(event, data)| data.feeling.as_ref().map(|feeling| (event, feeling)))
        .find(|(_, feeling)| !file.feeling.contains_key(*feeling));
    match unknown {
        Some((event, feeling)) => {
            Err(VoiceError::missing(name, format!("feeling {feeling}, which event {event} names")))
        }
        None => Ok(()),
    }
}

fn lexicon<'a>(
    file: &str,
    lists: impl Iterator<Item = &'a [String]>,
) -> Result<Lexicon, VoiceError> {
    let words = lists
        .enumerate()
        .flat_map(|(list, words)| words.iter().map(move |word| (list, word.as_str())));
    Lexicon::build(file, words)
}

fn names(topics: &[Topic]) -> Vec<(usize, String)> {
    topics
        .iter()
        .enumerate()
        .flat_map(|(topic, data)| data.words.values().map(move |name| (topic, name.clone())))
        .collect()
}

/// Each word of a topic is a list of its own, in the order of [`names`].
fn topic_lexicon(file: &str, topics: &[Topic]) -> Result<Lexicon, VoiceError> {
    let words = topics.iter().flat_map(|topic| topic.words.keys());
    Lexicon::build(file, words.map(String::as_str).enumerate())
}
