//! Where a person in crisis finds people, by country.
//!
//! **Invariant:** a block always names an emergency number and an international directory, so that
//! a line that has moved on is never the only thing a person is given.
//!
//! **Invariant:** the same country and language give the same block: it is appended, never
//! generated.

mod date;

pub use date::Date;

use crate::{Language, VoiceError, error};
use serde::Deserialize;
use std::collections::BTreeMap;

macro_rules! file {
    ($name:literal) => {
        (
            concat!("resources/", $name),
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/resources/", $name)),
        )
    };
}

const WORDING: (&str, &str) = file!("wording.toml");
const COUNTRIES: [(&str, &str); 4] = [
    file!("americas.toml"),
    file!("europe.toml"),
    file!("asia-pacific.toml"),
    file!("africa-middle-east.toml"),
];

/// One service.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrisisLine {
    /// Its own name, in its own language.
    pub name: String,
    /// The number to call.
    pub call: Option<String>,
    /// The number to send a text message to.
    pub text: Option<String>,
    /// The word to send there, where one is asked for.
    pub word: Option<String>,
    /// When it answers; `24/7` is worded in the reader's language.
    pub hours: Option<String>,
    /// When it answers, in Japanese.
    pub hours_ja: Option<String>,
    /// Its page.
    pub url: Option<String>,
    /// Where the fact is from.
    pub source: String,
    /// When somebody compared it with its source; absent when nobody has.
    pub checked: Option<Date>,
}

