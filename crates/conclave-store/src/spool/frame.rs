//! One entry as it stands in a spool segment.
//!
//! **Invariant:** a frame is recognised only by two checksums that begin with the secret of its
//! segment (a part of the file's name). Somebody who gets bytes of their choice into a transcript
//! can therefore not forge a frame that a search through a damaged segment would take for a real
//! one.

use conclave_ledger::EntryId;
use crc32c::crc32c_append;

/// How a frame begins.
pub(crate) const MAGIC: [u8; 4] = *b"CLF1";
/// Magic, length, checksum of the head, id and time.
pub(crate) const HEAD_BYTES: usize = 40;
/// The checksum of the payload.
const TAIL_BYTES: usize = 4;
/// Everything of a frame but leaf and body.
pub(crate) const OVERHEAD_BYTES: usize = HEAD_BYTES + 4 + TAIL_BYTES;

/// The secret a segment's checksums begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seed(pub(crate) u64);

impl Seed {
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are used apart")]
    fn head_sum(self, magic_and_length: &[u8], id_and_time: &[u8]) -> u32 {
        crc32c_append(crc32c_append(self.0 as u32, magic_and_length), id_and_time)
    }

    fn payload_sum(self, head_sum: u32, payload: &[u8]) -> u32 {
        crc32c_append((self.0 >> 32) as u32 ^ head_sum, payload)
    }
}

/// What the head of a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) id: EntryId,
    pub(crate) ts_ms: u64,
    payload: usize,
    sum: u32,
}

/// A frame that was read and found whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) id: EntryId,
    pub(crate) ts_ms: u64,
    pub(crate) leaf: &'a [u8],
    pub(crate) body: &'a [u8],
}

/// Appends one frame; `write_leaf` appends the leaf's bytes. Returns where the leaf stands in
/// `out`.
pub(crate) fn write_frame(
    out: &mut Vec<u8>,
    seed: Seed,
    (id, ts_ms): (EntryId, u64),
    write_leaf: impl FnOnce(&mut Vec<u8>),
    body: &[u8],
) -> std::ops::Range<usize> {
    let begin = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES + 4]);
    let leaf_begin = out.len();
    write_leaf(out);
    let leaf = leaf_begin..out.len();
    out.extend_from_slice(body);
    let payload_begin = begin + HEAD_BYTES;
    put_u32(out, payload_begin, leaf.len());
    let length = out.len() - payload_begin;
    out[begin..begin + 4].copy_from_slice(&MAGIC);
    put_u32(out, begin + 4, length);
    out[begin + 12..begin + 32].copy_from_slice(&id.to_bytes());
    out[begin + 32..begin + 40].copy_from_slice(&ts_ms.to_be_bytes());
    let sum = seed.head_sum(&out[begin..begin + 8], &out[begin + 12..payload_begin]);
    out[begin + 8..begin + 12].copy_from_slice(&sum.to_be_bytes());
    let payload_sum = seed.payload_sum(sum, &out[payload_begin..]);
    out.extend_from_slice(&payload_sum.to_be_bytes());
    leaf
}

/// Entries are far smaller than 4 GiB; one that is not is refused before it comes here.
fn put_u32(out: &mut [u8], at: usize, number: usize) {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    out[at..at + 4].copy_from_slice(&number.to_be_bytes());
}

impl Head {
    /// Reads the head of a frame; `None` if these bytes are none.
    pub(crate) fn read(bytes: &[u8], seed: Seed) -> Option<Self> {
        let bytes: &[u8; HEAD_BYTES] = bytes.first_chunk()?;
        let sum = u32::from_be_bytes(bytes[8..12].try_into().ok()?);
        if bytes[..4] != MAGIC || seed.head_sum(&bytes[..8], &bytes[12..]) != sum {
            return None;
        }
        Some(Self {
            id: EntryId::from_bytes(bytes[12..32].try_into().ok()?),
            ts_ms: u64::from_be_bytes(bytes[32..].try_into().ok()?),
            payload: u32::from_be_bytes(bytes[4..8].try_into().ok()?) as usize,
            sum,
        })
    }

    /// How many bytes the whole frame has.
    pub(crate) const fn frame_bytes(&self) -> usize {
        HEAD_BYTES + self.payload + TAIL_BYTES
    }

    /// Whether the frame that begins with this head is complete and unchanged.
    pub(crate) fn is_whole(&self, bytes: &[u8], seed: Seed) -> bool {
        let rest = bytes.get(HEAD_BYTES..self.frame_bytes()).unwrap_or_default();
        let Some((payload, sum)) = rest.split_last_chunk::<TAIL_BYTES>() else { return false };
        seed.payload_sum(self.sum, payload) == u32::from_be_bytes(*sum)
            && self.split(bytes).is_some()
    }

    /// The parts of a whole frame.
    pub(crate) fn split<'a>(&self, bytes: &'a [u8]) -> Option<Frame<'a>> {
        let payload = bytes.get(HEAD_BYTES..HEAD_BYTES + self.payload)?;
        let (length, texts) = payload.split_first_chunk::<4>()?;
        let (leaf, body) = texts.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        Some(Frame { id: self.id, ts_ms: self.ts_ms, leaf, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: Seed = Seed(0x1234_5678_9abc_def0);

    fn id(n: u64) -> EntryId {
        EntryId { replica: [1; 8], epoch: 1, n }
    }

    fn frame() -> Vec<u8> {
        let mut out = b"before".to_vec();
        let write = |out: &mut Vec<u8>| out.extend_from_slice(b"the leaf");
        let leaf = write_frame(&mut out, SEED, (id(3), 99), write, b"the body");
        assert_eq!(&out[leaf], b"the leaf");
        out.split_off(6)
    }

    fn read(bytes: &[u8], seed: Seed) -> Option<Frame<'_>> {
        let head = Head::read(bytes, seed)?;
        head.is_whole(bytes, seed).then(|| head.split(bytes))?
    }

    #[test]
    fn a_frame_reads_back() {
        let bytes = frame();
        assert_eq!(bytes.len(), OVERHEAD_BYTES + 16);
        let expected = Frame { id: id(3), ts_ms: 99, leaf: b"the leaf", body: b"the body" };
        assert_eq!(read(&bytes, SEED), Some(expected));
    }

    #[test]
    fn no_cut_or_changed_frame_is_taken() {
        let bytes = frame();
        for cut in 0..bytes.len() {
            assert_eq!(read(&bytes[..cut], SEED), None, "cut at {cut}");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                assert_eq!(read(&changed, SEED), None, "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn a_frame_of_another_segment_is_not_taken() {
        for other in [Seed(0), Seed(SEED.0 ^ 1), Seed(SEED.0 ^ (1 << 40))] {
            assert_eq!(read(&frame(), other), None);
        }
    }
}
