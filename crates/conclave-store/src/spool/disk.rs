//! The few operations on files that the writer needs, as a port: so that a test can make each of
//! them fail.
//!
//! **Invariant:** a segment that was created has its space already; writing into it cannot run out
//! of room.
//!
//! **Invariant:** what was synced into a file that nobody can find any more is not durable: a sync fails
//! when the path does not lead to the file.

use crate::durable::{private, sync_dir};
use crate::lock::FileId;
use conclave_failpoint as failpoint;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Makes segments.
pub trait Disk: Send + Sync {
    /// Creates a segment of this size, durably and with its space allocated.
    ///
    /// # Errors
    /// When there is no room, or the file system refuses.
    fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn SegmentSink>>;

    /// Removes a segment that nobody needs.
    ///
    /// # Errors
    /// When the file system refuses.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// A segment that is being written.
pub trait SegmentSink: Send {
    /// Writes bytes at an offset; says how many, which may be fewer than were given.
    ///
    /// # Errors
    /// When nothing could be written.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Makes everything written durable.
    ///
    /// # Errors
    /// When the disk does not say so.
    fn sync(&mut self) -> io::Result<()>;
}

/// How often a call that a signal interrupted is made again before that counts as a failure.
const INTERRUPTIONS_MAX: u32 = 1_000;

/// Writes all bytes, however many pieces the disk makes of them.
pub(super) fn write_all(
    sink: &mut dyn SegmentSink,
    mut bytes: &[u8],
    mut offset: u64,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = uninterrupted(|| sink.write_at(bytes, offset))?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(written..).unwrap_or_default();
        offset += written as u64;
    }
    Ok(())
}

/// Makes a call again as long as a signal interrupts it.
pub(super) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..INTERRUPTIONS_MAX {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
    Err(io::ErrorKind::Interrupted.into())
}

/// Files of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileDisk;

impl Disk for FileDisk {
    fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn SegmentSink>> {
        failpoint::reach("spool.before_create");
        let file = private().write(true).create_new(true).open(path)?;
        match prepare(&file, path, bytes) {
            Ok(()) => {
                failpoint::reach("spool.created");
                let id = FileId::of(&file.metadata()?);
                Ok(Box::new(FileSegment { file, id, path: path.to_owned() }))
            }
            Err(error) => {
                // A half-made segment only takes away the room that is missing.
                let _ = std::fs::remove_file(path);
                Err(error)
            }
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }
}

fn prepare(file: &File, path: &Path, bytes: u64) -> io::Result<()> {
    let allocate = || fallocate(file, FallocateFlags::empty(), 0, bytes).map_err(Into::into);
    match uninterrupted(allocate) {
        // Some file systems cannot allocate ahead; there, a full disk shows while writing.
        Err(error) if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => {
            file.set_len(bytes)?;
        }
        allocated => allocated?,
    }
    file.sync_all()?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// A segment, and where it has to stay.
struct FileSegment {
    file: File,
    id: FileId,
    path: PathBuf,
}

impl SegmentSink for FileSegment {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if failpoint::is_due("spool.inside_write") {
            let _ = self.file.write_at(&bytes[..bytes.len() / 2], offset);
            failpoint::die();
        }
        self.file.write_at(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        if FileId::at(&self.path)? == Some(self.id) {
            return Ok(());
        }
        let name = self.path.display();
        Err(io::Error::other(format!("{name} was removed or replaced by somebody else")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_has_its_size_from_the_start_and_is_never_made_twice() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segment");
        let mut sink = FileDisk.create(&path, 8_192).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 8_192);
        write_all(&mut *sink, b"abc", 4_096).unwrap();
        sink.sync().unwrap();
        assert_eq!(&std::fs::read(&path).unwrap()[4_095..4_100], b"\0abc\0");
        assert!(FileDisk.create(&path, 8_192).is_err());
    }

    #[test]
    fn a_segment_that_was_removed_or_replaced_takes_nothing_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segment");
        let mut sink = FileDisk.create(&path, 8_192).unwrap();
        write_all(&mut *sink, b"abc", 0).unwrap();
        sink.sync().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(sink.sync().unwrap_err().to_string().contains("was removed"));
        std::fs::write(&path, b"abc").unwrap();
        assert!(sink.sync().unwrap_err().to_string().contains("was removed"));
    }

    #[test]
    fn a_segment_that_does_not_fit_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segment");
        assert!(FileDisk.create(&path, 1 << 60).is_err());
        assert!(!path.exists());
    }

    /// Takes one byte at a time, and is interrupted before each.
    struct Sluggish(Vec<u8>, bool);

    impl SegmentSink for Sluggish {
        fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            assert_eq!(offset, self.0.len() as u64);
            self.0.push(bytes[0]);
            Ok(1)
        }

        fn sync(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::Interrupted.into())
        }
    }

    #[test]
    fn short_and_interrupted_writes_are_finished_and_endless_interruption_is_a_failure() {
        let mut sink = Sluggish(Vec::new(), false);
        write_all(&mut sink, b"a whole frame", 0).unwrap();
        assert_eq!(sink.0, b"a whole frame");
        let error = uninterrupted(|| sink.sync()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn a_disk_that_writes_nothing_has_failed() {
        struct Nothing;
        impl SegmentSink for Nothing {
            fn write_at(&mut self, _: &[u8], _: u64) -> io::Result<usize> {
                Ok(0)
            }
            fn sync(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let error = write_all(&mut Nothing, b"x", 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
        write_all(&mut Nothing, b"", 0).unwrap();
    }
}
