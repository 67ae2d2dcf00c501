//! Owns Japanese names: a surname with an honorific, a full name, and the ways of introducing
//! oneself.
//!
//! **Invariant:** an honorific alone names nobody: 皆さん, お客様 and 神様 are not found.

use super::words::entries;
use crate::finder::Place;
use crate::kind::Kind;
use regex::Regex;

const SURNAMES: &str = include_str!("../../data/japanese_surnames.txt");
const GIVEN_NAMES: &str = include_str!("../../data/japanese_given_names.txt");

/// Patterns of Japanese names; the group `v` is the name.
#[derive(Debug)]
pub(crate) struct Japanese(Vec<(Regex, f32)>);

impl Japanese {
    pub(crate) fn new() -> Result<Self, regex::Error> {
        let surname = longest_first(SURNAMES);
        let given = longest_first(GIVEN_NAMES);
        let patterns = [
            (format!("(?<v>(?:{surname})[ ]?(?:{given}))"), 0.85),
            (
                format!(
                    "(?:^|[^一-鿿々])(?<v>(?:{surname})(?:[ ]?[一-鿿々ぁ-ゖ]{{1,3}}?)?)\
                     (?:さん|様|さま|氏|くん|君|ちゃん|先生|殿|先輩|課長|部長|社長)"
                ),
                0.8,
            ),
            (format!("(?:^|[^一-鿿々])(?<v>(?:{given}))(?:さん|様|くん|君|ちゃん)"), 0.7),
            (
                "(?:名前|氏名|本名|姓名)(?:は|:|が)[ ]?(?<v>[一-鿿々ぁ-ゖァ-ヺー・]{2,12}?\
                 (?:[ ][一-鿿々ぁ-ゖァ-ヺー]{1,8}?)?)(?:です|と申|と言|といい|だ|で、|、|。|\\s|$)"
                    .to_owned(),
                0.8,
            ),
            (
                "(?:^|[、。 \\n])(?:私は|僕は|わたしは)?\
                 (?<v>[一-鿿々ァ-ヺー・ ]{2,12}|[ぁ-ゖ]{2,6})と(?:申します|申す者)"
                    .to_owned(),
                0.8,
            ),
            ("(?:^|[^ァ-ヺー])(?<v>[ァ-ヺー]{2,6})(?:氏|様|さん)".to_owned(), 0.4),
        ];
        let compile =
            |(pattern, confidence): (String, f32)| Ok((Regex::new(&pattern)?, confidence));
        patterns.into_iter().map(compile).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn find(&self, text: &str, budget: usize, places: &mut Vec<Place>) {
        for (pattern, confidence) in &self.0 {
            let names = pattern.captures_iter(text).filter_map(|hit| hit.name("v"));
            places.extend(names.filter(|name| !is_question(name.as_str())).take(budget).map(
                |name| Place {
                    kind: Kind::PersonName,
                    start: name.start(),
                    end: name.end(),
                    confidence: *confidence,
                },
            ));
        }
    }
}

/// Words that stand where a name would: what, who, unknown, everyone.
fn is_question(name: &str) -> bool {
    [
        "何", "なに", "なん", "誰", "不明", "未定", "内緒", "秘密", "ない", "まだ", "皆", "みな",
        "娘", "息子", "お",
    ]
    .iter()
    .any(|word| name.starts_with(word))
}

fn longest_first(list: &'static str) -> String {
    let mut names: Vec<&str> = entries(list).collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    names.join("|")
}
