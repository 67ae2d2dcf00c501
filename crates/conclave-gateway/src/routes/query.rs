//! Query strings, read by name.

use crate::error::ApiError;

#[derive(Clone, Debug)]
pub(crate) struct QueryField<'a> {
    pub name: &'a str,
    /// Decoded.
    pub value: String,
}

/// The values of a query whose names are known; anything else is an error, because leaving it out would
/// show too much.
pub(crate) fn read_query<'a>(
    query: Option<&'a str>,
    known: &[&str],
) -> Result<Vec<QueryField<'a>>, ApiError> {
    let mut found = Vec::new();
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !known.contains(&name) {
            return Err(ApiError::invalid(name, "is not a filter"));
        }
        let value = percent_decoded(value).ok_or_else(|| ApiError::invalid(name, "is not text"))?;
        found.push(QueryField { name, value });
    }
    Ok(found)
}

/// Percent-decoding; `None` when it is none, or no UTF-8.
fn percent_decoded(value: &str) -> Option<String> {
    let bytes = value.as_bytes();
    let mut out = Vec::with_capacity(value.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'%' => {
                let digits = std::str::from_utf8(bytes.get(at + 1..at + 3)?).ok()?;
                out.push(u8::from_str_radix(digits, 16).ok()?);
                at += 2;
            }
            b'+' => out.push(b' '),
            byte => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8(out).ok()
}

/// A number within bounds.
pub(crate) fn read_number(field: &QueryField<'_>, max: u32) -> Result<u32, ApiError> {
    let read = field.value.parse().ok().filter(|number| *number <= max);
    read.ok_or_else(|| ApiError::invalid(field.name, format!("must be a number up to {max}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded_and_unknown_names_refused() {
        let found = read_query(Some("subject=a%20b%C3%A9&x=1+2"), &["subject", "x"]).unwrap();
        let found: Vec<_> = found.iter().map(|field| (field.name, field.value.as_str())).collect();
        assert_eq!(found, [("subject", "a bé"), ("x", "1 2")]);
        assert!(read_query(None, &["subject"]).unwrap().is_empty());
        for bad in ["other=1", "subject=%", "subject=%zz", "subject=%ff", "subject=%e"] {
            assert!(read_query(Some(bad), &["subject"]).is_err(), "{bad}");
        }
    }
}
