//! Answering what is told: a reflection, something that lets it be, an invitation.

use super::compose::Composer;
use super::reading::{Named, Reading};
use super::reply::Circumstances;
use super::script::{Cue, Event, Feeling, Script};

/// From which exchange on the talk may turn to what carries the person.
const LATER_FROM: usize = 6;

/// How many events of one message are said back.
const EVENTS_MAX: usize = 2;

/// What a reflection was about.
#[derive(Clone, Copy, Default)]
pub(super) struct About<'a> {
    /// The event that was said back last.
    event: Option<&'a Event>,
    /// More than one event was said back.
    several: bool,
    feeling: Option<&'a Feeling>,
    topic: Option<usize>,
}

pub(super) fn compose(
    composer: &mut Composer<'_>,
    reading: &Reading,
    circumstances: &Circumstances,
) {
    prelude(composer, reading);
    let may_ask = composer.memory.questions_running < 2 && !reading.has(Cue::Listen);
    composer.ask_nothing();
    let about = reflect(composer, reading, circumstances);
    if circumstances.fuller || !(circumstances.brief || about.several) {
        let_be(composer, reading, about);
    }
    if may_ask {
        composer.ask_again();
    }
    let close = if composer.memory.loss {
        vec![composer.script.pools.loss_ask.as_slice()]
    } else {
        asks(composer, reading, about)
    };
    go_on(composer, &close, reading.is_heavy(composer.script));
}

/// A word to the greeting, the thanks or the apology that came with it.
fn prelude(composer: &mut Composer<'_>, reading: &Reading) {
    let pools = &composer.script.pools;
    let preludes = [
        (Cue::Greeting, &pools.prelude_greeting),
        (Cue::Apology, &pools.prelude_apology),
        (Cue::Thanks, &pools.prelude_thanks),
        (Cue::Listen, &pools.prelude_listen),
    ];
    let fitting = preludes.into_iter().find(|(cue, _)| match cue {
        Cue::Greeting => reading.begins_with(*cue),
        _ => reading.has(*cue),
    });
    if let Some((_, pool)) = fitting {
        composer.add(pool);
    }
}

/// Says back what was heard: what happened, else who or what it is about, else what is felt.
pub(super) fn reflect<'a>(
    composer: &mut Composer<'a>,
    reading: &Reading,
    circumstances: &Circumstances,
) -> About<'a> {
    let script = composer.script;
    composer.name_person(who(composer, reading).as_ref());
    composer.name_topic(reading.topics.first());
    let told: Vec<&Event> = in_weight_order(script, reading)
        .into_iter()
        .filter(|event| composer.add(&event.reflect))
        .take(if circumstances.brief { 1 } else { EVENTS_MAX })
        .collect();
    if let Some(&event) = told.last() {
        return About { event: Some(event), several: told.len() > 1, ..About::default() };
    }
    reflect_feeling(composer, reading).or_else(|| reflect_topic(composer, reading)).unwrap_or_else(
        || {
            reflect_anything(composer);
            About::default()
        },
    )
}

/// The unwelcome events first: they are what a person comes with.
fn in_weight_order<'a>(script: &'a Script, reading: &Reading) -> Vec<&'a Event> {
    let mut events: Vec<&Event> =
        reading.events.iter().filter_map(|&at| script.events.get(at)).collect();
    events.sort_by_key(|event| event.order());
    // What was said by someone is worth saying back only where nothing else is.
    if events.iter().any(|event| !event.is_plain()) {
        events.retain(|event| !event.is_plain());
    }
    events
}

/// The feelings that were named, the unwelcome first.
fn felt<'a>(script: &'a Script, reading: &Reading) -> Vec<&'a Feeling> {
    let mut feelings: Vec<&Feeling> = reading
        .feelings
        .iter()
        .filter_map(|&at| script.feelings.get(at))
        .map(|(_, feeling)| feeling)
        .collect();
    feelings.sort_by_key(|feeling| feeling.good);
    feelings
}

fn reflect_feeling<'a>(composer: &mut Composer<'a>, reading: &Reading) -> Option<About<'a>> {
    let feeling = felt(composer.script, reading)
        .into_iter()
        .find(|feeling| composer.add(&feeling.reflect))?;
    Some(About { feeling: Some(feeling), ..About::default() })
}

