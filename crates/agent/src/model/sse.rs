//! Server-sent events: finds the data of each event in bytes that come in any pieces.
//!
//! Only `data` matters to us; names, ids and comments are passed over. Lines end in CR, LF or both. Lengths are bounded: a server
//! that never ends a line is an error, not a full memory.
//!
//! Written by hand, because the crates for it bound neither lines nor events, and reconnect, which a model's answer must not.

use thiserror::Error;

/// Far more than any answer has; an image in a single event fits.
const MAX_EVENT: usize = 32 * 1024 * 1024;

/// A line or an event is longer than any sensible server sends.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("an event of the answer is longer than {MAX_EVENT} bytes")]
pub(crate) struct TooLong;

/// What was read so far.
#[derive(Debug, Default)]
pub(crate) struct Sse {
    /// A line that has not ended.
    line: Vec<u8>,
    /// The data of an event that has not ended.
    data: Option<Vec<u8>>,
    /// The last byte was a CR: an LF right after it belongs to it.
    after_cr: bool,
    begun: bool,
}

impl Sse {
    /// Takes `bytes` and gives the data of the events that they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut events = Vec::new();
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
                self.extend_line(bytes)?;
                break;
            };
            self.extend_line(&bytes[..end])?;
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            events.extend(self.end_line()?);
        }
        Ok(events)
    }

    /// The last event, if the stream ended without the empty line after it. A line that was cut is no event.
    pub(crate) fn finish(mut self) -> Option<String> {
        self.take_event()
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + bytes.len() > MAX_EVENT {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Result<Option<String>, TooLong> {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.begun, true) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() {
            return Ok(self.take_event());
        }
        let Some(value) = line.strip_prefix(b"data") else { return Ok(None) };
        let value = match value {
            [b':', b' ', value @ ..] | [b':', value @ ..] => value,
            [] => value,
            _ => return Ok(None),
        };
        match &mut self.data {
            None => self.data = Some(value.to_vec()),
            Some(data) if data.len() + value.len() < MAX_EVENT => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            Some(_) => return Err(TooLong),
        }
        Ok(None)
    }

    fn take_event(&mut self) -> Option<String> {
        self.data.take().map(|data| String::from_utf8_lossy(&data).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_in_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut sse = Sse::default();
        let mut events = Vec::new();
        for piece in pieces {
            events.extend(sse.push(piece).expect("it is good"));
        }
        events.extend(sse.finish());
        events
    }

    fn read(text: &str) -> Vec<String> {
        read_in_pieces([text.as_bytes()])
    }

    #[test]
    fn the_data_of_each_event_is_found() {
        assert_eq!(read("event: a\ndata: one\n\ndata:two\nid: 3\n\n"), ["one", "two"]);
    }

    #[test]
    fn lines_of_data_are_joined_and_one_space_is_taken_off() {
        assert_eq!(read("data: a\ndata:  b\ndata\ndata:\n\n"), ["a\n b\n\n"]);
    }

    #[test]
    fn comments_unknown_fields_and_empty_events_are_passed_over() {
        assert_eq!(read("\u{feff}: OPENROUTER PROCESSING\n\nevent: ping\n\ndatum: no\ndata: yes\n\n"), ["yes"]);
    }

    #[test]
    fn an_event_without_the_empty_line_after_it_still_counts_but_a_cut_line_does_not() {
        assert_eq!(read("data: a\n\ndata: b\n"), ["a", "b"]);
        assert_eq!(read("data: a\n\ndata: {\"cut"), ["a"]);
    }

    #[test]
    fn every_split_and_every_line_end_gives_the_same_events() {
        let text = ": hi\nevent: x\ndata: {\"t\":\"grün 語 🎬\"}\n\ndata: a\ndata: b\n\n\ndata: last\n\n";
        for end in ["\n", "\r\n", "\r"] {
            let bytes = text.replace('\n', end).into_bytes();
            let whole = read_in_pieces([&bytes[..]]);
            assert_eq!(whole, ["{\"t\":\"grün 語 🎬\"}", "a\nb", "last"], "{end:?}");
            assert_eq!(read_in_pieces(bytes.chunks(1)), whole, "{end:?}");
            for at in 0..bytes.len() {
                assert_eq!(read_in_pieces([&bytes[..at], &bytes[at..]]), whole, "{end:?} at {at}");
            }
        }
    }

    #[test]
    fn a_line_that_never_ends_is_an_error() {
        let mut sse = Sse::default();
        let piece = vec![b'x'; 1024 * 1024];
        let error = (0..40).find_map(|_| sse.push(&piece).err());
        assert_eq!(error, Some(TooLong));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_in_any_pieces_give_the_same_events(
            bytes in proptest::collection::vec(proptest::sample::select(&b"data: x\r\n:\xc3\xa4"[..]), 0..200),
            size in 1usize..20,
        ) {
            proptest::prop_assert_eq!(read_in_pieces(bytes.chunks(size)), read_in_pieces([&bytes[..]]));
        }
    }
}
