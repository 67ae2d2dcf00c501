//! `conclave ledger export`: the log as files that anybody can check.

use super::super::Answer;
use super::super::data_directory::require_data;
use super::entry_lines::{ENTRY_LINES, entry_line};
use crate::cli::ledger::LedgerExportArgs;
use crate::output;
use anyhow::{Context, anyhow, bail};
use conclave_ledger::{TILE_WIDTH, TileId, bundle_path, encode_hashes, tiles_of};
use conclave_store::LedgerReader;
use serde_json::json;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// When the ledger cannot be read or the directory cannot be written.
pub(super) fn run(args: &LedgerExportArgs, as_json: bool) -> anyhow::Result<Answer> {
    require_data(&args.data.data)?;
    let reader = super::open_reader(&args.data.data, args.data.database.url()?.as_ref())?;
    let note = reader.checkpoint().ok_or_else(|| anyhow!("no checkpoint was signed yet"))?;
    let to = &args.to;
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    if fs::read_dir(to)?.next().is_some() {
        bail!("{} is not empty; choose a new directory", to.display());
    }
    write_tiles(&reader, to)?;
    write_rows(&reader, to, !args.without_bodies)?;
    write_checkpoints(&reader, to)?;
    let keys: String = reader.vkeys()?.iter().map(|key| format!("{key}\n")).collect();
    put(&to.join("vkey"), keys.as_bytes())?;
    // Last: a directory with a checkpoint is whole.
    put(&to.join("checkpoint"), note.as_bytes())?;
    if as_json {
        output::json(&json!({"entries": reader.size(), "directory": to, "checkpoint": note}));
    } else {
        output::line(&format!("{} entries were written to {}", reader.size(), to.display()));
    }
    Ok(Answer::Yes)
}

fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

fn write_tiles(reader: &LedgerReader, to: &Path) -> anyhow::Result<()> {
    for id in tiles_of(reader.size()) {
        let hashes = encode_hashes(&reader.tile(id)?);
        put(&to.join("tile").join(id.path()), &hashes)?;
        if id.level == 0 {
            let bundle = reader.bundle(id.index, id.width)?;
            let path = to.join("tile/entries").join(bundle_path(id.index, id.width));
            put(&path, &bundle)?;
        }
    }
    Ok(())
}

fn write_rows(reader: &LedgerReader, to: &Path, with_bodies: bool) -> anyhow::Result<()> {
    let path = to.join(ENTRY_LINES);
    let mut lines =
        BufWriter::new(File::create(&path).with_context(|| path.display().to_string())?);
    let mut bodies = Vec::new();
    let size = reader.size();
    reader.rows(|row| -> anyhow::Result<()> {
        writeln!(lines, "{}", entry_line(row.seq, row.leaf))?;
        if !with_bodies {
            return Ok(());
        }
        let body = row.body.unwrap_or(&[]);
        bodies.extend_from_slice(&u32::try_from(body.len())?.to_be_bytes());
        bodies.extend_from_slice(body);
        if (row.seq + 1).is_multiple_of(TILE_WIDTH) || row.seq + 1 == size {
            let index = row.seq / TILE_WIDTH;
            let width = TileId::in_tree(0, index, size).map_or(256, |id| id.width);
            put(&to.join("bodies").join(bundle_path(index, width)), &bodies)?;
            bodies.clear();
        }
        Ok(())
    })?;
    lines.flush().with_context(|| path.display().to_string())
}

fn write_checkpoints(reader: &LedgerReader, to: &Path) -> anyhow::Result<()> {
    let path = to.join("checkpoints.jsonl");
    let mut lines =
        BufWriter::new(File::create(&path).with_context(|| path.display().to_string())?);
    reader.checkpoints(|size, note, at_ms| -> anyhow::Result<()> {
        writeln!(lines, "{}", json!({"size": size, "at_ms": at_ms, "note": note}))?;
        Ok(())
    })?;
    lines.flush().with_context(|| path.display().to_string())
}
