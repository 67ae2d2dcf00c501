//! What can be wrong with a trained model.

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
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
}
