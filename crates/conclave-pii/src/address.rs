//! Owns what leads to a door: street and number in many languages, boxes, units, Japanese blocks.
//!
//! **Invariant:** a street without a number, a town or a country alone is a place and is not found.

use crate::kind::Kind;
use crate::patterns::{Gate, Row, Span};

/// Patterns of addresses, for the table of all patterns.
pub(crate) const ADDRESSES: &[Row] = &[
    (Kind::StreetAddress, Gate::Digit, ENGLISH, english),
    (Kind::StreetAddress, Gate::Digit, NUMBER_AFTER, |span| confirm(span, 0.8)),
    (Kind::StreetAddress, Gate::Digit, CAPITAL_NUMBER_AFTER, |span| confirm(span, 0.75)),
    (Kind::StreetAddress, Gate::Digit, HOUSE_IN, announced),
    (Kind::StreetAddress, Gate::Digit, ANNOUNCED, announced),
    (Kind::StreetAddress, Gate::Digit, WORD_FIRST, |span| confirm(span, 0.8)),
    (Kind::StreetAddress, Gate::Digit, UNIT, |span| confirm(span, 0.75)),
    (Kind::StreetAddress, Gate::Digit, BOX, |span| confirm(span, 0.85)),
    (Kind::StreetAddress, Gate::Digit, STREET_THEN_TOWN, |span| confirm(span, 0.65)),
    (Kind::StreetAddress, Gate::Digit, TWO_NUMBERS, |span| confirm(span, 0.6)),
    (Kind::StreetAddress, Gate::Open, JAPANESE, |_| Some(0.9)),
    (Kind::StreetAddress, Gate::Open, JAPANESE_BLOCK, |_| Some(0.75)),
];

/// A number, one to five words, and what a street is called in English.
const ENGLISH: &str = concat!(
    r"(?i)\b\d{1,6}[a-z]?(?:[/\-]\d{1,5}[a-z]?)?,? (?:(?:north|south|east|west|n|s|e|w|ne|",
    r"nw|se|sw)\.? )?(?:[A-Za-zÀ-ɏͰ-ԯḀ-ỿ\d'.\-]{1,24} ){1,5}?(?:street|st|road|rd|avenue|",
    r"ave|av|boulevard|blvd|lane|ln|drive|dr|court|ct|place|pl|square|sq|terrace|tce|",
    r"parade|pde|crescent|cres|highway|hwy|parkway|pkwy|circle|cir|close|grove|gardens|",
    r"mews|esplanade|quay|row|alley|trail|trl|loop|turnpike|broadway|rise|walk)\b\.?",
);

/// A street word with its number after it, as in most of Europe: `Hauptstraße 5`, `Storgatan 12`.
const NUMBER_AFTER: &str = concat!(
    r"(?i)(?-u:\b)[A-Za-zÀ-ɏͰ-ԯḀ-ỿ.'\-]{2,40} ?(?:stra(?:ss|ß)e|stra(?:ss|ß)e|str\.|gasse|",
    r"allee|platz|straat|laan|plein|gracht|singel|gatan|vägen|veien|vegen|gade|allé|plads|",
    r"katu|polku|tänav|puiestee|maantee|stræti|utca|körút|rakpart|ulica|ulice|caddesi|",
    r"sokak|odos)\s\d{1,4}\s?[a-z]?\b",
);

/// The same for endings that are English words too: only joined, and with a capital.
const CAPITAL_NUMBER_AFTER: &str = concat!(
    r"\b[A-ZÀ-ÞĀ-ɏ][A-Za-zÀ-ɏͰ-ԯḀ-ỿ.'\-]{2,40}(?:weg|ring|ufer|steig|hof|damm|kade|dreef|",
    r"gata|gate|vej|kuja|tie|braut|vegur|baan|dijk|lei|park|sväg|bakken|",
    r"toft)\s\d{1,4}\s?[a-zA-Z]?\b",
);

