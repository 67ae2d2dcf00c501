//! What the built-in responder says, and what it never says.

use super::*;
use crate::Field;
use conclave_core::Role;
use proptest::prelude::*;
use std::sync::LazyLock;

static RESPONDER: LazyLock<Responder> = LazyLock::new(|| Responder::builtin().unwrap());
static FIELD: LazyLock<Field> = LazyLock::new(|| Field::builtin().unwrap());

fn responder() -> &'static Responder {
    &RESPONDER
}

/// Plays a conversation without crisis and gives the last reply.
fn after(said: &[&str], seed: u64) -> String {
    play(said, Score::ZERO, seed).pop().unwrap()
}

fn play(said: &[&str], crisis: Score, seed: u64) -> Vec<String> {
    let (field, responder) = (&FIELD, responder());
    let mut conversation = Vec::new();
    let mut replies = Vec::new();
    for text in said {
        conversation.push(Message::text(Role::User, *text));
        let state = field.sense(&conversation, crisis, seed);
        let reply = responder.respond(&conversation, &state, crisis, &[], seed);
        conversation.push(Message::text(Role::Assistant, reply.clone()));
        replies.push(reply);
    }
    replies
}

fn act(said: &[&str]) -> Act {
    let responder = responder();
    let conversation: Vec<_> = said.iter().map(|text| Message::text(Role::User, *text)).collect();
    let script = responder.script(Language::of_conversation(&conversation));
    let (memory, last) = Memory::of(script, &conversation);
    let text = last.unwrap().content.as_text();
    let reading = Reading::of(script, &text);
    responder.weigh(script, &reading, &text, Score::ZERO, &memory)
}

fn questions(reply: &str) -> usize {
    reply.matches(['?', '？']).count() + reply.matches("か。").count()
}

#[test]
fn messages_are_taken_for_what_they_are() {
    for (text, expected) in [
        ("hi", Act::Greeting),
        ("Hello, how are you?", Act::HowAreYou),
        ("Hey. I had a hard day.", Act::Share),
        ("thanks a lot", Act::Thanks),
        ("bye, see you", Act::Goodbye),
        ("Thank you. Good night", Act::Goodnight),
        ("I try to sleep but I can't sleep", Act::Share),
        ("sorry for rambling", Act::Apology),
        ("I just want to vent", Act::Listen),
        ("you don't understand", Act::Pushback),
        ("are you a robot?", Act::SelfKind),
        ("what should I call you?", Act::SelfKind),
        ("do you have feelings?", Act::SelfFeel),
        ("do you like football?", Act::SelfTaste),
        ("is this private?", Act::Private),
        ("can you help me?", Act::SelfCan),
        ("I got the job!", Act::GoodNews),
        ("that helped, thank you", Act::Better),
        ("yes", Act::Yes),
        ("not really", Act::No),
        ("I don't know", Act::Unsure),
        ("...", Act::Wordless),
        ("😔", Act::Wordless),
        ("Привет, мне грустно", Act::OtherScript),
        ("Hola, estoy muy triste", Act::OtherScript),
        ("I could hurt someone", Act::HarmOthers),
        ("I want to punch him", Act::HarmOthers),
        ("he wanted to hit her and she left", Act::Share),
        ("What is the capital of France?", Act::Task),
        ("write me a poem about the sea", Act::Task),
        ("How do I fix my bike?", Act::Task),
        ("My boss hates me, what should I do?", Act::Advice),
        ("Why does my boss always shout at me?", Act::Share),
        ("What's wrong with me?", Act::Share),
        ("I don't want to be here anymore", Act::Crisis),
        ("こんにちは", Act::Greeting),
        ("元気ですか？", Act::HowAreYou),
        ("ありがとうございます", Act::Thanks),
        ("おやすみなさい", Act::Goodnight),
        ("さようなら", Act::Goodbye),
        ("愚痴ばかりでごめんなさい", Act::Apology),
        ("ただ聞いてほしい", Act::Listen),
        ("全然わかってない", Act::Pushback),
        ("あなたは人間ですか", Act::SelfKind),
        ("感情はありますか", Act::SelfFeel),
        ("秘密は守ってくれますか", Act::Private),
        ("合格しました！", Act::GoodNews),
        ("少し楽になりました", Act::Better),
        ("はい", Act::Yes),
        ("いいえ", Act::No),
        ("わかりません", Act::Unsure),
        ("……", Act::Wordless),
        ("殴りたいくらいです", Act::HarmOthers),
        ("フランスの首都はどこですか", Act::Task),
        ("海の詩を書いてください", Act::Task),
        ("上司が怖いです。どうしたらいいですか", Act::Advice),
        ("もう死にたい", Act::Crisis),
        ("你这是什么", Act::OtherScript),
    ] {
        assert_eq!(act(&[text]), expected, "{text}");
    }
}

