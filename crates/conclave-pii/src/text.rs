//! Owns the reading form of a text: full-width signs made plain, and where words stand that give a
//! number its meaning.
//!
//! **Invariant:** folding maps one scalar value to one, so that places counted in scalar values
//! are the same before and after.

use crate::breaks::safe_cuts;
use crate::finder::Place;
use aho_corasick::{AhoCorasick, AhoCorasickBuilder, BuildError, MatchKind};
use std::borrow::Cow;

macro_rules! cues {
    ($($name:ident: $words:expr;)+) => {
        /// What a word near a number says about it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Cue { $($name,)+ }

        const CUES: &[(Cue, &[&str])] = &[$((Cue::$name, &$words),)+];
    };
}

cues! {
    Phone: [
        "phone", "phones", "telephone", "tel", "mobile", "mob", "cell", "cellphone", "fax", "call",
        "call me at", "calling", "called", "dial", "text me", "text me at", "texted", "sms",
        "whatsapp", "reach", "contact", "landline", "hotline", "messages to", "answering",
        "answer at", "電話", "携帯", "連絡先", "内線", "ファックス", "telefon", "telefono", "teléfono",
        "téléphone", "celular", "手机", "전화", "ph",
    ];
    Number: [
        "number", "numbers", "num", "no", "voicemail", "line", "receiving", "番号", "reached at",
        "hang up",
    ];
    Card: ["card", "cards", "visa", "mastercard", "amex", "credit", "debit", "cc", "カード", "クレジット"];
    Ssn: ["ssn", "social security", "social-security", "social", "ss#", "ssn#"];
    MyNumber: ["マイナンバー", "個人番号", "my number", "mynumber", "individual number"];
    Tfn: ["tfn", "tax file"];
    Medicare: ["medicare"];
    Sin: ["sin", "social insurance", "nas"];
    TaxId: [
        "steuer-id", "steuerid", "steuer id", "idnr", "steueridentifikationsnummer", "tax id",
        "tin", "itin", "taxpayer",
    ];
    Nir: ["nir", "sécurité sociale", "securite sociale", "insee", "carte vitale"];
    Cpf: ["cpf"];
    Aadhaar: ["aadhaar", "aadhar", "uidai", "आधार"];
    Rrn: ["rrn", "resident registration", "주민등록번호", "주민번호"];
    Passport: ["passport", "パスポート", "旅券", "reisepass", "passeport", "pasaporte"];
    Licence: [
        "driver license", "driver's license", "drivers license", "driver licence",
        "driver's licence", "drivers licence", "driving licence", "driving license", "dl", "運転免許",
        "免許証", "führerschein", "permis de conduire", "license number", "licence number",
    ];
    Account: [
        "account", "acct", "a/c", "口座", "kontonummer", "konto", "compte", "cuenta", "bank account",
    ];
    Routing: ["routing", "aba", "rtn", "transit"];
    SortCode: ["sort code", "sort-code", "bsb", "支店番号", "店番"];
    Medical: [
        "mrn", "medical record", "patient id", "patient number", "patient no", "chart number",
        "health record", "カルテ番号", "診察券番号", "患者番号", "保険証番号", "health insurance", "member id",
        "insurance id",
    ];
    Nhs: ["nhs"];
    Birth: [
        "born", "birth", "birthday", "birthdate", "dob", "d.o.b", "生年月日", "誕生日", "生まれ", "geboren",
        "geburtsdatum", "né le", "née le", "nacido", "nacida",
    ];
    Postal: ["zip", "zipcode", "postcode", "post code", "postal", "郵便番号", "plz", "eircode"];
    Order: [
        "order", "invoice", "isbn", "issn", "ticket", "sku", "serial", "tracking", "ref",
        "reference", "part", "model", "case", "doi", "version", "release", "build", "product",
        "barcode", "ean", "upc", "item", "confirmation", "booking", "transaction", "commit",
        "revision", "注文番号", "伝票番号", "品番", "型番", "pmid", "arxiv", "rfc", "timestamp", "epoch", "id",
    ];
}

/// How far before a number its word may stand, in bytes.
const BEFORE: usize = 44;
/// How far after a number its word may stand, in bytes.
const AFTER: usize = 16;

