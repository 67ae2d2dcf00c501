//! What kind of character a character is, for folding and for finding words.

/// Whether the script writes words without spaces, so that each character counts as one step.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF            // Thai, Lao
        | 0x1000..=0x109F          // Myanmar
        | 0x1100..=0x11FF          // Hangul letters
        | 0x1780..=0x17FF          // Khmer
        | 0x3005..=0x3007
        | 0x3040..=0x30FF          // kana
        | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF          // Han
        | 0xAC00..=0xD7AF          // Hangul syllables: particles stick to words
        | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF)
}

/// Whether it belongs to a word of a script that puts spaces between words.
pub(crate) fn is_word(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphanumeric() } else { c.is_alphanumeric() && !is_unspaced(c) }
}

/// Whether it is kana.
pub(crate) fn is_kana(c: char) -> bool {
    matches!(u32::from(c), 0x3040..=0x30FF | 0x31F0..=0x31FF | 0xFF66..=0xFF9F)
}

/// Whether it is a Han character.
pub(crate) fn is_han(c: char) -> bool {
    matches!(u32::from(c), 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

/// Whether it ends a sentence.
pub(crate) fn ends_sentence(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | ';' | '\n' | '。' | '！' | '？' | '؟' | '।' | '…')
}

/// Why a character cannot be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invisible {
    /// Has no width, or joins others.
    ZeroWidth,
    /// Turns the direction of writing.
    Bidi,
    /// A letter of the tag block, which can carry a whole hidden text.
    Tag,
    /// Chooses a glyph variant.
    Variation,
    /// A control character.
    Control,
}

/// Whether the character leaves no mark on the page.
pub(crate) fn invisible(c: char) -> Option<Invisible> {
    Some(match u32::from(c) {
        0x09 | 0x0A | 0x0D | 0x0B | 0x0C | 0x85 => return None,
        0x00..=0x1F | 0x7F..=0x9F => Invisible::Control,
        0x00AD
        | 0x034F
        | 0x115F..=0x1160
        | 0x17B4..=0x17B5
        | 0x180E
        | 0x200B..=0x200D
        | 0x2060..=0x2064
        | 0x206A..=0x206F
        | 0x3164
        | 0xFEFF
        | 0xFFA0
        | 0xFFF9..=0xFFFB => Invisible::ZeroWidth,
        0x061C | 0x200E..=0x200F | 0x202A..=0x202E | 0x2066..=0x2069 => Invisible::Bidi,
        0xE0000..=0xE007F => Invisible::Tag,
        0xFE00..=0xFE0F | 0x180B..=0x180D | 0xE0100..=0xE01EF => Invisible::Variation,
        _ => return None,
    })
}

/// Whether it sits on the character before it.
pub(crate) fn is_mark(c: char) -> bool {
    matches!(u32::from(c),
        0x0300..=0x036F | 0x0483..=0x0489 | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x20D0..=0x20FF
        | 0x3099..=0x309A | 0xFE20..=0xFE2F | 0xFF9E..=0xFF9F)
}

/// Whether it is a pictograph or a part of one.
pub(crate) fn is_emoji(c: char) -> bool {
    matches!(u32::from(c), 0x2190..=0x21FF | 0x2300..=0x27BF | 0x2900..=0x297F | 0x2B00..=0x2BFF
        | 0x1F000..=0x1FAFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_unspaced_scripts_are_told_apart() {
        for (c, word, unspaced) in [
            ('a', true, false),
            ('7', true, false),
            ('é', true, false),
            ('ж', true, false),
            ('死', false, true),
            ('に', false, true),
            ('ー', false, true),
            ('한', false, true),
            (' ', false, false),
            ('!', false, false),
        ] {
            assert_eq!((is_word(c), is_unspaced(c)), (word, unspaced), "{c}");
        }
    }

    #[test]
    fn visible_text_is_visible() {
        for c in "aé死😀\n\t  «.".chars() {
            assert_eq!(invisible(c), None, "{c:?}");
        }
        for c in ['\u{200b}', '\u{202e}', '\u{e0041}', '\u{fe0f}', '\0'] {
            assert!(invisible(c).is_some(), "{c:?}");
        }
    }
}