#[test]
fn what_to_do_is_a_task_out_of_the_blue_and_a_plea_in_a_talk() {
    assert_eq!(act(&["What should I do with old batteries?"]), Act::Task);
    assert_eq!(act(&["My mother is ill.", "What should I do?"]), Act::Advice);
}

#[test]
fn practical_questions_are_answered() {
    for (text, part) in [
        ("how do I kill a Python process", "pgrep -fl python"),
        ("How can I stop a process?", "kill PID"),
        ("how to drop a table in sql", "DROP TABLE"),
        ("How do I undo my last git commit?", "git reset --soft"),
        ("how do I exit vim", ":wq"),
        ("how long do I boil eggs?", "minutes for soft"),
        ("bread recipe please", "yeast"),
        ("how do I delete a file", "rm NAME"),
        ("How do I kill the weeds in my garden?", "mulch"),
        ("What's the best way to kill time at the airport?", "first chapter"),
        ("Pythonのプロセスを止める方法を教えて", "pgrep -fl python"),
        ("gitのコミットを取り消したいのですが", "git reset --soft"),
        ("ゆで卵の作り方を教えてください", "半熟"),
        ("パンのレシピを教えて", "強力粉"),
    ] {
        let reply = after(&[text], 1);
        assert!(reply.contains(part), "{text}: {reply}");
    }
    let told = after(&["I had to kill a process at work and my boss yelled at me"], 1);
    assert!(!told.contains("kill PID"), "{told}");
}

#[test]
fn what_needs_a_model_is_sent_away_honestly() {
    for text in
        ["What is the capital of France?", "Translate this into German", "小説を書いてください"]
    {
        for seed in 0..10 {
            let reply = after(&[text], seed);
            assert!(reply.contains("model") || reply.contains("モデル"), "{reply}");
        }
    }
}

#[test]
fn it_is_honest_about_itself() {
    for text in ["are you human?", "do you love me?", "あなたは人間ですか", "感情はありますか"]
    {
        for seed in 0..10 {
            let reply = after(&[text], seed);
            let honest = [
                "program",
                "No human",
                "no feelings",
                "nothing felt",
                "can't care",
                "プログラム",
                "心がない",
                "人のように思うことはできない",
            ];
            assert!(honest.iter().any(|part| reply.contains(part)), "{reply}");
        }
    }
}

#[test]
fn a_crisis_is_met_present_and_with_a_way_to_people() {
    for text in [
        "I want to kill myself",
        "I don't want to be here anymore",
        "he hits me",
        "I'm having a panic attack",
        "everything is grey",
        "...",
        "もう死にたい",
        "夫に殴られました",
        "パニックです",
        "しずかな夜です",
    ] {
        for seed in 0..20 {
            let reply = play(&[text], Score::ONE, seed).remove(0);
            let count = memory::sentences(&reply).count();
            assert!((3..=5).contains(&count), "{count}: {reply}");
            assert_eq!(questions(&reply), 1, "{reply}");
            assert!(reply.contains("safe") || reply.contains("安全"), "{reply}");
            let people = [
                "someone",
                "somebody",
                "another person",
                "people",
                "crisis line",
                "誰か",
                "人",
                "窓口",
            ];
            assert!(people.iter().any(|word| reply.contains(word)), "{reply}");
        }
    }
}

#[test]
fn a_long_crisis_never_falls_silent() {
    for text in ["I want to die", "死にたい"] {
        for reply in play(&[text; 14], Score::ONE, 3) {
            assert!(reply.contains("safe") || reply.contains("安全"), "{reply}");
        }
    }
}

#[test]
fn being_safe_is_acknowledged() {
    let replies = play(&["I want to die", "I'm safe right now"], Score::ONE, 4);
    let thanked = ["Thank you", "Good that you told me", "most important thing"];
    assert!(thanked.iter().any(|part| replies[1].contains(part)), "{replies:#?}");
}

#[test]
fn anger_is_met_with_distance_and_not_with_reproach() {
    for text in ["I'm so angry I could hurt someone", "あいつを殴りたい"] {
        for seed in 0..8 {
            let reply = after(&[text], seed);
            let calm = [
                "distance",
                "space",
                "another room",
                "within reach",
                "離れ",
                "別の部屋",
                "手の届かない",
                "距離",
            ];
            assert!(calm.iter().any(|part| reply.contains(part)), "{reply}");
            assert!(questions(&reply) == 1, "{reply}");
        }
    }
}

