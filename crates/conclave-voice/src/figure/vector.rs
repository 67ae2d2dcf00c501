//! How a voice speaks, as three numbers.

use conclave_core::Persona;
use serde::Deserialize;

/// How a voice speaks: each number within `0.0..=1.0`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vector {
    /// From close to courteous: chooses the register.
    pub formality: f32,
    /// From matter-of-fact to warm: chooses the opening.
    pub empathy: f32,
    /// From terse to full: chooses how much is explained.
    pub verbosity: f32,
}

/// How close or courteous the wording is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    Casual,
    Plain,
    Formal,
}

impl Vector {
    pub(super) fn register(self) -> Register {
        if self.formality < 0.25 {
            Register::Casual
        } else if self.formality < 0.7 {
            Register::Plain
        } else {
            Register::Formal
        }
    }
}

/// The vectors of the five personas.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vectors {
    guardian: Vector,
    professional: Vector,
    friend: Vector,
    educator: Vector,
    direct: Vector,
}

impl Vectors {
    pub(super) fn are_in_range(&self) -> bool {
        Persona::ALL.into_iter().all(|persona| {
            let Vector { formality, empathy, verbosity } = self.of(persona);
            [formality, empathy, verbosity].iter().all(|number| (0.0..=1.0).contains(number))
        })
    }

    pub(super) const fn of(&self, persona: Persona) -> Vector {
        match persona {
            Persona::Guardian => self.guardian,
            Persona::Professional => self.professional,
            Persona::Friend => self.friend,
            Persona::Educator => self.educator,
            Persona::Direct => self.direct,
        }
    }
}
