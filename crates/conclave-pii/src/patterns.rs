//! Owns the patterns of structured data: a shape, what must be near it, and the rule that confirms
//! it.
//!
//! **Invariant:** a shape that numbers of other meaning share (nine bare digits, an order number)
//! counts only with a word near it that says what it is.

use crate::address::ADDRESSES;
use crate::checksum;
use crate::kind::Kind;
use crate::phone::PHONES;
use crate::secrets::SECRETS;
use crate::text::{Cue, Text};
use regex::Regex;
use std::ops::Range;

/// What a text must hold before a pattern is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gate {
    /// Nothing.
    Open,
    /// A digit.
    Digit,
    /// A word of a cue, and a digit.
    Near(Cue),
}

/// A place that a pattern proposes, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'t> {
    pub(crate) text: &'t Text<'t>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl<'t> Span<'t> {
    pub(crate) fn as_str(&self) -> &'t str {
        &self.text.as_str()[self.start..self.end]
    }

    pub(crate) fn digits(&self) -> Vec<u8> {
        self.as_str().bytes().filter(u8::is_ascii_digit).collect()
    }

    /// Letters and digits only, in capitals.
    fn code(&self) -> Vec<u8> {
        let bytes = self.as_str().bytes().filter(u8::is_ascii_alphanumeric);
        bytes.map(|byte| byte.to_ascii_uppercase()).collect()
    }

    pub(crate) fn near(&self, cue: Cue) -> bool {
        self.text.near(cue, self.start, self.end)
    }

    pub(crate) fn is_free(&self) -> bool {
        self.text.is_free(self.start, self.end)
    }

    fn is_bare(&self) -> bool {
        self.as_str().bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// The confidence of a proposal, or nothing where the rule refuses it.
pub(crate) type Confirm = fn(Span<'_>) -> Option<f32>;

/// One pattern. The group `v` is the found part where the pattern has one.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) kind: Kind,
    pub(crate) gate: Gate,
    regex: Regex,
    has_group: bool,
    confirm: Confirm,
}

impl Pattern {
    fn new(row: &Row) -> Result<Self, regex::Error> {
        let (kind, gate, shape, confirm) = *row;
        let regex = Regex::new(&ascii(shape))?;
        Ok(Self { kind, gate, has_group: shape.contains("(?<v>"), regex, confirm })
    }

    /// Without the punctuation of the sentence that a web address or a password ends.
    fn trim<'t>(&self, span: Span<'t>) -> Span<'t> {
        if !matches!(self.kind, Kind::Url | Kind::Password) {
            return span;
        }
        let signs = ['.', ',', ';', ':', '!', '?', ')', ']', '}', '*', '`', '\\'];
        Span { end: span.start + span.as_str().trim_end_matches(signs).len(), ..span }
    }

    /// Calls `take` with each confirmed place and its confidence.
    pub(crate) fn each<'t>(&self, text: &'t Text<'t>, take: &mut dyn FnMut(Span<'t>, f32)) {
        let search = Search { regex: &self.regex, has_group: self.has_group };
        search.each(text, &mut |hit| {
            let whole = self.trim(Span { text, start: hit.value.start, end: hit.value.end });
            if let Some(confidence) = (self.confirm)(whole) {
                take(whole, confidence);
                return hit.end;
            }
            for span in self.narrower(whole) {
                let sure = (self.confirm)(span).filter(|sure| *sure >= NARROWER_MIN);
                if let Some(confidence) = sure {
                    take(span, confidence);
                    return span.end;
                }
            }
            // A refused proposal may hide another: `password: password: x1y2`, `12/25 4111 ...`.
            let second = self.is_run(whole).then(|| whole.as_str().find(' ')).flatten();
            let within = if self.has_group { Some(0) } else { second.map(|at| at + 1) };
            within.map_or(hit.end, |at| whole.start + at)
        });
    }

    fn is_run(&self, span: Span<'_>) -> bool {
        matches!(self.kind, Kind::PaymentCard | Kind::Phone)
            && !span.as_str().contains(char::is_alphabetic)
    }

    /// What is left of a run of digits without its last groups: a card is written beside its date,
    /// a telephone number beside a time.
    fn narrower<'t>(&self, span: Span<'t>) -> impl Iterator<Item = Span<'t>> {
        let written = if self.is_run(span) { span.as_str() } else { "" };
        let ends = written.match_indices(' ').map(|(at, _)| at).rev().take(NARROWER_MAX);
        ends.map(move |at| Span { end: span.start + at, ..span })
    }
}