#[test]
fn advice_waits_for_the_fifth_exchange_and_for_consent() {
    let options = |reply: &str| reply.contains("evening before") || reply.contains("ten minutes");
    let early = ["I'm nervous about the exam", "What should I do?"];
    let late = ["I'm nervous about the exam", "yes", "I guess", "not really", "What should I do?"];
    let listen =
        ["No advice please. I'm nervous about the exam", "yes", "ok", "no", "What should I do?"];
    for seed in 0..10 {
        assert!(!options(&after(&early, seed)));
        assert!(options(&after(&late, seed)), "{}", after(&late, seed));
        assert!(!options(&after(&listen, seed)));
    }
}

#[test]
fn a_question_about_quitting_is_answered_about_quitting() {
    let day = ["My boss shouted at me", "My partner is away", "yes", "I haven't eaten"];
    let tag = ["上司に怒鳴られた", "今夜はひとりです", "はい", "まだ何も食べてない"];
    for seed in 0..10 {
        let reply = after(&[&day[..], &["Do you think I should quit?"]].concat(), seed);
        assert!(
            ["judge", "staying", "what else"].iter().any(|part| reply.contains(part)),
            "{reply}"
        );
        assert!(!reply.contains("partner"), "{reply}");
        let reply = after(&[&tag[..], &["辞めたほうがいいと思う？"]].concat(), seed);
        assert!(
            ["決めごと", "続けられ", "ほかに"].iter().any(|part| reply.contains(part)),
            "{reply}"
        );
        assert!(!reply.contains("体重"), "{reply}");
    }
}

#[test]
fn help_that_did_not_come_is_not_taken_for_help() {
    for seed in 0..10 {
        let reply = after(&["誰も声をかけてくれなかった。みんな目をそらしてた。"], seed);
        assert!(
            !reply.contains("持たなくてよかった") && !reply.contains("声が、ちょうど"),
            "{reply}"
        );
    }
}

#[test]
fn sleeping_on_it_is_not_sleeplessness() {
    for seed in 0..10 {
        let reply = after(&["I had a hard day", "I guess I could sleep on it"], seed);
        assert!(!reply.contains("nights are long") && !reply.contains("no rest"), "{reply}");
    }
}

#[test]
fn objections_change_the_next_attempt() {
    let conversation = [Message::text(Role::User, "My boss yelled at me today, I cried")];
    let field = FIELD.sense(&conversation, Score::ZERO, 1);
    let respond =
        |reasons: &[Reason]| responder().respond(&conversation, &field, Score::ZERO, reasons, 1);
    let plain = respond(&[]);
    assert_ne!(plain, respond(&[Reason::Unsure]));
    let fuller = respond(&[Reason::TooShort]);
    assert!(memory::sentences(&fuller).count() >= memory::sentences(&plain).count(), "{fuller}");
    assert!(
        respond(&[Reason::MissingResources]).contains("contact")
            || respond(&[Reason::MissingResources]).contains("call")
            || respond(&[Reason::MissingResources]).contains("reach")
    );
}

#[test]
fn a_denied_feeling_is_not_reflected() {
    let responder = responder();
    for (language, text, felt) in [
        (Language::English, "I'm sad", 1),
        (Language::English, "I'm not sad", 0),
        (Language::English, "I don't feel angry, just tired", 1),
        (Language::Japanese, "悲しいです", 1),
        (Language::Japanese, "悲しくないです", 0),
        (Language::Japanese, "悲しくなりました", 1),
    ] {
        let reading = Reading::of(responder.script(language), text);
        assert_eq!(reading.feelings.len(), felt, "{text}");
    }
}

#[test]
fn people_are_named_as_they_are_related() {
    let responder = responder();
    for (language, text, name) in [
        (Language::English, "My boss is late", "your boss"),
        (Language::English, "Her boss is late", "her boss"),
        (Language::Japanese, "母と話しました", "お母さん"),
        (Language::Japanese, "夫が帰ってきました", "旦那さん"),
    ] {
        let script = responder.script(language);
        let reading = Reading::of(script, text);
        assert_eq!(reading.person(script).unwrap().name, name, "{text}");
    }
    let script = responder.script(Language::Japanese);
    assert!(Reading::of(script, "大丈夫です").topics.is_empty());
}

#[test]
fn nothing_said_at_all_is_a_greeting() {
    for conversation in [vec![], vec![Message::text(Role::User, " ")]] {
        let reply = responder().respond(&conversation, &FieldState::default(), Score::ZERO, &[], 1);
        assert!(!reply.is_empty());
    }
}

