//! Numbers and times as people read them.

use askama::Template;
use askama::filters::HtmlSafe;
use jiff::Timestamp;

/// One hour in milliseconds.
pub(crate) const HOUR_MS: u64 = 3_600_000;

/// `1284` as `1,284`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A share in per cent with one digit; a dash where there is nothing to share.
pub(crate) fn share(part: u64, whole: u64) -> String {
    let Some(thousandths) = part.saturating_mul(1_000).checked_div(whole) else {
        return "–".into();
    };
    match thousandths {
        1_000 => "100%".into(),
        _ => format!("{}.{}%", thousandths / 10, thousandths % 10),
    }
}

/// A score with two digits, rounded down so that it never seems to reach a bar that it missed.
pub(crate) fn score(value: f64) -> String {
    let hundredths = (value * 100.0 + 1e-6).floor();
    format!("{:.2}", hundredths / 100.0)
}

/// Milliseconds, in seconds where that is easier to read.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

/// Bytes, in kibibytes where that is easier to read.
pub(crate) fn bytes(number: u64) -> String {
    match number {
        0..1_024 => format!("{number} bytes"),
        1_024..1_048_576 => format!("{}.{} KiB", number / 1_024, number % 1_024 * 10 / 1_024),
        _ => format!("{}.{} MiB", number >> 20, ((number & 0xf_ffff) * 10) >> 20),
    }
}

/// Millionths of a dollar.
pub(crate) fn dollars(micro: u64) -> String {
    match micro {
        0 => "nothing".into(),
        _ => format!("${}.{:06}", count(micro / 1_000_000), micro % 1_000_000),
    }
}

/// `higher_self` as `Higher Self`.
pub(crate) fn title(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_uppercase().to_string());
        first.unwrap_or_default() + letters.as_str()
    };
    let words: Vec<_> =
        name.split(['_', ' ']).filter(|word| !word.is_empty()).map(capital).collect();
    words.join(" ")
}

/// A moment, in UTC so that it can be compared with logs.
#[derive(Clone, Debug, PartialEq, Eq, Template)]
#[template(
    ext = "html",
    source = r#"<time datetime="{{ iso }}">{{ day }} <span class="clock">{{ clock }}</span></time>"#
)]
pub(crate) struct Moment {
    iso: String,
    day: String,
    clock: String,
}

impl HtmlSafe for Moment {}

impl Moment {
    /// From milliseconds since the Unix epoch.
    pub(crate) fn at(ms: u64) -> Self {
        let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let time = time.unwrap_or(Timestamp::MAX);
        Self {
            iso: time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string(),
            day: time.strftime("%-d %b %Y").to_string(),
            clock: time.strftime("%H:%M:%S").to_string(),
        }
    }

    /// Only the time of day.
    pub(crate) fn clock(&self) -> &str {
        &self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_separators() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345, "12,345"), (1_234_567, "1,234,567")]
        {
            assert_eq!(count(number), text);
        }
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn shares_never_round_up_to_all() {
        for (part, whole, text) in
            [(0, 0, "–"), (0, 9, "0.0%"), (1, 3, "33.3%"), (9_999, 10_000, "99.9%"), (7, 7, "100%")]
        {
            assert_eq!(share(part, whole), text);
        }
    }

    #[test]
    fn scores_never_round_up_to_a_bar() {
        for (value, text) in
            [(0.7999, "0.79"), (0.8, "0.80"), (0.29, "0.29"), (1.0, "1.00"), (0.0, "0.00")]
        {
            assert_eq!(score(value), text);
        }
        for hundredth in 0..=100_u8 {
            let text = format!("{}.{:02}", hundredth / 100, hundredth % 100);
            assert_eq!(score(f64::from(hundredth) / 100.0), text);
        }
    }

    #[test]
    fn times_bytes_and_money_are_readable() {
        assert_eq!(
            (duration(999), duration(2_449), duration(61_000)),
            ("999 ms".into(), "2.4 s".into(), "1 min 1 s".into())
        );
        assert_eq!(
            (bytes(12), bytes(1_536), bytes(3 << 19)),
            ("12 bytes".into(), "1.5 KiB".into(), "1.5 MiB".into())
        );
        assert_eq!((dollars(0), dollars(1_250_000)), ("nothing".into(), "$1.250000".into()));
        assert_eq!((title("higher_self"), title("")), ("Higher Self".into(), String::new()));
    }

    #[test]
    fn a_moment_is_in_universal_time() {
        let html = Moment::at(1_794_742_262_123).to_string();
        assert_eq!(
            html,
            "<time datetime=\"2026-11-15T11:31:02.123Z\">15 Nov 2026 \
             <span class=\"clock\">11:31:02</span></time>"
        );
        assert!(!Moment::at(u64::MAX).to_string().is_empty());
    }
}
