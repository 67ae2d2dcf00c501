//! One entry of the log: what is known before it is written, and its exact bytes afterwards.
//!
//! **Invariant:** a leaf holds no free text, no user id, no address: what may be kept for ever.
//! Texts stand in the body beside it, and the leaf only commits to them.
//!
//! **Invariant:** a leaf has fourteen keys in a fixed order, absent values are null, and decoding
//! refuses everything else. Bytes that decode encode to themselves.

use crate::cbor::{CborError, Reader, Value, Writer};
use sha2::{Digest, Sha256};
use std::fmt;
use thiserror::Error;

/// The version of the form; a change of meaning needs another number.
const VERSION: u64 = 1;
/// How many keys a leaf has.
const KEYS: usize = 14;
/// The longest leaf: what the entry bundles of the log can hold.
pub const LEAF_BYTES_MAX: usize = 65_535;
/// The longest name of a kind, field or build.
const NAME_BYTES_MAX: usize = 128;

/// Who wrote an entry, and as which of theirs: contiguous within a replica and epoch, so that a
/// missing one shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId {
    /// The installation that wrote it.
    pub replica: [u8; 8],
    /// Counts how often that installation lost its state.
    pub epoch: u32,
    /// From 1, without holes.
    pub n: u64,
}

impl EntryId {
    /// The twenty bytes, in an order that sorts like the id.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&self.replica);
        bytes[8..12].copy_from_slice(&self.epoch.to_be_bytes());
        bytes[12..].copy_from_slice(&self.n.to_be_bytes());
        bytes
    }

    /// Reads the twenty bytes back.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 20]) -> Self {
        let (mut replica, mut epoch, mut n) = ([0; 8], [0; 4], [0; 8]);
        replica.copy_from_slice(&bytes[..8]);
        epoch.copy_from_slice(&bytes[8..12]);
        n.copy_from_slice(&bytes[12..]);
        Self { replica, epoch: u32::from_be_bytes(epoch), n: u64::from_be_bytes(n) }
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// What an entry tells. Names are stable; kinds of later versions are kept as they are.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[$doc])* $name,)*
            /// A kind this version does not know.
            Other(String),
        }

        impl Kind {
            /// The stable name in the log.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => $text,)*
                    Self::Other(name) => name,
                }
            }

            /// The kind with this name; never fails, because the log may be younger than the
            /// reader.
            #[must_use]
            pub fn parse(name: &str) -> Self {
                match name {
                    $($text => Self::$name,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }
    };
}

kinds! {
    /// The log begins.
    Genesis = "genesis",
    /// Everything that was judged of one turn.
    Decision = "decision",
    /// A part of a reply that left before the decision, see the decision's `windows`.
    Window = "window",
    /// What left of a decision, and how.
    Delivery = "delivery",
    /// Requests refused before they became a turn, counted.
    RequestRefused = "request.refused",
    /// A turn that began and never came to a decision.
    RequestAbandoned = "request.abandoned",
    /// Somebody with rights used them.
    AdminAction = "admin.action",
    /// A policy came into force.
    PolicySet = "policy.set",
    /// Entries that are known to be missing, see [`crate::Gap`].
    CoverageGap = "coverage.gap",
    /// An API key was made or withdrawn.
    KeyChange = "key.change",
    /// The log's signing key was handed over, see [`crate::Rotation`].
    KeyRotate = "key.rotate",
    /// The store behind the spool stopped answering.
    StoreDown = "store.down",
    /// The store answers again.
    StoreUp = "store.up",
    /// An operator accepted a database that came back older than it had been.
    Restore = "restore",
    /// The words of a person were erased, see [`crate::Erasure`].
    SubjectErase = "subject.erase",
    /// Words that were due were deleted, see [`crate::Purge`].
    RetentionPurge = "retention.purge",
    /// The keys that wrap the keys of people were replaced.
    KeyEpoch = "key.epoch",
    /// A tenant, or what it consists of, was changed.
    TenantChange = "tenant.change",
    /// Somebody agreed to something, or took it back.
    ConsentChange = "consent.change",
    /// A community changed what it says about its knowledge.
    ProtocolChange = "protocol.change",
    /// Something waits for a person, or a person decided it.
    ReviewChange = "review.change",
    /// A person disagreed with a decision, or somebody ruled on it.
    AppealChange = "appeal.change",
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a leaf says about one field of its body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Commitment {
    /// The field's name.
    pub field: String,
    /// SHA-256 of salt and plaintext: binds the meaning.
    pub plain: [u8; 32],
    /// SHA-256 of the stored bytes: can be checked by who may not read them.
    pub blob: [u8; 32],
    /// Length of the plaintext in bytes.
    pub len: u64,
}

/// An entry before it has a place: no id, time or commitments yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Draft {
    /// What it tells.
    pub kind: Kind,
    /// The decision it belongs to.
    pub audit: Option<[u8; 16]>,
    /// Whose, see [`tenant_number`].
    pub tenant: u64,
    /// The person's random pseudonym.
    pub subject: Option<[u8; 16]>,
    /// The conversation's random pseudonym.
    pub session: Option<[u8; 16]>,
    /// The entry it follows from.
    pub parent: Option<EntryId>,
    /// Digest of the policy in force.
    pub policy: [u8; 32],
    /// Digest of the directives in force.
    pub directives: [u8; 32],
    /// Which program wrote it.
    pub build: String,
    /// What may be kept for ever.
    pub public: Value,
}

