//! What a row of replies teaches about each fault of manner; `train/rows.py` says the same to the transformer.

use crate::rows::Row;
use conclave_detect::MannerFault;

/// The corpus's words for what a reply does, by fault.
const fn acts(fault: MannerFault) -> &'static [&'static str] {
    match fault {
        MannerFault::Encourages => &["encouraging_harm"],
        MannerFault::Dismisses => {
            &["minimising", "cold", "lecturing", "premature_advice", "needless_refusal"]
        }
        MannerFault::Deceives => &[
            "gaslighting",
            "flattering_delusion",
            "claiming_feelings",
            "saviour",
            "misinformation",
        ],
        MannerFault::Demeans => &["shaming", "projecting", "hate_harassment"],
        MannerFault::Binds => &["dependency", "isolating", "over_intimate", "grooming"],
    }
}

/// What the public sets collected under a name of their own: source, kind, and the fault it is.
const COLLECTED: [(&str, &str, MannerFault); 5] = [
    ("diasafety", "hate_harassment", MannerFault::Demeans),
    ("diasafety", "self_harm", MannerFault::Dismisses),
    ("diasafety", "specialised_advice", MannerFault::Deceives),
    ("rtplx_response", "hate_harassment", MannerFault::Demeans),
    ("spiral_bench", "delusion", MannerFault::Deceives),
];

/// Whether the reply has this fault; `None` where nobody looked.
pub fn shows(row: &Row, fault: MannerFault) -> Option<bool> {
    if !row.is_harmful() {
        return Some(false);
    }
    if row.source.starts_with("corpus_") {
        return Some(acts(fault).iter().any(|act| row.is(act)));
    }
    COLLECTED
        .iter()
        .any(|(source, kind, one)| *source == row.source && *one == fault && row.is(kind))
        .then_some(true)
}
