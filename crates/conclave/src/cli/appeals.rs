//! The part of the command line that is about appeals.

use super::gateway::GatewayArgs;
use clap::{Args, Subcommand, ValueEnum};
use conclave_govern::AppealConcern;

/// `conclave appeals`
#[derive(Debug, Subcommand)]
pub enum AppealsCommand {
    /// List appeals; with a key of an application those of one person.
    List {
        /// filed, upheld, upheld_in_part or denied; all without it.
        #[arg(long)]
        status: Option<String>,
        /// Only of this person, as the application names them.
        #[arg(long, value_name = "ID")]
        user: Option<String>,
        /// Which gateway.
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Show one appeal and how it was ruled.
    Show {
        /// The id shown by `appeals list`.
        id: String,
        /// Which gateway.
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// File an appeal for a person.
    File(AppealFileArgs),
    /// Rule on an appeal, as somebody who did not decide before.
    Decide(AppealDecideArgs),
    /// Fetch the corrected reply; exit code 1 until an appeal is upheld.
    Result {
        /// The id shown by `appeals list`.
        id: String,
        /// Which gateway.
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Show how often decisions that were appealed turned out to be wrong.
    Estimates {
        /// Which gateway.
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

/// `conclave appeals file`
#[derive(Debug, Args)]
pub struct AppealFileArgs {
    /// The decision, by its audit id.
    pub audit_id: String,
    /// What was wrong.
    #[arg(long, value_enum)]
    pub concern: ConcernName,
    /// What the person says about it, up to 4,000 characters.
    #[arg(long)]
    pub words: String,
    /// Whose decision it is, as the application names them; leave it out for somebody without an id.
    #[arg(long, value_name = "ID")]
    pub user: Option<String>,
    /// Which gateway.
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// `conclave appeals decide`
#[derive(Debug, Args)]
pub struct AppealDecideArgs {
    /// What you decide.
    #[arg(value_enum)]
    pub ruling: AppealRulingName,
    /// The id shown by `appeals list`.
    pub id: String,
    /// Why, for the person to read in their language.
    #[arg(long)]
    pub words: Option<String>,
    /// Where the person is right: the corrected reply that they get.
    #[arg(long)]
    pub text: Option<String>,
    /// Why, for whoever reviews.
    #[arg(long, default_value = "")]
    pub notes: String,
    /// Which gateway.
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// What a person can say was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ConcernName {
    /// There should have been an answer.
    ShouldHaveAnswered,
    /// The reply was harmful or wrong.
    HarmfulOrWrong,
    /// The person was misunderstood.
    Misunderstood,
    /// Something else.
    Other,
}

impl ConcernName {
    /// How it is sent.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ShouldHaveAnswered => AppealConcern::ShouldHaveAnswered.as_str(),
            Self::HarmfulOrWrong => AppealConcern::HarmfulOrWrong.as_str(),
            Self::Misunderstood => AppealConcern::Misunderstood.as_str(),
            Self::Other => AppealConcern::Other.as_str(),
        }
    }
}

/// How an appeal can be ruled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AppealRulingName {
    /// The person is right.
    Uphold,
    /// The person is right in part.
    UpholdInPart,
    /// The decision stands.
    Deny,
    /// The council shall look.
    NeedsConsultation,
}

impl AppealRulingName {
    /// How it is sent.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Uphold => "uphold",
            Self::UpholdInPart => "uphold_in_part",
            Self::Deny => "deny",
            Self::NeedsConsultation => "needs_consultation",
        }
    }
}
