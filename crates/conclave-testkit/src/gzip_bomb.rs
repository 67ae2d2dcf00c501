//! A small file that unpacks to a large one.

/// How often the bomb says "the last 258 bytes again".
const BOMB_REPEATS: u32 = 260_000;
/// How many zero bytes it unpacks to.
const BOMB_BYTES: u32 = 1 + BOMB_REPEATS * 258;
/// The CRC-32 of that many zero bytes.
const BOMB_CRC: u32 = 389_746_618;

/// A gzip file of zero bytes: one literal, then the longest match RFC 1951 allows, over and over.
pub(crate) fn bomb() -> Vec<u8> {
    let mut bits = Bits::default();
    // A last block with the fixed codes; codes are packed from their most significant bit.
    bits.push(&[1, 1, 0]);
    bits.push(&[0, 0, 1, 1, 0, 0, 0, 0]);
    for _ in 0..BOMB_REPEATS {
        bits.push(&[1, 1, 0, 0, 0, 1, 0, 1]);
        bits.push(&[0, 0, 0, 0, 0]);
    }
    bits.push(&[0, 0, 0, 0, 0, 0, 0]);
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    file.extend(bits.bytes);
    file.extend(BOMB_CRC.to_le_bytes());
    file.extend(BOMB_BYTES.to_le_bytes());
    file
}

/// Bits packed from the least significant end of each byte.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

impl Bits {
    fn push(&mut self, bits: &[u8]) {
        for bit in bits {
            if self.count.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= bit << (self.count % 8);
            }
            self.count += 1;
        }
    }
}
