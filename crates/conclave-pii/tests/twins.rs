//! For each kind: texts in which it is found, whole, and look-alikes in which nothing identifies.

#![expect(clippy::unwrap_used, reason = "a finder that does not build should fail the test")]

use conclave_pii::{Class, Classes, Finder, Kind, is_identifying};
use std::collections::BTreeSet;
use std::sync::OnceLock;

fn finder() -> &'static Finder {
    static FINDER: OnceLock<Finder> = OnceLock::new();
    FINDER.get_or_init(|| Finder::builtin().unwrap())
}

fn slice(text: &str, start: usize, end: usize) -> String {
    text.chars().skip(start).take(end - start).collect()
}

fn found(text: &str) -> Vec<(Kind, String)> {
    let places = finder().find(text).into_iter();
    places.map(|place| (place.kind, slice(text, place.start, place.end))).collect()
}

/// A text, and the value of this kind that must be found in it.
type Case = (Kind, &'static str, &'static str);

/// Numbers are reserved for examples, published test numbers, or made to fit a check digit.
const FOUND: &[Case] = &[
    (Kind::Email, "Mail jane.doe+news@mail.example.com today", "jane.doe+news@mail.example.com"),
    (Kind::Email, "連絡はtaro@example.jpまで", "taro@example.jp"),
    (Kind::Phone, "It is +1 202-555-0143, thanks", "+1 202-555-0143"),
    (Kind::Phone, "My cell: (202) 555-0143 x12", "(202) 555-0143 x12"),
    (Kind::Phone, "202.555.0143 is mine", "202.555.0143"),
    (Kind::Phone, "電話は０９０－１２３４－５６７８です", "０９０－１２３４－５６７８"),
    (Kind::Phone, "代表 03-1234-5678 まで", "03-1234-5678"),
    (Kind::Phone, "フリーダイヤル 0120-123-456", "0120-123-456"),
    (Kind::Phone, "Ring 0491 570 156 after six", "0491 570 156"),
    (Kind::Phone, "Office (02) 5550 1234", "(02) 5550 1234"),
    (Kind::Phone, "London: 020 7946 0018", "020 7946 0018"),
    (Kind::Phone, "mobile 07700 900123", "07700 900123"),
    (Kind::Phone, "call me at 5550143", "5550143"),
    (Kind::Phone, "電話番号は０９０１２３４５６７８です", "０９０１２３４５６７８"),
    (Kind::Phone, "電話：03（1234）5678", "03（1234）5678"),
    (Kind::Phone, "携帯 +81 90-1234-5678", "+81 90-1234-5678"),
    (Kind::Phone, "+81-3-1234-5678", "+81-3-1234-5678"),
    (Kind::Phone, "Ring +44 20 7946 0958 tonight.", "+44 20 7946 0958"),
    (Kind::Phone, "It is +44 7700 900123.", "+44 7700 900123"),
    (Kind::Phone, "2024-03-04 090-1234-5678", "090-1234-5678"),
    (Kind::Phone, "090-1234-5678 10時に", "090-1234-5678"),
    (Kind::PersonName, "my name is Anna Lindqvist.", "Anna Lindqvist"),
    (Kind::PersonName, "hello, my name is brunhilde", "brunhilde"),
    (Kind::PersonName, "I'm Kwame Asante from accounts", "Kwame Asante"),
    (Kind::PersonName, "Please ask Dr. Okonkwo-Bell about it", "Okonkwo-Bell"),
    (Kind::PersonName, "Best regards,\nPriya", "Priya"),
    (Kind::PersonName, "Yesterday Hiroshi Tanaka resigned", "Hiroshi Tanaka"),
    (Kind::PersonName, "we saw Fiona J. Walsh there", "Fiona J. Walsh"),
    (Kind::PersonName, "昨日、山田さんに会いました", "山田"),
    (Kind::PersonName, "私の名前は佐藤花子です", "佐藤花子"),
    (Kind::PersonName, "鈴木と申します。", "鈴木"),
    (Kind::PersonName, "my name is Akiko Tanaka", "Akiko Tanaka"),
    (Kind::PersonName, "I'm Dr. Jonas Weber", "Jonas Weber"),
    (Kind::PersonName, "I'm anna, nice to meet you", "anna"),
    (Kind::PersonName, "「私は田中明子です」", "田中明子"),
    (Kind::PersonName, "初めまして、田中です。", "田中"),
    (Kind::StreetAddress, "I live at 221 Example Street, Springfield", "221 Example Street"),
    (Kind::StreetAddress, "Send it to 12 rue de la Paix", "12 rue de la Paix"),
    (Kind::StreetAddress, "Wir wohnen Musterstraße 12", "Musterstraße 12"),
    (Kind::StreetAddress, "write to PO Box 1234", "PO Box 1234"),
    (Kind::StreetAddress, "東京都千代田区丸の内１丁目１番地", "東京都千代田区丸の内１丁目１番地"),
    (Kind::PostalCode, "〒100-0001 です", "100-0001"),
    (Kind::PostalCode, "ZIP: 90210", "90210"),
    (Kind::UsSsn, "SSN 219-09-9998", "219-09-9998"),
    (Kind::JpMyNumber, "マイナンバーは123456789018です", "123456789018"),
    (Kind::UkNino, "NI number AB 12 34 56 C", "AB 12 34 56 C"),
    (Kind::AuTfn, "my TFN is 123 456 782", "123 456 782"),
    (Kind::AuMedicare, "Medicare 2123 45670 1", "2123 45670 1"),
    (Kind::CaSin, "SIN: 046 454 286", "046 454 286"),
    (Kind::DeTaxId, "Steuer-ID 86 095 742 719", "86 095 742 719"),
    (Kind::FrNir, "NIR 1 85 05 78 006 048 30", "1 85 05 78 006 048 30"),
    (Kind::EsDni, "DNI 12345678Z", "12345678Z"),
    (Kind::ItFiscalCode, "CF RSSMRA85T10A562S", "RSSMRA85T10A562S"),
    (Kind::BrCpf, "CPF 529.982.247-25", "529.982.247-25"),
    (Kind::InAadhaar, "Aadhaar 2345 6789 0124", "2345 6789 0124"),
    (Kind::KrRrn, "주민등록번호 900101-1234567", "900101-1234567"),
    (Kind::CnResidentId, "身份证 11010519491231002X", "11010519491231002X"),
    (Kind::Passport, "passport number X12345678", "X12345678"),
    (Kind::DriverLicence, "driver's license D1234567", "D1234567"),
    (Kind::PaymentCard, "pay with 4111 1111 1111 1111 now", "4111 1111 1111 1111"),
    (Kind::PaymentCard, "amex 378282246310005", "378282246310005"),
    (Kind::PaymentCard, "4111 1111 1111 1111 12/25 123", "4111 1111 1111 1111"),
    (Kind::PaymentCard, "exp 12/25 4111 1111 1111 1111", "4111 1111 1111 1111"),
    (
        Kind::PaymentCard,
        "カード番号は４１１１ １１１１ １１１１ １１１１です",
        "４１１１ １１１１ １１１１ １１１１",
    ),
    (Kind::Iban, "IBAN GB82 WEST 1234 5698 7654 32", "GB82 WEST 1234 5698 7654 32"),
    (Kind::BankAccount, "account number 12345678", "12345678"),
    (Kind::BankAccount, "routing 021000021", "021000021"),
    (Kind::IpAddress, "from 203.0.113.7 at noon", "203.0.113.7"),
    (Kind::IpAddress, "host 2001:db8::42 is up", "2001:db8::42"),
    (Kind::MacAddress, "nic 00:00:5e:00:53:af", "00:00:5e:00:53:af"),
    (Kind::Url, "see https://example.com/u/42.", "https://example.com/u/42"),
    (Kind::Url, "visit www.example.org", "www.example.org"),
    (Kind::DateOfBirth, "born on 3 March 1980", "3 March 1980"),
    (Kind::DateOfBirth, "生年月日：1980年3月4日", "1980年3月4日"),
    (Kind::Age, "she is a 34-year-old teacher", "34"),
    (Kind::Age, "私は34歳です", "34"),
    (Kind::MedicalRecord, "MRN: 00123456", "00123456"),
    (Kind::MedicalRecord, "NHS number 943 476 5919", "943 476 5919"),
    (
        Kind::CryptoWallet,
        "to 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
    ),
    (
        Kind::CryptoWallet,
        "eth 0x00000000219ab540356cBB839Cbe05303d7705Fa",
        "0x00000000219ab540356cBB839Cbe05303d7705Fa",
    ),
    (Kind::ApiKey, "key AKIAIOSFODNN7EXAMPLE leaked", "AKIAIOSFODNN7EXAMPLE"),
    (Kind::ApiKey, "ck_0123456789abcdef0123", "ck_0123456789abcdef0123"),
    (Kind::ApiKey, "token=9f8e7d6c5b4a39281706f5e4", "9f8e7d6c5b4a39281706f5e4"),
    (
        Kind::WebToken,
        "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJleGFtcGxlIn0.c2lnbmF0dXJl",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJleGFtcGxlIn0.c2lnbmF0dXJl",
    ),
    (
        Kind::PrivateKey,
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY----- end",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
    ),
    (Kind::Password, "password: hunter22", "hunter22"),
    (Kind::Password, "password: password: hunter22", "hunter22"),
    (Kind::Password, "my password is Tr0ub4dor&3", "Tr0ub4dor&3"),
    (Kind::Password, "パスワードは「abc12345」", "abc12345"),
];