/// How many groups are taken off the end of a run of digits.
const NARROWER_MAX: usize = 3;
/// How sure a part of a run must be: some part of many numbers looks a little like something.
const NARROWER_MIN: f32 = 0.65;

/// A match, and the part of it that would be the value.
pub(crate) struct Hit {
    pub(crate) value: Range<usize>,
    pub(crate) end: usize,
}

/// A search for values none of which goes on across a cut of the text.
pub(crate) struct Search<'r> {
    pub(crate) regex: &'r Regex,
    /// Whether the value is the group `v` and not the whole match.
    pub(crate) has_group: bool,
}

impl Search<'_> {
    /// Calls `see` with each match in order; it says where to go on.
    pub(crate) fn each(&self, text: &Text<'_>, see: &mut dyn FnMut(&Hit) -> usize) {
        let whole = text.as_str();
        let mut from = 0;
        // The text is searched as a whole, because most patterns match nowhere. Only where a match
        // crosses a cut is the part before that cut searched by itself.
        let mut limit = whole.len();
        while from <= whole.len() {
            let Some(hit) = self.first(&whole[..limit], from) else {
                if limit == whole.len() {
                    return;
                }
                from = from.max(limit);
                limit = whole.len();
                continue;
            };
            let fence = text.fence(hit.value.start);
            if hit.value.end > fence {
                limit = fence;
                continue;
            }
            let next = see(&hit);
            from = if next > from { next } else { hit.end };
        }
    }

    fn first(&self, text: &str, from: usize) -> Option<Hit> {
        if from > text.len() {
            return None;
        }
        if !self.has_group {
            let hit = self.regex.find_at(text, from)?;
            return Some(Hit { value: hit.range(), end: hit.end() });
        }
        let hit = self.regex.captures_at(text, from)?;
        let end = hit.get(0)?.end();
        let value = hit.name("v").map_or(end..end, |value| value.range());
        Some(Hit { value, end })
    }
}

/// Digits and word boundaries in their ASCII meaning, which keeps the automata small and fast.
fn ascii(shape: &str) -> String {
    shape.replace(r"\d", "[0-9]").replace(r"\b", r"(?-u:\b)")
}

pub(crate) type Row = (Kind, Gate, &'static str, Confirm);

/// Every pattern.
pub(crate) fn all() -> Result<Vec<Pattern>, regex::Error> {
    [CONTACT, NATIONAL, MONEY, MISC, SECRETS, PHONES, ADDRESSES]
        .iter()
        .flat_map(|rows| rows.iter())
        .map(Pattern::new)
        .collect()
}

const CONTACT: &[Row] = &[
    (
        Kind::Email,
        Gate::Open,
        r"[A-Za-z0-9À-ɏͰ-ԯ._%+\-]+@(?:[A-Za-z0-9À-ɏͰ-ԯ\-]+\.)+[A-Za-zÀ-ɏͰ-ԯ]{2,24}",
        |span| (!span.as_str().starts_with('.')).then_some(0.98),
    ),
    (
        Kind::Url,
        Gate::Open,
        r#"(?i)(?:https?|ftp)://[^\s<>"'\x{3000}-\x{9fff}\x{ff00}-\x{ffef}]{3,}"#,
        |span| (!is_local(span.as_str())).then_some(0.9),
    ),
    (
        Kind::Url,
        Gate::Open,
        r"(?i)www\.[a-z0-9\-]+(?:\.[a-z0-9\-]+)+(?:/[^\s<>\x{3000}-\x{9fff}\x{ff00}-\x{ffef}]*)?",
        |span| span.is_free().then_some(0.9),
    ),
    (
        Kind::Url,
        Gate::Open,
        concat!(
            r"(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?\.){1,4}(?:com|org|net|edu|gov|",
            r"info|biz|co\.uk|co\.jp|ne\.jp|or\.jp|com\.au|de|fr|ch|nl|se|jp|ca|eu|cz|pl|hu|si|dk|",
            r"fi)(?:/[^\s<>\x{3000}-\x{9fff}\x{ff00}-\x{ffef}]*)?",
        ),
        bare_domain,
    ),
    (Kind::IpAddress, Gate::Digit, r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}", ip_v4),
    (Kind::IpAddress, Gate::Digit, r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}", ip_v6),
    (
        Kind::MacAddress,
        Gate::Digit,
        r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}",
        |span| {
            // Texts without any digit are not searched, so one is asked for in the value as well.
            let has_digit = span.as_str().bytes().any(|byte| byte.is_ascii_digit());
            (has_digit && span.is_free()).then_some(0.9)
        },
    ),
];

