//! Every way of changing a set without its signer: each must be refused, with a sentence that
//! helps.

use crate::{Instinct, InstinctError, PinnedKey, Signed, sign};
use conclave_core::{Category, DirectiveId};
use sha2::{Digest, Sha256};

const FILE: &str = include_str!("../../../data/directives/directives.toml");
const SIGNATURE: &str = include_str!("../../../data/directives/directives.sig");

fn shipped_key() -> PinnedKey {
    PinnedKey::shipped().unwrap()
}

fn verify(file: &[u8], signature: &[u8]) -> Result<Instinct, InstinctError> {
    Instinct::verify(file, &String::from_utf8_lossy(signature), &shipped_key())
}

/// What becomes of a set that its own signer signed, slips and all.
fn signed(file: &str) -> Result<Instinct, InstinctError> {
    let Signed { signature_hex, public_key_hex } = sign(file.as_bytes(), &[42; 32]);
    let pinned = PinnedKey::parse(&public_key_hex).unwrap();
    let verified = Instinct::verify(file.as_bytes(), &signature_hex, &pinned);
    assert_eq!(Instinct::check(file.as_bytes()).err(), verified.clone().err());
    verified
}

/// The sentence with which a signed but faulty set is refused.
fn refusal(file: &str) -> String {
    signed(file).unwrap_err().to_string()
}

fn replaced(from: &str, to: &str) -> String {
    assert!(FILE.contains(from), "{from:?} is not in the file");
    FILE.replacen(from, to, 1)
}

/// The block of one directive, from its header to the next.
fn block(number: usize) -> &'static str {
    let start = FILE.match_indices("[[directive]]").nth(number - 1).unwrap().0;
    let rest = &FILE[start..];
    rest[1..].find("[[directive]]").map_or(rest, |end| &rest[..=end])
}

#[test]
fn the_shipped_signature_holds_under_the_pinned_key() {
    let set = verify(FILE.as_bytes(), SIGNATURE.as_bytes()).unwrap();
    assert_eq!(set.digest(), <[u8; 32]>::from(Sha256::digest(FILE.as_bytes())));
    assert_eq!(Instinct::builtin().unwrap(), set);
    assert_eq!(SIGNATURE.len(), 129);
}

#[test]
fn every_bit_of_the_signature_counts() {
    for position in 0..SIGNATURE.len() {
        for bit in 0..8 {
            let mut signature = SIGNATURE.as_bytes().to_vec();
            signature[position] ^= 1 << bit;
            let error = verify(FILE.as_bytes(), &signature).unwrap_err();
            let expected =
                matches!(error, InstinctError::SignatureMalformed | InstinctError::Mismatch { .. });
            assert!(expected, "byte {position}, bit {bit}: {error}");
        }
    }
}

#[test]
fn every_sampled_byte_of_the_file_counts() {
    let last = FILE.len() - 1;
    for position in (0..FILE.len()).step_by(97).chain([1, last - 1, last]) {
        let mut file = FILE.as_bytes().to_vec();
        file[position] ^= 1 << (position % 8);
        let error = verify(&file, SIGNATURE.as_bytes()).unwrap_err();
        assert!(matches!(error, InstinctError::Mismatch { .. }), "byte {position}: {error}");
    }
}

#[test]
fn cuts_additions_and_other_line_ends_count() {
    let files = [
        String::new(),
        FILE[..FILE.len() - 1].to_owned(),
        format!("{FILE}\n"),
        format!("\u{feff}{FILE}"),
        FILE.replace('\n', "\r\n"),
        replaced("id = 7\n", "id =  7\n"),
    ];
    for file in files {
        let error = verify(file.as_bytes(), SIGNATURE.as_bytes()).unwrap_err();
        assert!(matches!(error, InstinctError::Mismatch { .. }), "{error}");
    }
    let signatures = ["", "\n", &SIGNATURE[..127], &SIGNATURE.to_uppercase(), "wrong"];
    for signature in signatures {
        let error = verify(FILE.as_bytes(), signature.as_bytes()).unwrap_err();
        assert_eq!(error, InstinctError::SignatureMalformed, "{signature:?}");
    }
}

#[test]
fn a_missing_end_of_line_after_the_signature_is_no_tampering() {
    assert!(verify(FILE.as_bytes(), SIGNATURE.trim_end().as_bytes()).is_ok());
}

#[test]
fn a_set_signed_by_somebody_else_is_refused() {
    let theirs = sign(FILE.as_bytes(), &[1; 32]);
    let error = verify(FILE.as_bytes(), theirs.signature_hex.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("signed with another key than the pinned"), "{error}");
    assert!(error.contains(&shipped_key().to_string()), "{error}");
}

#[test]
fn the_shipped_set_under_another_pinned_key_says_which_set_is_missing() {
    let theirs = PinnedKey::parse(&sign(b"", &[1; 32]).public_key_hex).unwrap();
    let error = Instinct::verify(FILE.as_bytes(), SIGNATURE, &theirs).unwrap_err();
    assert_eq!(error, InstinctError::OtherKeyPinned { key: theirs.to_string() });
    assert!(error.to_string().contains("install the set that was signed with that key"));
}

