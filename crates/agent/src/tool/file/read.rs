//! `read_file`: a file's lines, or an image.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use retake_engine::session::entry::{Outcome, Part};

use super::kind::{self, FileKind, SNIFFED};
use crate::image::is_sound;
use crate::tool::arguments::{ArgumentKind, Arguments, optional, required};
use crate::tool::run::{Stop, reading};
use crate::tool::toolbox::{Tool, ToolContext};
use crate::tool::{Access, Output, Prepared};

const MAX_LINES: u64 = 2000;
const MAX_BYTES: usize = 100_000;
/// What of one line is shown, in bytes.
const MAX_LINE: usize = 2000;
/// Providers refuse larger images.
const MAX_IMAGE: u64 = 3_700_000;
/// Up to here the lines behind those shown are counted.
const MAX_COUNTED: u64 = 32 << 20;

pub(crate) const READ: Tool = Tool {
    name: "read_file",
    description: "Reads a file of the workspace. Text comes with line numbers, as `number<TAB>line`; the number and the tab are not part of \
the file. PNG, JPEG, GIF and WebP images are shown to you as images. Other binary files are not shown.\n\nRead a file before you edit or \
overwrite it. At most 2000 lines and 100 KB are returned, lines longer than 2000 bytes are cut; for the rest of a long file give `offset` \
and `limit`. To find something in a large file use `grep` instead, for a directory `list_dir`.",
    arguments: &[
        required("path", ArgumentKind::Text, "Path of the file, relative to the workspace."),
        optional("offset", ArgumentKind::Integer(1), "First line to read, counted from 1. Default: 1."),
        optional("limit", ArgumentKind::Integer(1), "How many lines to read. Default and maximum: 2000."),
    ],
    prepare,
};

fn prepare(bench: &ToolContext, arguments: &Arguments) -> Result<Prepared, Output> {
    let given = arguments.text("path").to_owned();
    let real = bench.places.to_read(&given)?;
    let window = LineRange {
        first: arguments.integer("offset").unwrap_or(1),
        limit: arguments.integer("limit").unwrap_or(MAX_LINES).min(MAX_LINES),
    };
    let title = format!("read {}", bench.places.name(&real));
    let bench = bench.clone();
    let run = reading(move |stop| read(&bench, &given, &real, window, stop));
    Ok(Prepared::new(title, Access::Reads, run))
}

/// The lines that are wanted.
#[derive(Clone, Copy)]
struct LineRange {
    first: u64,
    limit: u64,
}

fn read(bench: &ToolContext, given: &str, real: &Path, window: LineRange, stop: &Stop) -> Output {
    // Asked first: opening a pipe would wait for whoever writes to it.
    let metadata = match fs::metadata(real) {
        Ok(metadata) if metadata.is_dir() => {
            return Output::failed(format!("`{given}` is a directory; use `list_dir` to see what is in it."));
        }
        Ok(metadata) if metadata.is_file() => metadata,
        Ok(_) => return Output::failed(format!("`{given}` is neither a file nor a directory and cannot be read.")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return missing(bench, given, real),
        Err(error) => return cannot(given, &error),
    };
    let read = File::open(real).and_then(|mut file| {
        let mut start = Vec::new();
        (&mut file).take(SNIFFED as u64).read_to_end(&mut start)?;
        file.rewind()?;
        match kind::sniff(&start) {
            FileKind::Text => lines(file, metadata.len(), window, stop).map(|shown| shown.tell(given)),
            FileKind::Image(media_type) => image(file, given, metadata.len(), media_type),
            FileKind::Binary(what) => Ok(Output::failed(format!(
                "`{given}` is {what} ({}) and is not shown. If you need something of it, use a command that understands it.",
                kind::size_in_words(metadata.len())
            ))),
        }
    });
    match read {
        Ok(output) => {
            if output.outcome == Outcome::Done {
                bench.seen.note(real, &metadata);
            }
            output
        }
        Err(error) => cannot(given, &error),
    }
}

/// What reading a text file says, if that shows every byte of it but for the kind of its line ends.
pub(super) fn whole(real: &Path) -> Option<String> {
    let file = File::open(real).ok()?;
    let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
    let shown = lines(file, metadata.len(), LineRange { first: 1, limit: MAX_LINES }, &Stop::default()).ok()?;
    let is_whole = shown.total == Some(shown.count) && shown.count > 0 && shown.cut == 0 && !shown.is_lossy;
    is_whole.then(|| shown.tell("").text())
}

fn cannot(given: &str, error: &io::Error) -> Output {
    Output::failed(format!("`{given}` cannot be read: {error}."))
}

fn image(mut file: File, given: &str, size: u64, media_type: &str) -> io::Result<Output> {
    if size > MAX_IMAGE {
        let size = kind::size_in_words(size);
        return Ok(Output::failed(format!(
            "`{given}` is an image of {size}, too large to be shown; make a smaller copy first."
        )));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    if !is_sound(media_type, &bytes) {
        return Ok(Output::failed(format!(
            "`{given}` begins like an image ({media_type}), but is none or is damaged, and is not shown."
        )));
    }
    let text = format!("`{given}` ({media_type}, {}):", kind::size_in_words(size));
    let image = Part::Image { media_type: media_type.to_owned(), data: STANDARD.encode(bytes) };
    let mut output = Output::done(text);
    output.parts.push(image);
    Ok(output)
}

/// Lines as the model gets them.
#[derive(Default)]
struct ShownLines {
    text: String,
    first: u64,
    /// How many lines are shown.
    count: u64,
    /// How many lines there are, if they could be counted.
    total: Option<u64>,
    cut: u64,
    is_lossy: bool,
    ends_without_newline: bool,
}

fn lines(file: File, size: u64, window: LineRange, stop: &Stop) -> io::Result<ShownLines> {
    let mut shown = ShownLines { first: window.first, ..ShownLines::default() };
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let (mut number, mut line) = (0, Vec::new());
    loop {
        line.clear();
        // A line without end must not fill the memory.
        let read = (&mut reader).take(1 << 20).read_until(b'\n', &mut line)?;
        if read == 0 {
            shown.total = Some(number);
            return Ok(shown);
        }
        let is_whole = line.ends_with(b"\n");
        if !is_whole && read == 1 << 20 {
            skip_line(&mut reader)?;
        }
        number += 1;
        let is_full = shown.count >= window.limit || shown.text.len() >= MAX_BYTES;
        if number >= window.first && !is_full {
            shown.push(number, &line, read);
            shown.ends_without_newline = !is_whole;
        }
        if stop.is_set() || (is_full && size > MAX_COUNTED) {
            return Ok(shown);
        }
    }
}

fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => {
                reader.consume(at + 1);
                return Ok(());
            }
            None if buffer.is_empty() => return Ok(()),
            None => {
                let length = buffer.len();
                reader.consume(length);
            }
        }
    }
}

