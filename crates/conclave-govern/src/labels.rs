//! The Traditional Knowledge labels of Local Contexts, and what each means here.
//!
//! **Invariant:** the list is closed; a label that is not on it is no label, and whoever looks holds.

/// What a label asks of whoever handles the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelEffect {
    /// Nothing that a machine could do or fail to do.
    Tells,
    /// It goes on and is marked.
    Flag,
    /// It waits for the community.
    Hold,
    /// It waits, and two people must agree.
    HoldSacred,
    /// It waits unless this audience is named.
    OnlyFor(&'static str),
    /// It is marked unless this audience is named.
    FlagUnlessFor(&'static str),
    /// It waits for this audience, and where nobody said who reads it.
    NotFor(&'static str),
    /// It waits unless a protocol says that its season is open.
    InSeason,
}

/// One label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraditionalLabel {
    /// How it is written on content, such as `tk_ss`.
    pub code: &'static str,
    /// What Local Contexts calls it.
    pub name: &'static str,
    /// What it asks for.
    pub effect: LabelEffect,
}

const fn label(code: &'static str, name: &'static str, effect: LabelEffect) -> TraditionalLabel {
    TraditionalLabel { code, name, effect }
}

/// Every label.
pub const LABELS: [TraditionalLabel; 20] = [
    label("tk_a", "TK Attribution", LabelEffect::Flag),
    label("tk_cl", "TK Clan", LabelEffect::OnlyFor("clan")),
    label("tk_f", "TK Family", LabelEffect::OnlyFor("family")),
    label("tk_mc", "TK Multiple Communities", LabelEffect::Flag),
    label("tk_cv", "TK Community Voice", LabelEffect::Tells),
    label("tk_cr", "TK Creative", LabelEffect::Tells),
    label("tk_v", "TK Verified", LabelEffect::Tells),
    label("tk_nv", "TK Non-Verified", LabelEffect::Flag),
    label("tk_s", "TK Seasonal", LabelEffect::InSeason),
    label("tk_wg", "TK Women General", LabelEffect::FlagUnlessFor("women")),
    label("tk_mg", "TK Men General", LabelEffect::FlagUnlessFor("men")),
    label("tk_wr", "TK Women Restricted", LabelEffect::HoldSacred),
    label("tk_mr", "TK Men Restricted", LabelEffect::HoldSacred),
    label("tk_cs", "TK Culturally Sensitive", LabelEffect::Hold),
    label("tk_ss", "TK Secret/Sacred", LabelEffect::HoldSacred),
    label("tk_oc", "TK Open to Commercialization", LabelEffect::Tells),
    label("tk_nc", "TK Non-Commercial", LabelEffect::NotFor("commercial")),
    label("tk_co", "TK Community Use Only", LabelEffect::OnlyFor("community")),
    label("tk_o", "TK Outreach", LabelEffect::Tells),
    label("tk_cb", "TK Open to Collaboration", LabelEffect::Tells),
];

impl TraditionalLabel {
    /// The label that is written so: `TK SS`, `tk-ss` and `tk_ss` are the same.
    #[must_use]
    pub fn parse(written: &str) -> Option<&'static Self> {
        let code = written.trim().to_ascii_lowercase().replace([' ', '-'], "_");
        LABELS.iter().find(|label| label.code == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found_however_they_are_written_and_have_one_code_each() {
        for label in &LABELS {
            assert_eq!(TraditionalLabel::parse(label.code), Some(label));
            assert_eq!(LABELS.iter().filter(|other| other.code == label.code).count(), 1);
        }
        assert_eq!(TraditionalLabel::parse(" TK SS ").unwrap().name, "TK Secret/Sacred");
        assert_eq!(TraditionalLabel::parse("tk_zz"), None);
        assert_eq!(TraditionalLabel::parse(""), None);
    }
}