fn reflect_topic<'a>(composer: &mut Composer<'a>, reading: &Reading) -> Option<About<'a>> {
    let script = composer.script;
    let heavy = composer.memory.heavy || reading.is_heavy(script);
    for named in &reading.topics {
        let Some(topic) = script.topics.get(named.topic) else {
            continue;
        };
        if composer.memory.loss || composer.memory.is_lost(named.topic) {
            continue;
        }
        composer.name_topic(Some(named));
        if topic.person {
            composer.name_person(Some(named));
        }
        let pools = &script.pools;
        let fitting: [&[String]; 2] = match (topic.person, heavy && !topic.light) {
            (true, true) => [&topic.reflect, &pools.person_reflect],
            (true, false) => [&pools.person_light, &[]],
            (false, true) => [&topic.reflect, &pools.thing_reflect],
            (false, false) => [&topic.reflect, &[]],
        };
        if composer.add_first(&fitting) {
            return Some(About { topic: Some(named.topic), ..About::default() });
        }
    }
    None
}

/// Nothing was recognised: the thread of the talk, or that it was heard.
fn reflect_anything(composer: &mut Composer<'_>) {
    let pools = &composer.script.pools;
    if composer.memory.loss && composer.add(&pools.loss_reflect) {
        return;
    }
    let thread = composer.memory.heavy && composer.chance(2);
    if thread {
        composer.name_topic(composer.memory.thread(composer.script));
    }
    if !(thread && composer.add(&pools.thread)) {
        composer.add(&pools.reflect_any);
    }
}

/// Lets what is felt be: by name where it was named, else as such things go.
fn let_be(composer: &mut Composer<'_>, reading: &Reading, about: About<'_>) {
    let script = composer.script;
    if let Some(event) = about.event.filter(|event| event.is_good()) {
        if event.plan {
            composer.add(&script.pools.plan);
        } else if composer.memory.heavy {
            composer.add(&script.pools.better);
        }
        return;
    }
    let named = felt(script, reading)
        .into_iter()
        .any(|feeling| composer.add_first(&[&feeling.named, &feeling.validate]));
    if named {
        return;
    }
    let implied = about
        .event
        .and_then(|event| event.feeling.as_deref())
        .and_then(|name| script.feeling(name));
    let light = about.topic.and_then(|at| script.topics.get(at)).is_some_and(|topic| topic.light);
    let lets_be = implied.is_some_and(|feeling| composer.add(&feeling.validate));
    if !lets_be && !light && (reading.is_heavy(script) || composer.memory.heavy) {
        composer.add(&script.pools.validate_any);
    }
}

/// The questions that fit what was reflected, the closest first.
fn asks<'a>(composer: &Composer<'a>, reading: &Reading, about: About<'a>) -> Vec<&'a [String]> {
    let (script, memory) = (composer.script, composer.memory);
    let mut pools: Vec<&[String]> = Vec::new();
    if let Some(event) = about.event {
        pools.push(&event.ask);
        if event.plan {
            pools.push(&script.pools.plan_ask);
        }
    }
    if let Some(feeling) = about.feeling {
        pools.push(&feeling.ask);
    }
    let topics = about
        .topic
        .into_iter()
        .chain(reading.topics.iter().map(|named| named.topic))
        .filter(|&at| !memory.is_lost(at));
    for topic in topics.filter_map(|at| script.topics.get(at)) {
        pools.push(&topic.ask);
        if reading.is_heavy(script) {
            pools.push(if topic.person {
                &script.pools.person_ask
            } else {
                &script.pools.thing_ask
            });
        }
    }
    pools
}

/// One question that fits, or an invitation without one.
pub(super) fn go_on<'a>(composer: &mut Composer<'a>, close: &[&'a [String]], heavy: bool) {
    let pools = &composer.script.pools;
    if composer.may_ask() {
        let later = composer.memory.exchange >= LATER_FROM && composer.chance(3);
        let general: &[String] =
            if heavy || composer.memory.heavy { &pools.ask_any } else { &pools.ask_light };
        let asked = (later && composer.add(&pools.ask_later))
            || composer.add_first(close)
            || composer.add_first(&[general, &pools.ask_later]);
        if asked {
            return;
        }
    }
    composer.ask_nothing();
    let light = !heavy && !composer.memory.heavy && composer.memory.exchange > 1;
    composer.add(if light { &pools.invite_light } else { &pools.invite_any });
}

/// Who is meant: the person that was named, else the one that was talked about.
pub(super) fn who(composer: &Composer<'_>, reading: &Reading) -> Option<Named> {
    reading
        .person(composer.script)
        .or_else(|| composer.memory.person(composer.script, reading))
        .cloned()
}
