//! An extract over many interviews: clusters of shared words, and sentences that say what is needed.

use super::words::{cited, is_interviewer, quote, shared_words, speaks_of, told};
use crate::citation::share;
use crate::empathy::{Address, Empathy};
use crate::transcript::Transcript;
use serde_json::{Map, Value, json};

const CLUSTERS_MAX: usize = 8;
const QUOTES_MAX: usize = 5;
const NEEDS_MAX: usize = 12;
const NEED: &[&str] =
    &["need ", "needs ", "we want ", "i want ", "there is no ", "if only ", "wish "];
const URGENT: &[&str] = &["now", "today", "urgent", "tonight", "immediately", "nowhere"];

/// Clusters, needs and how interviewers treat people, cut from the interviews.
#[must_use]
pub fn extract_insights(
    transcripts: &[Transcript],
    empathy: &Empathy,
    consent_verified: bool,
) -> Value {
    let clusters: Vec<_> = shared_words(transcripts)
        .into_iter()
        .take(CLUSTERS_MAX)
        .map(|(word, size)| cluster(&word, size, transcripts, consent_verified))
        .collect();
    let bars: Map<_, _> = clusters
        .iter()
        .map(|one| (one["cluster"].as_str().unwrap_or_default().to_owned(), one["size"].clone()))
        .collect();
    json!({
        "extractive": true,
        "theme_clusters": clusters,
        "empathy_score_trend": transcripts.iter().filter_map(|one| trend(one, empathy)).collect::<Vec<_>>(),
        "emerging_needs": needs(transcripts),
        "visualization_data": {"clusters": bars},
    })
}

fn cluster(word: &str, size: usize, transcripts: &[Transcript], consent_verified: bool) -> Value {
    let spoken = told(transcripts).filter(|(_, segment)| speaks_of(&segment.text, word));
    let quotes: Vec<_> =
        spoken.take(QUOTES_MAX).map(|(source, segment)| quote(source, segment, word)).collect();
    json!({
        "cluster": word, "size": size, "citations": quotes,
        "consent_confidence": if consent_verified { 1.0 } else { 0.5 },
    })
}

/// How the one who asks treats the one who tells.
fn trend(transcript: &Transcript, empathy: &Empathy) -> Option<Value> {
    let asked = transcript.segments.iter().filter(|segment| is_interviewer(&segment.speaker));
    let asked: Vec<_> = asked.map(|segment| segment.text.as_str()).collect();
    if asked.is_empty() {
        return None;
    }
    let tenths = empathy.score(&asked.join(" "), Address::To, None);
    Some(json!({"transcript_id": transcript.id, "score": f64::from(tenths) / 10.0}))
}

fn needs(transcripts: &[Transcript]) -> Vec<Value> {
    let mut needs = Vec::new();
    for (source, segment) in told(transcripts) {
        let sentences = segment.text.split_inclusive(['.', '!', '?']).map(str::trim);
        for sentence in sentences {
            let lower = format!("{} ", sentence.to_lowercase());
            if needs.len() < NEEDS_MAX && NEED.iter().any(|word| lower.contains(word)) {
                let urgent = URGENT.iter().any(|word| speaks_of(sentence, word));
                let citation = cited(source, segment, sentence);
                needs.push(json!({
                    "need": citation["text"], "urgency": if urgent { "high" } else { "medium" },
                    "citations": [citation],
                }));
            }
        }
    }
    needs
}

/// How much of what is cited for each cluster speaks of it, in hundredths of a percent.
#[must_use]
pub fn cluster_purity(result: &Value) -> Option<u32> {
    let clusters = result.get("theme_clusters")?.as_array()?;
    let (mut spoken, mut all) = (0, 0);
    for cluster in clusters {
        let name = cluster.get("cluster").and_then(Value::as_str).unwrap_or_default();
        let citations = cluster.get("citations").and_then(Value::as_array);
        for citation in citations.into_iter().flatten() {
            let text = citation.get("text").and_then(Value::as_str).unwrap_or_default();
            all += 1;
            spoken += u32::from(name.split_whitespace().any(|word| speaks_of(text, word)));
        }
    }
    share(spoken, all)
}
