//! A log as files in the layout of C2SP tlog-tiles, on disk or behind a URL.

use super::audit::Source;
use super::handover::each_leaf;
use crate::cli::gateway::GatewayArgs;
use crate::commands::gateway::{GatewayAnswer, GatewayClient};
use anyhow::{Context, anyhow, bail};
use conclave_core::AuditId;
use conclave_ledger::{
    Checkpoint, Hash, Kind, Leaf, Receipt, TileId, VerifierKey, bundle_path, decode_hashes,
    prove_inclusion,
};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A bundle of the largest leaves there can be, and their bodies' lengths.
const FILE_BYTES_MAX: usize = 256 * (65_535 + 2);
/// Bodies are words: as much as a segment of the spool for each of 256 entries is never there at
/// once, but a hostile file must end somewhere.
const BODIES_BYTES_MAX: usize = 1 << 30;
/// How long one file may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Gives the files of a log.
pub(super) trait TiledLog {
    /// The file at a path; `None` when there is none.
    fn file(&self, path: &str, bytes_max: usize) -> anyhow::Result<Option<Vec<u8>>>;
    /// Whether leaves are to be had, or only their hashes.
    fn has_leaves(&self) -> bool;
    /// Whether bodies are to be had.
    fn has_bodies(&self) -> bool;
    /// What to say when a file that every log has is not there.
    fn missing(&self, path: &str) -> anyhow::Error;
    /// The receipt of a decision, where the log has a way to find it.
    fn receipt(&self, id: &str) -> anyhow::Result<Option<String>>;

    /// A file of text.
    fn text(&self, path: &str) -> anyhow::Result<String> {
        let bytes = self.file(path, FILE_BYTES_MAX)?.ok_or_else(|| self.missing(path))?;
        String::from_utf8(bytes).map_err(|_| anyhow!("{path} is not text"))
    }

    /// Every key the log says it has, the one in force first.
    fn vkeys(&self) -> anyhow::Result<Vec<VerifierKey>> {
        let text = self.text("vkey")?;
        let keys = text.lines().map(VerifierKey::parse).collect::<Result<Vec<_>, _>>();
        keys.context("the file vkey")
    }

    /// The hashes of a tile; `None` when it is not there or not a tile of this width.
    fn tile(&self, id: TileId) -> anyhow::Result<Option<Vec<Hash>>> {
        let bytes = self.file(&format!("tile/{}", id.path()), 8_192)?;
        let hashes = bytes.and_then(|bytes| decode_hashes(&bytes));
        Ok(hashes.filter(|hashes| hashes.len() == usize::from(id.width)))
    }

    /// The leaves of a bundle as they are stored.
    fn bundle(&self, index: u64, width: u16) -> anyhow::Result<Option<Vec<u8>>> {
        self.file(&format!("tile/entries/{}", bundle_path(index, width)), FILE_BYTES_MAX)
    }

    /// The bodies of a bundle as they are stored.
    fn bodies(&self, index: u64, width: u16) -> anyhow::Result<Option<Vec<u8>>> {
        self.file(&format!("bodies/{}", bundle_path(index, width)), BODIES_BYTES_MAX)
    }
}

/// A directory that `ledger export` wrote.
pub(super) struct DirLog {
    dir: PathBuf,
}

impl DirLog {
    /// Opens the directory.
    ///
    /// # Errors
    /// When there is no checkpoint in it.
    pub(super) fn open(dir: &Path) -> anyhow::Result<Self> {
        if !dir.join("checkpoint").is_file() {
            bail!("{} is not an export: it has no checkpoint", dir.display());
        }
        Ok(Self { dir: dir.to_owned() })
    }
}

