//! Plays ten exchanges about a hard day with the built-in responder, in English and in Japanese.
//!
//! `cargo run -p conclave-voice --example hard_day [SEED]`

use conclave_core::{Message, Role, Score};
use conclave_voice::{Field, Responder};
use std::io::Write;

const ENGLISH: [&str; 10] = [
    "Hey. I had a really hard day.",
    "My boss yelled at me in front of the whole team.",
    "It wasn't even my mistake. A coworker sent the wrong file.",
    "I just stood there and couldn't say anything. I felt so small.",
    "Then I came home and had a fight with my husband about the dishes.",
    "I'm so tired. I haven't slept properly in weeks.",
    "What should I do?",
    "I don't know. Maybe I could talk to my sister.",
    "She called just now, actually. It helped a little.",
    "Thank you for listening. I'm going to bed now, good night.",
];

const JAPANESE: [&str; 10] = [
    "こんばんは。今日は本当につらい一日でした。",
    "上司にみんなの前で怒鳴られたんです。",
    "私のミスじゃないのに。同僚が間違ったファイルを送ったんです。",
    "何も言い返せなくて、ただ立っていました。情けなかったです。",
    "家に帰ったら、夫と皿洗いのことで喧嘩になってしまって。",
    "もう疲れました。何週間もちゃんと眠れていません。",
    "どうしたらいいんでしょうか。",
    "わかりません。姉に話してみようかな。",
    "さっき姉から電話がありました。少し楽になりました。",
    "聞いてくれてありがとう。もう寝ます。おやすみなさい。",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seed = match std::env::args().nth(1) {
        Some(seed) => seed.parse()?,
        None => 1,
    };
    let mut out = std::io::stdout().lock();
    for said in [ENGLISH, JAPANESE] {
        play(&mut out, &said, seed)?;
        writeln!(out)?;
    }
    Ok(())
}

fn play(
    out: &mut impl Write,
    said: &[&str],
    seed: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let (field, responder) = (Field::builtin()?, Responder::builtin()?);
    let mut conversation = Vec::new();
    for text in said {
        conversation.push(Message::text(Role::User, *text));
        let state = field.sense(&conversation, Score::ZERO, seed);
        let reply = responder.respond(&conversation, &state, Score::ZERO, &[], seed);
        writeln!(out, "> {text}\n{reply}\n")?;
        conversation.push(Message::text(Role::Assistant, reply));
    }
    Ok(())
}
