//! Owns the check digits and range rules of numbers: given digits or characters, is it well formed?
//!
//! **Invariant:** nothing here reads a context or a separator; callers pass bare digits. No
//! function panics on any input: a wrong length is simply not valid.

use sha2::{Digest, Sha256};

fn value(digit: u8) -> u32 {
    u32::from(digit.wrapping_sub(b'0'))
}

fn are_digits(text: &[u8], length: usize) -> bool {
    text.len() == length && text.iter().all(u8::is_ascii_digit)
}

fn weighted(digits: &[u8], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(digit, weight)| value(*digit) * weight).sum()
}

fn all_same(digits: &[u8]) -> bool {
    digits.windows(2).all(|pair| pair[0] == pair[1])
}

/// The check of payment cards and Canadian numbers: every second digit from the right is doubled.
pub(crate) fn luhn(digits: &[u8]) -> bool {
    let total: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, value(*digit)) {
            (0, one) => one,
            (_, one) if one > 4 => one * 2 - 9,
            (_, one) => one * 2,
        })
        .sum();
    !digits.is_empty() && total.is_multiple_of(10)
}

fn prefix(digits: &[u8], length: usize) -> u32 {
    digits.iter().take(length).fold(0, |number, digit| number * 10 + value(*digit))
}

/// Whether the leading digits belong to an issuer that makes cards of this length.
pub(crate) fn card_issuer(digits: &[u8]) -> bool {
    let (two, three, four) = (prefix(digits, 2), prefix(digits, 3), prefix(digits, 4));
    let six = prefix(digits, 6);
    match digits.len() {
        13 => digits[0] == b'4',
        14 => two == 36 || two == 38 || two == 39 || (300..=305).contains(&three),
        15 => two == 34 || two == 37 || four == 2131 || four == 1800,
        12..=19 => {
            let visa = digits[0] == b'4' && matches!(digits.len(), 16 | 19);
            let mastercard = (51..=55).contains(&two) || (222_100..=272_099).contains(&six);
            let discover = four == 6011 || two == 65 || (644..=649).contains(&three);
            let jcb = (3528..=3589).contains(&four);
            let union_pay = two == 62;
            let maestro = matches!(four, 5018 | 5020 | 5038 | 5893 | 6304 | 6759 | 6761..=6763);
            let diners = digits.len() == 16 && matches!(two, 30 | 36 | 38 | 39);
            visa || (mastercard && digits.len() == 16)
                || ((discover || jcb || diners) && digits.len() >= 16)
                || (union_pay && digits.len() >= 16)
                || maestro
        }
        _ => false,
    }
}

/// A payment card: length, issuer and check digit.
pub(crate) fn payment_card(digits: &[u8]) -> bool {
    digits.iter().all(u8::is_ascii_digit)
        && card_issuer(digits)
        && luhn(digits)
        && !all_same(digits)
}

/// Length of an IBAN by country; zero where the country issues none.
fn iban_length(country: &[u8]) -> usize {
    match country {
        b"NO" => 15,
        b"BE" => 16,
        b"DK" | b"FI" | b"FO" | b"GL" | b"NL" | b"SD" => 18,
        b"MK" | b"SI" => 19,
        b"AT" | b"BA" | b"EE" | b"KZ" | b"LT" | b"LU" | b"XK" | b"MN" => 20,
        b"CH" | b"CR" | b"HR" | b"LI" | b"LV" => 21,
        b"BG" | b"BH" | b"DE" | b"GB" | b"GE" | b"IE" | b"ME" | b"RS" | b"VA" => 22,
        b"AE" | b"GI" | b"IL" | b"IQ" | b"SO" | b"TL" | b"OM" => 23,
        b"AD" | b"CZ" | b"ES" | b"MD" | b"PK" | b"RO" | b"SA" | b"SE" | b"SK" | b"TN" | b"VG" => 24,
        b"LY" | b"PT" | b"ST" => 25,
        b"IS" | b"TR" => 26,
        b"BI" | b"DJ" | b"FR" | b"GR" | b"IT" | b"MC" | b"MR" | b"SM" => 27,
        b"AL" | b"AZ" | b"BY" | b"CY" | b"DO" | b"GT" | b"HU" | b"LB" | b"NI" | b"PL" | b"SV" => 28,
        b"BR" | b"EG" | b"PS" | b"QA" | b"UA" => 29,
        b"JO" | b"KW" | b"MU" | b"YE" => 30,
        b"MT" | b"SC" => 31,
        b"LC" => 32,
        b"RU" => 33,
        _ => 0,
    }
}

