//! Text to signals: folding, patterns, scores, pure.
