//! Disguises of single letters.

use crate::chance::Chance;

const ZERO_WIDTH: [char; 4] = ['\u{200b}', '\u{200c}', '\u{2060}', '\u{feff}'];
const ACCENTS: [char; 6] = ['\u{301}', '\u{308}', '\u{323}', '\u{332}', '\u{336}', '\u{34f}'];
const PICTURES: [char; 6] = ['🔥', '🌸', '⭐', '💧', '🍀', '🎈'];

/// Puts something between each two letters that stand together.
pub(super) fn between(text: &str, mut put: impl FnMut(&mut String)) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut after_letter = false;
    for this in text.chars() {
        let letter = this.is_alphabetic();
        if after_letter && letter {
            put(&mut out);
        }
        out.push(this);
        after_letter = letter;
    }
    out
}

fn between_drawn(text: &str, from: &[char], chance: &mut Chance) -> String {
    between(text, |out| out.extend(from.get(chance.below(from.len()))))
}

pub(super) fn zero_width(text: &str, chance: &mut Chance) -> String {
    between_drawn(text, &ZERO_WIDTH, chance)
}

pub(super) fn soft_hyphen(text: &str, _: &mut Chance) -> String {
    between(text, |out| out.push('\u{ad}'))
}

pub(super) fn emoji(text: &str, chance: &mut Chance) -> String {
    let from = &PICTURES[chance.below(PICTURES.len())..][..1];
    between_drawn(text, from, chance)
}

pub(super) fn tag_between(text: &str, chance: &mut Chance) -> String {
    between(text, |out| {
        let letter = b"etaoinshr"[chance.below(9)];
        out.extend(tag(char::from(letter)));
    })
}

pub(super) fn tag_spelled(text: &str, _: &mut Chance) -> String {
    text.chars().map(|this| tag(this).unwrap_or(this)).collect()
}

/// The tag character of a printable ASCII one.
fn tag(this: char) -> Option<char> {
    let printable = matches!(this, ' '..='~');
    char::from_u32(0xe0000 + u32::from(this)).filter(|_| printable)
}

pub(super) fn combining_marks(text: &str, chance: &mut Chance) -> String {
    let mut out = String::with_capacity(text.len() * 3);
    for this in text.chars() {
        out.push(this);
        if this.is_alphabetic() {
            out.extend(ACCENTS.get(chance.below(ACCENTS.len())));
        }
    }
    out
}

pub(super) fn cyrillic(text: &str, _: &mut Chance) -> String {
    replaced(text, "aceopxyisjhkABEKMHOPCTX", "асеорхуіѕјһкАВЕКМНОРСТХ")
}

pub(super) fn greek(text: &str, _: &mut Chance) -> String {
    replaced(text, "aoviptukABEZHIKMNOPTYX", "αονιρτυκΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")
}

pub(super) fn leet(text: &str, _: &mut Chance) -> String {
    replaced(text, "aeiostAEIOST", "431057431057")
}

fn replaced(text: &str, plain: &str, disguised: &str) -> String {
    let replace = |this: char| {
        let at = plain.chars().position(|one| one == this);
        at.and_then(|at| disguised.chars().nth(at)).unwrap_or(this)
    };
    text.chars().map(replace).collect()
}

pub(super) fn full_width(text: &str, _: &mut Chance) -> String {
    let widen = |this: char| match this {
        ' ' => '\u{3000}',
        '!'..='~' => char::from_u32(u32::from(this) + 0xfee0).unwrap_or(this),
        other => other,
    };
    text.chars().map(widen).collect()
}

pub(super) fn case_mix(text: &str, chance: &mut Chance) -> String {
    let mut upper = chance.below(2) == 0;
    let turn = |this: char| {
        if !this.is_ascii_alphabetic() {
            return this;
        }
        upper = !upper;
        if upper { this.to_ascii_uppercase() } else { this.to_ascii_lowercase() }
    };
    text.chars().map(turn).collect()
}
