//! One binary.
fn main() {}
