//! The encoder gives the pieces and the vectors of the reference, in sixteen languages.
//!
//! `train/encoder.py golden` writes what is compared: the reference's own cutting, and its network with the
//! weights that are shipped.

use conclave_classify::{Ensemble, SlowTiers};

const TEXTS: &str = include_str!("data/encoder/texts.txt");
const PIECES: &str = include_str!("data/encoder/pieces.txt");
const VECTORS: &[u8] = include_bytes!("data/encoder/vectors.bin");
const WIDTH: usize = 512;
/// How far a number of a vector may be from the reference's.
const TOLERANCE: f32 = 1e-3;

#[test]
fn texts_are_cut_as_the_reference_cuts_them() {
    let models = Ensemble::builtin(SlowTiers::Always).unwrap();
    let encoder = models.encoder().unwrap();
    for (text, pieces) in TEXTS.lines().zip(PIECES.lines()) {
        let cut: Vec<String> = encoder.cut(text).iter().map(ToString::to_string).collect();
        assert_eq!(cut.join(" "), pieces, "{text}");
    }
}

#[test]
fn a_thousand_vectors_are_those_of_the_reference() {
    let models = Ensemble::builtin(SlowTiers::Always).unwrap();
    let encoder = models.encoder().unwrap();
    let (numbers, _) = VECTORS.as_chunks::<2>();
    let expected = numbers.chunks_exact(WIDTH);
    assert!(TEXTS.lines().count() >= 1_000 && expected.len() == TEXTS.lines().count());
    for (text, expected) in TEXTS.lines().zip(expected) {
        let vector = encoder.vector(text).unwrap();
        assert_eq!(vector.len(), WIDTH);
        for (value, wanted) in vector.iter().zip(expected) {
            let wanted = f32::from(i16::from_le_bytes(*wanted)) / 32767.0;
            assert!((value - wanted).abs() < TOLERANCE, "{text}: {value} is not {wanted}");
        }
    }
}

#[test]
fn a_damaged_file_is_refused_wherever_it_is_cut() {
    let whole = include_bytes!("../../../data/models/encoder.bin");
    let cuts = [0, 7, 8, 300, 5_000, 1_000_000, 60_000_000, whole.len() - 1];
    for end in cuts.into_iter().filter(|end| *end < whole.len()) {
        assert!(conclave_classify::SentenceEncoder::parse(&whole[..end]).is_err(), "{end}");
    }
    let longer: Vec<u8> = whole.iter().copied().chain([0]).collect();
    assert!(conclave_classify::SentenceEncoder::parse(longer.leak()).is_err());
}

#[test]
fn any_text_is_read() {
    let models = Ensemble::builtin(SlowTiers::Always).unwrap();
    let encoder = models.encoder().unwrap();
    for text in ["", " ", "\u{0}\u{1}\u{feff}", "\u{10ffff}", "▁▁", &"ab ".repeat(400_000)] {
        assert!(encoder.vector(text).unwrap().iter().all(|value| value.is_finite()));
    }
    let kitten = encoder.vector("a kitten sleeps on the sofa").unwrap();
    let near = encoder.vector("ein kätzchen schläft auf dem sofa").unwrap();
    let far = encoder.vector("the central bank raised its interest rate").unwrap();
    let likeness = |other: &[f32]| kitten.iter().zip(other).map(|(a, b)| a * b).sum::<f32>();
    assert!(likeness(&near) > likeness(&far) + 0.1, "{} {}", likeness(&near), likeness(&far));
}