const NATIONAL: &[Row] = &[
    (Kind::UsSsn, Gate::Digit, r"\d{3}-\d{2}-\d{4}|\d{3} \d{2} \d{4}", |span| {
        let valid = span.is_free() && checksum::us_ssn(&span.digits());
        valid.then(|| if span.near(Cue::Ssn) { 0.98 } else { 0.85 })
    }),
    (Kind::UsSsn, Gate::Near(Cue::Ssn), r"\d{9}", |span| {
        (span.is_free() && span.near(Cue::Ssn) && checksum::us_ssn(&span.digits())).then_some(0.9)
    }),
    // Numbers for taxpayers who have no Social Security Number look alike and begin with 9.
    (Kind::UsSsn, Gate::Near(Cue::TaxId), r"9\d{2}[ \-]?[5-9]\d[ \-]?\d{4}", |span| {
        (span.is_free() && span.near(Cue::TaxId)).then_some(0.85)
    }),
    (Kind::JpMyNumber, Gate::Digit, r"\d{4}[ \-]?\d{4}[ \-]?\d{4}", |span| {
        let valid = span.is_free() && checksum::jp_my_number(&span.digits());
        told_or_grouped(span, valid, Cue::MyNumber)
    }),
    (Kind::InAadhaar, Gate::Digit, r"\d{4}[ \-]?\d{4}[ \-]?\d{4}", |span| {
        let valid = span.is_free() && checksum::in_aadhaar(&span.digits());
        told_or_grouped(span, valid, Cue::Aadhaar)
    }),
    (Kind::UkNino, Gate::Digit, r"(?i)[a-z]{2} ?\d{2} ?\d{2} ?\d{2} ?[a-d]", |span| {
        (span.is_free() && checksum::uk_nino(&span.code())).then_some(0.9)
    }),
    (Kind::AuTfn, Gate::Near(Cue::Tfn), r"\d{3}[ \-]?\d{3}[ \-]?\d{3}", |span| {
        told(span, Cue::Tfn, checksum::au_tfn(&span.digits()))
    }),
    (
        Kind::AuMedicare,
        Gate::Near(Cue::Medicare),
        r"\d{4}[ \-]?\d{5}[ \-]?\d(?:[ \-/]?\d)?",
        |span| told(span, Cue::Medicare, checksum::au_medicare(&span.digits())),
    ),
    (Kind::CaSin, Gate::Near(Cue::Sin), r"\d{3}[ \-]?\d{3}[ \-]?\d{3}", |span| {
        told(span, Cue::Sin, checksum::ca_sin(&span.digits()))
    }),
    (Kind::DeTaxId, Gate::Near(Cue::TaxId), r"\d{2} ?\d{3} ?\d{3} ?\d{3}", |span| {
        told(span, Cue::TaxId, checksum::de_tax_id(&span.digits()))
    }),
    (
        Kind::FrNir,
        Gate::Digit,
        r"[1-478] ?\d{2} ?\d{2} ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}",
        |span| (span.is_free() && checksum::fr_nir(&span.code())).then_some(0.9),
    ),
    (Kind::EsDni, Gate::Digit, r"(?:\d{8}|[XYZ]-?\d{7})-?[A-Z]", |span| {
        (span.is_free() && checksum::es_dni(&span.code())).then_some(0.85)
    }),
    (
        Kind::ItFiscalCode,
        Gate::Digit,
        r"(?i)[a-z]{6}\d{2}[a-ehlmprst]\d{2}[a-z]\d{3}[a-z]",
        |span| (span.is_free() && checksum::it_fiscal_code(&span.code())).then_some(0.95),
    ),
    (Kind::BrCpf, Gate::Digit, r"\d{3}\.\d{3}\.\d{3}-\d{2}", |span| {
        (span.is_free() && checksum::br_cpf(&span.digits())).then_some(0.95)
    }),
    (Kind::BrCpf, Gate::Near(Cue::Cpf), r"\d{11}", |span| {
        told(span, Cue::Cpf, checksum::br_cpf(&span.digits()))
    }),
    (Kind::KrRrn, Gate::Digit, r"\d{6}-?\d{7}", |span| {
        let digits = span.digits();
        let dashed = !span.is_bare() && checksum::kr_rrn(&digits);
        let named = span.near(Cue::Rrn) && checksum::kr_rrn_shape(&digits);
        (span.is_free() && (dashed || named)).then_some(0.9)
    }),
    (Kind::CnResidentId, Gate::Digit, r"\d{17}[\dXx]", |span| {
        (span.is_free() && checksum::cn_resident_id(span.as_str().as_bytes())).then_some(0.95)
    }),
];

