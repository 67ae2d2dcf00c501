//! The days and months that limits hold for, in UTC.

/// Milliseconds of a day; UTC has no other days here.
const DAY_MS: u64 = 86_400_000;

/// How long a limit holds before it begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    /// A day of UTC.
    Day,
    /// A month of UTC.
    Month,
}

impl Period {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// Finds the period with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Day, Self::Month].into_iter().find(|period| period.as_str() == name)
    }

    /// Which day or month a time falls into, counted from 1970-01.
    #[must_use]
    pub fn number_at(self, now_ms: u64) -> u32 {
        let day = day_of(now_ms);
        match self {
            Self::Day => day,
            Self::Month => month_of(day),
        }
    }

    /// The number of the first period of this kind that is so old at `now_ms` that nobody asks for it.
    #[must_use]
    pub fn oldest_kept_at(self, now_ms: u64) -> u32 {
        let kept = match self {
            Self::Day => 3,
            Self::Month => 2,
        };
        self.number_at(now_ms).saturating_sub(kept)
    }

    /// When the period after this one begins, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn end_ms(self, number: u32) -> u64 {
        let days = match self {
            Self::Day => u64::from(number) + 1,
            Self::Month => days_before_month(number.saturating_add(1)),
        };
        days.saturating_mul(DAY_MS)
    }
}

/// Days since 1970-01-01.
#[must_use]
pub fn day_of(now_ms: u64) -> u32 {
    u32::try_from(now_ms / DAY_MS).unwrap_or(u32::MAX)
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// Days from 1970-01-01 to the first of January of a year.
const fn days_before_year(year: u64) -> u64 {
    // Leap days of all years before `year`, less those before 1970.
    let before = year - 1;
    let leaps = before / 4 - before / 100 + before / 400 - 477;
    (year - 1970) * 365 + leaps
}

fn days_before_month(month: u32) -> u64 {
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let (year, month) = (1970 + u64::from(month / 12), month % 12);
    let leap_day = u64::from(month > 1 && is_leap(year));
    days_before_year(year) + BEFORE.get(month as usize).copied().unwrap_or(0) + leap_day
}

/// Months since 1970-01.
fn month_of(day: u32) -> u32 {
    let day = u64::from(day);
    // Never too late, and at most one month too early; then one step at most.
    let mut month = u32::try_from(day / 31).unwrap_or(u32::MAX - 1);
    let years = month / 12;
    month = month.saturating_add(years / 6);
    while days_before_month(month) > day {
        month -= 1;
    }
    while days_before_month(month + 1) <= day {
        month += 1;
    }
    month
}

/// The date of a day as `YYYY-MM-DD`.
#[must_use]
pub fn date_of(day: u32) -> String {
    let month = month_of(day);
    let of_month = u64::from(day) - days_before_month(month) + 1;
    format!("{:04}-{:02}-{of_month:02}", 1970 + month / 12, month % 12 + 1)
}

/// The day of a date written as `YYYY-MM-DD`.
#[must_use]
pub fn parse_date(text: &str) -> Option<u32> {
    let mut parts = text.splitn(3, '-');
    let mut next = |len: usize| {
        let part = parts.next().filter(|part| part.len() == len)?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse::<u32>().ok())?
    };
    let (year, month, day) = (next(4)?, next(2)?, next(2)?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || day == 0 {
        return None;
    }
    let month = (year - 1970) * 12 + month - 1;
    let found = days_before_month(month) + u64::from(day) - 1;
    (found < days_before_month(month + 1)).then(|| u32::try_from(found).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_dates_have_their_days() {
        for (date, day) in [
            ("1970-01-01", 0),
            ("1970-12-31", 364),
            ("1972-03-01", 790),
            ("2000-02-29", 11_016),
            ("2026-11-16", 20_773),
            ("2100-03-01", 47_541),
        ] {
            assert_eq!(parse_date(date), Some(day), "{date}");
            assert_eq!(date_of(day), date);
        }
        for bad in ["2025-02-29", "2025-13-01", "2025-00-10", "25-01-01", "2025-1-1", "", "x"] {
            assert_eq!(parse_date(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_time_lies_in_exactly_one_month(day in 0_u32..2_900_000) {
            let month = month_of(day);
            prop_assert!(days_before_month(month) <= u64::from(day));
            prop_assert!(u64::from(day) < days_before_month(month + 1));
            prop_assert_eq!(parse_date(&date_of(day)), Some(day));
        }

        #[test]
        fn a_period_ends_after_every_time_in_it(now_ms in 0_u64..200_000_000_000_000) {
            for period in [Period::Day, Period::Month] {
                let number = period.number_at(now_ms);
                prop_assert!(now_ms < period.end_ms(number));
                prop_assert_eq!(period.number_at(period.end_ms(number)), number + 1);
            }
        }
    }
}
