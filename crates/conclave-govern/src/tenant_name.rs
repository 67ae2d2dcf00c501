//! Names of tenants: what looks the same is the same.

use crate::spelling::is_invisible;
use unicode_normalization::{UnicodeNormalization, is_nfkc};

/// Why a name cannot be given to a tenant: two names that people cannot tell apart would be two tenants.
#[must_use]
pub fn tenant_name_fault(name: &str) -> Option<String> {
    if !is_nfkc(name) {
        let plain: String = name.nfkc().filter(|c| !c.is_control()).take(64).collect();
        return Some(format!("a tenant's name is written in its plain form, here `{plain}`"));
    }
    if name.chars().any(is_invisible) {
        return Some("a tenant's name has no invisible characters".to_owned());
    }
    let trimmed = name.trim();
    (trimmed.len() != name.len()).then(|| "a tenant's name has no blanks around it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i13_names_that_are_equal_after_nfkc_are_one_name() {
        for plain in ["acme", "default", "Åkerö", "東京", "Sea People", "café"] {
            assert_eq!(tenant_name_fault(plain), None, "{plain}");
        }
        for twin in
            ["ａｃｍｅ", "ac\u{200b}me", "acme\u{202e}", "ﬁrm", "A\u{30a}kero", "①", " acme", "ｱ"]
        {
            assert!(tenant_name_fault(twin).is_some(), "{twin:?}");
        }
    }
}
