//! One form for the many spellings of a word, in any script.
//!
//! **Invariant:** what differs only in case, width, accents, apostrophes or invisible characters has the
//! same form; what a script writes with marks that are letters of their own keeps them.

use unicode_normalization::UnicodeNormalization;

/// The form in which words are compared: words parted by single spaces, nothing else between them.
pub(crate) fn plain(text: &str) -> String {
    let lower: String = text.nfkc().flat_map(char::to_lowercase).collect();
    let bare: String = lower.nfd().filter(|c| !is_accent(*c) && !is_invisible(*c)).nfc().collect();
    let mut out = String::with_capacity(bare.len());
    for c in bare.chars() {
        if is_apostrophe(c) {
            continue;
        }
        if is_letter(c) {
            out.push(hiragana(c));
        } else if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// The same without the spaces: how scripts are compared that do not part words.
pub(crate) fn unspaced(plain: &str) -> String {
    plain.chars().filter(|c| *c != ' ').collect()
}

/// Whether words of this script are not parted by spaces.
pub(crate) const fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0EFF}' // Thai, Lao
        | '\u{0F00}'..='\u{0FFF}' // Tibetan
        | '\u{1000}'..='\u{109F}' // Myanmar
        | '\u{1780}'..='\u{17FF}' // Khmer
        | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{30FF}' // Hiragana, Katakana
        | '\u{31F0}'..='\u{31FF}' // small Katakana, as Ainu is written
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}' // Han
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{323AF}')
}

/// Letters, digits, and the marks that scripts write letters with.
fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || is_spacing_mark(c)
}

/// Marks beyond the accents: vowel signs of Indic scripts, sound marks of Kana, tone marks of Thai.
const fn is_spacing_mark(c: char) -> bool {
    matches!(c, '\u{0900}'..='\u{0DFF}' | '\u{0E31}'..='\u{0E4E}' | '\u{0EB1}'..='\u{0ECD}'
        | '\u{0F18}'..='\u{0FBC}' | '\u{102B}'..='\u{109D}' | '\u{17B4}'..='\u{17D3}'
        | '\u{3099}' | '\u{309A}')
}

/// Accents and points that a careless writer leaves out: of Latin, Greek, Cyrillic, Hebrew, Arabic.
const fn is_accent(c: char) -> bool {
    matches!(c, '\u{0300}'..='\u{036F}' | '\u{0591}'..='\u{05C7}' | '\u{0610}'..='\u{061A}'
        | '\u{064B}'..='\u{065F}' | '\u{0670}' | '\u{06D6}'..='\u{06ED}' | '\u{1AB0}'..='\u{1AFF}'
        | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}' | '\u{FE20}'..='\u{FE2F}')
}

/// What cannot be seen and must not part a word.
pub(crate) const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}'
        | '\u{17B5}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
        | '\u{FFA0}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Apostrophes, the ʻokina and their many stand-ins.
const fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '`' | '\u{00B4}' | '\u{02B9}'..='\u{02BF}' | '\u{02C8}'
        | '\u{2018}'..='\u{201B}' | '\u{2032}' | '\u{A78B}' | '\u{A78C}' | '\u{FF07}')
}

/// Katakana as Hiragana: the same sound, and writers choose freely.
fn hiragana(c: char) -> char {
    match c {
        '\u{30A1}'..='\u{30F6}' => char::from_u32(c as u32 - 0x60).unwrap_or(c),
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spellings_of_one_word_are_one() {
        for (one, other) in [
            ("Māori", "MAORI"),
            ("Hawaiʻi", "hawai'i"),
            ("Hawai’i", "Hawaii"),
            ("カムイ", "かむい"),
            ("ｶﾑｲ", "カムイ"),
            ("chu\u{200B}ringa", "Churinga"),
            ("ＷＡＫＡＮ", "wakan"),
            ("wakȟáŋ", "wakȟaŋ"),
            ("شَمْس", "شمس"),
            ("two-spirit", "two  spirit"),
        ] {
            assert_eq!(plain(one), plain(other), "{one} {other}");
        }
    }

    #[test]
    fn marks_that_are_letters_stay() {
        for (one, other) in [("か", "が"), ("は", "ぱ"), ("कि", "की"), ("น้ำ", "นำ")]
        {
            assert_ne!(plain(one), plain(other), "{one} {other}");
        }
    }

    proptest! {
        #[test]
        fn folding_twice_is_folding_once(text in "\\PC{0,40}") {
            let once = plain(&text);
            prop_assert_eq!(plain(&once), once.clone());
            prop_assert!(!once.starts_with(' ') && !once.ends_with(' ') && !once.contains("  "));
        }
    }
}
