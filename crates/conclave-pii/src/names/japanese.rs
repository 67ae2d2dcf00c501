//! Owns Japanese names: a surname with an honorific, a full name, and the ways of introducing
//! oneself.
//!
//! **Invariant:** an honorific alone names nobody: 皆さん, お客様 and 神様 are not found.

use super::words::entries;
use crate::finder::Place;
use crate::kind::Kind;
use crate::patterns::Search;
use crate::text::Text;
use regex::Regex;

const SURNAMES: &str = include_str!("../../data/japanese_surnames.txt");
const GIVEN_NAMES: &str = include_str!("../../data/japanese_given_names.txt");

/// Patterns of Japanese names; the group `v` is the name.
#[derive(Debug)]
pub(crate) struct Japanese(Vec<JapanesePattern>);

#[derive(Debug)]
struct JapanesePattern {
    regex: Regex,
    confidence: f32,
    /// Whether the name must begin with a surname of the list. The list is long: it is asked
    /// afterwards, and not written into every pattern.
    needs_surname: bool,
}

impl JapanesePattern {
    fn new(pattern: &str, confidence: f32) -> Result<Self, regex::Error> {
        Ok(Self { regex: Regex::new(pattern)?, confidence, needs_surname: false })
    }

    fn with_surname(pattern: &str, confidence: f32) -> Result<Self, regex::Error> {
        Ok(Self { needs_surname: true, ..Self::new(pattern, confidence)? })
    }

    fn is_name(&self, name: &str) -> bool {
        !is_question(name) && (!self.needs_surname || surname_of(name).is_some())
    }
}

impl Japanese {
    pub(crate) fn new() -> Result<Self, regex::Error> {
        let surname = longest_first(SURNAMES);
        let given = longest_first(GIVEN_NAMES);
        // What given names that are on no list end in: 明子, 直哉.
        let ending = "[子美恵香奈代江乃郎太也哉介之男雄夫彦樹人]";
        let full = format!("(?<v>(?:{surname})[ ]?(?:{given}){ending}?)");
        let called = format!("(?:^|[^一-鿿々])(?<v>(?:{given}))(?:さん|様|くん|君|ちゃん)");
        Ok(Self(vec![
            JapanesePattern::new(&full, 0.85)?,
            JapanesePattern::with_surname(
                "(?:^|[^一-鿿々])(?<v>[一-鿿々]{1,5}?(?:[ ]?[一-鿿々ぁ-ゖ]{1,3}?)?)\
                 (?:さん|様|さま|氏|くん|君|ちゃん|先生|殿|先輩|課長|部長|社長)",
                0.8,
            )?,
            JapanesePattern::new(&called, 0.7)?,
            JapanesePattern::with_surname(
                "(?:私は|僕は|俺は|わたしは|ぼくは|(?:初|はじ)めまして[、。!]?[ ]?)\
                 (?<v>[一-鿿々]{1,7}?(?:[ ]?[一-鿿々ぁ-ゖァ-ヺー]{1,5}?)?)\
                 (?:です|と申|といい|と言い|だ。|でございます)",
                0.85,
            )?,
            JapanesePattern::new(
                "(?:名前|氏名|本名|姓名)(?:は|:|が)[ ]?(?<v>(?:[一-鿿々]{1,6}[ぁ-ゖァ-ヺー]{0,4}?|\
                 [ァ-ヺー・]{2,12}|[ぁ-ゖ]{2,6}?)(?:[ ][一-鿿々ぁ-ゖァ-ヺー]{1,8}?)?)\
                 (?:です|と申|と言|といい|だ|で、|、|。|\\s|$)",
                0.8,
            )?,
            JapanesePattern::new(
                "(?:^|[、。 \\n])(?:私は|僕は|わたしは)?\
                 (?<v>[一-鿿々ァ-ヺー・ ]{2,12}|[ぁ-ゖ]{2,6})と(?:申します|申す者)",
                0.8,
            )?,
            JapanesePattern::new("(?:^|[^ァ-ヺー])(?<v>[ァ-ヺー]{2,6})(?:氏|様|さん)", 0.4)?,
        ]))
    }

    pub(crate) fn find(&self, text: &Text<'_>, places: &mut Vec<Place>) {
        for pattern in &self.0 {
            Search { regex: &pattern.regex, has_group: true }.each(text, &mut |hit| {
                let start = hit.value.start;
                let end = hit.value.end;
                if pattern.is_name(&text.as_str()[start..end]) {
                    let kind = Kind::PersonName;
                    places.push(Place { kind, start, end, confidence: pattern.confidence });
                }
                hit.end
            });
        }
    }
}

/// The parts by which the bearer of a full name is called: at a blank or a dot, or where a surname
/// of the list ends.
pub(crate) fn split_name(name: &str) -> impl Iterator<Item = &str> {
    let is_between = |sign: char| matches!(sign, ' ' | '\u{3000}' | '・');
    let parts: Vec<&str> = name.split(is_between).filter(|part| !part.is_empty()).collect();
    let parts = match parts.as_slice() {
        [whole] => match surname_of(whole) {
            Some(surname) => vec![surname, &whole[surname.len()..]],
            None => entries(GIVEN_NAMES).filter(|given| given == whole).collect(),
        },
        _ => parts,
    };
    parts.into_iter().filter(|part| !part.is_empty())
}

/// The longest surname of the list with which a name begins; at most four signs may follow it.
fn surname_of(name: &str) -> Option<&str> {
    let surnames = entries(SURNAMES).filter(|surname| name.starts_with(surname));
    let longest = surnames.max_by_key(|surname| surname.len())?;
    let (surname, given) = name.split_at(longest.len());
    (given.trim_start().chars().count() <= 4).then_some(surname)
}

/// Words that stand where a name would: what, who, unknown, everyone.
fn is_question(name: &str) -> bool {
    [
        "何",
        "なに",
        "なん",
        "誰",
        "不明",
        "未定",
        "内緒",
        "秘密",
        "ない",
        "まだ",
        "皆",
        "みな",
        "娘",
        "息子",
        "お",
        "重要",
        "大切",
        "大事",
        "必要",
        "不要",
        "匿名",
        "仮名",
        "同じ",
        "有名",
        "無名",
        "簡単",
        "難し",
        "長",
        "短",
        "変",
        "普通",
        "特別",
        "後",
        "別",
        "上記",
        "下記",
        "以下",
        "という",
    ]
    .iter()
    .any(|word| name.starts_with(word))
}

fn longest_first(list: &'static str) -> String {
    let mut names: Vec<&str> = entries(list).collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    names.join("|")
}
