//! Numbers as people write them.

use super::facts::Place;

/// The number a text is, or the sum it writes: "1,200", "$250,000.00", "５００万円". A number to call
/// or an account is none.
pub fn number_in(text: &str, place: Place) -> Option<f64> {
    let mut plain = String::new();
    let mut after = String::new();
    for letter in text.trim().chars().map(narrow) {
        match letter {
            '0'..='9' | '.' if after.is_empty() => plain.push(letter),
            ',' | '_' if !plain.is_empty() && after.is_empty() => {}
            '-' if plain.is_empty() => plain.push('-'),
            '0'..='9' | '+' | '@' | '/' | ':' => return None,
            _ if plain.is_empty() => {}
            _ => after.extend(letter.to_lowercase()),
        }
    }
    let digits = plain.chars().filter(char::is_ascii_digit).count();
    if place == Place::Prose || text.chars().count() > 32 || digits > 12 {
        return None;
    }
    let number: f64 = plain.parse().ok()?;
    let unit = after.trim_start();
    let times = match unit.chars().next() {
        Some('億') => 1e8,
        Some('万') => 1e4,
        _ if unit.starts_with("million") || unit.starts_with("mio") || unit == "m" => 1e6,
        _ if unit.starts_with("thousand") || unit == "k" => 1e3,
        _ => 1.0,
    };
    Some(number * times)
}

/// The ordinary form of a wide digit or sign.
fn narrow(letter: char) -> char {
    match letter {
        '！'..='～' => char::from_u32(u32::from(letter) - 0xFEE0).unwrap_or(letter),
        _ => letter,
    }
}

/// So many numbers of a text are looked at.
const NUMBERS_MAX: usize = 64;

/// Every number in a text, in its order.
pub fn all_in(text: &str) -> Vec<f64> {
    let is_inside = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let narrowed: String = text.chars().map(narrow).collect();
    let runs = narrowed.split(|c: char| !is_inside(c)).map(|run| run.trim_matches(['.', ',']));
    let numbers = runs.filter_map(|run| run.replace(',', "").parse::<f64>().ok());
    numbers.take(NUMBERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read_as_people_write_them_and_numbers_to_call_are_none() {
        for (text, expected) in [
            ("1,200", Some(1200.0)),
            ("$250,000.00", Some(250_000.0)),
            ("98000 EUR", Some(98_000.0)),
            ("５００万円", Some(5_000_000.0)),
            ("2億円", Some(200_000_000.0)),
            ("1.5 million", Some(1_500_000.0)),
            ("+15550100", None),
            ("2027-01-04", None),
            ("tom2@example.org", None),
            ("DE00 0000 1111", None),
            ("none", None),
        ] {
            assert_eq!(number_in(text, Place::Other), expected, "{text}");
        }
    }

    #[test]
    fn every_number_of_a_text_is_found() {
        assert_eq!(all_in("Pay 1,200.50 to 3 people, ２０ each."), [1200.5, 3.0, 20.0]);
        assert!(all_in("nothing, here.").is_empty());
    }
}