/// Finds the words of all cues in one pass.
#[derive(Debug)]
pub(crate) struct CueFinder {
    automaton: AhoCorasick,
    owners: Vec<Cue>,
}

impl CueFinder {
    pub(crate) fn new() -> Result<Self, BuildError> {
        let pairs =
            || CUES.iter().flat_map(|(cue, words)| words.iter().map(move |word| (cue, word)));
        Ok(Self {
            automaton: AhoCorasickBuilder::new()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::LeftmostLongest)
                .build(pairs().map(|(_, word)| word))?,
            owners: pairs().map(|(cue, _)| *cue).collect(),
        })
    }

    fn find(&self, text: &str) -> Vec<(Cue, usize, usize)> {
        self.automaton
            .find_iter(text)
            .filter(|hit| stands_alone(text, hit.start(), hit.end()))
            .map(|hit| (self.owners[hit.pattern().as_usize()], hit.start(), hit.end()))
            .collect()
    }
}

/// Whether no ASCII letter or digit touches a word; scripts without spaces always pass.
pub(crate) fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let bytes = text.as_bytes();
    let touches = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let opens = touches(bytes.get(start)) && start > 0 && touches(bytes.get(start - 1));
    let closes = end > 0 && touches(bytes.get(end - 1)) && touches(bytes.get(end));
    !opens && !closes
}

/// A text in its reading form.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    folded: Cow<'a, str>,
    /// Where the text may be cut; no value goes on across one of these.
    breaks: Vec<usize>,
    cues: Vec<(Cue, usize, usize)>,
    has_digit: bool,
}

impl<'a> Text<'a> {
    pub(crate) fn new(text: &'a str, finder: &CueFinder) -> Self {
        let folded = fold(text);
        let breaks = match &folded {
            Cow::Borrowed(_) => safe_cuts(text, true),
            Cow::Owned(folded) => moved(&safe_cuts(text, true), text, folded),
        };
        let has_digit = folded.bytes().any(|byte| byte.is_ascii_digit());
        let cues = if has_digit { finder.find(&folded) } else { Vec::new() };
        Self { folded, breaks, cues, has_digit }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.folded
    }

    pub(crate) fn has_digit(&self) -> bool {
        self.has_digit
    }

    /// Places in order, in bytes of the text as it was before folding.
    pub(crate) fn unfolded(&self, original: &str, places: &[Place]) -> Vec<Place> {
        if matches!(self.folded, Cow::Borrowed(_)) {
            return places.to_vec();
        }
        let ends: Vec<usize> = places.iter().flat_map(|place| [place.start, place.end]).collect();
        let ends = moved(&ends, &self.folded, original);
        let both = ends.chunks_exact(2).zip(places);
        both.map(|(ends, place)| Place { start: ends[0], end: ends[1], ..*place }).collect()
    }

    /// Where the part of the text ends in which a value that begins here must stay.
    pub(crate) fn fence(&self, start: usize) -> usize {
        let next = self.breaks.partition_point(|at| *at <= start);
        self.breaks.get(next).copied().unwrap_or(self.folded.len())
    }

    /// Whether any word of a cue occurs at all.
    pub(crate) fn has(&self, cue: Cue) -> bool {
        self.cues.iter().any(|(one, _, _)| *one == cue)
    }

    /// Whether a word of a cue stands shortly before a place, or right after it and before the next
    /// cut: what comes after that must not change what was found.
    pub(crate) fn near(&self, cue: Cue, start: usize, end: usize) -> bool {
        let fence = self.fence(start);
        let follows = |(one, from, upto): &(Cue, usize, usize)| {
            *one == cue && from - end <= AFTER && *upto <= fence
        };
        self.before(cue, start, BEFORE) || self.cues_from(end).any(follows)
    }

    /// Whether a word of a cue ends at most so many bytes before a place.
    pub(crate) fn before(&self, cue: Cue, start: usize, distance: usize) -> bool {
        let upto = self.cues.partition_point(|(_, _, end)| *end <= start);
        self.cues[..upto]
            .iter()
            .rev()
            .take_while(|(_, _, end)| start - end <= distance)
            .any(|(one, _, _)| *one == cue)
    }

