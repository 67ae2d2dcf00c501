//! Which language a text is in.
//!
//! **Invariant:** only the beginning of a text is looked at, so that the cost is bounded.

use crate::fold::chars::{is_han, is_kana};
use whatlang::{Detector as Whatlang, Lang, Script};

/// How many characters are enough.
const CHARS_MAX: usize = 400;
/// Shorter Latin text is taken for English unless the model is sure.
const SHORT_LETTERS: usize = 40;

/// Whether a word is one of those that make a Latin text English.
fn is_english(word: &str) -> bool {
    matches!(
        word,
        "the"
            | "to"
            | "and"
            | "of"
            | "is"
            | "are"
            | "you"
            | "your"
            | "it"
            | "that"
            | "this"
            | "for"
            | "with"
            | "what"
            | "how"
            | "my"
            | "can"
            | "do"
            | "i"
            | "be"
            | "not"
            | "on"
            | "have"
            | "was"
            | "me"
            | "about"
            | "will"
            | "would"
            | "i'm"
            | "don't"
            | "want"
            | "from"
            | "they"
            | "he"
            | "she"
            | "we"
            | "an"
            | "or"
            | "if"
            | "should"
            | "could"
            | "write"
            | "please"
            | "explain"
            | "tell"
            | "give"
            | "make"
            | "his"
            | "her"
            | "their"
            | "them"
            | "him"
    )
}

/// The ISO 639-1 code of a folded text, or `und`.
pub(crate) fn identify(folded: &str) -> &'static str {
    let head = head(folded);
    let census = Census::of(head);
    if census.kana > 0 && census.kana + census.han >= census.latin_words {
        return "ja";
    }
    if census.letters == 0 {
        return "und";
    }
    if census.latin * 2 >= census.letters {
        return latin(head, &census);
    }
    if census.hangul * 2 >= census.letters {
        return "ko";
    }
    if census.han * 2 >= census.letters {
        return "zh";
    }
    Whatlang::new().detect(head).map_or("und", |info| code(info.lang()))
}

fn latin(head: &str, census: &Census) -> &'static str {
    let english = head.split(' ').filter(|word| is_english(word)).count();
    if english * 6 >= census.latin_words && english > 0 {
        return "en";
    }
    match Whatlang::new().detect(head) {
        Some(info) if info.script() != Script::Latin => "en",
        Some(info) if census.latin >= SHORT_LETTERS && info.confidence() > 0.3 => code(info.lang()),
        Some(info) if info.confidence() > 0.95 => code(info.lang()),
        _ => "en",
    }
}

fn head(text: &str) -> &str {
    text.char_indices().nth(CHARS_MAX).map_or(text, |(at, _)| &text[..at])
}

/// How many letters of which kind.
#[derive(Default)]
struct Census {
    letters: usize,
    latin: usize,
    latin_words: usize,
    kana: usize,
    han: usize,
    hangul: usize,
}

impl Census {
    fn of(text: &str) -> Self {
        let mut census = Self::default();
        let mut in_word = false;
        for c in text.chars() {
            let latin = c.is_ascii_alphabetic();
            census.latin_words += usize::from(latin && !in_word);
            in_word = latin;
            census.latin += usize::from(latin);
            census.letters += usize::from(c.is_alphabetic());
            if !c.is_ascii() {
                census.kana += usize::from(is_kana(c));
                census.han += usize::from(is_han(c));
                census.hangul += usize::from(('\u{ac00}'..='\u{d7af}').contains(&c));
            }
        }
        census
    }
}

/// ISO 639-1 for the languages that have such a code.
fn code(lang: Lang) -> &'static str {
    let found = CODES.iter().find(|(known, _)| *known == lang);
    found.map_or("und", |(_, code)| code)
}

#[rustfmt::skip]
const CODES: &[(Lang, &str)] = &[
    (Lang::Eng, "en"), (Lang::Jpn, "ja"), (Lang::Cmn, "zh"), (Lang::Kor, "ko"), (Lang::Spa, "es"),
    (Lang::Por, "pt"), (Lang::Fra, "fr"), (Lang::Deu, "de"), (Lang::Ita, "it"), (Lang::Nld, "nl"),
    (Lang::Rus, "ru"), (Lang::Ukr, "uk"), (Lang::Bel, "be"), (Lang::Bul, "bg"), (Lang::Srp, "sr"),
    (Lang::Mkd, "mk"), (Lang::Pol, "pl"), (Lang::Ces, "cs"), (Lang::Slk, "sk"), (Lang::Slv, "sl"),
    (Lang::Hrv, "hr"), (Lang::Ron, "ro"), (Lang::Hun, "hu"), (Lang::Fin, "fi"), (Lang::Est, "et"),
    (Lang::Lav, "lv"), (Lang::Lit, "lt"), (Lang::Swe, "sv"), (Lang::Dan, "da"), (Lang::Nob, "no"),
    (Lang::Tur, "tr"), (Lang::Aze, "az"), (Lang::Uzb, "uz"), (Lang::Tuk, "tk"), (Lang::Ara, "ar"),
    (Lang::Pes, "fa"), (Lang::Urd, "ur"), (Lang::Heb, "he"), (Lang::Yid, "yi"), (Lang::Hin, "hi"),
    (Lang::Mar, "mr"), (Lang::Nep, "ne"), (Lang::Ben, "bn"), (Lang::Pan, "pa"), (Lang::Guj, "gu"),
    (Lang::Ori, "or"), (Lang::Tam, "ta"), (Lang::Tel, "te"), (Lang::Kan, "kn"), (Lang::Mal, "ml"),
    (Lang::Sin, "si"), (Lang::Tha, "th"), (Lang::Khm, "km"), (Lang::Mya, "my"), (Lang::Vie, "vi"),
    (Lang::Ind, "id"), (Lang::Jav, "jv"), (Lang::Tgl, "tl"), (Lang::Ell, "el"), (Lang::Kat, "ka"),
    (Lang::Hye, "hy"), (Lang::Amh, "am"), (Lang::Epo, "eo"), (Lang::Lat, "la"), (Lang::Cat, "ca"),
    (Lang::Afr, "af"), (Lang::Zul, "zu"), (Lang::Sna, "sn"), (Lang::Aka, "ak"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::fold;

    #[test]
    fn languages_are_told_apart() {
        for (text, code) in [
            ("もう死にたい", "ja"),
            ("死", "zh"),
            ("明日は雨が降るらしいよ", "ja"),
            ("Linuxでプロセスをkillする方法", "ja"),
            ("help", "en"),
            ("kill him", "en"),
            ("I don't want to be here anymore", "en"),
            ("Ich möchte heute Abend mit meiner Familie ins Kino gehen", "de"),
            ("¿Cómo puedo aprender a tocar la guitarra en casa con mis amigos?", "es"),
            ("Сегодня хорошая погода, и мы пойдём гулять в парк с друзьями", "ru"),
            ("오늘 날씨가 좋네요", "ko"),
            ("今天天气很好我们去公园吧", "zh"),
            ("", "und"),
            ("12345 !!", "und"),
        ] {
            assert_eq!(identify(&fold(text).text), code, "{text}");
        }
    }
}
