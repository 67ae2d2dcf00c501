//! What is said to each kind of message.

use super::act::Act;
use super::compose::Composer;
use super::reading::{Named, Reading};
use super::script::{Cue, Pools};
use super::share;
use crate::FieldState;
use conclave_core::Reason;

/// From which exchange on advice may be given, to someone who asks for it.
const ADVICE_FROM: usize = 5;

/// How many possibilities are named at once.
const OPTIONS_MAX: usize = 2;

/// How a reply has to turn out, beside what it is about.
pub(super) struct Circumstances {
    /// A sentence less: the person says little, or the field is sparse.
    pub(super) brief: bool,
    /// A sentence more: an earlier attempt was found too short or too cold.
    pub(super) fuller: bool,
    /// No advice, whatever the exchange.
    no_advice: bool,
    /// An earlier attempt lacked a word on where help is.
    name_help: bool,
}

impl Circumstances {
    pub(super) fn new(reading: &Reading, field: &FieldState, reasons: &[Reason]) -> Self {
        let objected =
            |objections: &[Reason]| objections.iter().any(|objection| reasons.contains(objection));
        let fuller = objected(&[Reason::TooShort, Reason::Cold, Reason::Silence]);
        Self {
            brief: !fuller && (field.word_density < 0.34 || reading.words <= 3),
            fuller,
            no_advice: objected(&[Reason::PrematureAdvice, Reason::Lectures]),
            name_help: objected(&[Reason::MissingResources]),
        }
    }
}

/// Composes the reply to a message of this kind; never nothing.
pub(super) fn compose(
    composer: &mut Composer<'_>,
    act: Act,
    reading: &Reading,
    circumstances: &Circumstances,
) {
    let pools = &composer.script.pools;
    match act {
        Act::Crisis => crisis(composer, reading),
        Act::Advice => advice(composer, reading, circumstances),
        Act::Goodnight => farewell(composer, &pools.goodnight, reading),
        Act::Goodbye => farewell(composer, &pools.goodbye, reading),
        Act::GoodNews => good_news(composer, reading),
        Act::Better => better(composer, reading),
        Act::Yes => short_answer(composer, &pools.yes, circumstances),
        Act::No => short_answer(composer, &pools.no, circumstances),
        Act::Unsure => unsure(composer),
        Act::Share => share::compose(composer, reading, circumstances),
        _ => composer.add_surely(plain_pool(pools, act, composer.memory.exchange)),
    }
    if circumstances.name_help && act != Act::Crisis {
        composer.ask_nothing();
        composer.add(&pools.crisis_help);
    }
    if composer.is_empty() {
        composer.add_surely(&pools.reflect_any);
    }
}

/// The pool of a kind of message that one text answers.
const fn plain_pool(pools: &Pools, act: Act, exchange: usize) -> &Vec<String> {
    match act {
        Act::HarmOthers => &pools.harm_others,
        Act::Task => &pools.task,
        Act::SelfKind => &pools.self_kind,
        Act::SelfFeel => &pools.self_feel,
        Act::SelfTaste => &pools.self_taste,
        Act::SelfCan => &pools.self_can,
        Act::Private => &pools.private,
        Act::Greeting if exchange == 1 => &pools.greeting_first,
        Act::Greeting => &pools.greeting_again,
        Act::HowAreYou => &pools.how_are_you,
        Act::Thanks => &pools.thanks,
        Act::Apology => &pools.apology,
        Act::Listen => &pools.listen,
        Act::Stop => &pools.stop,
        Act::Pushback => &pools.pushback,
        Act::Praise => &pools.praise,
        Act::Wordless => &pools.wordless,
        Act::OtherScript => &pools.other_script,
        _ => &pools.reflect_any,
    }
}

/// Present, warm, with a word on help and one question: whether the person is safe.
fn crisis(composer: &mut Composer<'_>, reading: &Reading) {
    let pools = &composer.script.pools;
    let (present, help) = if reading.has(Cue::Crisis) {
        (&pools.crisis_present, &pools.crisis_help)
    } else if reading.has(Cue::Abuse) {
        (&pools.abuse_present, &pools.abuse_help)
    } else if reading.has(Cue::SafeNow) {
        (&pools.crisis_safe_ack, &pools.crisis_help)
    } else if reading.has(Cue::Panic) {
        (&pools.panic_present, &pools.crisis_help)
    } else {
        (&pools.crisis_present, &pools.crisis_help)
    };
    let heavy = !reading.has(Cue::Abuse) && !reading.has(Cue::SafeNow);
    composer.add_surely(present);
    if heavy && composer.sentences() < 2 {
        composer.add(&pools.crisis_heavy);
    }
    composer.add_surely(help);
    let safe = !reading.has(Cue::Crisis) && reading.has(Cue::SafeNow);
    composer.add_surely(if safe { &pools.crisis_stay } else { &pools.crisis_safe });
}