const MONEY: &[Row] = &[
    (Kind::PaymentCard, Gate::Digit, r"\d(?:[ \-]?\d){11,18}", card),
    (
        Kind::Iban,
        Gate::Digit,
        r"[A-Za-z]{2}\d{2}(?:[ \-]?[A-Za-z0-9]{4}){2,7}(?:[ \-]?[A-Za-z0-9]{1,4})?",
        |span| (span.is_free() && checksum::iban(&span.code())).then_some(0.98),
    ),
    (Kind::BankAccount, Gate::Near(Cue::Account), r"\d(?:[ \-]?\d){5,16}", |span| {
        let named = span.text.before(Cue::Account, span.start, 28);
        (named && span.is_free()).then_some(0.65)
    }),
    (Kind::BankAccount, Gate::Near(Cue::Routing), r"\d{9}", |span| {
        told(span, Cue::Routing, checksum::us_routing(&span.digits()))
    }),
    (
        Kind::BankAccount,
        Gate::Near(Cue::SortCode),
        r"\d{2}-?\d{2}-?\d{2}|\d{3}-?\d{3}|\d{3}",
        |span| (span.text.before(Cue::SortCode, span.start, 16) && span.is_free()).then_some(0.8),
    ),
];

const MISC: &[Row] = &[
    (
        Kind::Passport,
        Gate::Near(Cue::Passport),
        r"[A-Za-z]{0,2}\d{6,9}|[A-Z]\d{2}[A-Z]{2}\d{4}",
        |span| (span.near(Cue::Passport) && span.is_free()).then_some(0.8),
    ),
    (
        Kind::DriverLicence,
        Gate::Near(Cue::Licence),
        r"[A-Za-z]{0,3}[ \-]?\d(?:[ \-]?[A-Z0-9]){4,17}",
        |span| {
            let enough = span.digits().len() >= 5;
            (enough && span.near(Cue::Licence) && span.is_free()).then_some(0.75)
        },
    ),
    (
        Kind::MedicalRecord,
        Gate::Near(Cue::Medical),
        r"[A-Za-z]{0,4}[\-#]?\d(?:-?[A-Za-z0-9]){3,14}",
        |span| (span.text.before(Cue::Medical, span.start, 28) && span.is_free()).then_some(0.8),
    ),
    (Kind::MedicalRecord, Gate::Near(Cue::Nhs), r"\d{3}[ \-]?\d{3}[ \-]?\d{4}", |span| {
        told(span, Cue::Nhs, checksum::uk_nhs(&span.digits()))
    }),
    (Kind::CryptoWallet, Gate::Digit, r"[13][1-9A-HJ-NP-Za-km-z]{25,34}", |span| {
        (span.is_free() && checksum::base58_check(span.as_str().as_bytes())).then_some(0.98)
    }),
    (Kind::CryptoWallet, Gate::Digit, r"bc1[02-9ac-hj-np-z]{11,71}", |span| {
        (span.is_free() && checksum::bech32(span.as_str().as_bytes())).then_some(0.98)
    }),
    (Kind::CryptoWallet, Gate::Digit, r"0x[0-9a-fA-F]{40}", |span| span.is_free().then_some(0.85)),
    (
        Kind::DateOfBirth,
        Gate::Near(Cue::Birth),
        concat!(
            r"(?i)\d{1,4}[/.\-]\d{1,2}[/.\-]\d{1,4}|\d{4}年\d{1,2}月\d{1,2}日|(?:\d{1,2}(?:st|nd|rd|",
            r"th)? (?:of )?)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|",
            r"dec)[a-z]*\.? (?:\d{1,2}(?:st|nd|rd|th)?,? )?\d{4}",
        ),
        |span| (span.near(Cue::Birth) && span.is_free()).then_some(0.85),
    ),
    (
        Kind::Age,
        Gate::Digit,
        concat!(
            r"(?i)(?:\b(?:aged|age|age is|age:|turned|turning|i'm|i am|he's|she's|he is|she is|",
            r"turn) )(?<v>\d{1,3})(?:[^\d%.,:/'\w\-]|[.,](?:\s|$)|$)",
        ),
        |span| plausible_age(span, 0.5),
    ),
    (
        Kind::Age,
        Gate::Digit,
        concat!(
            r"(?i)(?<v>\d{1,3})(?:[ \-]?(?:years?|yrs?|months?)[ \-](?:old|of age)|[ \-]?y/?o\b|",
            r" ?[歳才])",
        ),
        |span| plausible_age(span, 0.8),
    ),
    (Kind::PostalCode, Gate::Digit, r"〒 ?(?<v>\d{3}-?\d{4})", |span| {
        Some(if span.is_free() { 0.9 } else { 0.6 })
    }),
    (
        Kind::PostalCode,
        Gate::Digit,
        r"\b[A-Z]{1,2}\d[A-Z\d]? \d[ABD-HJLNP-UW-Z]{2}\b|\b[ABCEGHJ-NPRSTVXY]\d[A-Z] ?\d[A-Z]\d\b",
        |span| span.is_free().then_some(0.6),
    ),
    (
        Kind::PostalCode,
        Gate::Near(Cue::Postal),
        r"(?i)\d{3}-\d{4}|\d{5}-\d{4}|\d{2}-\d{3}|\d{3} \d{2}|\d{4} ?[a-z]{2}\b|\d{4,7}",
        |span| (span.text.before(Cue::Postal, span.start, 12) && span.is_free()).then_some(0.8),
    ),
];

