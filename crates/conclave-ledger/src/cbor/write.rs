//! Writes items in their shortest form.
//!
//! **Invariant:** writing cannot fail. Whoever writes a map by hand gives its keys in the order of
//! the encoding; [`super::Value`] does so by construction.

use super::Value;

/// Appends items to a buffer that the caller owns and may use again.
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    /// Writes behind what `out` holds already.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// A whole number from 0.
    pub fn uint(&mut self, number: u64) {
        self.head(0, number);
    }

    /// Bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.head(2, bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    /// Bytes given in parts.
    pub fn bytes_of(&mut self, parts: &[&[u8]]) {
        self.head(2, parts.iter().map(|part| part.len() as u64).sum());
        for part in parts {
            self.out.extend_from_slice(part);
        }
    }

    /// Bytes, or nothing.
    pub fn bytes_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bytes(bytes),
            None => self.null(),
        }
    }

    /// Text.
    pub fn text(&mut self, text: &str) {
        self.head(3, text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Opens a sequence of `count` items.
    pub fn array(&mut self, count: usize) {
        self.head(4, count as u64);
    }

    /// Opens a map of `count` pairs.
    pub fn map(&mut self, count: usize) {
        self.head(5, count as u64);
    }

    /// Nothing.
    pub fn null(&mut self) {
        self.out.push(0xf6);
    }

    /// Any value.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Uint(number) => self.uint(*number),
            Value::Nint(number) => self.head(1, *number),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::Text(text) => self.text(text),
            Value::Array(items) => {
                self.array(items.len());
                items.iter().for_each(|item| self.value(item));
            }
            Value::Map(map) => {
                self.map(map.len());
                for (key, value) in map.iter() {
                    self.text(key);
                    self.value(value);
                }
            }
            Value::Bool(yes) => self.out.push(if *yes { 0xf5 } else { 0xf4 }),
            Value::Null => self.null(),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "each arm has checked the range")]
    fn head(&mut self, major: u8, number: u64) {
        let major = major << 5;
        match number {
            0..=23 => self.out.push(major | number as u8),
            24..=0xff => self.out.extend_from_slice(&[major | 24, number as u8]),
            0x100..=0xffff => {
                self.out.push(major | 25);
                self.out.extend_from_slice(&(number as u16).to_be_bytes());
            }
            0x1_0000..=0xffff_ffff => {
                self.out.push(major | 26);
                self.out.extend_from_slice(&(number as u32).to_be_bytes());
            }
            _ => {
                self.out.push(major | 27);
                self.out.extend_from_slice(&number.to_be_bytes());
            }
        }
    }
}
