//! times
fn main() {
    let t = std::time::Instant::now();
    let d = conclave_detect::Detector::builtin().unwrap();
    println!("detector {:?}", t.elapsed());
    let t = std::time::Instant::now();
    let r = d.read("hello there", conclave_core::Mode::Normal);
    println!("first read {:?} {}", t.elapsed(), r.harm.get());
    let t = std::time::Instant::now();
    let f = conclave_pii::Finder::builtin();
    println!("finder {:?}", t.elapsed());
    let _ = f;
    println!("{d:?}");
}
