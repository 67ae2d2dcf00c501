//! Letters of other scripts that look like Latin ones.
//!
//! **Invariant:** only used inside words that mix scripts, or where the result is a known word, so that
//! ordinary Russian and Greek stay what they are.

/// The small Latin letter that `c` (already in lower case) can be taken for.
pub(crate) fn latin_lookalike(c: char) -> Option<char> {
    Some(match c {
        // Cyrillic
        'а' => 'a',
        'в' => 'b',
        'с' => 'c',
        'ԁ' => 'd',
        'е' | 'ё' | 'э' | 'є' => 'e',
        'ғ' => 'f',
        'ԍ' => 'g',
        'н' | 'һ' => 'h',
        'і' | 'ї' => 'i',
        'ј' => 'j',
        'к' | 'қ' => 'k',
        'ӏ' => 'l',
        'м' => 'm',
        'п' => 'n',
        'о' | 'ө' => 'o',
        'р' => 'p',
        'ԛ' => 'q',
        'г' => 'r',
        'ѕ' => 's',
        'т' => 't',
        'ц' | 'ч' => 'u',
        'ѵ' => 'v',
        'ѡ' | 'ш' | 'щ' | 'ԝ' => 'w',
        'х' | 'ҳ' => 'x',
        'у' | 'ү' => 'y',
        // Greek
        'α' => 'a',
        'β' => 'b',
        'ϲ' | 'ς' => 'c',
        'δ' => 'd',
        'ε' => 'e',
        'η' => 'n',
        'ι' => 'i',
        'κ' => 'k',
        'μ' => 'm',
        'ν' => 'v',
        'ο' | 'σ' => 'o',
        'ρ' => 'p',
        'τ' => 't',
        'υ' => 'u',
        'χ' => 'x',
        'γ' => 'y',
        'ω' => 'w',
        'ζ' => 'z',
        // Armenian, Cherokee, Coptic
        'օ' => 'o',
        'ո' => 'n',
        'ս' => 'u',
        'հ' => 'h',
        'ց' => 'g',
        'ք' => 'p',
        'զ' => 'q',
        'ⲟ' => 'o',
        'ⲣ' => 'p',
        'ⲥ' => 'c',
        _ => return None,
    })
}

/// Latin letters in unusual dress that compatibility folding leaves alone.
pub(crate) fn plain_latin(c: char) -> Option<char> {
    let at = |base: u32| char::from_u32(u32::from(c) - base + 0x61);
    match u32::from(c) {
        0x1F150..=0x1F169 => return at(0x1F150),
        0x1F170..=0x1F189 => return at(0x1F170),
        0x1F1E6..=0x1F1FF => return at(0x1F1E6),
        _ => {}
    }
    Some(match c {
        'ᴀ' => 'a',
        'ʙ' | 'ƀ' | 'ɓ' => 'b',
        'ᴄ' => 'c',
        'ᴅ' | 'đ' | 'ɖ' | 'ɗ' => 'd',
        'ᴇ' | 'ɛ' | 'ǝ' | 'ə' | 'ɘ' => 'e',
        'ꜰ' | 'ƒ' => 'f',
        'ɢ' | 'ɡ' | 'ɠ' => 'g',
        'ʜ' | 'ħ' | 'ɦ' => 'h',
        'ɪ' | 'ı' | 'ɨ' | 'ɩ' => 'i',
        'ᴊ' | 'ȷ' | 'ʝ' => 'j',
        'ᴋ' | 'ƙ' => 'k',
        'ʟ' | 'ł' | 'ɭ' | 'ƚ' => 'l',
        'ᴍ' | 'ɱ' => 'm',
        'ɴ' | 'ɲ' | 'ŋ' | 'ƞ' => 'n',
        'ᴏ' | 'ø' | 'ɔ' | 'ɵ' => 'o',
        'ᴘ' | 'ƥ' => 'p',
        'ʠ' | 'ɋ' => 'q',
        'ʀ' | 'ɹ' | 'ɾ' => 'r',
        'ꜱ' | 'ʂ' => 's',
        'ᴛ' | 'ŧ' | 'ƭ' | 'ʈ' => 't',
        'ᴜ' | 'ʉ' => 'u',
        'ᴠ' | 'ʋ' => 'v',
        'ᴡ' | 'ɯ' => 'w',
        'ʏ' | 'ɏ' => 'y',
        'ᴢ' | 'ƶ' | 'ȥ' => 'z',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookalikes_and_dressed_letters_become_plain() {
        let plain: String = "кіll".chars().map(|c| latin_lookalike(c).unwrap_or(c)).collect();
        assert_eq!(plain, "kill");
        let plain: String = "ᴋɪʟʟ🅺".chars().map(|c| plain_latin(c).unwrap_or(c)).collect();
        assert_eq!(plain, "killk");
    }
}