/// One country.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Country {
    code: String,
    name: String,
    name_ja: String,
    emergency: String,
    #[serde(default, rename = "line")]
    lines: Vec<CrisisLine>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CountryFile {
    country: Vec<Country>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wording {
    en: Labels,
    ja: Labels,
    directory: Vec<Directory>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Directory {
    name: String,
    url: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Labels {
    heading: String,
    heading_unknown: String,
    emergency: String,
    emergency_unknown: String,
    call: String,
    text: String,
    text_word: String,
    or: String,
    always: String,
    directory: String,
    unchecked: String,
    separator: String,
    hours_open: String,
    hours_close: String,
    care: String,
    care_unknown: String,
}

/// How fresh a fact is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Nobody has checked it.
    Unchecked,
    /// Checked, but more than twelve months ago.
    Old(Date),
}

/// A fact that wants checking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// ISO 3166 alpha-2.
    pub country: String,
    /// The service.
    pub name: String,
    /// Why it is listed.
    pub freshness: Freshness,
}

/// Crisis lines by country.
#[derive(Clone, Debug)]
pub struct Resources {
    countries: BTreeMap<String, Country>,
    wording: Wording,
}

impl Resources {
    /// Those compiled in.
    ///
    /// # Errors
    /// When a data file is broken.
    pub fn builtin() -> Result<Self, VoiceError> {
        let (file, text) = WORDING;
        let mut resources = Self { countries: BTreeMap::new(), wording: error::parse(file, text)? };
        for (file, text) in COUNTRIES {
            resources = resources.overridden(file, text)?;
        }
        Ok(resources)
    }

    /// These, with the countries of a file of the same form in the place of those they name.
    ///
    /// # Errors
    /// When the file is broken, or a line has no way of being reached.
    pub fn overridden(mut self, file: &str, text: &str) -> Result<Self, VoiceError> {
        let given: CountryFile = error::parse(file, text)?;
        for country in given.country {
            check(file, &country)?;
            self.countries.insert(normalise(&country.code), country);
        }
        Ok(self)
    }

    /// The codes of the countries that are known, in order.
    pub fn countries(&self) -> impl Iterator<Item = &str> {
        self.countries.keys().map(String::as_str)
    }

    /// The services of a country; empty when none is certain or the country is unknown.
    #[must_use]
    pub fn lines(&self, country: &str) -> &[CrisisLine] {
        self.countries.get(&normalise(country)).map_or(&[], |country| &country.lines)
    }

    /// Whether a text is the number of a line that is named here, however it is spaced.
    #[must_use]
    pub fn names_number(&self, text: &str) -> bool {
        let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
        let asked = digits(text);
        let lines = self.countries.values().flat_map(|country| &country.lines);
        let mut numbers = lines.flat_map(|line| line.call.iter().chain(&line.text));
        !asked.is_empty() && numbers.any(|number| digits(number).ends_with(&asked))
    }

    /// The text that names help: for this country; else, in Japanese, for Japan; else
    /// international.
    #[must_use]
    pub fn block(&self, country: Option<&str>, language: &str) -> String {
        let language = Language::of_tag(language);
        let labels = self.labels(language);
        let found = self.find(country, language);
        let mut lines = found.map_or_else(
            || unknown_country(labels),
            |country| known_country(country, language, labels),
        );
        lines.push(format!("- {}", self.directories(labels)));
        if found.is_some_and(|country| country.lines.iter().any(|line| line.checked.is_none())) {
            lines.push(labels.unchecked.clone());
        }
        lines.join("\n")
    }

    /// The reply with the block after it, unless it carries that block already.
    #[must_use]
    pub fn append(&self, reply: &str, country: Option<&str>, language: &str) -> String {
        let block = self.block(country, language);
        let reply = reply.trim_end();
        if squeeze(reply).contains(&squeeze(&block)) {
            reply.to_owned()
        } else if reply.is_empty() {
            block
        } else {
            format!("{reply}\n\n{block}")
        }
    }

    /// One sentence that offers help beside a reply, to somebody who is not in crisis: the first line of
    /// the country that can be called or written to, or the directory where there is none.
    #[must_use]
    pub fn care_sentence(&self, country: Option<&str>, language: &str) -> String {
        let language = Language::of_tag(language);
        let labels = self.labels(language);
        let directory = self.wording.directory.first().map_or("", |one| one.url.as_str());
        let found = self.find(country, language);
        let line = found.and_then(|country| country.lines.iter().find(|one| has_number(one)));
        match found.zip(line) {
            None => labels.care_unknown.replace("{directory}", directory),
            Some((country, line)) => {
                let named = format!("{}{}{}", line.name, labels.separator, ways(line, labels));
                labels
                    .care
                    .replace("{line}", &named)
                    .replace("{number}", &country.emergency)
                    .replace("{directory}", directory)
            }
        }
    }

    /// Whether a text offers that help already: it names a line of the country with a number, or a
    /// directory. The sentence and the whole block do.
    #[must_use]
    pub fn offers_care(&self, text: &str, country: Option<&str>, language: &str) -> bool {
        let found = self.find(country, Language::of_tag(language));
        let mut lines = found.iter().flat_map(|country| &country.lines);
        let is_named = |line: &CrisisLine| {
            let mut numbers = line.call.iter().chain(&line.text);
            text.contains(&line.name) && numbers.any(|number| text.contains(number))
        };
        lines.any(is_named) || self.wording.directory.iter().any(|one| text.contains(&one.url))
    }

    /// The reply with that sentence after it, unless it offers the help already.
    #[must_use]
    pub fn append_care(&self, reply: &str, country: Option<&str>, language: &str) -> String {
        let reply = reply.trim_end();
        if self.offers_care(reply, country, language) {
            return reply.to_owned();
        }
        format!("{reply}\n\n{}", self.care_sentence(country, language))
    }

    /// What was never checked, or more than twelve months before `today`.
    #[must_use]
    pub fn stale(&self, today: Date) -> Vec<Stale> {
        let all = self
            .countries
            .values()
            .flat_map(|country| country.lines.iter().map(move |line| (country, line)));
        all.filter_map(|(country, line)| {
            let freshness = match line.checked {
                None => Freshness::Unchecked,
                Some(date) if date.a_year_later() < today => Freshness::Old(date),
                Some(_) => return None,
            };
            Some(Stale { country: country.code.clone(), name: line.name.clone(), freshness })
        })
        .collect()
    }

    fn find(&self, country: Option<&str>, language: Language) -> Option<&Country> {
        country.and_then(|code| self.countries.get(&normalise(code))).or_else(|| match language {
            Language::Japanese if country.is_none_or(|code| code.trim().is_empty()) => {
                self.countries.get("JP")
            }
            _ => None,
        })
    }

    const fn labels(&self, language: Language) -> &Labels {
        match language {
            Language::English => &self.wording.en,
            Language::Japanese => &self.wording.ja,
        }
    }

    fn directories(&self, labels: &Labels) -> String {
        let list: Vec<_> = self
            .wording
            .directory
            .iter()
            .map(|directory| format!("{} {}", directory.name, directory.url))
            .collect();
        labels.directory.replace("{list}", &list.join(", "))
    }
}

/// Refuses a line that nobody could reach.
fn check(file: &str, country: &Country) -> Result<(), VoiceError> {
    let unreachable = country
        .lines
        .iter()
        .find(|line| line.call.is_none() && line.text.is_none() && line.url.is_none());
    match unreachable {
        Some(line) => Err(VoiceError::missing(
            file,
            format!("a way to reach {} ({})", line.name, country.code),
        )),
        None if country.emergency.trim().is_empty() => {
            Err(VoiceError::missing(file, format!("the emergency number of {}", country.code)))
        }
        None => Ok(()),
    }
}

const fn has_number(line: &CrisisLine) -> bool {
    line.call.is_some() || line.text.is_some()
}

fn unknown_country(labels: &Labels) -> Vec<String> {
    vec![labels.heading_unknown.clone(), format!("- {}", labels.emergency_unknown)]
}

fn known_country(country: &Country, language: Language, labels: &Labels) -> Vec<String> {
    let name = match language {
        Language::English => &country.name,
        Language::Japanese => &country.name_ja,
    };
    let emergency = labels.emergency.replace("{number}", &country.emergency);
    [labels.heading.replace("{country}", name), format!("- {emergency}")]
        .into_iter()
        .chain(country.lines.iter().map(|line| worded(line, language, labels)))
        .collect()
}

/// One line of the block: the name, how to reach it, when, where; marked when nobody has checked
/// it.
fn worded(line: &CrisisLine, language: Language, labels: &Labels) -> String {
    let mark = match (line.checked, language) {
        (Some(_), _) => "",
        (None, Language::English) => "*",
        (None, Language::Japanese) => "＊",
    };
    let mut text = format!("- {}{mark}", line.name);
    let ways = ways(line, labels);
    if !ways.is_empty() {
        text.push_str(&labels.separator);
        text.push_str(&ways);
    }
    if let Some(hours) = hours(line, language, labels) {
        text.push_str(&labels.hours_open);
        text.push_str(hours);
        text.push_str(&labels.hours_close);
    }
    if let Some(url) = &line.url {
        text.push(' ');
        text.push_str(url);
    }
    text
}

fn ways(line: &CrisisLine, labels: &Labels) -> String {
    let call = line.call.as_ref().map(|number| labels.call.replace("{number}", number));
    let text = line.text.as_ref().map(|number| match &line.word {
        Some(word) => labels.text_word.replace("{word}", word).replace("{number}", number),
        None => labels.text.replace("{number}", number),
    });
    call.into_iter().chain(text).collect::<Vec<_>>().join(&labels.or)
}

fn hours<'a>(line: &'a CrisisLine, language: Language, labels: &'a Labels) -> Option<&'a str> {
    if line.hours.as_deref() == Some("24/7") {
        return Some(&labels.always);
    }
    match language {
        Language::English => line.hours.as_deref(),
        Language::Japanese => line.hours_ja.as_deref().or(line.hours.as_deref()),
    }
}

/// Upper case, and the one code that people write and ISO does not have.
fn normalise(code: &str) -> String {
    let code = code.trim().to_ascii_uppercase();
    if code == "UK" { "GB".into() } else { code }
}

/// The text with every run of white space as one blank: clients re-wrap.
fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
