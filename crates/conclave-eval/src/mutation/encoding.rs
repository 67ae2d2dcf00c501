//! Disguises that must be decoded to be read.

use crate::chance::Chance;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write;

pub(super) fn base64(text: &str, _: &mut Chance) -> String {
    STANDARD.encode(text)
}

/// Bytes run together or stand apart, as chance has it.
pub(super) fn hex(text: &str, chance: &mut Chance) -> String {
    let apart = if chance.below(2) == 0 { "" } else { " " };
    let bytes: Vec<_> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(apart)
}

pub(super) fn url(text: &str, _: &mut Chance) -> String {
    text.bytes().fold(String::with_capacity(text.len() * 3), |mut out, byte| {
        let _ = write!(out, "%{byte:02X}");
        out
    })
}

pub(super) fn rot13(text: &str, _: &mut Chance) -> String {
    let turn = |this: char| match this {
        'a'..='m' | 'A'..='M' => moved(this, 13),
        'n'..='z' | 'N'..='Z' => moved(this, -13),
        other => other,
    };
    text.chars().map(turn).collect()
}

fn moved(this: char, by: i8) -> char {
    u8::try_from(this).map_or(this, |byte| char::from(byte.wrapping_add_signed(by)))
}

pub(super) fn reversed(text: &str, _: &mut Chance) -> String {
    text.chars().rev().collect()
}