/// After words that announce an address: a name and a number, in either order.
const ANNOUNCED: &str = concat!(
    r"(?i:address(?: is|:)?|live[ds]? (?:at|on)|living (?:at|on)|meet(?:ing)? (?:you |me |",
    r"us )?at|stay(?:ing)? at|drive to|come to|pick (?:me|us|you) up (?:at|from)|",
    r"drops? (?:me|us|you) off at|office at|send (?:it|them|this) to|located at|",
    r"deliver(?:ed)? (?:it )?to|ship(?:ped)? (?:it )?to|resides? at|corner of|arrived at|",
    r"return to|(?:office|station|restaurant|house|shop|store|home) is (?:at|on)|taxi to|",
    r"get off at|you off at|enter on|住所は?)(?: is|",
    r":)? (?:the corner of )?(?<v>\d{1,6}[a-z]?(?: \d{1,5})?,? [A-ZÀ-ÞͰ-ԯĀ-ɏ][A-Za-zÀ-ɏͰ-ԯ",
    r"Ḁ-ỿ.'\-]{2,30}(?: [A-Za-zÀ-ɏͰ-ԯḀ-ỿ\d.'\-]{1,24}){0,4}|",
    r"[A-ZÀ-ÞͰ-ԯĀ-ɏ][A-Za-zÀ-ɏͰ-ԯḀ-ỿ.'\-]{1,30}(?: [A-Za-zÀ-ɏͰ-ԯḀ-ỿ.'\-]{2,24}){0,3} \d{1,",
    r"5})",
);

/// A street word that stands before its name: `Rue`, `Via`, `Calle`, `ul.`.
const WORD_FIRST: &str = concat!(
    r"(?i)\b(?:(?:\d{1,5}(?: ?bis| ?ter)?,? (?:rue|avenue|place|boulevard|chemin|quai|",
    r"impasse|allée|route|cours|passage)(?: [A-Za-zÀ-ɏͰ-ԯḀ-ỿ][A-Za-zÀ-ɏͰ-ԯḀ-ỿ'\-]{0,24}){1",
    r",5})|(?:(?:rue|via|viale|piazza|corso|vicolo|largo|calle|c/|avenida|avda\.?|plaza|",
    r"paseo|camino|carretera|rua|r\.|praça|travessa|ul\.|ulica|ulice|aleja|al\.|pl\.|os\.|",
    r"trg|cesta|strada|str\.|nám\.|náměstí|námestie|bulevardul|bul\.|odos|jalan|jl\.|",
    r"jln)(?: [A-Za-zÀ-ɏͰ-ԯḀ-ỿ\d][A-Za-zÀ-ɏͰ-ԯḀ-ỿ\d.'\-]{0,24}){1,5}?,? (?:n[.º°]? ?)?\d{1",
    r",5}[a-z]?\b)|(?:[A-Za-zÀ-ɏͰ-ԯḀ-ỿ][A-Za-zÀ-ɏͰ-ԯḀ-ỿ.'\-]{1,30} ){1,3}(?:u\.|utca|út|",
    r"tér|krt\.|cad\.|caddesi|sok\.|sokak|sk\.) ?(?:no:? ?)?\d{1,4}\b)",
);

/// After `live in`, where a town with a number follows as easily: the house number must come first.
const HOUSE_IN: &str = concat!(
    r"(?i:live[ds]? in|living in|moved to|",
    r"lived in) (?<v>\d{1,6}[a-z]? [A-ZÀ-ÞͰ-ԯĀ-ɏ][A-Za-zÀ-ɏͰ-ԯḀ-ỿ.'\-]{2,30}(?: [A-Za-zÀ-ɏ",
    r"Ͱ-ԯḀ-ỿ\d.'\-]{1,24}){0,4})",
);

/// A flat or suite with its number.
const UNIT: &str = r"(?i)\b(?:apt\.?|apartment|suite|ste\.?|flat) ?#? ?\d{1,5}[a-z]?\b";

/// Boxes of the post and of armed forces.
const BOX: &str = concat!(
    r"(?i)\b(?:p\.? ?o\.? ?box|post office box|postfach|postboks|apartado|casilla|gpo box|",
    r"private bag|unit \d{1,5} box) ?\d{1,6}\b|\b(?:box|bp) \d{2,6}\b|\b(?:apo|fpo|",
    r"dpo) (?:aa|ae|ap) \d{5}\b|\b(?:psc|cmr) \d{1,5},? box \d{1,6}\b",
);

/// A house number, a name, and another number, then a town or a postal code: `16 Lange Gasse 3,
/// 1080`.
const TWO_NUMBERS: &str = concat!(
    r"\b\d{1,5} (?:[A-ZÀ-ÞĀ-ɏ][A-Za-zÀ-ɏͰ-ԯḀ-ỿ.'\-]{2,24} ){1,4}\d{1,4}(?:,|\n|",
    r" (?:[A-ZÀ-ÞĀ-ɏ]|\d{4,5}\b))",
);