/// An IBAN without spaces, in capitals: length of its country and remainder 1 of 97.
pub(crate) fn iban(text: &[u8]) -> bool {
    text.len() >= 15
        && text.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        && iban_length(&text[..2]) == text.len()
        && iban_remainder(text) == 1
}

fn iban_remainder(text: &[u8]) -> u32 {
    text[4..].iter().chain(&text[..4]).fold(0, |rest, byte| {
        if byte.is_ascii_digit() {
            (rest * 10 + value(*byte)) % 97
        } else {
            (rest * 100 + u32::from(byte - b'A') + 10) % 97
        }
    })
}

/// A US Social Security Number: no area 000, 666 or 9xx, no group 00, no serial 0000, and none of
/// the numbers that became known from advertisements.
pub(crate) fn us_ssn(digits: &[u8]) -> bool {
    are_digits(digits, 9)
        && &digits[..3] != b"000"
        && &digits[..3] != b"666"
        && digits[0] != b'9'
        && &digits[3..5] != b"00"
        && &digits[5..] != b"0000"
        && digits != b"078051120"
        && !all_same(digits)
        && digits != b"123456789"
}

/// Japan's individual number: eleven digits and a check digit by weights 6,5,4,3,2,7,6,5,4,3,2.
pub(crate) fn jp_my_number(digits: &[u8]) -> bool {
    if !are_digits(digits, 12) || all_same(digits) {
        return false;
    }
    let rest = weighted(digits, &[6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    value(digits[11]) == if rest <= 1 { 0 } else { 11 - rest }
}

/// A UK National Insurance number without spaces: letters that are issued, six digits, A to D.
pub(crate) fn uk_nino(text: &[u8]) -> bool {
    text.len() == 9
        && !b"DFIQUV".contains(&text[0])
        && !b"DFIOQUV".contains(&text[1])
        && !matches!(&text[..2], b"BG" | b"GB" | b"NK" | b"KN" | b"TN" | b"NT" | b"ZZ")
        && text[..2].iter().all(u8::is_ascii_uppercase)
        && text[2..8].iter().all(u8::is_ascii_digit)
        && b"ABCD".contains(&text[8])
}

/// An Australian tax file number: nine digits, weighted sum divisible by 11.
pub(crate) fn au_tfn(digits: &[u8]) -> bool {
    are_digits(digits, 9)
        && !all_same(digits)
        && weighted(digits, &[1, 4, 3, 7, 5, 8, 6, 9, 10]).is_multiple_of(11)
}

/// An Australian Medicare number: ten or eleven digits, the first 2 to 6, the ninth a check digit.
pub(crate) fn au_medicare(digits: &[u8]) -> bool {
    (are_digits(digits, 10) || are_digits(digits, 11))
        && (b'2'..=b'6').contains(&digits[0])
        && weighted(digits, &[1, 3, 7, 9, 1, 3, 7, 9]) % 10 == value(digits[8])
}

/// A Canadian social insurance number: nine digits, not beginning with 8, Luhn. A leading 0 is
/// kept for examples and taken as one.
pub(crate) fn ca_sin(digits: &[u8]) -> bool {
    are_digits(digits, 9) && digits[0] != b'8' && luhn(digits) && !all_same(digits)
}

/// A German tax number: eleven digits of which one occurs two or three times, ISO 7064 mod 11,10.
pub(crate) fn de_tax_id(digits: &[u8]) -> bool {
    if !are_digits(digits, 11) || digits[0] == b'0' {
        return false;
    }
    let mut counts = [0_u8; 10];
    for digit in &digits[..10] {
        counts[usize::from(digit - b'0')] += 1;
    }
    let repeated = counts.iter().filter(|count| **count > 1).count();
    let largest = counts.iter().max().copied().unwrap_or(0);
    repeated == 1 && largest <= 3 && value(digits[10]) == mod_11_10(&digits[..10])
}

fn mod_11_10(digits: &[u8]) -> u32 {
    let product = digits.iter().fold(10, |product, digit| {
        let sum = (value(*digit) + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    (11 - product) % 10
}

/// A French NIR: sex, year, month, place and order, then 97 minus the remainder. Corsica's 2A and
/// 2B count as 19 and 18.
pub(crate) fn fr_nir(text: &[u8]) -> bool {
    if text.len() != 15 || !matches!(text[0], b'1' | b'2' | b'3' | b'4' | b'7' | b'8') {
        return false;
    }
    let mut digits = text.to_vec();
    match &text[5..7] {
        b"2A" => digits[5..7].copy_from_slice(b"19"),
        b"2B" => digits[5..7].copy_from_slice(b"18"),
        _ => {}
    }
    let month = prefix(&digits[3..], 2);
    let number = |part: &[u8]| part.iter().fold(0_u64, |sum, d| sum * 10 + u64::from(value(*d)));
    digits.iter().all(u8::is_ascii_digit)
        && (matches!(month, 1..=12 | 20..=42) || month >= 50)
        && number(&digits[13..]) == 97 - number(&digits[..13]) % 97
}

/// A Spanish DNI (eight digits and a letter) or NIE (X, Y or Z, seven digits and a letter).
pub(crate) fn es_dni(text: &[u8]) -> bool {
    if text.len() != 9 {
        return false;
    }
    let first = match text[0] {
        b'X' => b'0',
        b'Y' => b'1',
        b'Z' => b'2',
        other => other,
    };
    if !first.is_ascii_digit() || !text[1..8].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let number = text[1..8].iter().fold(value(first), |number, digit| number * 10 + value(*digit));
    b"TRWAGMYFPDXBNJZSQVHLCKE".get((number % 23) as usize) == Some(&text[8])
}

/// An Italian codice fiscale: shape, month letter, day and check letter.
pub(crate) fn it_fiscal_code(text: &[u8]) -> bool {
    const ODD: [u32; 26] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    if text.len() != 16 || !text.iter().all(u8::is_ascii_alphanumeric) {
        return false;
    }
    let place = |byte: u8| match byte {
        b'0'..=b'9' => usize::from(byte - b'0'),
        other => usize::from(other.to_ascii_uppercase() - b'A'),
    };
    let sum: usize = text[..15]
        .iter()
        .enumerate()
        .map(|(at, byte)| if at % 2 == 0 { ODD[place(*byte)] as usize } else { place(*byte) })
        .sum();
    b"ABCDEHLMPRST".contains(&text[8].to_ascii_uppercase())
        && text[15].is_ascii_alphabetic()
        && sum % 26 == place(text[15])
}

/// A Brazilian CPF: nine digits and two check digits.
pub(crate) fn br_cpf(digits: &[u8]) -> bool {
    let check = |length: usize| {
        let top = length + 1;
        let sum: usize = (0..length).map(|at| value(digits[at]) as usize * (top - at)).sum();
        sum * 10 % 11 % 10 == value(digits[length]) as usize
    };
    are_digits(digits, 11) && !all_same(digits) && check(9) && check(10)
}

/// An Indian Aadhaar number: twelve digits, the first 2 to 9, Verhoeff.
pub(crate) fn in_aadhaar(digits: &[u8]) -> bool {
    are_digits(digits, 12) && digits[0] >= b'2' && !all_same(digits) && verhoeff(digits)
}

/// Multiplication in the dihedral group of ten elements, which Verhoeff's scheme rests on.
fn dihedral(left: usize, right: usize) -> usize {
    match (left < 5, right < 5) {
        (true, true) => (left + right) % 5,
        (true, false) => 5 + (left + right - 5) % 5,
        (false, true) => 5 + (left - 5 + 5 - right) % 5,
        (false, false) => (left + 5 - right) % 5,
    }
}

fn verhoeff(digits: &[u8]) -> bool {
    const STEP: [usize; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let check = digits.iter().rev().enumerate().fold(0, |sum, (place, digit)| {
        let start = value(*digit) as usize % 10;
        let moved = (0..place % 8).fold(start, |at, _| STEP[at]);
        dihedral(sum, moved)
    });
    check == 0
}

/// Whether six digits are a date as year, month, day.
fn short_date(digits: &[u8]) -> bool {
    matches!(prefix(&digits[2..], 2), 1..=12) && matches!(prefix(&digits[4..], 2), 1..=31)
}

/// A Korean resident number: a date, a century digit, and the check digit of numbers before 2020.
pub(crate) fn kr_rrn(digits: &[u8]) -> bool {
    kr_rrn_shape(digits) && {
        let sum = weighted(digits, &[2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5]);
        (11 - sum % 11) % 10 == value(digits[12])
    }
}

/// As [`kr_rrn`] without the check digit, which newer numbers do not have.
pub(crate) fn kr_rrn_shape(digits: &[u8]) -> bool {
    are_digits(digits, 13) && short_date(digits) && (b'1'..=b'8').contains(&digits[6])
}

/// A Chinese resident number: region, date, order, and a check character by powers of two mod 11.
pub(crate) fn cn_resident_id(text: &[u8]) -> bool {
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    if text.len() != 18 || !text[..17].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let year = prefix(&text[6..], 4);
    let check = b"10X98765432"[(weighted(text, &WEIGHTS) % 11) as usize];
    (1900..=2099).contains(&year)
        && short_date(&text[8..])
        && (11..=82).contains(&prefix(text, 2))
        && check == text[17].to_ascii_uppercase()
}

/// A US bank routing number: nine digits, weights 3, 7, 1.
pub(crate) fn us_routing(digits: &[u8]) -> bool {
    are_digits(digits, 9)
        && !all_same(digits)
        && weighted(digits, &[3, 7, 1, 3, 7, 1, 3, 7, 1]).is_multiple_of(10)
}

/// A UK health service number: ten digits, weights 10 to 2, remainder of 11.
pub(crate) fn uk_nhs(digits: &[u8]) -> bool {
    if !are_digits(digits, 10) || all_same(digits) {
        return false;
    }
    let rest = 11 - weighted(digits, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
    rest != 10 && rest % 11 == value(digits[9])
}

/// A Bitcoin address of the older form: base 58 with four bytes of a double digest.
pub(crate) fn base58_check(text: &[u8]) -> bool {
    const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let mut bytes = [0_u8; 25];
    for character in text {
        let Some(place) = ALPHABET.iter().position(|one| one == character) else { return false };
        let mut carry = place;
        for byte in bytes.iter_mut().rev() {
            carry += usize::from(*byte) * 58;
            *byte = u8::try_from(carry & 0xff).unwrap_or_default();
            carry >>= 8;
        }
        if carry != 0 {
            return false;
        }
    }
    let digest = Sha256::digest(Sha256::digest(&bytes[..21]));
    matches!(bytes[0], 0 | 5) && digest[..4] == bytes[21..]
}

/// A Bitcoin address of the newer form: the checksum of Bech32 or Bech32m.
pub(crate) fn bech32(text: &[u8]) -> bool {
    const ALPHABET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    let Some(data) = text.strip_prefix(b"bc1") else { return false };
    let start = [3, 3, 0, 2, 3].into_iter().fold(1, bech32_step);
    let end = data.iter().try_fold(start, |sum, character| {
        let place = ALPHABET.iter().position(|one| one == character)?;
        Some(bech32_step(sum, u32::try_from(place).ok()?))
    });
    matches!(end, Some(1 | 0x2bc8_30a3))
}

fn bech32_step(sum: u32, value: u32) -> u32 {
    const GENERATORS: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let top = sum >> 25;
    let moved = ((sum & 0x01ff_ffff) << 5) ^ value;
    GENERATORS
        .iter()
        .enumerate()
        .filter(|(bit, _)| top >> bit & 1 == 1)
        .fold(moved, |sum, (_, generator)| sum ^ generator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, valid: fn(&[u8]) -> bool, good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(valid(text.as_bytes()), "{name} should take {text}");
        }
        for text in bad {
            assert!(!valid(text.as_bytes()), "{name} should refuse {text}");
        }
        assert!(!valid(b""), "{name} should refuse nothing");
    }

    /// Examples are published test numbers or made to fit the rule; none is a person's.
    #[test]
    fn each_check_takes_its_examples_and_refuses_a_changed_digit() {
        check(
            "card",
            payment_card,
            &["4111111111111111", "378282246310005"],
            &["4111111111111112"],
        );
        check("iban", iban, &["GB82WEST12345698765432"], &["GB82WEST12345698765433", "GB82WEST"]);
        check("ssn", us_ssn, &["219099998"], &["000121234", "666121234", "900121234", "219009999"]);
        check("nino", uk_nino, &["AB123456C"], &["QQ123456C", "GB123456A", "AB123456E"]);
        check("tfn", au_tfn, &["123456782"], &["123456789"]);
        check("medicare", au_medicare, &["2123456701"], &["2123456711", "9123456701"]);
        check("sin", ca_sin, &["046454286"], &["046454287"]);
        check("de", de_tax_id, &["86095742719"], &["86095742718", "12345678901"]);
        check("dni", es_dni, &["12345678Z", "X1234567L"], &["12345678A"]);
        check("cf", it_fiscal_code, &["RSSMRA85T10A562S"], &["RSSMRA85T10A562T"]);
        check("cpf", br_cpf, &["52998224725"], &["52998224726", "11111111111"]);
        check("cn", cn_resident_id, &["11010519491231002X"], &["110105194912310021"]);
        check("routing", us_routing, &["021000021"], &["021000022"]);
        check("nhs", uk_nhs, &["9434765919"], &["9434765918"]);
        check(
            "btc",
            base58_check,
            &["1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"],
            &["1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb"],
        );
        check(
            "bech32",
            bech32,
            &["bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"],
            &["bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5"],
        );
    }

    /// For rules without a published example: of ten numbers that differ in the check digit
    /// exactly one fits.
    #[test]
    fn exactly_one_check_digit_fits() {
        for (valid, stem) in [
            (jp_my_number as fn(&[u8]) -> bool, "12345678901"),
            (in_aadhaar, "23456789012"),
            (kr_rrn, "900101123456"),
        ] {
            let fits = (0..10).filter(|last| valid(format!("{stem}{last}").as_bytes())).count();
            assert_eq!(fits, 1, "{stem}");
        }
    }

    #[test]
    fn verhoeff_takes_the_published_example() {
        assert!(verhoeff(b"2363"));
        assert!(!verhoeff(b"2364"));
        assert!(!verhoeff(b"3263"));
    }

    #[test]
    fn a_nir_is_taken_with_its_key_and_for_corsica() {
        let with_key = |stem: &str, as_number: u64| format!("{stem}{:02}", 97 - as_number % 97);
        assert!(fr_nir(with_key("1850578006048", 1_850_578_006_048).as_bytes()));
        assert!(fr_nir(with_key("185052A006048", 1_850_519_006_048).as_bytes()));
        assert!(!fr_nir(with_key("1850578006048", 1_850_578_006_049).as_bytes()));
    }
}
