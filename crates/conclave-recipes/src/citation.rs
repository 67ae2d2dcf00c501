//! Owns the check of citations: the source exists, the passage exists, the quote stands there.
//!
//! **Invariant:** a claim is never supported by a quote that is not in its source, whatever the model says
//! about its confidence.

use crate::transcript::Transcript;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The fewest letters a quote needs to point at anything.
const QUOTE_LETTERS_MIN: usize = 3;
/// So many claims of one result are looked at.
pub const CLAIMS_MAX: usize = 2_000;

/// Where the claims of a result stand, and where each has its citations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimPlace {
    /// A JSON pointer to a list; each item is a claim.
    pub at: String,
    /// The member of an item that lists its citations; empty where the item is one itself.
    #[serde(default)]
    pub by: String,
}

/// A citation that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    /// The source.
    pub transcript_id: String,
    /// The passage.
    pub segment_index: u32,
    /// The words.
    pub text: String,
    /// In hundredths: 100 where the words stand there to the letter, 95 where only case or spacing differ.
    pub confidence: u8,
}

/// Why a citation does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CitationFault {
    /// It has no source, passage or words.
    Malformed,
    /// There is no such source.
    UnknownSource,
    /// The source has no such passage.
    UnknownSegment,
    /// The words do not stand there.
    Invented,
}

/// What came of all citations of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CitationReport {
    /// Those that hold, in order, each once.
    pub citations: Vec<Citation>,
    /// Those that do not: where, and why.
    pub faults: Vec<(String, CitationFault)>,
    /// How many claims there are.
    pub claims: u32,
    /// How many have a citation that holds.
    pub cited: u32,
    /// How many have none that holds, or one that does not.
    pub unsupported: u32,
}

impl CitationReport {
    /// Cited claims of all, in hundredths of a percent; absent without claims.
    #[must_use]
    pub fn coverage(&self) -> Option<u32> {
        share(self.cited, self.claims)
    }

    /// Unsupported claims of all, in hundredths of a percent; absent without claims.
    #[must_use]
    pub fn hallucination(&self) -> Option<u32> {
        share(self.unsupported, self.claims)
    }
}

pub(crate) fn share(part: u32, whole: u32) -> Option<u32> {
    let share = (u64::from(part) * 10_000).checked_div(u64::from(whole))?;
    u32::try_from(share).ok()
}

/// Checks every claim of a result against the transcripts.
#[must_use]
pub fn check(result: &Value, places: &[ClaimPlace], sources: &[Transcript]) -> CitationReport {
    let mut report = CitationReport::default();
    for place in places {
        let items = result.pointer(&place.at).and_then(Value::as_array);
        for (at, item) in items.into_iter().flatten().enumerate() {
            if usize::try_from(report.claims).unwrap_or(usize::MAX) >= CLAIMS_MAX {
                return report;
            }
            check_claim(item, place, &format!("{}/{at}", place.at), sources, &mut report);
        }
    }
    report
}

fn check_claim(
    item: &Value,
    place: &ClaimPlace,
    path: &str,
    sources: &[Transcript],
    report: &mut CitationReport,
) {
    let given: Vec<&Value> = if place.by.is_empty() {
        vec![item]
    } else {
        item.get(&place.by).and_then(Value::as_array).into_iter().flatten().collect()
    };
    let (mut held, mut broken) = (false, false);
    for citation in given {
        match check_one(citation, sources) {
            Ok(citation) => {
                held = true;
                if !report.citations.contains(&citation) {
                    report.citations.push(citation);
                }
            }
            Err(fault) => {
                broken = true;
                report.faults.push((path.to_owned(), fault));
            }
        }
    }
    report.claims += 1;
    report.cited += u32::from(held);
    report.unsupported += u32::from(broken || !held);
}

