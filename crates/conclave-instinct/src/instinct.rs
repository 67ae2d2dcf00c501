//! The set of directives in force.
//!
//! **Invariant:** the signature is checked before the file is parsed, so that unsigned bytes never
//! reach the parser.

use crate::basis::Basis;
use crate::directive::{Directive, Duty, is_japanese};
use crate::signature::{self, PinnedKey};
use crate::{InstinctError, check};
use conclave_core::{Category, DirectiveId, Finding, GuardCode, GuardKind, Reason};
use serde::Deserialize;

/// How many directives there are.
pub const COUNT: u16 = 128;

/// The largest file accepted, in bytes: six times what the shipped set needs.
pub const FILE_BYTES_MAX: usize = 256 * 1024;

const SHIPPED: &[u8] = include_bytes!("../../../data/directives/directives.toml");
const SHIPPED_SIGNATURE: &str = include_str!("../../../data/directives/directives.sig");

/// A verified set of directives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instinct {
    digest: [u8; 32],
    directives: Vec<Directive>,
    basis: Basis,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    directive: Vec<Directive>,
}

impl Instinct {
    /// Accepts a set whose signature holds under the pinned key and which is whole.
    ///
    /// # Errors
    /// When a byte of the file or of the signature was changed, another key signed it, or the set
    /// is malformed, misnumbered, incomplete or repeats itself.
    pub fn verify(
        file: &[u8],
        signature_hex: &str,
        pinned: &PinnedKey,
    ) -> Result<Self, InstinctError> {
        bound(file)?;
        signature::check(file, signature_hex, pinned)?;
        let (directives, basis) = read(file)?;
        Ok(Self { digest: signature::digest(file), directives, basis })
    }

    /// The set compiled into this program, verified with the key compiled into it.
    ///
    /// # Errors
    /// When the program was built with a key other than the one the set in its tree is signed with,
    /// or from a tree whose set was changed.
    pub fn builtin() -> Result<Self, InstinctError> {
        Self::verify(SHIPPED, SHIPPED_SIGNATURE, &PinnedKey::compiled_in()?)
    }

    /// Whether a file is a whole set, regardless of any signature: for whoever is about to sign it.
    ///
    /// # Errors
    /// When the set is malformed, misnumbered, incomplete or repeats itself.
    pub fn check(file: &[u8]) -> Result<(), InstinctError> {
        bound(file)?;
        read(file).map(|_| ())
    }

    /// SHA-256 of the file: what ledger entries carry.
    #[must_use]
    pub const fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The directive with this number.
    #[must_use]
    pub fn get(&self, id: DirectiveId) -> Option<&Directive> {
        self.directives.get(usize::from(id.0).checked_sub(1)?)
    }

    /// Every directive, by number.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Directive> {
        self.directives.iter()
    }

    /// The directive a block of this category rests on; for a crisis, the care that is owed.
    #[must_use]
    pub const fn for_category(&self, category: Category) -> DirectiveId {
        self.basis.hazard(category)
    }

    /// The directive a refusal out of this duty rests on.
    #[must_use]
    pub const fn for_duty(&self, duty: Duty) -> DirectiveId {
        self.basis.duty(duty)
    }

    /// The directive that what a guard found rests on: the one table from codes to directives. Money
    /// and the models a tenant may use are contract, not conscience, and rest on none.
    #[must_use]
    pub fn for_finding(&self, finding: &Finding) -> Option<DirectiveId> {
        let duty = match finding.code? {
            GuardCode::ConsentRequired
            | GuardCode::ConsentWithdrawn
            | GuardCode::ConsentUnverified => Duty::Consent,
            GuardCode::Jurisdiction | GuardCode::JurisdictionUnknown | GuardCode::PersonalData => {
                Duty::PrivacyDuty
            }
            GuardCode::Cultural | GuardCode::Sacred | GuardCode::NoElders => Duty::Culture,
            GuardCode::Injection => return Some(self.for_category(Category::Injection)),
            GuardCode::Harmful
            | GuardCode::Doubt
            | GuardCode::History
            | GuardCode::Unjudged
            | GuardCode::Toxicity => return Some(DirectiveId::FIRST),
            GuardCode::GuardFailed => match finding.guard {
                GuardKind::Culture => Duty::Culture,
                GuardKind::Consent => Duty::Consent,
                GuardKind::PersonalData | GuardKind::Jurisdiction => Duty::PrivacyDuty,
                _ => return Some(DirectiveId::FIRST),
            },
            GuardCode::UnknownModel
            | GuardCode::ModelNotPermitted
            | GuardCode::TooLong
            | GuardCode::InsufficientQuota
            | GuardCode::Unpriced
            | GuardCode::NoBudgetKept
            | GuardCode::Downgraded => return None,
        };
        Some(self.for_duty(duty))
    }

    /// The directive an objection of a verifier rests on; some, such as doubt, rest on none.
    #[must_use]
    pub fn for_reason(&self, reason: Reason) -> Option<DirectiveId> {
        self.basis.objection(reason)
    }

    /// The text of a directive in this language (BCP 47): Japanese, otherwise English. A number
    /// from another set gets a sentence that says so, since old ledgers outlive their directives.
    #[must_use]
    pub fn text(&self, id: DirectiveId, language: &str) -> &str {
        match self.get(id) {
            Some(directive) => directive.text(language),
            None if is_japanese(language) => "この番号の原則は、現在の原則集にはありません。",
            None => "The set in force has no directive with this number.",
        }
    }
}

fn bound(file: &[u8]) -> Result<(), InstinctError> {
    if file.len() <= FILE_BYTES_MAX {
        return Ok(());
    }
    Err(InstinctError::TooLarge { found: file.len(), max: FILE_BYTES_MAX })
}

fn read(file: &[u8]) -> Result<(Vec<Directive>, Basis), InstinctError> {
    let set = parse(file)?;
    check::check(&set.directive)?;
    let basis = Basis::of(&set.directive)?;
    Ok((set.directive, basis))
}

fn parse(file: &[u8]) -> Result<Set, InstinctError> {
    let text = std::str::from_utf8(file).map_err(|error| InstinctError::Malformed {
        line: line_at(file, error.valid_up_to()),
        message: "it is not UTF-8 text".to_owned(),
    })?;
    toml::from_str(text).map_err(|error| InstinctError::Malformed {
        line: line_at(file, error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })
}

/// The line of a byte, counted from 1.
fn line_at(file: &[u8], offset: usize) -> usize {
    1 + file.iter().take(offset).filter(|&&byte| byte == b'\n').count()
}
