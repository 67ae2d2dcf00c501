//! Makes every tile again from the leaves and compares it with the stored one.

use conclave_ledger::{Hash, TILE_WIDTH, TileEdge, TileId, encode_hashes};
use rusqlite::{Connection, OptionalExtension, params};

/// Follows the log and remembers the first tile that is not what the entries say.
pub(super) struct TileCheck<'a> {
    /// Absent where the database is older than tiles.
    conn: Option<&'a Connection>,
    edge: TileEdge,
    compared: u64,
    finding: Option<(u64, String)>,
}

impl<'a> TileCheck<'a> {
    pub(super) fn new(conn: Option<&'a Connection>) -> Self {
        Self { conn, edge: TileEdge::default(), compared: 0, finding: None }
    }

    /// Takes the next leaf hash.
    pub(super) fn follow(&mut self, hash: Hash) {
        let Some(conn) = self.conn else { return };
        let (compared, finding) = (&mut self.compared, &mut self.finding);
        self.edge.append(hash, |id, hashes| {
            *compared += 1;
            compare(conn, id, hashes, finding);
        });
    }

    /// Compares what is not full and counts what should not be there; the first finding with the
    /// entry it begins at.
    pub(super) fn finish(mut self) -> Option<(u64, String)> {
        let conn = self.conn?;
        let size = self.edge.size();
        for level in 1..self.edge.levels() {
            let place = u8::try_from(level).unwrap_or(u8::MAX);
            let hashes = self.edge.level(level);
            let index = size.checked_shr(u32::from(place) * 8).unwrap_or(0) / TILE_WIDTH;
            if let Some(id) = TileId::in_tree(place, index, size) {
                self.compared += 1;
                compare(conn, id, hashes, &mut self.finding);
            }
        }
        let count = "SELECT count(*) FROM log_tile";
        match conn.query_row(count, [], |row| row.get::<_, i64>(0)) {
            Ok(stored) if stored.cast_unsigned() == self.compared => {}
            Ok(stored) => {
                let problem =
                    format!("{stored} tiles are stored, there should be {}", self.compared);
                self.finding.get_or_insert((size, problem));
            }
            Err(error) => {
                self.finding.get_or_insert((size, format!("log_tile cannot be read: {error}")));
            }
        }
        self.finding
    }
}

fn compare(conn: &Connection, id: TileId, hashes: &[Hash], finding: &mut Option<(u64, String)>) {
    if finding.is_some() {
        return;
    }
    let first = id.index.saturating_mul(TILE_WIDTH.saturating_pow(u32::from(id.level) + 1));
    let problem = match is_stored(conn, id, hashes) {
        Ok(true) => return,
        Ok(false) => format!("the stored tile {} is not what the entries say", id.path()),
        Err(error) => format!("the tile {} cannot be read: {error}", id.path()),
    };
    *finding = Some((first, problem));
}

fn is_stored(conn: &Connection, id: TileId, hashes: &[Hash]) -> rusqlite::Result<bool> {
    let sql = "SELECT octet_length(hashes) <= 8192 AND hashes = ?3 FROM log_tile
               WHERE level = ?1 AND idx = ?2";
    let mut rows = conn.prepare_cached(sql)?;
    let values = params![id.level, id.index.cast_signed(), encode_hashes(hashes)];
    Ok(rows.query_row(values, |row| row.get(0)).optional()?.unwrap_or(false))
}
