//! Ten exchanges about a hard day read like a kind and sane listener, whatever the seed.

#![expect(clippy::expect_used, reason = "a test says what it expects of the data compiled in")]

#[path = "../examples/hard_day/script.rs"]
mod script;

use conclave_core::{Message, Role, Score};
use conclave_voice::{Field, Language, Responder};
use std::collections::BTreeSet;
use std::sync::LazyLock;

const SEEDS: u64 = 60;

static FIELD: LazyLock<Field> = LazyLock::new(|| Field::builtin().expect("well-formed data"));
static RESPONDER: LazyLock<Responder> =
    LazyLock::new(|| Responder::builtin().expect("well-formed data"));

/// The replies to these messages, with the field as the engine would sense it.
fn play(said: &[&str], seed: u64) -> Vec<String> {
    let (field, responder) = (&FIELD, &RESPONDER);
    let mut conversation = Vec::new();
    let mut replies = Vec::new();
    for text in said {
        conversation.push(Message::text(Role::User, *text));
        let state = field.sense(&conversation, Score::ZERO, seed);
        let reply = responder.respond(&conversation, &state, Score::ZERO, &[], seed);
        conversation.push(Message::text(Role::Assistant, reply.clone()));
        replies.push(reply);
    }
    replies
}

fn each_talk(check: impl Fn(Language, &[String])) {
    for seed in 0..SEEDS {
        check(Language::English, &play(&script::ENGLISH, seed));
        check(Language::Japanese, &play(&script::JAPANESE, seed));
    }
}

fn sentences(reply: &str) -> impl Iterator<Item = &str> {
    reply
        .split_inclusive(['.', '!', '?', '。', '？'])
        .map(str::trim)
        .filter(|sentence| !sentence.is_empty())
}

#[test]
fn no_sentence_is_said_twice_and_nobody_is_met_with_silence() {
    each_talk(|_, replies| {
        let mut said = BTreeSet::new();
        for reply in replies {
            assert!(sentences(reply).count() >= 2, "{reply}");
            assert!(reply.chars().count() <= 600, "{reply}");
            for sentence in sentences(reply) {
                assert!(said.insert(sentence.to_owned()), "{sentence}\n{replies:#?}");
            }
        }
    });
}

#[test]
fn at_most_one_question_a_reply_and_never_more_than_two_replies_in_a_row_ask() {
    each_talk(|_, replies| {
        let asks =
            |reply: &String| reply.matches(['?', '？']).count() + reply.matches("か。").count();
        for reply in replies {
            assert!(asks(reply) <= 1, "{reply}");
        }
        // The seventh message asks what to do; the answer to that may ask back whatever came
        // before.
        for three in replies[..6].windows(3) {
            assert!(three.iter().any(|reply| asks(reply) == 0), "{three:#?}");
        }
    });
}

#[test]
fn no_advice_before_the_fifth_exchange() {
    const ADVICE: [&str; 22] = [
        "you should",
        "you could",
        "you need to",
        "you must",
        "you have to ",
        "try to",
        "try ",
        "why don't you",
        "have you tried",
        "have you considered",
        "i suggest",
        "i recommend",
        "i advise",
        "make sure",
        "it might help",
        "it can help",
        "ましょう",
        "したほうがい",
        "した方がい",
        "してみては",
        "べきです",
        "おすすめ",
    ];
    each_talk(|_, replies| {
        for reply in &replies[..4] {
            let reply = reply.to_lowercase();
            for advice in ADVICE {
                assert!(!reply.contains(advice), "{advice}: {reply}");
            }
        }
    });
}

#[test]
fn who_asks_what_to_do_after_that_is_given_something_to_take_or_leave() {
    each_talk(|language, replies| {
        let options: &[&str] = match language {
            Language::English => {
                &["can be", "sometimes", "can take", "keeps", "can make", "can tell"]
            }
            Language::Japanese => {
                &["ことがあります", "こともあります", "という人もいます", "手です"]
            }
        };
        let reply = &replies[6];
        assert!(options.iter().any(|option| reply.contains(option)), "{reply}");
    });
}

/// What each reply has to be about: one of these has to occur. The lists are the words that the
/// sentences for that message share, so that a reply to something else would not pass.
#[test]
fn every_reply_answers_its_message() {
    let english: [&[&str]; 10] = [
        &["day", "rough one"],
        &["shout", "voice"],
        &["blame", "yours to begin", "unjust", "didn't order"],
        &["no words", "still", "stood there"],
        &["husband", "fight like that", "quiet"],
        &["night", "sleep"],
        &["sleep", "husband", "worries", "quarter of an hour"],
        &["sister", "imagine", "thought"],
        &["somebody was there", "voice", "your sister", "yours to carry"],
        &["night", "sleep", "rest", "got through"],
    ];
    let japanese: [&[&str]; 10] = [
        &["一日", "そういう日"],
        &["怒鳴", "声"],
        &["引き受け", "責められる", "身に覚え"],
        &["言葉が出ない", "固まって", "こらえて"],
        &["旦那さん", "けんか", "静けさ"],
        &["夜", "眠"],
        &["眠", "旦那さん", "心配"],
        &["お姉さん", "考え", "思い浮かんだ"],
        &["お姉さん", "いてくれる人", "持たなくて"],
        &["おやすみ", "休んで", "夜"],
    ];
    each_talk(|language, replies| {
        let expected = match language {
            Language::English => english,
            Language::Japanese => japanese,
        };
        for (reply, words) in replies.iter().zip(expected) {
            let lower = reply.to_lowercase();
            assert!(words.iter().any(|word| lower.contains(word)), "{words:?}: {reply}");
        }
    });
}

#[test]
fn seeds_vary_the_words_and_the_same_seed_repeats_them() {
    for said in [script::ENGLISH, script::JAPANESE] {
        assert_eq!(play(&said, 7), play(&said, 7));
        let openings: BTreeSet<String> =
            (0..SEEDS).map(|seed| play(&said, seed).remove(1)).collect();
        assert!(openings.len() >= 5, "{openings:#?}");
    }
}
