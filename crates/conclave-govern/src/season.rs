//! When something may be told: ranges of days that come again every year.
//!
//! **Invariant:** it is two or three days at once on this earth; a season counts as open only where it is
//! open on all of them, and as closed where it is closed on any.

use crate::names::{NAME_BYTES_MAX, Unfit, sentence};
use serde::{Deserialize, Serialize};

/// The earliest and the latest local time on earth, as distances from UTC.
const EARTH_MS: [i64; 3] = [-12 * 3_600_000, 0, 14 * 3_600_000];
const DAY_MS: i64 = 86_400_000;

/// A day of every year, written `MM-DD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct YearDay {
    month: u8,
    day: u8,
}

impl TryFrom<String> for YearDay {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let bad = || format!("`{text}` is no day: write MM-DD, such as 03-21");
        let (month, day) = text.split_once('-').ok_or_else(bad)?;
        let two = |part: &str| (part.len() == 2).then(|| part.parse().ok()).flatten();
        let (month, day): (u8, u8) = two(month).zip(two(day)).ok_or_else(bad)?;
        let longest = match month {
            2 => 29,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return Err(bad()),
        };
        if day == 0 || day > longest {
            return Err(bad());
        }
        Ok(Self { month, day })
    }
}

impl From<YearDay> for String {
    fn from(day: YearDay) -> Self {
        format!("{:02}-{:02}", day.month, day.day)
    }
}

/// What a season does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeasonKind {
    /// Things may be told only within it.
    Open,
    /// Nothing is told within it: a time of mourning, of ceremony.
    Closed,
}

/// A part of the year.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Season {
    /// What the community calls it.
    pub name: String,
    /// What it does.
    pub kind: SeasonKind,
    /// Its first day.
    pub from: YearDay,
    /// Its last day; before the first where it spans the turn of the year.
    pub to: YearDay,
}

impl Season {
    /// Whether it can be kept.
    ///
    /// # Errors
    /// When its name is none.
    pub fn check(&self) -> Result<(), Unfit> {
        sentence("seasons.name", &self.name, 1, NAME_BYTES_MAX)
    }

    fn has(&self, day: YearDay) -> bool {
        if self.from <= self.to {
            self.from <= day && day <= self.to
        } else {
            day >= self.from || day <= self.to
        }
    }
}

/// What the calendar says now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calendar {
    /// No season is named.
    Unnamed,
    /// Things may be told.
    Open,
    /// They may not.
    Closed,
}

/// Reads the calendar of a community.
pub(crate) fn calendar(seasons: &[Season], now_ms: u64) -> Calendar {
    if seasons.is_empty() {
        return Calendar::Unnamed;
    }
    let days = days_on_earth(now_ms);
    let of = |kind| seasons.iter().filter(move |season| season.kind == kind);
    let closed = of(SeasonKind::Closed).any(|season| days.iter().any(|day| season.has(*day)));
    let bound = of(SeasonKind::Open).next().is_some();
    let open = days.iter().all(|day| of(SeasonKind::Open).any(|season| season.has(*day)));
    if closed || (bound && !open) { Calendar::Closed } else { Calendar::Open }
}

fn days_on_earth(now_ms: u64) -> [YearDay; 3] {
    let now = i64::try_from(now_ms).unwrap_or(i64::MAX / 2);
    EARTH_MS.map(|offset| year_day(now.saturating_add(offset).div_euclid(DAY_MS)))
}

/// The month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
fn year_day(days: i64) -> YearDay {
    // Counted from the first of March of the year 0, a year's months begin at fixed days.
    let since = days + 719_468;
    let of_era = since.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    YearDay { month: u8::try_from(month).unwrap_or(1), day: u8::try_from(day).unwrap_or(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> YearDay {
        YearDay::try_from(text.to_owned()).unwrap()
    }

    fn season(kind: SeasonKind, from: &str, to: &str) -> Season {
        Season { name: "s".into(), kind, from: day(from), to: day(to) }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for (days, text) in [
            (0, "01-01"),
            (58, "02-28"),
            (59, "03-01"),
            (11_016, "02-29"),
            (20_773, "11-16"),
            (-1, "12-31"),
        ] {
            assert_eq!(year_day(days), day(text), "{days}");
        }
    }

    #[test]
    fn nonsense_is_no_day() {
        for text in ["13-01", "00-10", "02-30", "04-31", "1-01", "0101", "xx-yy", "", "12-0\u{e9}"]
        {
            assert!(YearDay::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_season_is_open_only_when_it_is_open_everywhere() {
        let at = |days: i64, hours: i64| u64::try_from(days * DAY_MS + hours * 3_600_000).unwrap();
        let winter = [season(SeasonKind::Open, "12-01", "02-28")];
        // 1970-12-01 is day 334.
        assert_eq!(calendar(&winter, at(340, 0)), Calendar::Open);
        assert_eq!(calendar(&winter, at(200, 0)), Calendar::Closed);
        assert_eq!(calendar(&winter, at(334, 1)), Calendar::Closed, "still November somewhere");
        assert_eq!(calendar(&winter, at(334, 13)), Calendar::Open);
        let mourning = [season(SeasonKind::Closed, "06-01", "06-10")];
        assert_eq!(calendar(&mourning, at(10, 0)), Calendar::Open);
        assert_eq!(calendar(&mourning, at(150, 11)), Calendar::Closed, "June somewhere already");
        assert_eq!(calendar(&[], 0), Calendar::Unnamed);
    }

    #[test]
    fn any_time_has_a_day() {
        for now_ms in [0, u64::MAX, u64::MAX / 2, 1] {
            assert_ne!(
                calendar(&[season(SeasonKind::Open, "01-01", "12-31")], now_ms),
                Calendar::Closed
            );
        }
    }
}
