//! What is said every day, by people and by assistants, identifies nobody.

use conclave_pii::{Finder, KnownNames, Redactor, Tokens};

/// Sentences in which nothing may be replaced.
const HARMLESS: &[&str] = &[
    "I'm sorry to hear that.",
    "I'm Happy to help!",
    "I'm Sorry, I can't help with that.",
    "I'm Glad you asked.",
    "I am Ready when you are.",
    "I'm Claude, an AI assistant.",
    "I'm ChatGPT, a large language model.",
    "I'm an AI language model, so I don't have feelings.",
    "My name is not important.",
    "My name is hard to pronounce.",
    "My name is on the list.",
    "Who was Marie Curie?",
    "Who is Albert Einstein?",
    "What did Isaac Newton discover?",
    "Tell me about Nelson Mandela.",
    "When did Abraham Lincoln die?",
    "Explain Charles Darwin's theory of evolution.",
    "Which novels did Jane Austen write?",
    "Compare Plato and Aristotle.",
    "Did Leonardo da Vinci paint the Mona Lisa?",
    "Summarise William Shakespeare's Hamlet in two sentences.",
    "How old was Mozart when he died?",
    "What is the capital of France?",
    "We flew from Paris to Tokyo in April.",
    "The meeting is on Monday, 3 March 2025 at 10:30.",
    "Will you be there? Will it rain?",
    "May I ask you a question?",
    "Mark my words, hope is not a plan.",
    "Grace and patience are virtues.",
    "Rose petals and summer rain.",
    "Note: the deadline is Friday.",
    "Q: What is a closure? A: A function with captured variables.",
    "Step 1: Preheat the oven to 180 degrees.",
    "Summary: three points matter.",
    "Dear Sir or Madam,",
    "Best regards,",
    "Thank you, and have a great day!",
    "Sure! Here is an example:",
    "You can reach out to a friend or a doctor.",
    "Call emergency services if you are in danger.",
    "The Great Wall of China is long.",
    "Harvard University is in Cambridge.",
    "Microsoft and Google are companies.",
    "Python 3.12.1 was released in December 2023.",
    "The iPhone 15 costs 799 dollars.",
    "World War II ended in 1945.",
    "The population is about 8,100,000,000.",
    "Romeo and Juliet is a play.",
    "Harry Potter is a book about a wizard.",
    "He said he would call back later.",
    "John 3:16 is a verse in the Bible.",
    "Have a look at chapter 12, section 3.4.",
    "fn main() { println!(\"hello\"); }",
    "{\"name\": \"value\", \"count\": 3}",
    "SELECT name FROM users WHERE id = 42;",
    "let user = User::new();",
    "Take care, and don't hesitate to ask.",
    "Ask your doctor or pharmacist.",
    "Chase your dreams and cash in later.",
    "I'm your assistant, and I'm here to help.",
    "Call me old-fashioned, but I like letters.",
    "This is Great news!",
    "The name of the file is missing.",
    "Thanks for asking! Here are three ideas.",
    "As Einstein said, imagination is important.",
    "Shakespeare and Beethoven are both studied at school.",
    "I was created by Anthropic to be helpful.",
    "Sorry, my mistake: the answer is 42.",
    "Let me know if you have any questions.",
    "Sherlock Holmes lives in Baker Street.",
    "すみません、よく分かりません。",
    "私は学生です。",
    "私はAIアシスタントです。",
    "私は日本人です。",
    "私は元気です。",
    "私は賛成です。",
    "東京は日本の首都です。",
    "織田信長は誰ですか？",
    "夏目漱石の代表作を教えてください。",
    "徳川家康について説明してください。",
    "宮沢賢治の作品を三つ挙げてください。",
    "名前は何ですか？",
    "お名前を教えてください。",
    "名前は重要ではありません。",
    "田んぼの中に森があります。",
    "明日の会議は午後三時からです。",
    "皆さん、こんにちは。",
    "お客様は神様です。",
    "会議は2025年3月4日です。",
    "注意：締め切りは金曜日です。",
    "質問：これは何ですか？",
    "先生に聞いてください。",
    "山と川が好きです。",
    "林の中を歩きました。",
    "誠にありがとうございます。",
    "ご清聴ありがとうございました。",
    "大輔が好きな食べ物は何ですか",
    "トヨタは日本の会社です。",
    "アインシュタインは物理学者です。",
    "承知しました。ほかに何かありますか。",
    "ご質問ありがとうございます。",
    "私はお手伝いできます。",
    "私は猫が好きです。",
    "昨日は雨でした。",
    "名前は長い方がよいですか。",
    "例：次のように書きます。",
];

#[test]
fn nothing_in_everyday_talk_is_replaced() {
    let finder = Finder::builtin().unwrap();
    let redactor = Redactor::new(&finder);
    let changed = |text: &&str| {
        let other = redactor.redact_text(text, &mut Tokens::new());
        other.map(|other| format!("{text} -> {other}"))
    };
    let changed: Vec<String> = HARMLESS.iter().filter_map(changed).collect();
    assert!(changed.is_empty(), "{changed:#?}");
    assert!(HARMLESS.len() >= 60);
}

#[test]
fn everyday_talk_has_no_speakers() {
    let finder = Finder::builtin().unwrap();
    let mut names = KnownNames::new();
    for text in HARMLESS {
        finder.learn_speakers(text, &mut names);
        assert!(names.is_empty(), "{text}");
    }
}

/// Names that are spared in a question are hidden where somebody gives them as their own.
#[test]
fn a_famous_name_is_hidden_where_it_is_somebodys_own() {
    let finder = Finder::builtin().unwrap();
    let redactor = Redactor::new(&finder);
    for text in [
        "My name is Michael Jordan.",
        "Hi, I'm Marie Curie.",
        "My husband Tom Hanks lost his job.",
        "Dear Michael Jackson, thank you for your letter.",
    ] {
        let other = redactor.redact_text(text, &mut Tokens::new()).unwrap_or_default();
        assert!(other.contains("[PERSON_NAME_1]"), "{text} -> {other}");
    }
}
