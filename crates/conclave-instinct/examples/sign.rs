//! Signs a set of directives: `sign DIRECTIVES_FILE SEED_FILE`.
//!
//! The seed file holds 32 random bytes, plain or as 64 hexadecimal digits, as for `conclave directives sign`.
//! `directives.sig` and `pinned.pub` are written beside the
//! directives; nothing of the seed is.

use conclave_instinct::{Instinct, read_seed, sign};
use std::error::Error;
use std::fs;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(directives), Some(seed), None) = (args.next(), args.next(), args.next()) else {
        return Err("usage: sign DIRECTIVES_FILE SEED_FILE".into());
    };
    let file = fs::read(&directives)?;
    Instinct::check(&file)?;
    let seed = read_seed(&fs::read(&seed)?)
        .ok_or("the seed file must hold exactly 32 bytes or 64 hexadecimal digits")?;
    let signed = sign(&file, &seed);
    fs::write(directives.with_file_name("directives.sig"), signed.signature_hex + "\n")?;
    fs::write(directives.with_file_name("pinned.pub"), signed.public_key_hex + "\n")?;
    Ok(())
}
