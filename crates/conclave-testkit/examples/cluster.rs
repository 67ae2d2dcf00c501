//! A PostgreSQL of one's own for as long as standard input stays open; prints the address of an empty database.
//!
//! `cargo run -p conclave-testkit --example cluster`
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use conclave_testkit::Cluster;
use std::error::Error;
use std::io::Read;

fn main() -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::start()?;
    println!("{}", cluster.fresh()?);
    // Whoever started us closes this, or has died.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    drop(cluster);
    Ok(())
}
