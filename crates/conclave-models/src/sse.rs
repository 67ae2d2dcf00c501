//! Splits server-sent events out of bytes.
//!
//! **Invariant:** memory is bounded: a line, and the data of one event, may be [`LINE_BYTES_MAX`]
//! long.
//!
//! **Invariant:** where the bytes are cut into chunks makes no difference: lines are found in
//! bytes, so a character may be split anywhere.

/// The longest line, and the most data of one event.
pub(crate) const LINE_BYTES_MAX: usize = 1024 * 1024;

/// A line or an event was longer than allowed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Takes bytes and gives the data of whole events.
#[derive(Debug, Default)]
pub(crate) struct EventSplitter {
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    is_after_return: bool,
    is_started: bool,
}

impl EventSplitter {
    /// Takes the next chunk; the events it completes are appended to `events`.
    pub(crate) fn feed(
        &mut self,
        mut chunk: &[u8],
        events: &mut Vec<Vec<u8>>,
    ) -> Result<(), TooLong> {
        while !chunk.is_empty() {
            if self.is_after_return && chunk.first() == Some(&b'\n') {
                chunk = chunk.get(1..).unwrap_or_default();
            }
            self.is_after_return = false;
            let end = chunk.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (piece, rest) = chunk.split_at(end.unwrap_or(chunk.len()));
            self.extend_line(piece)?;
            if let Some((terminator, rest)) = rest.split_first() {
                self.is_after_return = *terminator == b'\r';
                self.end_line(events)?;
                chunk = rest;
            } else {
                break;
            }
        }
        Ok(())
    }

    /// The stream ended: the event that was still open, if any. Servers often forget the last blank
    /// line.
    pub(crate) fn finish(mut self) -> Result<Option<Vec<u8>>, TooLong> {
        let mut events = Vec::new();
        self.end_line(&mut events)?;
        Ok(events.pop().or(self.data))
    }

    fn extend_line(&mut self, piece: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + piece.len() > LINE_BYTES_MAX {
            return Err(TooLong);
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<Vec<u8>>) -> Result<(), TooLong> {
        let mut line = self.line.as_slice();
        if !self.is_started {
            self.is_started = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            events.extend(self.data.take());
        } else if let Some(value) = data_of(line) {
            append(&mut self.data, value)?;
        }
        self.line.clear();
        Ok(())
    }
}

/// The value of a `data` line; comments and other fields have none.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    match line.strip_prefix(b"data")? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

fn append(data: &mut Option<Vec<u8>>, value: &[u8]) -> Result<(), TooLong> {
    let Some(data) = data else {
        *data = Some(value.to_vec());
        return Ok(());
    };
    if data.len() + value.len() >= LINE_BYTES_MAX {
        return Err(TooLong);
    }
    data.push(b'\n');
    data.extend_from_slice(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&[u8]]) -> Result<Vec<String>, TooLong> {
        let mut splitter = EventSplitter::default();
        let mut events = Vec::new();
        for chunk in chunks {
            splitter.feed(chunk, &mut events)?;
        }
        events.extend(splitter.finish()?);
        let text = |event| String::from_utf8(event).unwrap();
        Ok(events.into_iter().map(text).collect())
    }

    const STREAM: &str = "\u{feff}: hello\r\ndata: {\"a\":1}\r\n\r\nevent: x\nid: 7\ndata:two\n\
        data: lines\n\n: ping\n\ndatabase: no\n\rdata\r\rdata:  日本語\n\ndata: [DONE]\n\n";

    #[test]
    fn every_form_of_line_is_understood() {
        let expected = ["{\"a\":1}", "two\nlines", "", " 日本語", "[DONE]"];
        assert_eq!(split(&[STREAM.as_bytes()]).unwrap(), expected);
    }

    #[test]
    fn where_the_bytes_are_cut_makes_no_difference() {
        let whole = split(&[STREAM.as_bytes()]).unwrap();
        let bytes = STREAM.as_bytes();
        for size in 1..bytes.len() {
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            assert_eq!(split(&chunks).unwrap(), whole, "chunks of {size}");
        }
    }

    #[test]
    fn an_open_event_at_the_end_counts() {
        assert_eq!(split(&[b"data: last"]).unwrap(), ["last"]);
        assert_eq!(split(&[b"data: last\n"]).unwrap(), ["last"]);
        assert_eq!(split(&[b"data: one\ndata: two"]).unwrap(), ["one\ntwo"]);
        assert_eq!(split(&[b""]).unwrap(), Vec::<String>::new());
        assert_eq!(split(&[b": comment"]).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_line_may_not_grow_for_ever() {
        let chunk = vec![b'a'; 64 * 1024];
        let chunks: Vec<&[u8]> = std::iter::repeat_n(chunk.as_slice(), 17).collect();
        assert_eq!(split(&chunks), Err(TooLong));
    }

    #[test]
    fn nor_may_an_event_of_many_lines() {
        let line = format!("data: {}\n", "a".repeat(64 * 1024));
        let chunks: Vec<&[u8]> = std::iter::repeat_n(line.as_bytes(), 17).collect();
        assert_eq!(split(&chunks), Err(TooLong));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_give_the_same_events_in_any_chunks(
            bytes in proptest::collection::vec(
                proptest::sample::select(b"data: \r\n\xff{x".to_vec()), 0..200),
            size in 1_usize..50,
        ) {
            let events = |chunks: &[&[u8]]| {
                let mut splitter = EventSplitter::default();
                let mut events = Vec::new();
                for chunk in chunks {
                    splitter.feed(chunk, &mut events).unwrap();
                }
                events.extend(splitter.finish().unwrap());
                events
            };
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            proptest::prop_assert_eq!(events(&chunks), events(&[bytes.as_slice()]));
        }
    }
}