    fn cues_from(&self, end: usize) -> impl Iterator<Item = &(Cue, usize, usize)> {
        let from = self.cues.partition_point(|(_, start, _)| *start < end);
        self.cues[from..].iter().take_while(move |(_, start, _)| start - end <= AFTER)
    }

    /// Whether a run of signs is a word of its own: no letter or digit touches it, also not across
    /// a sign that ties names, paths and numbers together.
    pub(crate) fn is_free(&self, start: usize, end: usize) -> bool {
        !self.is_tied_before(start) && !self.is_tied_after(end)
    }

    fn is_tied_before(&self, start: usize) -> bool {
        let mut back = self.folded[..start].chars().rev();
        match back.next() {
            Some(sign) if is_word(sign) => true,
            Some('-' | '.' | '/' | '@' | '\\' | '+' | '=' | '~' | '$' | '%' | '&') => {
                back.next().is_some_and(is_word)
            }
            Some(',' | ':') => back.next().is_some_and(|sign| sign.is_ascii_digit()),
            _ => false,
        }
    }

    fn is_tied_after(&self, end: usize) -> bool {
        let mut ahead = self.folded[end..].chars();
        match ahead.next() {
            Some(sign) if is_word(sign) => true,
            Some('-' | '@' | '/' | '\\' | '~' | '%') => ahead.next().is_some_and(is_word),
            Some('.' | ',' | ':') => ahead.next().is_some_and(|sign| sign.is_ascii_digit()),
            _ => false,
        }
    }
}

/// Letters of scripts that write spaces, digits and the underscore. A Japanese letter may touch a
/// number.
fn is_word(sign: char) -> bool {
    sign == '_' || sign.is_ascii_alphanumeric() || (sign.is_alphabetic() && (sign as u32) < 0x0590)
}

/// Full-width signs, odd spaces and odd dashes made plain, one for one.
pub(crate) fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !text.chars().any(|sign| fold_sign(sign) != sign) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(fold_sign).collect())
}

/// Places in order, moved from one form of a text to the other. Both have the same number of signs.
fn moved(places: &[usize], from: &str, to: &str) -> Vec<usize> {
    let mut signs = from.chars().zip(to.chars());
    let mut at = 0;
    let mut moved_at = 0;
    let mut moved = Vec::with_capacity(places.len());
    for place in places {
        while at < *place {
            let Some((sign, other)) = signs.next() else { break };
            at += sign.len_utf8();
            moved_at += other.len_utf8();
        }
        moved.push(moved_at);
    }
    moved
}

pub(crate) fn fold_sign(sign: char) -> char {
    match sign {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(sign as u32 - 0xfee0).unwrap_or(sign),
        '\u{3000}' | '\u{a0}' | '\u{202f}' | '\u{2002}'..='\u{200a}' => ' ',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{ff70}' => '-',
        '\u{2018}' | '\u{2019}' | '\u{02bc}' => '\'',
        _ => sign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_keeps_the_number_of_scalar_values() {
        let text = "０９０－１２３４　５６７８ é 漢字 ‐ ’";
        let folded = fold(text);
        assert_eq!(folded, "090-1234 5678 é 漢字 - '");
        assert_eq!(folded.chars().count(), text.chars().count());
    }

    #[test]
    fn a_cue_counts_as_a_word_and_only_nearby() {
        let finder = CueFinder::new().unwrap();
        let text = Text::new("recall 12345678, my phone: 12345678", &finder);
        assert!(!text.near(Cue::Phone, 7, 15) || text.near(Cue::Phone, 27, 35));
        assert!(text.near(Cue::Phone, 27, 35));
        let long = format!("phone {} 12345678", "x".repeat(80));
        assert!(!Text::new(&long, &finder).near(Cue::Phone, 87, 95));
    }

    #[test]
    fn a_number_in_a_longer_name_is_not_free() {
        let finder = CueFinder::new().unwrap();
        for (text, free) in [
            ("1234567", true),
            ("x1234567", false),
            ("ab-1234567", false),
            ("1234567.", true),
            ("1234567.5", false),
            ("は1234567です", true),
            ("(1234567)", true),
        ] {
            let start = text.find('1').unwrap();
            assert_eq!(Text::new(text, &finder).is_free(start, start + 7), free, "{text}");
        }
    }
}
