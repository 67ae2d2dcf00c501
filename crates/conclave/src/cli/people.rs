//! The part of the command line that speaks to a running gateway about people.

use super::DataArgs;
use super::gateway::GatewayArgs;
use super::keys::RoleName;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `conclave people`
#[derive(Debug, Subcommand)]
pub enum PeopleCommand {
    /// Enter an account, or give one a new password and role; the password is shown once.
    Add(PersonArgs),
    /// List accounts.
    List(DataArgs),
    /// Remove an account; whoever is signed in with it is signed out.
    Remove {
        /// Whose.
        name: String,
        /// Where.
        #[command(flatten)]
        data: DataArgs,
    },
}

/// `conclave people add`
#[derive(Debug, Args)]
pub struct PersonArgs {
    /// The name they sign in with.
    pub name: String,
    /// What they may do.
    #[arg(long, value_enum, default_value_t = RoleName::Reviewer)]
    pub role: RoleName,
    /// Whose.
    #[arg(long, default_value = "default")]
    pub tenant: String,
    /// With the role elder: name them for this community at the gateway, with --key of the owner for its
    /// first elder and of one of its elders from then on; may be given several times.
    #[arg(long = "community", value_name = "NAME")]
    pub communities: Vec<String>,
    /// Where.
    #[command(flatten)]
    pub data: DataArgs,
    /// Which gateway, where a community is named.
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// `conclave usage`
#[derive(Debug, Args)]
pub struct UsageArgs {
    /// The first day, such as 2026-01-01 [default: thirty days].
    #[arg(long, value_name = "DATE")]
    pub from: Option<String>,
    /// The last day, itself included [default: today].
    #[arg(long, value_name = "DATE")]
    pub to: Option<String>,
    /// Up to four of day, model, user, session, recipe, key, provider and outcome, with commas between
    /// [default: day,model].
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub by: Vec<String>,
    /// Only of this person, as the application names them.
    #[arg(long, value_name = "ID")]
    pub user: Option<String>,
    /// At most this many lines.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Leave out so many lines.
    #[arg(long, default_value_t = 0)]
    pub offset: u32,
    /// Which gateway.
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// `conclave reviews`
#[derive(Debug, Subcommand)]
pub enum ReviewsCommand {
    /// List what waits, most urgent first.
    List {
        /// pending, in_review, approved, rejected or needs_consultation; the open ones without it.
        #[arg(long)]
        status: Option<String>,
        /// Only what belongs to this community.
        #[arg(long)]
        community: Option<String>,
        /// Which gateway.
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Show one review, with what is held if you have claimed it.
    Show(ReviewArgs),
    /// Claim a review for a quarter of an hour; prints the token that decides it.
    Claim(ReviewArgs),
    /// Give a review back.
    Release {
        /// The token of your claim.
        #[arg(long)]
        token: u64,
        /// Which review.
        #[command(flatten)]
        review: ReviewArgs,
    },
    /// Decide a review you have claimed.
    Decide(DecideArgs),
    /// Fetch what became of what was held, as its author; exit code 1 until it is approved.
    Result(ReviewArgs),
}

/// Which review.
#[derive(Debug, Args)]
pub struct ReviewArgs {
    /// The id shown by `reviews list`.
    pub id: String,
    /// Which gateway.
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// `conclave reviews decide`
#[derive(Debug, Args)]
pub struct DecideArgs {
    /// What you decide.
    #[arg(value_enum)]
    pub ruling: RulingName,
    /// The token of your claim.
    #[arg(long)]
    pub token: u64,
    /// With edit-and-approve: what goes out instead.
    #[arg(long)]
    pub text: Option<String>,
    /// Why.
    #[arg(long, default_value = "")]
    pub notes: String,
    /// What whoever uses it must keep to; may be given several times.
    #[arg(long = "condition", value_name = "TEXT")]
    pub conditions: Vec<String>,
    /// Whether you found identifying data that had been missed; leave it out if you did not look.
    #[arg(long, value_name = "BOOL")]
    pub pii_missed: Option<bool>,
    /// Which review.
    #[command(flatten)]
    pub review: ReviewArgs,
}

/// What can be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RulingName {
    /// It may go out.
    Approve,
    /// It never may.
    Reject,
    /// The council shall look.
    NeedsConsultation,
    /// Something else may go out in its place.
    EditAndApprove,
}

impl RulingName {
    /// How it is sent.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::NeedsConsultation => "needs_consultation",
            Self::EditAndApprove => "edit_and_approve",
        }
    }
}

/// `conclave consents`
#[derive(Debug, Subcommand)]
pub enum ConsentsCommand {
    /// List what a person has agreed to.
    List {
        /// The person, as the application names them.
        subject: String,
        /// Which gateway.
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Keep what a person has agreed to.
    Give(GiveArgs),
    /// Take a consent back; in force with the next request.
    Withdraw {
        /// The id shown by `consents list`.
        id: String,
        /// How they said it.
        #[command(flatten)]
        evidence: EvidenceArgs,
        /// Which gateway.
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

/// `conclave consents give`
#[derive(Debug, Args)]
pub struct GiveArgs {
    /// The person, as the application names them.
    pub subject: String,
    /// What may be done; may be given several times.
    #[arg(long = "scope", required = true)]
    pub scopes: Vec<String>,
    /// What for; may be given several times.
    #[arg(long = "purpose", required = true)]
    pub purposes: Vec<String>,
    /// Who else may be given the result; may be given several times.
    #[arg(long = "party")]
    pub parties: Vec<String>,
    /// When it ends, in milliseconds since 1970.
    #[arg(long, value_name = "MS")]
    pub expires_ms: Option<u64>,
    /// How they said it.
    #[command(flatten)]
    pub evidence: EvidenceArgs,
    /// Which gateway.
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// What shows that somebody said it.
#[derive(Debug, Args)]
pub struct EvidenceArgs {
    /// written, verbal or electronic.
    #[arg(long, value_name = "KIND", default_value = "electronic")]
    pub evidence_kind: String,
    /// Where it can be found, such as the number of a form.
    #[arg(long, value_name = "TEXT")]
    pub evidence: String,
}

/// `conclave protocols`
#[derive(Debug, Subcommand)]
pub enum ProtocolsCommand {
    /// List the protocols of communities, as far as you may see them.
    List(GatewayArgs),
    /// Show one protocol.
    Show {
        /// Whose.
        community: String,
        /// Which gateway.
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Lay down or change a protocol, as an elder of its community.
    Set {
        /// Whose.
        community: String,
        /// The protocol, as JSON.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Which gateway.
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Name an elder: the first as the owner, others as an elder of the community.
    NameElder {
        /// Of which community.
        community: String,
        /// The id of their key, or `person:` and the name of their account.
        holder: String,
        /// Who they are: two keys of one person are one person.
        #[arg(long)]
        person: String,
        /// Which gateway.
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Remove an elder, as an elder of the community.
    RemoveElder {
        /// Of which community.
        community: String,
        /// Whom.
        holder: String,
        /// Which gateway.
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

/// `conclave webhooks`
#[derive(Debug, Subcommand)]
pub enum WebhooksCommand {
    /// List webhooks, without their secrets.
    List(GatewayArgs),
    /// Make a webhook; its secret is shown once.
    Add {
        /// Where events are sent to.
        #[arg(value_name = "ADDRESS")]
        address: String,
        /// Of what it is told; of everything without it; may be given several times.
        #[arg(long = "event", value_name = "TYPE")]
        events: Vec<String>,
        /// Which gateway.
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// End a webhook.
    Remove(WebhookArgs),
    /// Replace the secret of a webhook; the new one is shown once.
    Secret(WebhookArgs),
    /// Show the events that nobody took, or those that wait or arrived.
    Events {
        /// waiting, dead or arrived.
        #[arg(long, default_value = "dead")]
        state: String,
        /// Which webhook.
        #[command(flatten)]
        webhook: WebhookArgs,
    },
    /// Have a dead event sent once more.
    Resend {
        /// The id shown by `webhooks events`.
        event: String,
        /// Which webhook.
        #[command(flatten)]
        webhook: WebhookArgs,
    },
}

/// Which webhook.
#[derive(Debug, Args)]
pub struct WebhookArgs {
    /// The id shown by `webhooks list`.
    pub id: String,
    /// Which gateway.
    #[command(flatten)]
    pub gateway: GatewayArgs,
}