/// Look-alikes: nothing in them identifies anybody.
const SPARED: &[&str] = &[
    "Upgrade from version 1.2.3.4 to 10.0.19045.3803",
    "order number 4471-2234-8890",
    "Order #202-5550143-2231456 has shipped",
    "tracking 1234567890123456",
    "ISBN 978-3-16-148410-0",
    "sha1 da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "id 123e4567-e89b-12d3-a456-426614174000",
    "on 2024-03-04 12:30:45 and 04/03/2024",
    "timestamp 1700000000000",
    "between 1939-1945 and 2020",
    "it costs $1,234,567.89 or 1234567.89",
    "pi is 3.14159265358979",
    "let x = vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10];",
    "std::net::Ipv4Addr and dead::beef",
    "localhost is 127.0.0.1 or ::1",
    "node.js, asp.net and main.rs",
    "4111 1111 1111 1112 is no order of mine",
    "666-12-3456 and 000-12-3456",
    "GB82 WEST 1234 5698 7654 33",
    "We flew from Paris to Tokyo in April",
    "Contoso Ltd. is a company in Berlin",
    "I am Sorry. I'm Happy. This is Great.",
    "Dear Sir or Madam",
    "皆さん、こんにちは。お客様は神様です。",
    "東京都に行きました",
    "東京都千代田区は日本の中心です",
    "お母さんと子供さん",
    "please tell me your date of birth. it's 3/30/1979",
    "She just turned 75 years old",
    "ZIP: 90210",
    "What is a passport and how do I renew one?",
    "password: ********",
    "enter your password: <password>",
    "the password is required",
    "the key is to listen and the token is a symbol",
    "let password = request.body.password;",
    "I saw 2 people on the street",
    "there are 3 lanes on the road",
    "the 10 commandments, chapter 12 verse 5",
    "twin towers fell in 2001, 9-11-2001",
    "score 3-2, 21-14, 7-6 6-4 6-3",
    "mark the date, will you? may I?",
    "hope and grace are virtues",
    "0x1F and #ff00ff and 0xdeadbeef",
    "1 2 3 4 5 6 7 8 9 10",
    "12345678901234567890",
];

