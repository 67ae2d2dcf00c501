//! Many ordinary conversations keep the responder's promises, whatever the seed.

#![expect(clippy::expect_used, reason = "a test says what it expects of the data compiled in")]

use conclave_core::{Message, Role, Score};
use conclave_voice::{Field, Responder, shape};
use std::collections::BTreeSet;
use std::sync::LazyLock;

static FIELD: LazyLock<Field> = LazyLock::new(|| Field::builtin().expect("well-formed data"));
static RESPONDER: LazyLock<Responder> =
    LazyLock::new(|| Responder::builtin().expect("well-formed data"));

/// Conversations, one message of the person a line, apart by an empty line.
const CONVERSATIONS: [&str; 2] =
    [include_str!("conversations/en.txt"), include_str!("conversations/ja.txt")];

fn questions(reply: &str) -> usize {
    reply.matches(['?', '？']).count() + reply.matches("か。").count()
}

fn sentences(reply: &str) -> impl Iterator<Item = &str> {
    reply
        .split_inclusive(['.', '!', '?', '。', '？'])
        .map(str::trim)
        .filter(|sentence| sentence.chars().any(char::is_alphabetic))
}

/// Plays one conversation and hands each message with its reply to `check`.
fn play(said: &str, seed: u64, mut check: impl FnMut(&str, &str)) {
    let (field, responder) = (&FIELD, &RESPONDER);
    let mut conversation = Vec::new();
    for text in said.lines() {
        conversation.push(Message::text(Role::User, text));
        let state = field.sense(&conversation, Score::ZERO, seed);
        assert!(shape(&state, "en").temperature > 0.0);
        let reply = responder.respond(&conversation, &state, Score::ZERO, &[], seed);
        check(text, &reply);
        conversation.push(Message::text(Role::Assistant, reply));
    }
}

fn each_conversation(mut check: impl FnMut(&str, u64)) {
    for said in CONVERSATIONS.iter().flat_map(|file| file.split("\n\n")) {
        for seed in 0..8 {
            check(said.trim(), seed);
        }
    }
}

#[test]
fn every_message_is_answered_with_at_most_one_question_and_no_sentence_twice() {
    each_conversation(|said, seed| {
        let mut before = BTreeSet::new();
        play(said, seed, |text, reply| {
            assert!(!reply.trim().is_empty(), "{text}");
            assert!(questions(reply) <= 1, "{text}\n{reply}");
            assert!(!reply.contains(['{', '}']), "{text}\n{reply}");
            for sentence in sentences(reply) {
                assert!(before.insert(sentence.to_owned()), "{text}\n{reply}\nagain: {sentence}");
            }
        });
    });
}

#[test]
fn after_a_death_nobody_is_spoken_of_as_if_they_were_there() {
    each_conversation(|said, seed| {
        let mut dead = false;
        play(said, seed, |text, reply| {
            dead |= text.contains("dog died") || text.contains("犬が死にました");
            for presence in
                ["Your dog doesn't", "What is your dog like", "with your dog", "ワンちゃん"]
            {
                assert!(!(dead && reply.contains(presence)), "{text}\n{reply}");
            }
        });
    });
}

#[test]
fn plural_people_take_plural_verbs() {
    each_conversation(|said, seed| {
        play(said, seed, |text, reply| {
            let lower = reply.to_lowercase();
            for plural in ["friends", "parents", "kids", "colleagues", "coworkers"] {
                for verb in ["is", "has", "was", "matters", "sounds", "knows"] {
                    let wrong = format!("your {plural} {verb} ");
                    assert!(!lower.contains(&wrong), "{text}\n{reply}");
                }
            }
        });
    });
}