/// Before the fifth exchange a question back; after it one or two possibilities, to take or leave.
fn advice(composer: &mut Composer<'_>, reading: &Reading, circumstances: &Circumstances) {
    let pools = &composer.script.pools;
    let too_early = composer.memory.exchange < ADVICE_FROM
        || circumstances.no_advice
        || composer.memory.listen_only;
    if too_early {
        composer.ask_nothing();
        share::reflect(composer, reading, circumstances);
        composer.ask_again();
        composer.add_surely(&pools.advice_early);
        return;
    }
    composer.add(&pools.advice_lead);
    let memory = composer.memory;
    let mut options = usize::from(memory.knows_loss() && composer.add(&pools.loss_options));
    options += event_options(composer, reading);
    let main =
        reading.topics.first().or_else(|| memory.main_topic()).or(memory.latest_person.as_ref());
    for named in [main, memory.latest_topic.as_ref()].into_iter().flatten() {
        let fits = options < OPTIONS_MAX && !memory.is_lost(named.topic);
        options += usize::from(fits && option(composer, named));
    }
    if options < OPTIONS_MAX {
        composer.add(&pools.advice_any);
    }
    composer.add_surely(&pools.advice_close);
}

/// Up to two possibilities that have to do with what the question is about.
fn event_options(composer: &mut Composer<'_>, reading: &Reading) -> usize {
    let script = composer.script;
    let events = reading.events.iter().filter_map(|&at| script.events.get(at));
    events.map(|event| (0..OPTIONS_MAX).filter(|_| composer.add(&event.options)).count()).sum()
}

/// One possibility that has to do with the topic, where there is one.
fn option(composer: &mut Composer<'_>, named: &Named) -> bool {
    let Some(topic) = composer.script.topics.get(named.topic).filter(|topic| !topic.light) else {
        return false;
    };
    composer.name_topic(Some(named));
    composer.name_person(topic.person.then_some(named));
    composer.add(&topic.options)
}

fn farewell<'a>(composer: &mut Composer<'a>, pool: &'a [String], reading: &Reading) {
    if reading.has(Cue::Thanks) {
        composer.add(&composer.script.pools.prelude_thanks);
    }
    composer.add_surely(pool);
}

fn good_news(composer: &mut Composer<'_>, reading: &Reading) {
    let script = composer.script;
    composer.add_surely(&script.pools.good_news);
    let feeling = reading
        .feelings
        .iter()
        .filter_map(|&at| script.feelings.get(at))
        .map(|(_, feeling)| feeling)
        .find(|feeling| feeling.good);
    if let Some(feeling) = feeling {
        composer.add(&feeling.validate);
    }
    composer.add(&script.pools.good_news_ask);
}

fn better(composer: &mut Composer<'_>, reading: &Reading) {
    let script = composer.script;
    composer.name_person(share::who(composer, reading).as_ref());
    let event =
        reading.events.iter().filter_map(|&at| script.events.get(at)).find(|event| event.is_good());
    composer.ask_nothing();
    if let Some(event) = event {
        composer.add(&event.reflect);
    }
    if reading.has(Cue::Thanks) && event.is_none() {
        composer.add(&script.pools.prelude_thanks);
    }
    composer.add_surely(&script.pools.better);
    if composer.memory.questions_running < 2 {
        composer.ask_again();
    }
    composer.add(&script.pools.better_ask);
}

fn short_answer<'a>(
    composer: &mut Composer<'a>,
    pool: &'a [String],
    circumstances: &Circumstances,
) {
    composer.add_surely(pool);
    if composer.memory.heavy && (circumstances.fuller || composer.chance(2)) {
        let thread = composer.memory.thread(composer.script);
        composer.name_topic(thread);
        composer.add(&composer.script.pools.thread);
    }
    share::go_on(composer, &[], false);
}

fn unsure(composer: &mut Composer<'_>) {
    let pools = &composer.script.pools;
    composer.add_surely(&pools.unsure);
    if composer.memory.heavy && composer.chance(2) {
        share::go_on(composer, &[], false);
    } else {
        composer.ask_nothing();
        composer.add(&pools.invite_any);
    }
}