impl TiledLog for DirLog {
    fn file(&self, path: &str, bytes_max: usize) -> anyhow::Result<Option<Vec<u8>>> {
        let place = self.dir.join(path);
        let file = match std::fs::File::open(&place) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| place.display().to_string()),
        };
        let mut bytes = Vec::new();
        let read = file.take(bytes_max as u64 + 1).read_to_end(&mut bytes);
        read.with_context(|| place.display().to_string())?;
        // A file that is too large cannot be the right one, and neither can what is left of it.
        Ok((bytes.len() <= bytes_max).then_some(bytes))
    }

    fn has_leaves(&self) -> bool {
        true
    }

    fn has_bodies(&self) -> bool {
        self.dir.join("bodies").is_dir()
    }

    fn missing(&self, path: &str) -> anyhow::Error {
        anyhow!("there is no {path} in {}", self.dir.display())
    }

    /// Made here from the entries and tiles of the export.
    fn receipt(&self, id: &str) -> anyhow::Result<Option<String>> {
        let audit = AuditId::parse(id).ok_or_else(|| anyhow!("`{id}` is not an audit id"))?;
        let note = self.text("checkpoint")?;
        let vkeys = self.vkeys()?;
        let checkpoint = Checkpoint::open(&note, &vkeys).context("the checkpoint")?;
        let wanted = Some(audit.0.into_bytes());
        let mut found = None;
        each_leaf(self, checkpoint.size, &mut |seq, leaf| {
            let is_it = Leaf::decode(leaf)
                .is_ok_and(|leaf| leaf.draft.kind == Kind::Decision && leaf.draft.audit == wanted);
            if is_it {
                found = Some((seq, leaf.to_vec()));
            }
            found.is_none()
        })?;
        let Some((index, leaf)) = found else { return Ok(None) };
        let proof = prove_inclusion(&mut Source(self), index, checkpoint.size);
        let proof = proof.map_err(|error| anyhow!("the tiles: {error}"))?;
        let vkey = vkeys.first().map(ToString::to_string).unwrap_or_default();
        let receipt = Receipt { leaf, index, proof, checkpoint: note, vkey };
        Ok(Some(receipt.to_json()?.to_string()))
    }
}

/// A running gateway.
pub(super) struct UrlLog(GatewayClient);

impl UrlLog {
    /// Prepares to ask a gateway.
    ///
    /// # Errors
    /// When the URL cannot be used.
    pub(super) fn open(gateway: &GatewayArgs) -> anyhow::Result<Self> {
        GatewayClient::new(gateway, PATIENCE).map(Self)
    }
}

impl TiledLog for UrlLog {
    fn file(&self, path: &str, bytes_max: usize) -> anyhow::Result<Option<Vec<u8>>> {
        let answer = self.0.fetch(&format!("ledger/{path}"), bytes_max)?;
        match answer.status {
            200 => Ok(Some(answer.body)),
            404 => Ok(None),
            401 | 403 => {
                let advice = format!(
                    "the key does not open /ledger/{path}; that of an auditor of the house does, and `conclave ledger \
                     entries` shows a tenant its own"
                );
                Err(answer.to_error_because(&advice))
            }
            _ => Err(answer.to_error()),
        }
    }

    fn has_leaves(&self) -> bool {
        self.0.has_key()
    }

    fn has_bodies(&self) -> bool {
        false
    }

    fn missing(&self, path: &str) -> anyhow::Error {
        GatewayAnswer::not_found().to_error_because(&format!("there is no /ledger/{path}"))
    }

    fn receipt(&self, id: &str) -> anyhow::Result<Option<String>> {
        if !id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
            bail!("`{id}` is not an audit id");
        }
        let answer = self.0.fetch(&format!("v1/decisions/{id}/receipt"), FILE_BYTES_MAX)?;
        match answer.status {
            200 => Ok(Some(String::from_utf8(answer.body).context("the receipt")?)),
            202 => bail!("no checkpoint covers the decision yet; ask again in a second"),
            404 => Ok(None),
            401 | 403 => {
                let advice = "the receipt needs a key of the decision's tenant: --key";
                Err(answer.to_error_because(advice))
            }
            _ => Err(answer.to_error()),
        }
    }
}
