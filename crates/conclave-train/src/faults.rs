//! What a row of replies teaches about each fault of manner; `train/rows.py` says the same to the transformer.

use crate::rows::Row;
use conclave_detect::Fault;

/// The corpus's words for what a reply does, by fault.
const fn acts(fault: Fault) -> &'static [&'static str] {
    match fault {
        Fault::Encourages => &["encouraging_harm"],
        Fault::Dismisses => {
            &["minimising", "cold", "lecturing", "premature_advice", "needless_refusal"]
        }
        Fault::Deceives => &[
            "gaslighting",
            "flattering_delusion",
            "claiming_feelings",
            "saviour",
            "misinformation",
        ],
        Fault::Demeans => &["shaming", "projecting", "hate_harassment"],
        Fault::Binds => &["dependency", "isolating", "over_intimate", "grooming"],
    }
}

/// What the public sets collected under a name of their own: source, kind, and the fault it is.
const COLLECTED: [(&str, &str, Fault); 5] = [
    ("diasafety", "hate_harassment", Fault::Demeans),
    ("diasafety", "self_harm", Fault::Dismisses),
    ("diasafety", "specialised_advice", Fault::Deceives),
    ("rtplx_response", "hate_harassment", Fault::Demeans),
    ("spiral_bench", "delusion", Fault::Deceives),
];

/// Whether the reply has this fault; `None` where nobody looked.
pub fn shows(row: &Row, fault: Fault) -> Option<bool> {
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
