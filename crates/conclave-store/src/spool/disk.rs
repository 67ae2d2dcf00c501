//! The few operations on files that the writer needs, as a port: so that a test can make each of
//! them fail.
//!
//! **Invariant:** a segment that was created has its space already; writing into it cannot run out
//! of room.

use crate::durable::{private, sync_dir};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Makes segments.
pub trait Disk: Send + Sync {
    /// Creates a segment of this size, durably and with its space allocated.
    ///
    /// # Errors
    /// When there is no room, or the file system refuses.
    fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn SegmentSink>>;
}

/// A segment that is being written.
pub trait SegmentSink: Send {
    /// Writes all bytes at an offset.
    ///
    /// # Errors
    /// When not all could be written.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes everything written durable.
    ///
    /// # Errors
    /// When the disk does not say so.
    fn sync(&mut self) -> io::Result<()>;
}

/// Files of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileDisk;

impl Disk for FileDisk {
    fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn SegmentSink>> {
        let file = private().write(true).create_new(true).open(path)?;
        match prepare(&file, path, bytes) {
            Ok(()) => Ok(Box::new(file)),
            Err(error) => {
                // A half-made segment only takes away the room that is missing.
                let _ = std::fs::remove_file(path);
                Err(error)
            }
        }
    }
}

fn prepare(file: &File, path: &Path, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => {}
        // Some file systems cannot allocate ahead; there, a full disk shows while writing.
        Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(bytes)?,
        Err(error) => return Err(error.into()),
    }
    file.sync_all()?;
    path.parent().map_or(Ok(()), sync_dir)
}

impl SegmentSink for File {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
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
        sink.write_at(b"abc", 4_096).unwrap();
        sink.sync().unwrap();
        assert_eq!(&std::fs::read(&path).unwrap()[4_095..4_100], b"\0abc\0");
        assert!(FileDisk.create(&path, 8_192).is_err());
    }

    #[test]
    fn a_segment_that_does_not_fit_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segment");
        assert!(FileDisk.create(&path, 1 << 60).is_err());
        assert!(!path.exists());
    }
}
