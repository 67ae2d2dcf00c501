//! Reads items and refuses every form but the one the writer makes.
//!
//! **Invariant:** a length is compared with the bytes that are left before anything is allocated,
//! so a few hostile bytes can never ask for much memory.

use super::{CborError, DEPTH_MAX, Map, Value};

/// Reads items one after another; texts and bytes are borrowed from the input.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

const UINT: u8 = 0;
const NINT: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const SIMPLE: u8 = 7;

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Where the next item begins.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// A whole number from 0.
    ///
    /// # Errors
    /// When something else stands here.
    pub fn uint(&mut self) -> Result<u64, CborError> {
        self.expect(UINT, "a number")
    }

    /// Bytes.
    ///
    /// # Errors
    /// When something else stands here, or the bytes end first.
    pub fn bytes(&mut self) -> Result<&'a [u8], CborError> {
        let length = self.expect(BYTES, "bytes")?;
        self.take(length)
    }

    /// Exactly `N` bytes.
    ///
    /// # Errors
    /// When something else stands here, or another number of bytes.
    pub fn array_of<const N: usize>(&mut self) -> Result<[u8; N], CborError> {
        let at = self.at;
        let bytes = self.bytes()?;
        let expected = "bytes of another length";
        bytes.try_into().map_err(|_| CborError::Unexpected { at, expected })
    }

    /// Exactly `N` bytes, or nothing.
    ///
    /// # Errors
    /// When something else stands here, or another number of bytes.
    pub fn array_or_null<const N: usize>(&mut self) -> Result<Option<[u8; N]>, CborError> {
        if self.bytes.get(self.at) == Some(&0xf6) {
            self.at += 1;
            return Ok(None);
        }
        self.array_of().map(Some)
    }

    /// Text.
    ///
    /// # Errors
    /// When something else stands here, or it is not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, CborError> {
        let at = self.at;
        let length = self.expect(TEXT, "text")?;
        std::str::from_utf8(self.take(length)?).map_err(|_| CborError::NotUtf8(at))
    }

    /// Opens a sequence and says how many items follow.
    ///
    /// # Errors
    /// When something else stands here, or more items are announced than bytes are left.
    pub fn array(&mut self) -> Result<usize, CborError> {
        let count = self.expect(ARRAY, "a sequence")?;
        self.fitting(count, 1)
    }

    /// Opens a map and says how many pairs follow.
    ///
    /// # Errors
    /// When something else stands here, or more pairs are announced than bytes are left.
    pub fn map(&mut self) -> Result<usize, CborError> {
        let count = self.expect(MAP, "a map")?;
        self.fitting(count, 2)
    }

    /// Reads past a key that must be this one.
    ///
    /// # Errors
    /// When another key stands here.
    pub fn key(&mut self, expected: &'static str) -> Result<(), CborError> {
        let at = self.at;
        if self.text()? == expected { Ok(()) } else { Err(CborError::Unexpected { at, expected }) }
    }

    /// Any value.
    ///
    /// # Errors
    /// When the bytes are not a deterministic encoding.
    pub fn value(&mut self) -> Result<Value, CborError> {
        self.value_at(0)
    }

    /// Any value that stands `depth` levels deep already.
    ///
    /// # Errors
    /// When the bytes are not a deterministic encoding.
    pub fn value_at(&mut self, depth: usize) -> Result<Value, CborError> {
        let at = self.at;
        let (major, number) = self.head()?;
        match major {
            UINT => Ok(Value::Uint(number)),
            NINT => Ok(Value::Nint(number)),
            BYTES => Ok(Value::Bytes(self.take(number)?.to_vec())),
            TEXT => {
                let text = std::str::from_utf8(self.take(number)?);
                text.map(|text| Value::Text(text.to_owned())).map_err(|_| CborError::NotUtf8(at))
            }
            ARRAY | MAP if depth >= DEPTH_MAX => Err(CborError::TooDeep(at)),
            ARRAY => self.items(number, depth),
            MAP => self.pairs(number, depth),
            SIMPLE => simple(number).ok_or(CborError::NotAllowed(at)),
            _ => Err(CborError::NotAllowed(at)),
        }
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// When something is.
    pub fn end(&self) -> Result<(), CborError> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(CborError::Trailing(self.at)) }
    }

    fn items(&mut self, count: u64, depth: usize) -> Result<Value, CborError> {
        let count = self.fitting(count, 1)?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(self.value_at(depth + 1)?);
        }
        Ok(Value::Array(items))
    }

    fn pairs(&mut self, count: u64, depth: usize) -> Result<Value, CborError> {
        let count = self.fitting(count, 2)?;
        let mut map = Map::new();
        for _ in 0..count {
            let at = self.at;
            let key = self.text()?;
            let value = self.value_at(depth + 1)?;
            if !map.push_last(key, value) {
                return Err(CborError::KeyOrder(at));
            }
        }
        Ok(Value::Map(map))
    }

    fn expect(&mut self, major: u8, expected: &'static str) -> Result<u64, CborError> {
        let at = self.at;
        let (found, number) = self.head()?;
        if found == major { Ok(number) } else { Err(CborError::Unexpected { at, expected }) }
    }

    fn head(&mut self) -> Result<(u8, u64), CborError> {
        let at = self.at;
        let [first] = self.fixed()?;
        let major = first >> 5;
        let (number, least) = match first & 0x1f {
            small @ 0..=23 => (u64::from(small), 0),
            24 => (u64::from(u8::from_be_bytes(self.fixed()?)), 24),
            25 => (u64::from(u16::from_be_bytes(self.fixed()?)), 0x100),
            26 => (u64::from(u32::from_be_bytes(self.fixed()?)), 0x1_0000),
            27 => (u64::from_be_bytes(self.fixed()?), 0x1_0000_0000),
            _ => return Err(CborError::NotAllowed(at)),
        };
        if major == SIMPLE && first & 0x1f > 23 {
            return Err(CborError::NotAllowed(at));
        }
        if number < least { Err(CborError::NotShortest(at)) } else { Ok((major, number)) }
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], CborError> {
        self.take(N as u64)?.try_into().map_err(|_| CborError::Truncated(self.at))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], CborError> {
        let cut = CborError::Truncated(self.at);
        let length = usize::try_from(length).map_err(|_| cut.clone())?;
        let end = self.at.checked_add(length).ok_or_else(|| cut.clone())?;
        let taken = self.bytes.get(self.at..end).ok_or(cut)?;
        self.at = end;
        Ok(taken)
    }

    /// The count, if that many items of at least `each` bytes can still follow.
    fn fitting(&self, count: u64, each: usize) -> Result<usize, CborError> {
        let left = self.bytes.len().saturating_sub(self.at) / each;
        match usize::try_from(count) {
            Ok(count) if count <= left => Ok(count),
            _ => Err(CborError::Truncated(self.at)),
        }
    }
}

const fn simple(number: u64) -> Option<Value> {
    match number {
        20 => Some(Value::Bool(false)),
        21 => Some(Value::Bool(true)),
        22 => Some(Value::Null),
        _ => None,
    }
}