#[test]
fn each_kind_is_found_whole() {
    let missed = FOUND
        .iter()
        .filter(|(kind, text, value)| !found(text).contains(&(*kind, (*value).to_owned())));
    let missed: Vec<String> =
        missed.map(|(_, text, _)| format!("{text}: {:?}", found(text))).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn every_kind_has_an_example() {
    let shown: BTreeSet<Kind> = FOUND.iter().map(|(kind, _, _)| *kind).collect();
    let missing: Vec<&Kind> = Kind::ALL.iter().filter(|kind| !shown.contains(kind)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn look_alikes_are_spared() {
    let alarmed = SPARED.iter().filter(|text| finder().find(text).iter().any(is_identifying));
    let alarms: Vec<String> = alarmed.map(|text| format!("{text}: {:?}", found(text))).collect();
    assert!(alarms.is_empty(), "{alarms:#?}");
}

#[test]
fn a_class_that_is_switched_off_is_not_found() {
    for (kind, text, value) in FOUND {
        let without = Finder::with(Classes::all().without(kind.class())).unwrap();
        let found = without.find(text);
        assert!(found.iter().all(|place| place.kind.class() != kind.class()), "{text} {value}");
    }
    let only = Finder::with(Classes::none().with(Class::Email)).unwrap();
    let found = only.find("Anna Lindqvist, a@example.com, +1 202-555-0143");
    assert_eq!(found.iter().map(|place| place.kind).collect::<Vec<_>>(), [Kind::Email]);
}

#[test]
fn the_reference_page_lists_every_kind_and_class() {
    let page = include_str!("../../../docs/reference/pii.md");
    for kind in Kind::ALL {
        assert!(page.contains(&format!("| `{}` |", kind.as_str())), "{}", kind.as_str());
    }
    for class in Class::ALL {
        assert!(page.contains(&format!("`{}`", class.as_str())), "{}", class.as_str());
    }
}