/// A number that is free, valid, and whose word stands near it.
fn told(span: Span<'_>, cue: Cue, valid: bool) -> Option<f32> {
    (valid && span.is_free() && span.near(cue)).then_some(0.9)
}

/// As [`told`], or written in groups, which order numbers seldom are.
fn told_or_grouped(span: Span<'_>, valid: bool, cue: Cue) -> Option<f32> {
    match (valid, span.near(cue)) {
        (true, true) => Some(0.97),
        (true, false) if !span.is_bare() && !span.near(Cue::Order) => Some(0.6),
        _ => None,
    }
}

fn card(span: Span<'_>) -> Option<f32> {
    let digits = span.digits();
    let near = span.near(Cue::Card);
    if !span.is_free() || !even_groups(span.as_str()) {
        return None;
    }
    if !checksum::payment_card(&digits) {
        // A number that a person calls a card is worth hiding even with a slip in it.
        let likely =
            checksum::luhn(&digits) || (digits.len() == 16 && checksum::card_issuer(&digits));
        return (near && likely).then_some(0.7);
    }
    match (near, digits.len()) {
        (true, _) => Some(0.98),
        (false, 12..=13) => None,
        (false, _) if span.near(Cue::Order) && span.is_bare() => None,
        (false, _) => Some(0.85),
    }
}

/// Whether separators, where there are any, cut groups of at least three digits.
fn even_groups(text: &str) -> bool {
    text.split([' ', '-']).all(|group| group.len() >= 3)
}

fn ip_v4(span: Span<'_>) -> Option<f32> {
    let address: core::net::Ipv4Addr = span.as_str().parse().ok()?;
    let [first, ..] = address.octets();
    let nobody = address.is_loopback() || address.is_unspecified() || first == 255 || first == 0;
    let version = span.text.before(Cue::Order, span.start, 12);
    if !span.is_free() || nobody || version {
        return None;
    }
    let small = address.octets().iter().all(|octet| *octet < 20);
    Some(if address.is_private() || small { 0.45 } else { 0.9 })
}

fn ip_v6(span: Span<'_>) -> Option<f32> {
    let address: core::net::Ipv6Addr = span.as_str().parse().ok()?;
    let told = span.as_str().bytes().any(|byte| byte.is_ascii_digit()) && span.as_str().len() > 5;
    let ends = span.text.as_str()[span.end..].chars().next();
    let free = span.is_free() && ends.is_none_or(|sign| sign != ':');
    (told && free && !address.is_loopback()).then_some(0.9)
}

/// A name without a scheme. Names of files and of frameworks end like domains, and are spared.
fn bare_domain(span: Span<'_>) -> Option<f32> {
    let name = span.as_str().split('/').next().unwrap_or_default();
    let lower = name.to_ascii_lowercase();
    let framework = matches!(lower.as_str(), "asp.net" | "vb.net" | "ado.net" | "ml.net" | "e.ca");
    let label = name.split('.').next().unwrap_or_default();
    let tied = span.text.as_str()[..span.start].ends_with(['@', '/', '.', '_', '$']);
    let runs_on = span.text.as_str()[span.end..]
        .starts_with(|sign: char| sign.is_alphanumeric() || matches!(sign, '_' | '(' | '-' | '='));
    let short = label.len() < 3 || label.bytes().all(|byte| byte.is_ascii_digit());
    (!framework && !tied && !runs_on && !short && span.is_free()).then_some(0.7)
}

fn is_local(url: &str) -> bool {
    let rest = url.split("://").nth(1).unwrap_or_default();
    ["localhost", "127.0.0.1", "0.0.0.0", "[::1]"].iter().any(|host| rest.starts_with(host))
}

fn plausible_age(span: Span<'_>, confidence: f32) -> Option<f32> {
    let years: u32 = span.as_str().parse().ok()?;
    (1..=120).contains(&years).then_some(confidence)
}
