//! The limits of an open reservation as text, for stores that keep them in one column.

use conclave_core::MicroUsd;
use conclave_govern::{AccountKey, AccountLimit, BudgetScope, Period};
use thiserror::Error;

/// A row of the text that is not a limit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("its limit `{0}` cannot be read")]
pub struct LineFormatError(String);

/// Writes limits: one a row, the name last because it may have spaces.
#[must_use]
pub fn encode_lines(lines: &[AccountLimit]) -> String {
    let rows = lines.iter().map(|line| {
        let AccountKey { tenant, scope, name, period, number } = &line.key;
        let (scope, period, limit) = (scope.as_str(), period.as_str(), line.limit.0);
        format!("{limit} {tenant} {scope} {period} {number} {name}")
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// Reads them again.
///
/// # Errors
/// With the first row that is not of this form: a reservation that lost a limit would be settled in
/// too few accounts.
pub fn decode_lines(text: &str) -> Result<Vec<AccountLimit>, LineFormatError> {
    let line = |row: &str| decode_line(row).ok_or_else(|| LineFormatError(row.to_owned()));
    text.lines().map(line).collect()
}

fn decode_line(row: &str) -> Option<AccountLimit> {
    let mut parts = row.splitn(6, ' ');
    let limit = MicroUsd(parts.next()?.parse().ok()?);
    let tenant = parts.next()?.parse().ok()?;
    let scope = BudgetScope::parse(parts.next()?)?;
    let period = Period::parse(parts.next()?)?;
    let number = parts.next()?.parse().ok()?;
    let name = parts.next()?.to_owned();
    Some(AccountLimit { key: AccountKey { tenant, scope, name, period, number }, limit })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, limit: u64) -> AccountLimit {
        let (scope, period) = (BudgetScope::Key, Period::Month);
        let key = AccountKey { tenant: 7, scope, name: name.into(), period, number: 400 };
        AccountLimit { key, limit: MicroUsd(limit) }
    }

    #[test]
    fn lines_come_back_as_they_were_written() {
        let lines = vec![line("", 5), line("a key with spaces", u64::MAX)];
        assert_eq!(decode_lines(&encode_lines(&lines)), Ok(lines));
    }

    #[test]
    fn a_row_that_cannot_be_read_is_an_error_and_not_left_out() {
        let good = encode_lines(&[line("a", 5)]);
        for bad in ["nonsense", "1 2 tenant day x y", "1 2 request day 3 ", ""] {
            let text = format!("{good}\n{bad}\n{good}");
            assert_eq!(decode_lines(&text), Err(LineFormatError(bad.to_owned())));
        }
    }
}
