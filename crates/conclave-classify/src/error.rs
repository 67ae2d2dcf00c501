//! What can be wrong with a trained model.

use conclave_detect::ClassifierError;

/// Why a model cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClassifyError {
    /// It is some other kind of file.
    #[error("this is not a file of weights")]
    NotAModel,
    /// It is cut off or too long.
    #[error("the file of weights has the wrong size")]
    WrongSize,
    /// Its description cannot be read.
    #[error("the description of the weights cannot be read: {0}")]
    Description(String),
    /// It computed something that is no number.
    #[error("the second tier computed something that is no number")]
    NotANumber,
}

impl From<ClassifyError> for ClassifierError {
    fn from(error: ClassifyError) -> Self {
        Self(error.to_string())
    }
}
