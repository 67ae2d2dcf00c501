//! The tree's tiles in the database: written with the entries, read for proofs.
//!
//! **Invariant:** a tile of level 0 is stored when it is full and never touched again; what is not
//! full yet are the hashes of the last entries. Tiles above grow in place, so that no proof has to
//! hash thousands of nodes.

use super::columns::column;
use conclave_ledger::{
    BundleError, Hash, TILE_WIDTH, TileEdge, TileId, TileSource, decode_hashes, encode_hashes,
    write_bundle,
};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use std::collections::BTreeSet;
use thiserror::Error;

/// The levels a log of 64-bit size can have.
const LEVELS: u8 = 8;

/// Collects the tiles that change while entries are added.
#[derive(Debug, Default)]
pub(crate) struct TileWriter {
    full: Vec<(TileId, Vec<u8>)>,
    grown: BTreeSet<u8>,
}

impl TileWriter {
    /// Adds a leaf to the edge and remembers what became full by it.
    pub(crate) fn append(&mut self, edge: &mut TileEdge, leaf_hash: Hash) {
        let (full, grown) = (&mut self.full, &mut self.grown);
        edge.append(leaf_hash, |id, hashes| {
            full.push((id, encode_hashes(hashes)));
            grown.insert(id.level + 1);
        });
    }

    /// Writes what changed.
    pub(crate) fn write(&mut self, conn: &Connection, edge: &TileEdge) -> rusqlite::Result<()> {
        let sql = "INSERT INTO log_tile VALUES (?1, ?2, ?3)
                   ON CONFLICT (level, idx) DO UPDATE SET hashes = ?3";
        let mut put = conn.prepare_cached(sql)?;
        for (id, hashes) in self.full.drain(..) {
            put.execute(params![id.level, column(id.index), hashes])?;
        }
        for level in std::mem::take(&mut self.grown) {
            let hashes = edge.level(level.into());
            if let Some(id) = edge_tile(level, edge.size()).filter(|_| !hashes.is_empty()) {
                put.execute(params![level, column(id.index), encode_hashes(hashes)])?;
            }
        }
        Ok(())
    }
}

/// The last tile of a level if it is not full.
fn edge_tile(level: u8, size: u64) -> Option<TileId> {
    let hashes = size.checked_shr(u32::from(level) * 8)?;
    TileId::in_tree(level, hashes / TILE_WIDTH, size)
}

/// The edge of a log of this size; `None` when the stored tiles do not fit it.
pub(super) fn load_edge(conn: &Connection, size: u64) -> rusqlite::Result<Option<TileEdge>> {
    let mut levels = Vec::new();
    let mut source = SqlTiles(conn);
    for level in 0..LEVELS {
        if size.checked_shr(u32::from(level) * 8).unwrap_or(0) == 0 {
            break;
        }
        levels.push(match edge_tile(level, size) {
            Some(id) => match source.tile(id) {
                Ok(hashes) => hashes,
                Err(TileTrouble::Database(error)) => return Err(error),
                Err(TileTrouble::Missing(_)) => return Ok(None),
            },
            None => Vec::new(),
        });
    }
    Ok(TileEdge::new(size, levels))
}

/// Gives a log that was written before there were tiles its tiles, from the stored leaf hashes, all
/// in one transaction.
pub(crate) fn ensure(conn: &mut Connection) -> rusqlite::Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let size: Option<i64> =
        tx.query_row("SELECT size FROM log_head", [], |row| row.get(0)).optional()?;
    let size = size.unwrap_or(0);
    let tiles: i64 =
        tx.query_row("SELECT count(*) FROM (SELECT 1 FROM log_tile LIMIT 1)", [], |row| {
            row.get(0)
        })?;
    if tiles > 0 || size < column(TILE_WIDTH) {
        return Ok(());
    }
    tracing::info!(entries = size, "the ledger gets its tiles; this happens once");
    let (mut edge, mut writer) = (TileEdge::default(), TileWriter::default());
    {
        let mut rows = tx.prepare("SELECT leaf_hash FROM log_entry ORDER BY seq")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            writer.append(&mut edge, row.get(0)?);
            if writer.full.len() > 64 {
                writer.write(&tx, &edge)?;
            }
        }
    }
    writer.write(&tx, &edge)?;
    tx.commit()
}

/// Why a tile could not be given.
#[derive(Debug, Error)]
pub(crate) enum TileTrouble {
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
    #[error("the tile {0} is missing or cut off")]
    Missing(String),
}

/// Reads tiles through a connection, within whatever transaction it has.
pub(crate) struct SqlTiles<'a>(pub(crate) &'a Connection);

impl TileSource for SqlTiles<'_> {
    type Error = TileTrouble;

    fn tile(&mut self, id: TileId) -> Result<Vec<Hash>, TileTrouble> {
        let sql = "SELECT CASE WHEN octet_length(hashes) <= 8192 THEN hashes END FROM log_tile
                   WHERE level = ?1 AND idx = ?2";
        let mut stored = self.0.prepare_cached(sql)?;
        let stored = stored
            .query_row(params![id.level, column(id.index)], |row| row.get::<_, Option<Vec<u8>>>(0));
        let stored = stored.optional()?.flatten().and_then(|bytes| decode_hashes(&bytes));
        let mut hashes = match stored {
            Some(hashes) => hashes,
            None if id.level == 0 => self.leaf_hashes(id)?,
            None => Vec::new(),
        };
        let width = usize::from(id.width);
        if hashes.len() < width {
            return Err(TileTrouble::Missing(id.path()));
        }
        hashes.truncate(width);
        Ok(hashes)
    }
}

impl SqlTiles<'_> {
    fn leaf_hashes(&self, id: TileId) -> rusqlite::Result<Vec<Hash>> {
        let first = column(id.index.saturating_mul(TILE_WIDTH));
        let sql = "SELECT leaf_hash FROM log_entry WHERE seq >= ?1 AND seq < ?2 ORDER BY seq";
        let mut rows = self.0.prepare_cached(sql)?;
        let end = first.saturating_add(i64::from(id.width));
        rows.query_map(params![first, end], |row| row.get(0))?.collect()
    }
}

/// The leaves of a bundle; `None` when they are not all there.
pub(crate) fn read_bundle(
    conn: &Connection,
    index: u64,
    width: u16,
) -> rusqlite::Result<Option<Result<Vec<u8>, BundleError>>> {
    let first = column(index.saturating_mul(TILE_WIDTH));
    let sql = "SELECT leaf FROM log_entry WHERE seq >= ?1 AND seq < ?2 ORDER BY seq";
    let mut rows = conn.prepare_cached(sql)?;
    let mut rows = rows.query(params![first, first.saturating_add(width.into())])?;
    let (mut bundle, mut found) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let leaf = row.get_ref(0)?.as_blob()?;
        if let Err(error) = write_bundle(&mut bundle, leaf) {
            return Ok(Some(Err(error)));
        }
        found += 1;
    }
    Ok((found == width).then_some(Ok(bundle)))
}
