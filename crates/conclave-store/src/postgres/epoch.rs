//! Replacing the keys that wrap others where several replicas share them.
//!
//! **Invariant:** whoever stores or looks for a key says which rotation it believes to be in force, and
//! is refused if that is another one. So no key is stored that nobody can open, and nobody is taken
//! for a stranger, in the moment between a rotation and its being noticed.
//!
//! **Invariant:** the new root key stands in the database only wrapped by the one before it. Who has
//! today's key cannot go back from it to an older one.

use super::link::{Conn, LinkError, Param, id_in};
use crate::vault::{KeyId, NewStoredKey, Rotation, Secret, StoredKey, TenantChange};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// How many keys are wrapped anew with one statement.
const PAGE: i64 = 1_000;
/// So long the way from an old root key to the new one is kept for a replica that is away.
const HANDOVER_DAYS: i32 = 30;

/// Makes sure that a rotation is the one in force, until the transaction ends.
///
/// # Errors
/// When it is not, or the server refuses.
pub(super) fn guard(conn: &Conn, generation: i64) -> Result<(), LinkError> {
    let row = conn.row("SELECT generation FROM vault FOR SHARE", &[])?;
    row.map_or(Ok(()), |row| same(&row, generation))
}

/// Compares the rotation in the first column of a row.
pub(super) fn same(row: &Row, generation: i64) -> Result<(), LinkError> {
    if row.try_get::<_, i64>(0)? == generation { Ok(()) } else { Err(LinkError::Replaced) }
}