/// Every sentence of the data, with where it stands.
fn everything(text: &str) -> Vec<(String, String)> {
    fn walk(at: &str, value: &toml::Value, out: &mut Vec<(String, String)>) {
        match value {
            toml::Value::String(text) => out.push((at.to_owned(), text.clone())),
            toml::Value::Array(items) => items.iter().for_each(|item| walk(at, item, out)),
            toml::Value::Table(table) => {
                for (key, value) in table {
                    walk(&format!("{at}.{key}"), value, out);
                }
            }
            _ => {}
        }
    }
    let mut out = Vec::new();
    walk("", &toml::from_str::<toml::Value>(text).unwrap(), &mut out);
    let is_listened_for = |at: &str| {
        at.starts_with(".cues")
            || at.contains(".words")
            || at.starts_with(".gender")
            || at.ends_with(".feeling")
            || at.ends_with(".tone")
    };
    out.retain(|(at, _)| !is_listened_for(at));
    out
}

#[test]
fn no_sentence_breaks_the_house_rules() {
    const FORBIDDEN: [&str; 34] = [
        "i feel",
        "i love",
        "i care",
        "i'm sorry",
        "i am sorry",
        "i'm happy",
        "i'm glad",
        "i'm sad",
        "i'm worried",
        "i worry",
        "i understand how",
        "i know how you",
        "you should",
        "you must",
        "you need to",
        "calm down",
        "don't worry",
        "at least",
        "could be worse",
        "everything happens",
        "always be here",
        "never leave",
        "i promise",
        "i will save",
        "only i can",
        "disorder",
        "diagnos",
        "get over it",
        "cheer up",
        "look on the bright",
        "必ず助け",
        "ずっとそばに",
        "気にしすぎです",
        "頑張って",
    ];
    for text in [EN, JA] {
        for (at, sentence) in everything(text) {
            let lower = sentence.to_lowercase();
            for forbidden in FORBIDDEN {
                assert!(!lower.contains(forbidden), "{at}: {sentence}");
            }
            assert!(questions(&sentence) <= 1, "{at}: {sentence}");
            assert!(sentence.ends_with(['.', '?', '。', '？']), "{at}: {sentence}");
            let slots = ["{who}", "{Who}", "{topic}", "{Topic}"];
            let bare = slots.iter().fold(sentence.clone(), |text, slot| text.replace(slot, ""));
            assert!(!bare.contains(['{', '}']), "{at}: {sentence}");
        }
    }
}

#[test]
fn reflections_do_not_ask_and_questions_do() {
    for text in [EN, JA] {
        for (at, sentence) in everything(text) {
            let asks = questions(&sentence) == 1;
            if [".reflect", ".validate", ".named", ".options"].iter().any(|end| at.ends_with(end)) {
                assert!(!asks, "{at}: {sentence}");
            }
            if at.ends_with(".ask") || at.ends_with("_ask") || at.contains(".ask_") {
                assert!(asks, "{at}: {sentence}");
            }
        }
    }
}

#[test]
fn no_sentence_stands_in_two_places() {
    for text in [EN, JA] {
        let mut seen = std::collections::BTreeMap::new();
        for (at, sentence) in everything(text) {
            let longest = sentence.chars().count() > 24;
            if let Some(other) = seen.insert(sentence.clone(), at.clone()) {
                assert!(!longest, "{at} and {other}: {sentence}");
            }
        }
    }
}

#[test]
fn a_broken_file_is_refused() {
    let without = EN.replace("feeling = \"hurt\"", "feeling = \"hurtt\"");
    let error = Script::parse(Language::English, "mine.toml", &without).unwrap_err();
    assert!(error.to_string().starts_with("mine.toml: missing feeling hurtt"), "{error}");
    assert!(Script::parse(Language::English, "mine.toml", "x = 1").is_err());
    assert!(
        Howtos::parse(
            "mine.toml",
            "[[howto]]\nen = {needs = [], answer = \"x\"}\nja = {needs = [], answer = \"x\"}"
        )
        .is_err()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_conversation_is_answered(
        texts in proptest::collection::vec("\\PC{0,60}", 1..4),
        crisis in 0.0f32..=1.0,
        seed: u64,
    ) {
        let responder = responder();
        let mut conversation = Vec::new();
        for text in &texts {
            conversation.push(Message::text(Role::User, text.as_str()));
            let crisis = Score::new(crisis);
            let reply = responder.respond(&conversation, &FieldState::default(), crisis, &[], seed);
            prop_assert!(!reply.trim().is_empty());
            prop_assert!(questions(&reply) <= 1, "{}", reply);
            prop_assert!(!reply.contains('{'), "{}", reply);
            prop_assert_eq!(
                &reply,
                &responder.respond(&conversation, &FieldState::default(), crisis, &[], seed)
            );
            conversation.push(Message::text(Role::Assistant, reply));
        }
    }
}
