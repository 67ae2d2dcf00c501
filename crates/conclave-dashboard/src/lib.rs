//! HTML and SVG for people.
