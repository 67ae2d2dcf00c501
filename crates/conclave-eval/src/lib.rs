//! Measures judgements against labels: figures with intervals, curves, mutations and a report; and the
//! way through many rows on several cores that everybody shares who judges them.
//!
//! **Invariant:** pure: outcomes in, figures out; the same rows give the same report, whoever judged
//! them and however long it took to read this.

mod baseline;
mod calibration;
mod chance;
mod cores;
mod detail;
mod estimate;
mod figures;
mod group;
mod mutation;
mod outcome;
mod page;
mod panel;
mod ranking;
mod redteam;
mod redteam_page;
mod report;
mod row;
mod scorecard;
mod table;
mod theme;
mod twins;
mod visible;

pub use baseline::{Change, FigureChange};
pub use calibration::{Bin, Calibration};
pub use chance::{Chance, hash};
pub use cores::{IN_FLIGHT_MAX, JOBS_MAX, all_cores, map_in_order};
pub use detail::{Detail, Example};
pub use estimate::Estimate;
pub use figures::{Figures, Latency};
pub use group::{Group, Kind};
pub use mutation::Mutation;
pub use outcome::{CastVote, Judged, Outcome, Sample};
pub use panel::{MemberFigures, PanelFigures};
pub use ranking::{Point, Ranking};
pub use redteam::{Attack, Disguised, MutationFigures, REDTEAM_FORMAT, RedteamReport, Trial};
pub use report::{BadLine, EVAL_FORMAT, Report, Setting};
pub use row::{EXCERPT_CHARS_MAX, Label, Row, RowError, Task, clipped};
pub use scorecard::ScorecardFigure;