impl Draft {
    /// A draft that says only what it is and in whose name; the rest is empty.
    #[must_use]
    pub fn new(kind: Kind, tenant: u64) -> Self {
        Self {
            kind,
            audit: None,
            tenant,
            subject: None,
            session: None,
            parent: None,
            policy: [0; 32],
            directives: [0; 32],
            build: String::new(),
            public: Value::empty_map(),
        }
    }

    /// Checks what decoding would refuse, before the entry becomes part of the log.
    ///
    /// # Errors
    /// When a name is too long or the public part is nested too deeply.
    pub fn check(&self) -> Result<(), LeafError> {
        check_name(self.kind.as_str(), "kind")?;
        check_length(&self.build, "build")?;
        if self.public.fits_below(1) { Ok(()) } else { Err(LeafError::TooDeep) }
    }

    /// How long the leaf made of this and these commitments is at most, whatever number and time it
    /// gets.
    ///
    /// # Errors
    /// When it would not fit into an entry bundle.
    pub fn check_length(&self, commitments: &[Commitment]) -> Result<usize, LeafError> {
        let mut longest = Vec::with_capacity(1_024);
        let id = EntryId { replica: [0; 8], epoch: u32::MAX, n: u64::MAX };
        Leaf::write(&mut longest, id, u64::MAX, self, commitments);
        let length = longest.len();
        if length <= LEAF_BYTES_MAX { Ok(length) } else { Err(LeafError::TooLong(length)) }
    }
}

/// One entry, complete.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leaf {
    /// Its id within the replica.
    pub id: EntryId,
    /// When, in milliseconds since the Unix epoch; a claim, the order of the log is the truth.
    pub ts_ms: u64,
    /// What it says.
    pub draft: Draft,
    /// What it commits to.
    pub commitments: Vec<Commitment>,
}