/// How to get from root keys of before to the one in force, oldest first.
pub(super) fn steps(conn: &Conn) -> Result<Vec<Vec<u8>>, LinkError> {
    let rows = conn.query("SELECT wrapped FROM root_handover ORDER BY generation", &[])?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Notes which root key a replica has. What nobody needs any more is deleted.
pub(super) fn note_holder(conn: &Conn, replica: [u8; 8], generation: i64) -> Result<(), LinkError> {
    let sql = "INSERT INTO root_holder VALUES ($1, $2)
               ON CONFLICT (replica) DO UPDATE SET generation = $2
               WHERE root_holder.generation <> $2";
    let values: [Param<'_>; 2] = [(&replica.as_slice(), Type::BYTEA), (&generation, Type::INT8)];
    conn.execute(sql, &values)?;
    let sql = "DELETE FROM root_handover
               WHERE made < clock_timestamp() - make_interval(days => $1)
               OR NOT EXISTS (SELECT 1 FROM root_holder h, vault v
                              WHERE h.generation < v.generation)";
    conn.execute(sql, &[(&HANDOVER_DAYS, Type::INT4)]).map(|_| ())
}

/// The replicas that still have a root key of before.
pub(super) fn behind(conn: &Conn) -> Result<Vec<[u8; 8]>, LinkError> {
    let sql = "SELECT h.replica FROM root_holder h, vault v WHERE h.generation < v.generation
               ORDER BY h.replica LIMIT 1000";
    let rows = conn.query(sql, &[])?;
    rows.iter().map(|row| id_in(row, 0, "root_holder")).collect()
}

/// Wraps every key anew, within a transaction; says how many. What waits in other data directories is
/// wrapped anew there, when they notice.
///
/// # Errors
/// When another rotation is in force, a key does not open, or the server refuses.
pub(super) fn replace(
    conn: &Conn,
    next: &Rotation<'_>,
    old: &Secret,
    (generation, lookup, now_ms): (i64, &[u8], u64),
) -> Result<u64, LinkError> {
    let row = conn.row("SELECT generation FROM vault FOR UPDATE", &[])?;
    let none = || LinkError::Told("there are no keys yet".to_owned());
    same(&row.ok_or_else(none)?, generation)?;
    let mut tenants = tenants(conn, next, old)?;
    let (mut after, mut rewrapped) = (Vec::new(), 0);
    loop {
        let page = page(conn, &after)?;
        let Some((last, _)) = page.last() else { break };
        after = last.id.to_vec();
        rewrapped += page.len() as u64;
        rewrap(conn, next, old, (&mut tenants, &page))?;
    }
    let (following, now) = (generation + 1, now_ms.cast_signed());
    let sql = "UPDATE vault SET lookup = $1, rotated_ms = $2, erased_ms = NULL, generation = $3";
    let values: [Param<'_>; 3] =
        [(&lookup, Type::BYTEA), (&now, Type::INT8), (&following, Type::INT8)];
    conn.execute(sql, &values)?;
    if let Some(step) = next.step_from(old) {
        let sql = "INSERT INTO root_handover (generation, wrapped) VALUES ($1, $2)";
        conn.execute(sql, &[(&following, Type::INT8), (&step, Type::BYTEA)])?;
    }
    Ok(rewrapped)
}

type Tenants = HashMap<u64, TenantChange>;

/// New keys for all tenants that have one.
fn tenants(conn: &Conn, next: &Rotation<'_>, old: &Secret) -> Result<Tenants, LinkError> {
    let mut tenants = Tenants::new();
    let rows = conn.query("SELECT tenant, epoch, wrapped FROM tenant_key FOR UPDATE", &[])?;
    for row in &rows {
        let (tenant, epoch): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let stored = (epoch, row.try_get(2)?);
        let change = next.tenant(old, tenant.cast_unsigned(), Some(stored));
        let change = change.map_err(LinkError::Told)?;
        let sql = "UPDATE tenant_key SET epoch = $2, wrapped = $3 WHERE tenant = $1";
        write_tenant(conn, sql, tenant, &change)?;
        tenants.insert(tenant.cast_unsigned(), change);
    }
    Ok(tenants)
}

fn write_tenant(
    conn: &Conn,
    sql: &str,
    tenant: i64,
    change: &TenantChange,
) -> Result<(), LinkError> {
    let values: [Param<'_>; 3] =
        [(&tenant, Type::INT8), (&change.epoch, Type::INT8), (&change.wrapped, Type::BYTEA)];
    conn.execute(sql, &values).map(|_| ())
}

type Page = Vec<(StoredKey, Option<Vec<u8>>)>;

fn page(conn: &Conn, after: &[u8]) -> Result<Page, LinkError> {
    let sql = "SELECT id, tenant, epoch, wrapped, name FROM subject_key WHERE id > $1
               ORDER BY id LIMIT $2 FOR UPDATE";
    let rows = conn.query(sql, &[(&after, Type::BYTEA), (&PAGE, Type::INT8)])?;
    rows.iter().map(|row| Ok((stored(row, 0)?, row.try_get(4)?))).collect()
}

/// A key as it stands in a row, from a column on.
pub(super) fn stored(row: &Row, at: usize) -> Result<StoredKey, LinkError> {
    let tenant: i64 = row.try_get(at + 1)?;
    Ok(StoredKey {
        id: key_id(row, at)?,
        tenant: tenant.cast_unsigned(),
        epoch: row.try_get(at + 2)?,
        wrapped: row.try_get(at + 3)?,
    })
}

/// The name of a key in a row.
pub(super) fn key_id(row: &Row, at: usize) -> Result<KeyId, LinkError> {
    let bytes: &[u8] = row.try_get(at)?;
    bytes.try_into().map_err(|_| LinkError::Told("a key has a name of another length".to_owned()))
}

/// Writes a page of keys under the new ones.
fn rewrap(
    conn: &Conn,
    next: &Rotation<'_>,
    old: &Secret,
    (tenants, page): (&mut Tenants, &Page),
) -> Result<(), LinkError> {
    let mut changes = Vec::with_capacity(page.len());
    for (key, name) in page {
        let tenant = match tenants.entry(key.tenant) {
            Entry::Occupied(known) => known.into_mut(),
            // First met while the database was away: its people's keys are wrapped by the root key.
            Entry::Vacant(unknown) => {
                let change = next.tenant(old, key.tenant, None).map_err(LinkError::Told)?;
                let sql = "INSERT INTO tenant_key (tenant, epoch, wrapped) VALUES ($1, $2, $3)";
                write_tenant(conn, sql, key.tenant.cast_signed(), &change)?;
                unknown.insert(change)
            }
        };
        let changed = next.person(old, tenant, key, name.as_deref()).map_err(LinkError::Told)?;
        changes.push((key.id, tenant.epoch, changed));
    }
    let ids: Vec<&[u8]> = changes.iter().map(|(id, ..)| id.as_slice()).collect();
    let epochs: Vec<i64> = changes.iter().map(|(_, epoch, _)| *epoch).collect();
    let wrapped: Vec<&[u8]> = changes.iter().map(|(.., key)| &key.wrapped[..]).collect();
    let lookups: Vec<Option<&[u8]>> =
        changes.iter().map(|(.., key)| key.lookup.as_ref().map(<[u8; 32]>::as_slice)).collect();
    let sql = "UPDATE subject_key k SET epoch = n.epoch, wrapped = n.wrapped, lookup = n.lookup
               FROM unnest($1::bytea[], $2::bigint[], $3::bytea[], $4::bytea[])
                    AS n (id, epoch, wrapped, lookup)
               WHERE k.id = n.id";
    let values: [Param<'_>; 4] = [
        (&ids, Type::BYTEA_ARRAY),
        (&epochs, Type::INT8_ARRAY),
        (&wrapped, Type::BYTEA_ARRAY),
        (&lookups, Type::BYTEA_ARRAY),
    ];
    conn.execute(sql, &values).map(|_| ())
}

/// Stores keys that waited, within a transaction in which their rotation is the one in force.
pub(super) fn take_in(
    conn: &Conn,
    (page, generation): (&[NewStoredKey], i64),
    insert: impl Fn(&Conn, &NewStoredKey) -> Result<(), LinkError>,
) -> Result<(), LinkError> {
    guard(conn, generation)?;
    page.iter().try_for_each(|new| insert(conn, new))
}
