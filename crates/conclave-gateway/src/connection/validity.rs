//! From when until when a certificate holds: the one thing of it that we read ourselves.
//!
//! A certificate is nested DER (X.509, RFC 5280): its first part lists a version, a number, an algorithm and an
//! issuer before the two times.

/// When a certificate holds, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CertificateValidity {
    pub(super) from_ms: u64,
    pub(super) until_ms: u64,
}

const SEQUENCE: u8 = 0x30;
const EXPLICIT_VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

struct Element<'a> {
    tag: u8,
    body: &'a [u8],
}

impl<'a> Element<'a> {
    fn parts(self) -> Option<Der<'a>> {
        (self.tag == SEQUENCE).then_some(Der(self.body))
    }
}

struct Der<'a>(&'a [u8]);

impl<'a> Iterator for Der<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = if *first < 0x80 {
            (usize::from(*first), rest)
        } else {
            // More than four bytes of length have no certificate behind them.
            let count = usize::from(first & 0x7f);
            let (digits, rest) =
                rest.split_at_checked(count).filter(|_| (1..=4).contains(&count))?;
            (digits.iter().fold(0, |sum, digit| (sum << 8) | usize::from(*digit)), rest)
        };
        let (body, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(Element { tag: *tag, body })
    }
}

/// Reads the times; `None` where there are none.
pub(super) fn validity(certificate: &[u8]) -> Option<CertificateValidity> {
    let mut fields = Der(certificate).next()?.parts()?.next()?.parts()?;
    if fields.next()?.tag == EXPLICIT_VERSION {
        fields.next()?;
    }
    // The algorithm and the issuer.
    fields.nth(1)?;
    let mut times = fields.next()?.parts()?;
    let from_ms = time_ms(&times.next()?)?;
    Some(CertificateValidity { from_ms, until_ms: time_ms(&times.next()?)? })
}

/// `YYMMDDHHMMSSZ` for the years 1950 to 2049, else `YYYYMMDDHHMMSSZ`. What lies before 1970 is 1970.
fn time_ms(time: &Element<'_>) -> Option<u64> {
    let text = std::str::from_utf8(time.body).ok()?.strip_suffix('Z')?;
    let (year, rest) = match time.tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: u64 = number(year)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (number(year)?, rest)
        }
        _ => return None,
    };
    if rest.len() != 10 {
        return None;
    }
    let part = |at: usize| number(rest.get(at..at + 2)?);
    let (month, day) = (part(0)?, part(2)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let seconds = part(4)? * 3_600 + part(6)? * 60 + part(8)?;
    let days = days_since_1970(year, month, day);
    Some((days * 86_400 + seconds) * 1_000)
}

fn number(digits: &str) -> Option<u64> {
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Counted in years that begin in March, so that the odd day is their last.
const fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.saturating_sub(1), month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    days.saturating_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn time(tag: u8, text: &str) -> Option<u64> {
        time_ms(&Element { tag, body: text.as_bytes() })
    }

    #[test]
    fn times_are_read_in_both_forms() {
        assert_eq!(time(UTC_TIME, "700101000000Z"), Some(0));
        assert_eq!(time(UTC_TIME, "240229120001Z"), Some(1_709_208_001_000));
        assert_eq!(time(UTC_TIME, "491231235959Z"), Some(2_524_607_999_000));
        assert_eq!(time(UTC_TIME, "500101000000Z"), Some(0), "1950");
        assert_eq!(time(GENERALIZED_TIME, "20500101000000Z"), Some(2_524_608_000_000));
        assert_eq!(time(GENERALIZED_TIME, "99991231235959Z"), Some(253_402_300_799_000));
        for bad in ["", "Z", "2402291200Z", "240229120001", "24022912000xZ", "241301000000Z", "+4"]
        {
            assert_eq!(time(UTC_TIME, bad), None, "{bad}");
        }
        assert_eq!(time(0x04, "700101000000Z"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = validity(&bytes);
        }
    }
}
