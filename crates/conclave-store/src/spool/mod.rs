//! The spool: every entry is made durable here before anybody is told so.
//!
//! A directory of preallocated segment files with one writer. Entries that arrive while the disk is
//! busy share the next sync (group commit). The drainer reads the same files, in good times and
//! after a crash, so there is only one path and it is always exercised.
//!
//! **Invariant:** an entry is acknowledged only after a sync that covers it has succeeded.
//!
//! **Invariant:** a file descriptor whose write or sync failed is never used again: what the kernel
//! then says about it cannot be trusted.

mod disk;
mod fallback;
mod frame;
mod high_water;
mod intake;
mod kept;
mod pressure;
mod progress;
mod recover;
mod scan;
mod segment;
mod writer;

pub use disk::{Disk, FileDisk, SegmentSink};
pub use kept::KeptLimits;
pub use progress::SpoolStats;

pub(crate) use fallback::{Fallback, spool_dirs};
pub(crate) use frame::{Frame, Seed};
pub(crate) use high_water::{HighWater, acknowledged};
pub(crate) use intake::{Intake, Job, Sealing};
pub(crate) use kept::Kept;
pub(crate) use progress::{Position, Progress, SegmentState};
pub(crate) use recover::{Recovered, recover};
pub(crate) use scan::{Found, Scanner};
pub(crate) use segment::{ListedSegment, list_all, list_segments};
pub(crate) use writer::{LivingKeys, Writer, WriterParts};