impl ShownLines {
    fn push(&mut self, number: u64, line: &[u8], length: usize) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let end = (0..=line.len().min(MAX_LINE)).rev().find(|at| is_boundary(line, *at)).unwrap_or(0);
        let text = String::from_utf8_lossy(&line[..end]);
        self.is_lossy |= matches!(text, std::borrow::Cow::Owned(_));
        self.count += 1;
        let written = if end < line.len() {
            self.cut += 1;
            writeln!(self.text, "{number:>6}\t{text}[… {} more bytes of this line …]", length - end)
        } else {
            writeln!(self.text, "{number:>6}\t{text}")
        };
        written.expect("a String takes everything");
    }

    fn tell(self, given: &str) -> Output {
        let last = self.first + self.count.saturating_sub(1);
        let mut remarks = Vec::new();
        match self.total {
            Some(0) => return Output::done(format!("`{given}` is empty.")),
            Some(total) if self.count == 0 => {
                return Output::failed(format!("`{given}` ends with line {total}; there is no line {}.", self.first));
            }
            Some(total) if last < total => {
                remarks.push(format!("Lines {} to {last} of {total}; go on with offset {}.", self.first, last + 1));
            }
            Some(_) if self.ends_without_newline => remarks.push("The last line has no newline at its end.".to_owned()),
            Some(_) => {}
            None => remarks.push(format!(
                "Lines {} to {last}, and more follow; go on with offset {}.",
                self.first,
                last + 1
            )),
        }
        if self.cut > 0 {
            remarks.push(format!("Lines that were too long and cut: {}. `grep` finds what is in them.", self.cut));
        }
        if self.is_lossy {
            remarks.push(
                "The file is not UTF-8: bytes that are none are shown as \u{fffd}. `edit_file` keeps all bytes it does not replace, but \
                 cannot match these."
                    .to_owned(),
            );
        }
        let remarks: String = remarks.iter().map(|remark| format!("[{remark}]\n")).collect();
        Output::done(format!("{}{remarks}", self.text))
    }
}

/// Whether no UTF-8 character is cut here.
fn is_boundary(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_none_or(|byte| byte & 0xc0 != 0x80)
}

/// Says that there is no such file, and which names are near.
fn missing(bench: &ToolContext, given: &str, real: &Path) -> Output {
    let near = near_names(bench, real);
    let hint = match near.is_empty() {
        true => "Use `glob` or `list_dir` to see which files there are.".to_owned(),
        false => {
            format!("Did you mean {}?", near.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or "))
        }
    };
    Output::failed(format!("There is no file `{given}`. {hint}"))
}

/// Up to three names of the same directory that are spelled alike.
fn near_names(bench: &ToolContext, real: &Path) -> Vec<String> {
    let (Some(parent), Some(wanted)) = (real.parent(), real.file_name()) else { return Vec::new() };
    let wanted = wanted.to_string_lossy().to_lowercase();
    let entries = fs::read_dir(parent).into_iter().flatten().flatten().take(10_000);
    let mut near: Vec<(usize, String)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().to_lowercase();
            let same_stem = Path::new(&name).file_stem() == Path::new(&wanted).file_stem();
            let distance = if same_stem { 1 } else { distance(&wanted, &name) };
            (distance <= 1 + wanted.len() / 4).then(|| (distance, bench.places.name(&entry.path())))
        })
        .collect();
    near.sort();
    near.truncate(3);
    near.into_iter().map(|(_, name)| name).collect()
}

/// How many characters have to be changed, added or taken away.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(x != *y)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}