/// A name and a number, then a postal code and a town: `Lange Gasse 3, 1080 Wien`.
const STREET_THEN_TOWN: &str = concat!(
    r"\b[A-ZÀ-ÞĀ-ɏ][A-Za-zÀ-ɏ.'\-]{2,30}(?: [A-Za-zÀ-ɏ.'\-]{2,24}){0,3} \d{1,4}[a-z]?(?:,|",
    r" ?\n) ?(?:[A-Z]{1,2}-)?\d{4,5} [A-ZÀ-ÞĀ-ɏ][A-Za-zÀ-ɏ\-]{2,30}",
);

/// Prefecture, town and block.
const JAPANESE: &str = concat!(
    r"(?:北海道|東京都|京都府|大阪府|[一-鿿々]{2,3}県)[一-鿿々ぁ-ゖァ-ヺー]{1,12}?[市区町村郡][一-鿿々ぁ-ゖァ-ヺー]{0,20}?[\d一二",
    r"三四五六七八九十]{1,5}(?:丁目|番地|番|号|-|の|[ \d一二三四五六七八九十]){0,12}",
);

/// A block without its prefecture.
const JAPANESE_BLOCK: &str = concat!(
    r"[一-鿿々ァ-ヺー]{1,10}[市区町村][一-鿿々ぁ-ゖァ-ヺー]{1,16}?[\d一二三四五六七八九十]{1,4}(?:丁目|番地|番\d|",
    r"-\d{1,3}-\d{1,4})[\d一二三四五六七八九十丁目番地号\-の]{0,12}",
);

fn confirm(span: Span<'_>, confidence: f32) -> Option<f32> {
    let tied = span.text.as_str()[..span.start].ends_with(['.', ':', '/', '-', '#', '$', '@', '_']);
    let text = span.as_str();
    (!tied && !text.contains("  ")).then_some(confidence)
}

/// An announced place is no date: `arrived at 5 March 2020`.
fn announced(span: Span<'_>) -> Option<f32> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let months = |word: &str| MONTHS.iter().any(|month| word.to_lowercase().starts_with(month));
    let dated = span.as_str().split_whitespace().any(|word| months(word) && word.len() < 10);
    (!dated).then(|| confirm(span, 0.65)).flatten()
}

/// Words between number and street that show a sentence instead of a name: `2 of the people on the
/// street`.
const PROSE: &[&str] = &[
    "a",
    "about",
    "after",
    "all",
    "am",
    "and",
    "are",
    "as",
    "at",
    "be",
    "been",
    "before",
    "by",
    "can",
    "day",
    "days",
    "did",
    "do",
    "every",
    "for",
    "from",
    "had",
    "has",
    "have",
    "he",
    "hours",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "items",
    "kids",
    "km",
    "men",
    "miles",
    "minutes",
    "more",
    "my",
    "not",
    "on",
    "only",
    "or",
    "our",
    "out",
    "people",
    "percent",
    "pm",
    "points",
    "she",
    "so",
    "than",
    "that",
    "their",
    "them",
    "then",
    "there",
    "they",
    "this",
    "times",
    "to",
    "up",
    "was",
    "we",
    "were",
    "what",
    "when",
    "which",
    "who",
    "will",
    "with",
    "women",
    "years",
    "year",
    "you",
    "your",
    "off",
    "no",
    "reasons",
    "ways",
    "weeks",
    "months",
    "other",
    "across",
    "down",
    "along",
    "different",
    "of",
    "each",
    "steps",
    "step",
    "per",
    "first",
    "second",
    "third",
    "hour",
];

fn english(span: Span<'_>) -> Option<f32> {
    let words: Vec<&str> = span.as_str().split_whitespace().collect();
    let inner = words.get(1..words.len().saturating_sub(1)).unwrap_or_default();
    let prose = inner.iter().filter(|word| PROSE.contains(&word.to_lowercase().as_str())).count();
    let capital = inner.iter().any(|word| word.starts_with(char::is_uppercase));
    let last = words.last().map(|word| word.trim_end_matches('.').to_lowercase());
    let full = last.as_deref().is_some_and(|word| {
        matches!(
            word,
            "street"
                | "road"
                | "avenue"
                | "boulevard"
                | "lane"
                | "rd"
                | "ave"
                | "blvd"
                | "st"
                | "crescent"
        )
    });
    let year = words.first().is_some_and(|word| word.len() == 4 && word.starts_with(['1', '2']));
    match (prose, capital) {
        (0, true) if !year || full => confirm(span, 0.85),
        (0, false) if full && !year && inner.len() <= 3 => confirm(span, 0.6),
        _ => None,
    }
}
