//! Field and figure: how replies are shaped and how the system itself speaks, pure.
