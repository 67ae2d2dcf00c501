//! The frozen, signed directives and their floor.
