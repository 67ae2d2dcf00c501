//! A day of the calendar, without a calendar library: facts are dated, nothing is computed with
//! time.

use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

impl Date {
    /// This day; `None` when the calendar has no such day.
    #[must_use]
    pub const fn new(year: u16, month: u8, day: u8) -> Option<Self> {
        if day >= 1 && day <= days_in(year, month) { Some(Self { year, month, day }) } else { None }
    }

    /// The day in UTC of a moment in milliseconds since 1970; `None` beyond the year 65535.
    #[must_use]
    pub fn of_ms(ms: u64) -> Option<Self> {
        let mut days = ms / 86_400_000;
        let mut year = 1970;
        loop {
            let length = if days_in(year, 2) == 29 { 366 } else { 365 };
            if days < length {
                break;
            }
            days -= length;
            year = year.checked_add(1)?;
        }
        let mut month = 1;
        while days >= u64::from(days_in(year, month)) {
            days -= u64::from(days_in(year, month));
            month += 1;
        }
        Self::new(year, month, u8::try_from(days + 1).ok()?)
    }

    /// The same day of the next year; the 29th of February becomes the 1st of March.
    pub(super) const fn a_year_later(self) -> Self {
        let year = self.year.saturating_add(1);
        match Self::new(year, self.month, self.day) {
            Some(date) => date,
            None => Self { year, month: 3, day: 1 },
        }
    }
}

const fn days_in(year: u16, month: u8) -> u8 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 0,
    }
}

impl fmt::Display for Date {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || format!("{text:?} is not a day written as YYYY-MM-DD");
        let mut parts = text.split('-');
        let (Some(year), Some(month), Some(day), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(bad());
        };
        let number = |part: &str, digits: usize| {
            (part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()))
                .then(|| part.parse::<u16>().ok())
                .flatten()
        };
        let date = number(year, 4).zip(number(month, 2)).zip(number(day, 2)).and_then(
            |((year, month), day)| {
                Self::new(year, u8::try_from(month).ok()?, u8::try_from(day).ok()?)
            },
        );
        date.ok_or_else(bad)
    }
}

impl TryFrom<String> for Date {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_days_of_the_calendar_are_dates() {
        for good in ["2026-11-15", "2024-02-29", "2000-02-29"] {
            assert_eq!(good.parse::<Date>().unwrap().to_string(), good);
        }
        for bad in [
            "2026-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-1-1",
            "",
            "2026-11-15-1",
            "x-y-z",
            "+026-01-01",
        ] {
            assert!(bad.parse::<Date>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_moment_falls_on_a_day() {
        for (ms, expected) in [
            (0, "1970-01-01"),
            (86_399_999, "1970-01-01"),
            (951_782_400_000, "2000-02-29"),
            (1_709_164_800_000, "2024-02-29"),
            (1_735_689_599_999, "2024-12-31"),
            (1_794_900_000_000, "2026-11-17"),
        ] {
            assert_eq!(Date::of_ms(ms).unwrap().to_string(), expected, "{ms}");
        }
        assert_eq!(Date::of_ms(u64::MAX), None);
    }

    #[test]
    fn a_year_later_is_always_a_day() {
        let leap = Date::new(2024, 2, 29).unwrap();
        assert_eq!(leap.a_year_later().to_string(), "2025-03-01");
        assert_eq!(Date::new(2025, 6, 1).unwrap().a_year_later().to_string(), "2026-06-01");
    }
}