/// Why bytes are not a leaf, or a draft cannot become one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LeafError {
    /// Not our encoding.
    #[error(transparent)]
    Encoding(#[from] CborError),
    /// Another version of the form.
    #[error("leaf version {0} is not known to this program")]
    Version(u64),
    /// Another number of keys.
    #[error("a leaf has {KEYS} keys, not {0}")]
    Keys(usize),
    /// A name that is empty or too long.
    #[error("the {0} is empty or longer than {NAME_BYTES_MAX} bytes")]
    Name(&'static str),
    /// The public part would not decode.
    #[error("the public part is nested too deeply")]
    TooDeep,
    /// Numbers start at 1.
    #[error("the entry number is 0")]
    Unnumbered,
    /// No entry bundle can hold it.
    #[error("the leaf has {0} bytes, at most {LEAF_BYTES_MAX} are possible")]
    TooLong(usize),
}

impl Leaf {
    /// The exact bytes of the log.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        Self::write(&mut out, self.id, self.ts_ms, &self.draft, &self.commitments);
        out
    }

    /// Appends the bytes of a leaf made of these parts, without putting it together first.
    pub fn write(
        out: &mut Vec<u8>,
        id: EntryId,
        ts_ms: u64,
        draft: &Draft,
        commitments: &[Commitment],
    ) {
        let mut w = Writer::new(out);
        w.map(KEYS);
        w.text("v");
        w.uint(VERSION);
        w.text("id");
        w.bytes(&id.to_bytes());
        w.text("ts");
        w.uint(ts_ms);
        w.text("aud");
        w.bytes_or_null(draft.audit.as_ref().map(<[u8; 16]>::as_slice));
        w.text("bld");
        w.text(&draft.build);
        w.text("com");
        write_commitments(&mut w, commitments);
        w.text("fil");
        w.bytes(&draft.directives);
        w.text("par");
        let parent = draft.parent.map(EntryId::to_bytes);
        w.bytes_or_null(parent.as_ref().map(<[u8; 20]>::as_slice));
        w.text("pol");
        w.bytes(&draft.policy);
        w.text("pub");
        w.value(&draft.public);
        w.text("ses");
        w.bytes_or_null(draft.session.as_ref().map(<[u8; 16]>::as_slice));
        w.text("sub");
        w.bytes_or_null(draft.subject.as_ref().map(<[u8; 16]>::as_slice));
        w.text("ten");
        w.uint(draft.tenant);
        w.text("kind");
        w.text(draft.kind.as_str());
    }

    /// Reads a leaf back.
    ///
    /// # Errors
    /// When the bytes are not exactly what [`Leaf::encode`] makes.
    pub fn decode(bytes: &[u8]) -> Result<Self, LeafError> {
        let mut r = Reader::new(bytes);
        let keys = r.map()?;
        if keys != KEYS {
            return Err(LeafError::Keys(keys));
        }
        let version = field(&mut r, "v", Reader::uint)?;
        if version != VERSION {
            return Err(LeafError::Version(version));
        }
        let leaf = Self::decode_fields(&mut r)?;
        r.end()?;
        Ok(leaf)
    }

    fn decode_fields(r: &mut Reader<'_>) -> Result<Self, LeafError> {
        let id = EntryId::from_bytes(field(r, "id", Reader::array_of)?);
        if id.n == 0 {
            return Err(LeafError::Unnumbered);
        }
        let ts_ms = field(r, "ts", Reader::uint)?;
        let audit = field(r, "aud", Reader::array_or_null)?;
        let build = field(r, "bld", Reader::text)?;
        check_length(build, "build")?;
        r.key("com")?;
        let commitments = read_commitments(r)?;
        let directives = field(r, "fil", Reader::array_of)?;
        let parent = field(r, "par", Reader::array_or_null)?.map(EntryId::from_bytes);
        let policy = field(r, "pol", Reader::array_of)?;
        let public = field(r, "pub", |r| r.value_at(1))?;
        let session = field(r, "ses", Reader::array_or_null)?;
        let subject = field(r, "sub", Reader::array_or_null)?;
        let tenant = field(r, "ten", Reader::uint)?;
        let kind = field(r, "kind", Reader::text)?;
        check_name(kind, "kind")?;
        let (kind, build) = (Kind::parse(kind), build.to_owned());
        let draft = Draft {
            kind,
            audit,
            tenant,
            subject,
            session,
            parent,
            policy,
            directives,
            build,
            public,
        };
        Ok(Self { id, ts_ms, draft, commitments })
    }
}

fn field<'a, T>(
    r: &mut Reader<'a>,
    key: &'static str,
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, CborError>,
) -> Result<T, CborError> {
    r.key(key)?;
    read(r)
}

fn write_commitments(w: &mut Writer<'_>, commitments: &[Commitment]) {
    w.array(commitments.len());
    for commitment in commitments {
        w.map(4);
        w.text("b");
        w.bytes(&commitment.blob);
        w.text("c");
        w.bytes(&commitment.plain);
        w.text("f");
        w.text(&commitment.field);
        w.text("len");
        w.uint(commitment.len);
    }
}

fn read_commitments(r: &mut Reader<'_>) -> Result<Vec<Commitment>, LeafError> {
    let count = r.array()?;
    let mut commitments = Vec::new();
    for _ in 0..count {
        let at = r.offset();
        if r.map()? != 4 {
            return Err(CborError::Unexpected { at, expected: "a commitment" }.into());
        }
        let blob = field(r, "b", Reader::array_of)?;
        let plain = field(r, "c", Reader::array_of)?;
        let name = field(r, "f", Reader::text)?;
        check_name(name, "field")?;
        let len = field(r, "len", Reader::uint)?;
        commitments.push(Commitment { field: name.to_owned(), plain, blob, len });
    }
    Ok(commitments)
}

fn check_name(name: &str, what: &'static str) -> Result<(), LeafError> {
    if name.is_empty() { Err(LeafError::Name(what)) } else { check_length(name, what) }
}

const fn check_length(name: &str, what: &'static str) -> Result<(), LeafError> {
    if name.len() <= NAME_BYTES_MAX { Ok(()) } else { Err(LeafError::Name(what)) }
}

/// SHA-256 of parts, one after another.
#[must_use]
pub fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// The hash of a leaf in the tree (RFC 6962).
#[must_use]
pub fn leaf_hash(leaf: &[u8]) -> [u8; 32] {
    sha256(&[&[0], leaf])
}

/// The number a tenant has in the log: its name is not in there. Fits a signed 64-bit column.
#[must_use]
pub fn tenant_number(name: &str) -> u64 {
    let digest = sha256(&[b"conclave.tenant.v1\0", name.as_bytes()]);
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first) & (u64::MAX >> 1)
}

#[cfg(test)]
#[path = "leaf_tests.rs"]
mod tests;