#[test]
fn an_organisation_can_sign_its_own_words() {
    let set = signed(&replaced("Protect innocent life.", "Guard innocent life.")).unwrap();
    assert!(set.text(DirectiveId(1), "en").starts_with("Guard"));
    assert_ne!(set.digest(), Instinct::builtin().unwrap().digest());
}

#[test]
fn unsigned_bytes_never_reach_the_parser() {
    let error = verify(b"\xff not toml", SIGNATURE.as_bytes()).unwrap_err();
    assert!(matches!(error, InstinctError::Mismatch { .. }), "{error}");
}

#[test]
fn an_oversized_file_is_refused_before_anything_else() {
    let file = vec![b'#'; crate::FILE_BYTES_MAX + 1];
    let error = verify(&file, b"").unwrap_err();
    assert!(matches!(error, InstinctError::TooLarge { .. }), "{error}");
}

#[test]
fn a_malformed_set_is_refused_with_its_line() {
    for (file, says) in [
        (replaced("id = 3\n", "id = three\n"), "malformed at line"),
        (replaced("[[directive]]", "note = 1\n[[directive]]"), "unknown field `note`"),
        (replaced("core = \"duty\"", "core = \"duties\""), "unknown variant `duties`"),
        (replaced("category = \"fraud\"", "category = \"frauds\""), "`frauds` is neither"),
        (
            replaced("category = \"care\"", "category = \"crisis_abuse\""),
            "write the duty as `care`",
        ),
        (replaced("\"gaslights\"", "\"gasses\""), "unknown variant `gasses`"),
        (replaced("ja = ", "fr = "), "unknown field `fr`"),
        (String::new(), "missing field `directive`"),
    ] {
        let error = refusal(&file);
        assert!(error.contains(says), "{error}");
        assert!(error.contains("malformed at line "), "{error}");
    }
    let at = FILE.lines().position(|line| line == "id = 3").unwrap() + 1;
    let error = refusal(&replaced("id = 3\n", "id = three\n"));
    assert!(error.contains(&format!("line {at}:")), "{error}");
}

#[test]
fn bytes_that_are_no_text_are_malformed_even_when_signed() {
    let error = Instinct::check(b"# fine\n\xff").unwrap_err();
    let message = "it is not UTF-8 text".to_owned();
    assert_eq!(error, InstinctError::Malformed { line: 2, message });
}

#[test]
fn wrong_counts_and_numbers_are_refused() {
    let short = FILE.replace(block(128), "");
    assert!(refusal(&short).contains("127 directives instead of 128"));
    let long = format!("{FILE}\n{}", block(128));
    assert!(refusal(&long).contains("129 directives instead of 128"));
    assert!(refusal(&replaced("id = 9\n", "id = 8\n")).contains("D008 stands where D009 belongs"));
    assert!(refusal(&replaced("id = 1\n", "id = 0\n")).contains("D000 stands where D001 belongs"));
}

#[test]
fn repeated_and_empty_texts_are_refused() {
    let set = Instinct::builtin().unwrap();
    let (a, b) = (set.get(DirectiveId(20)).unwrap(), set.get(DirectiveId(90)).unwrap());
    let error = refusal(&replaced(&b.en, &a.en.to_uppercase().replace(' ', "  ")));
    assert!(error.contains("D020 and D090 say the same in `en`"), "{error}");
    let error = refusal(&replaced(&b.ja, &a.ja));
    assert!(error.contains("D020 and D090 say the same in `ja`"), "{error}");
    assert!(refusal(&replaced(&b.en, "  ")).contains("D090 has no text in `en`"));
    assert!(refusal(&replaced(&b.ja, "。")).contains("D090 has no text in `ja`"));
}

#[test]
fn misplaced_cores_are_refused() {
    let error = refusal(&replaced("core = \"own_life\"", "core = \"protect_life\""));
    assert!(
        error.contains("D002 (self_harm) may not stand under the core protect_life"),
        "{error}"
    );
    let duty = block(128).replace("\"duty\"", "\"own_life\"");
    let error = refusal(&FILE.replace(block(128), &duty));
    assert!(error.contains("D128 (appeal) may not stand under the core own_life"), "{error}");
}

#[test]
fn a_category_without_one_clear_basis_is_refused() {
    for &category in Category::ALL {
        let name = category.as_str();
        let claim = FILE
            .lines()
            .find(|line| line.starts_with("basis_for") && line.contains(&format!("\"{name}\"")));
        let without = replaced(claim.unwrap(), "basis_for = []");
        let error = refusal(&without);
        assert!(error.starts_with("no directive is the basis for `"), "{name}: {error}");
    }
}

#[test]
fn quarrels_over_a_basis_or_an_objection_are_refused() {
    let claiming = |number: usize, claim: &str| {
        let changed = block(number).replace("\nen = ", &format!("\n{claim}\nen = "));
        FILE.replace(block(number), &changed)
    };
    let error = refusal(&claiming(7, "basis_for = [\"violence\"]"));
    assert!(error.contains("D006 and D007 both claim to be the basis for `violence`"), "{error}");
    let error = refusal(&claiming(7, "basis_for = [\"hate\"]"));
    assert!(error.contains("D007 cannot be the basis for `hate`"), "{error}");
    let error = refusal(&claiming(7, "objections = [\"gaslights\"]"));
    assert!(error.contains("D007 and D038 both claim the objection `gaslights`"), "{error}");
}
