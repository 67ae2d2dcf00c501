//! What is handed out: receipts, proofs, checkpoints and keys.

use super::super::Answer;
use super::{LedgerPlace, find_ledger, open_reader, parse_vkey};
use crate::cli::ledger::{LedgerProveArgs, LedgerReceiptArgs, LedgerSource};
use crate::output;
use anyhow::{Context, anyhow, bail};
use conclave_core::AuditId;
use conclave_engine::ReceiptState;
use conclave_ledger::{Checkpoint, Receipt, SignedNote, VerifierKey};
use serde_json::json;
use std::path::Path;

/// The largest receipt that is read: a leaf of the largest size, and the rest.
const RECEIPT_BYTES_MAX: u64 = 1 << 20;

/// `conclave ledger receipt`
///
/// # Errors
/// When it could not be made or read.
pub(super) fn receipt(args: &LedgerReceiptArgs, as_json: bool) -> anyhow::Result<Answer> {
    if let (Some(file), Some(vkey)) = (&args.check, &args.vkey) {
        return check(file, &parse_vkey(vkey)?, as_json);
    }
    let id = args.id.as_deref().unwrap_or_default();
    let Some(receipt) = find(&args.source, id)? else {
        return Ok(unknown(id));
    };
    output::json(&receipt.to_json()?);
    Ok(Answer::Yes)
}

/// `conclave ledger prove`
///
/// # Errors
/// When it could not be made.
pub(super) fn prove(args: &LedgerProveArgs, as_json: bool) -> anyhow::Result<Answer> {
    let Some(receipt) = find(&args.source, &args.id)? else {
        return Ok(unknown(&args.id));
    };
    let text = receipt.to_tlog_proof();
    if as_json {
        output::json(&json!({"index": receipt.index, "tlog_proof": text}));
    } else {
        output::line(text.trim_end_matches('\n'));
    }
    Ok(Answer::Yes)
}

fn unknown(id: &str) -> Answer {
    output::note(&format!("there is no decision {id}"));
    Answer::No
}

fn find(source: &LedgerSource, id: &str) -> anyhow::Result<Option<Receipt>> {
    let audit = AuditId::parse(id).ok_or_else(|| anyhow!("`{id}` is not an audit id"))?;
    match find_ledger(source)? {
        LedgerPlace::Data { dir, database } => {
            match open_reader(&dir, database.as_deref())?.receipt(audit)? {
                ReceiptState::Unknown => Ok(None),
                ReceiptState::Pending => {
                    bail!("no checkpoint covers the decision yet; start the gateway, it signs one")
                }
                ReceiptState::Ready(receipt) => Ok(Some(*receipt)),
            }
        }
        LedgerPlace::Tiled(log) => {
            let receipt = log.receipt(id)?;
            Ok(receipt.map(|text| Receipt::from_json(&text)).transpose()?)
        }
    }
}

fn check(file: &Path, key: &VerifierKey, as_json: bool) -> anyhow::Result<Answer> {
    let known = std::fs::metadata(file).with_context(|| file.display().to_string())?;
    if known.len() > RECEIPT_BYTES_MAX {
        bail!("{} is too large to be a receipt", file.display());
    }
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let is_json = text.trim_start().starts_with('{');
    let receipt = if is_json { Receipt::from_json(&text) } else { Receipt::from_tlog_proof(&text) };
    let checked = receipt.and_then(|receipt| {
        let index = receipt.index;
        receipt.verify(std::slice::from_ref(key)).map(|found| (index, found))
    });
    match checked {
        Ok((index, (checkpoint, leaf))) => {
            let audit = leaf.draft.audit.map(|id| AuditId::from_bytes(id).to_string());
            if as_json {
                output::json(&json!({
                    "ok": true, "index": index, "size": checkpoint.size, "origin": checkpoint.origin,
                    "kind": leaf.draft.kind.as_str(), "ts_ms": leaf.ts_ms, "audit_id": audit,
                }));
            } else {
                output::line(&format!(
                    "{} entry {index} of {}, a {} {}, is in the log of {} entries",
                    output::coloured("the receipt holds:", "32"),
                    checkpoint.origin,
                    leaf.draft.kind,
                    audit.unwrap_or_default(),
                    checkpoint.size
                ));
            }
            Ok(Answer::Yes)
        }
        Err(error) => {
            if as_json {
                output::json(&json!({"ok": false, "problem": error.to_string()}));
            } else {
                let said = output::coloured("the receipt does not hold:", "31");
                output::line(&format!("{said} {error}"));
            }
            Ok(Answer::No)
        }
    }
}

/// `conclave ledger checkpoint`
///
/// # Errors
/// When there is none.
pub(super) fn checkpoint(source: &LedgerSource, as_json: bool) -> anyhow::Result<Answer> {
    let note = match find_ledger(source)? {
        LedgerPlace::Data { dir, database } => {
            let reader = open_reader(&dir, database.as_deref())?;
            reader.checkpoint().ok_or_else(|| anyhow!("no checkpoint was signed yet"))?.to_owned()
        }
        LedgerPlace::Tiled(log) => log.text("checkpoint")?,
    };
    let signed = SignedNote::parse(&note).context("what stands there is no checkpoint")?;
    let checkpoint = Checkpoint::parse(signed.text())?;
    if as_json {
        output::json(&json!({
            "origin": checkpoint.origin, "size": checkpoint.size,
            "root": hex::encode(checkpoint.root), "note": note,
        }));
    } else {
        output::line(note.trim_end_matches('\n'));
    }
    Ok(Answer::Yes)
}

/// `conclave ledger vkey`
///
/// # Errors
/// When the keys cannot be read.
pub(super) fn vkey(source: &LedgerSource, as_json: bool) -> anyhow::Result<Answer> {
    let keys = match find_ledger(source)? {
        LedgerPlace::Data { dir, database } => open_reader(&dir, database.as_deref())?.vkeys()?,
        LedgerPlace::Tiled(log) => log.vkeys()?,
    };
    let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
    if as_json {
        output::json(&json!({"in_force": keys.first(), "all": keys}));
    } else {
        keys.iter().for_each(|key| output::line(key));
    }
    Ok(Answer::Yes)
}