/// Whether one citation holds.
///
/// # Errors
/// When it does not; the error says why.
pub fn check_one(citation: &Value, sources: &[Transcript]) -> Result<Citation, CitationFault> {
    let id =
        citation.get("transcript_id").and_then(Value::as_str).ok_or(CitationFault::Malformed)?;
    let index = citation.get("segment_index").and_then(Value::as_u64);
    let index =
        index.and_then(|index| u32::try_from(index).ok()).ok_or(CitationFault::Malformed)?;
    let quote = citation.get("text").and_then(Value::as_str).ok_or(CitationFault::Malformed)?;
    let source =
        sources.iter().find(|source| source.id == id).ok_or(CitationFault::UnknownSource)?;
    let segment = source.segment(index).ok_or(CitationFault::UnknownSegment)?;
    let confidence = occurs(quote, &segment.text).ok_or(CitationFault::Invented)?;
    Ok(Citation {
        transcript_id: id.to_owned(),
        segment_index: index,
        text: quote.to_owned(),
        confidence,
    })
}

/// How surely a quote stands in a passage, in hundredths; `None` where it does not.
fn occurs(quote: &str, passage: &str) -> Option<u8> {
    let quote = quote.trim();
    if quote.chars().filter(|sign| sign.is_alphanumeric()).count() < QUOTE_LETTERS_MIN {
        return None;
    }
    if passage.contains(quote) {
        return Some(100);
    }
    let (words, said) = (plain(quote), plain(passage));
    // Whole words: `art` does not stand in `heart`.
    format!(" {said} ").contains(&format!(" {words} ")).then_some(95)
}

/// Lower case, straight quotes, single blanks, no signs at the ends of words.
fn plain(text: &str) -> String {
    let lower = text.to_lowercase().replace(['’', '‘'], "'");
    let words = lower.split_whitespace().map(|word| {
        word.trim_matches(|sign: char| !sign.is_alphanumeric() && sign != '[' && sign != ']')
    });
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Segment;
    use serde_json::json;

    fn sources() -> Vec<Transcript> {
        let segment = |index, text: &str| Segment {
            index,
            speaker: "A".into(),
            text: text.into(),
            sacred: false,
        };
        let segments = vec![
            segment(0, "The rent went up twice, and I didn’t know where to go."),
            segment(4, "My heart was in that house."),
        ];
        vec![Transcript { id: "t".into(), storyteller_id: None, segments }]
    }

    fn cited(id: &str, index: u32, text: &str) -> Value {
        json!({"transcript_id": id, "segment_index": index, "text": text})
    }

    #[test]
    fn source_segment_and_quote_are_checked() {
        for (citation, expected) in [
            (cited("t", 0, "The rent went up twice"), Ok(100)),
            (cited("t", 0, "the rent  went up TWICE and I didn't know"), Ok(95)),
            (cited("x", 0, "The rent went up twice"), Err(CitationFault::UnknownSource)),
            (cited("t", 1, "The rent went up twice"), Err(CitationFault::UnknownSegment)),
            (cited("t", 4, "The rent went up twice"), Err(CitationFault::Invented)),
            (cited("t", 0, "The rent went up three times"), Err(CitationFault::Invented)),
            (cited("t", 4, "my art was"), Err(CitationFault::Invented)),
            (cited("t", 0, "I"), Err(CitationFault::Invented)),
            (json!({"text": "The rent"}), Err(CitationFault::Malformed)),
            (
                json!({"transcript_id": "t", "segment_index": -1, "text": "x"}),
                Err(CitationFault::Malformed),
            ),
        ] {
            let got = check_one(&citation, &sources()).map(|held| held.confidence);
            assert_eq!(got, expected, "{citation}");
        }
    }

    #[test]
    fn coverage_is_cited_claims_of_all_and_unsupported_is_hallucination() {
        let places = [
            ClaimPlace { at: "/themes".into(), by: "quotes".into() },
            ClaimPlace { at: "/key_quotes".into(), by: String::new() },
        ];
        let good = cited("t", 0, "The rent went up twice");
        let bad = cited("t", 0, "I was happy");
        let result = json!({
            "themes": [{"quotes": [good]}, {"quotes": [good, bad]}, {"quotes": []}],
            "key_quotes": [good],
        });
        let report = check(&result, &places, &sources());
        assert_eq!((report.claims, report.cited, report.unsupported), (4, 3, 2));
        assert_eq!((report.coverage(), report.hallucination()), (Some(7_500), Some(5_000)));
        assert_eq!(report.citations.len(), 1, "each citation once");
        assert_eq!(report.faults, [("/themes/1".to_owned(), CitationFault::Invented)]);
        let empty = check(&json!({}), &places, &sources());
        assert_eq!((empty.coverage(), empty.hallucination()), (None, None));
    }
}
