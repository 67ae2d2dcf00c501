//! plain scanning profile
fn main() {
    let d = conclave_detect::Detector::builtin().unwrap();
    let line = "We walked along the river after lunch and talked about the garden, the new neighbours and the train to the coast. Could you write a short note to thank my aunt for the blanket she sent?\n";
    let text = line.repeat(20_000);
    let t = std::time::Instant::now();
    for _ in 0..3 { std::hint::black_box(d.read(&text, conclave_core::Mode::Normal)); }
    println!("{:.1} MB/s", 3.0 * text.len() as f64 / 1e6 / t.elapsed().as_secs_f64());
}
