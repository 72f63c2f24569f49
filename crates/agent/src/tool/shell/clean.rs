//! Cleaning the output of commands: what a terminal would act on goes, what it would show stays.
//!
//! Works on pieces as they come; a sequence or a line may be cut anywhere between them.

/// Takes escape sequences and control characters out, but for newlines, tabs and carriage returns.
#[derive(Debug, Default)]
pub(crate) struct Escapes(EscapeState);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// In a control sequence, which ends with a letter or the like.
    Sequence,
    /// In a message to the terminal, a title or a link, which ends with BEL or ESC `\`.
    Message,
    /// After ESC in such a message.
    EndOfMessage,
}

impl Escapes {
    /// What is left of the next piece.
    pub(crate) fn strip(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut clean = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.0 == EscapeState::Text {
                let end = rest.iter().position(|byte| is_control(*byte)).unwrap_or(rest.len());
                clean.extend_from_slice(&rest[..end]);
                rest = &rest[end..];
            }
            if let Some((byte, behind)) = rest.split_first() {
                self.0 = self.0.after(*byte);
                rest = behind;
            }
        }
        clean
    }
}

impl EscapeState {
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::EndOfMessage, b'\\') | (Self::Message, 0x07) => Self::Text,
            (Self::Message, 0x1b) => Self::EndOfMessage,
            (Self::Message | Self::EndOfMessage, _) => Self::Message,
            (_, 0x1b) => Self::Escape,
            (Self::Escape, b'[') => Self::Sequence,
            (Self::Escape, b']' | b'P' | b'X' | b'^' | b'_') => Self::Message,
            (Self::Escape, 0x20..=0x2f) => Self::Escape,
            (Self::Sequence, 0x20..=0x3f) => Self::Sequence,
            (Self::Text | Self::Escape | Self::Sequence, _) => Self::Text,
        }
    }
}

fn is_control(byte: u8) -> bool {
    (byte < 0x20 && !matches!(byte, b'\n' | b'\t' | b'\r')) || byte == 0x7f
}

/// A line longer than this is passed on before it ends.
const MAX_LINE: usize = 32 << 10;

/// Collapses what a carriage return overwrites: of a progress bar the last state is left.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    line: Vec<u8>,
    is_returned: bool,
}

impl Lines {
    /// The lines that the next piece completes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut done = Vec::with_capacity(bytes.len());
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (text, end) = match piece.split_last() {
                Some((end @ (b'\n' | b'\r'), text)) => (text, Some(*end)),
                _ => (piece, None),
            };
            if !text.is_empty() && std::mem::take(&mut self.is_returned) {
                self.line.clear();
            }
            self.line.extend_from_slice(text);
            match end {
                Some(b'\n') => {
                    self.is_returned = false;
                    self.line.push(b'\n');
                    done.append(&mut self.line);
                }
                Some(_) => self.is_returned = true,
                None if self.line.len() > MAX_LINE => done.append(&mut self.line),
                None => {}
            }
        }
        done
    }

    /// The line that has not ended yet.
    pub(crate) fn flush(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.line)
    }
}

/// Turns pieces into texts without cutting characters.
#[derive(Debug, Default)]
pub(crate) struct Utf8(Vec<u8>);

impl Utf8 {
    /// The text up to the last whole character.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let cut = self.0.utf8_chunks().last().map_or(0, |last| {
            // What is invalid at the very end may be the beginning of a character.
            let open = last.invalid();
            if std::str::from_utf8(open).is_err_and(|error| error.error_len().is_none()) { open.len() } else { 0 }
        });
        let open = self.0.split_off(self.0.len() - cut);
        let whole = std::mem::replace(&mut self.0, open);
        String::from_utf8_lossy(&whole).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(pieces: &[&[u8]]) -> String {
        let (mut escapes, mut lines, mut all) = (Escapes::default(), Lines::default(), Vec::new());
        for piece in pieces {
            let stripped = escapes.strip(piece);
            all.extend(lines.feed(&stripped));
        }
        all.extend(lines.flush());
        String::from_utf8(all).expect("UTF-8")
    }

    #[test]
    fn escape_sequences_go_wherever_they_are_cut() {
        let text: &[u8] = b"a\x1b[1;31mred\x1b[0m \x1b]0;title\x07b\x1b]8;;http://x\x1b\\link\x1b(B\x07c";
        for cut in 0..text.len() {
            assert_eq!(clean(&[&text[..cut], &text[cut..]]), "ared blinkc", "cut at {cut}");
        }
    }

    #[test]
    fn a_progress_bar_leaves_its_last_state() {
        assert_eq!(clean(&[b" 10%\r 20%\r", b"100%\ndone\r\nend"]), "100%\ndone\nend");
        assert_eq!(clean(&[b"10%\r", b"\r\n"]), "10%\n");
    }

    #[test]
    fn characters_are_not_cut() {
        let mut text = Utf8::default();
        assert_eq!(text.feed("aé".as_bytes().split_at(2).0), "a");
        assert_eq!(text.feed(&"é".as_bytes()[1..]), "é");
        assert_eq!(text.feed(b"\xff\xe2\x82"), "\u{fffd}");
        assert_eq!(text.feed(b"\xac"), "€");
    }
}
