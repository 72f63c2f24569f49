//! Work trees for benches: deterministic, and shaped like a source repository.
//!
//! Lognormal file sizes (median about 4 KB), some binary files, folders up to seven deep, odd modes and names, a symlink, CRLF
//! files, `.gitattributes`, an ignored folder and `.env`, an empty directory. All of it is committed and packed, as in a
//! repository that has been in use; then the user's own work lies on top: staged, unstaged and untracked.

use std::f64::consts::TAU;
use std::fs;
use std::io::{BufWriter, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::shell::{read, run};

const WORDS: [&str; 17] = [
    "alpha", "beta", "gamma", "delta", "parse", "token", "store", "index", "render", "widget", "client", "server",
    "event", "queue", "cache", "field", "value",
];
const ENDINGS: [&str; 4] = ["", "_x", "2", "_id"];
const EXTENSIONS: [&str; 7] = ["rs", "ts", "py", "go", "md", "json", "css"];
const FILES_PER_FOLDER: usize = 12;
const MAX_DEPTH: usize = 7;
/// New folders go below one of this many youngest ones, so that the tree grows deep as well as wide.
const YOUNG: usize = 400;
const WRITERS: usize = 2;
/// Text files are put together from this many different lines, which costs less than making each line up.
const LINES: usize = 20_000;
const MAX_LINE: usize = 120;

/// Makes a tree of `files` files in the new folder `out`.
pub(super) fn make(out: &Path, files: usize, seed: u64) -> Result<()> {
    if out.exists() {
        bail!("{} exists already", out.display());
    }
    let start = Instant::now();
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let mut rng = Rng::new(seed, u64::MAX - 1);
    let lines = (0..LINES).map(|_| rng.line()).collect();
    let stock = Stock { folders: make_folders(out, files, seed)?, lines, seed };
    init(out)?;
    let blobs = Blobs::start(out)?;
    let write_share = |first| (first..files).step_by(WRITERS).try_for_each(|i| blobs.add(&write_file(out, &stock, i)?));
    thread::scope(|scope| -> Result<()> {
        let writers: Vec<_> = (0..WRITERS).map(|first| scope.spawn(move || write_share(first))).collect();
        writers.into_iter().try_for_each(|writer| writer.join().expect("a writer reports its errors"))
    })?;
    blobs.finish()?;
    put_odd_files(out)?;
    commit(out)?;
    put_user_state(out, seed)?;
    eprintln!("tree of {files} files in {}: {:.1} s", out.display(), start.elapsed().as_secs_f64());
    Ok(())
}

/// Asks ext4 to put each folder of `dir` in another part of the disk; a wish, so other file systems may ignore it.
pub(super) fn spread(dir: &Path) {
    if read(Command::new("chattr").arg("+T").arg(dir)).is_err() {
        eprintln!("note: the file system does not take `chattr +T`");
    }
}

/// What files are made from.
struct Stock {
    /// Relative to the tree.
    folders: Vec<PathBuf>,
    lines: Vec<Vec<u8>>,
    seed: u64,
}

/// Creates the folders and returns them, relative to `out`.
fn make_folders(out: &Path, files: usize, seed: u64) -> Result<Vec<PathBuf>> {
    let mut rng = Rng::new(seed, 0);
    let mut folders = vec![PathBuf::new()];
    let mut growing = vec![(PathBuf::new(), 0)];
    while folders.len() < (files / FILES_PER_FOLDER).max(8) {
        let (parent, depth) = rng.pick(&growing[growing.len().saturating_sub(YOUNG)..]).clone();
        let folder = parent.join(format!("{}{}", rng.word(), folders.len()));
        fs::create_dir(out.join(&folder)).with_context(|| format!("cannot create {}", folder.display()))?;
        if depth + 1 < MAX_DEPTH {
            growing.push((folder.clone(), depth + 1));
        }
        folders.push(folder);
    }
    Ok(folders)
}

/// Writes file number `i` and returns its content.
fn write_file(out: &Path, stock: &Stock, i: usize) -> Result<Vec<u8>> {
    // Each file has a generator of its own: the tree is the same however the writers share the work.
    let mut rng = Rng::new(stock.seed, 1 + i as u64);
    let size = ((8.3 + 1.2 * rng.normal()).exp() as usize).clamp(40, 400_000);
    let name = format!("{}_{i}.{}", rng.word(), rng.pick(&EXTENSIONS));
    let path = out.join(rng.pick(&stock.folders)).join(name);
    let content = if i.is_multiple_of(97) { rng.bytes(size) } else { rng.text(&stock.lines, size) };
    write(&path, &content)?;
    if i.is_multiple_of(333) {
        set_mode(&path, 0o664)?;
    } else if i.is_multiple_of(50) {
        set_mode(&path, 0o755)?;
    }
    Ok(content)
}

fn put_odd_files(out: &Path) -> Result<()> {
    write(&out.join("run.sh"), b"#!/bin/sh\necho hi\n")?;
    set_mode(&out.join("run.sh"), 0o755)?;
    write(&out.join("group_writable.txt"), b"shared\n")?;
    set_mode(&out.join("group_writable.txt"), 0o664)?;
    write(&out.join("name with space é.txt"), b"odd name\n")?;
    write(&out.join("crlf.txt"), b"one\r\ntwo\r\nno end")?;
    write(&out.join(".gitattributes"), b"dos.txt text=auto\n")?;
    write(&out.join("dos.txt"), b"one\r\ntwo\r\n")?;
    write(&out.join(".gitignore"), b"ignored/\n.env\n")?;
    symlink("run.sh", out.join("link")).context("cannot create the symlink")
}

fn init(out: &Path) -> Result<()> {
    run(git(out).args(["init", "-q", "-b", "main"]))?;
    for setting in ["user.name=bench", "user.email=bench@example.invalid", "gc.auto=0", "commit.gpgsign=false"] {
        let (name, value) = setting.split_once('=').expect("each setting is a pair");
        run(git(out).args(["config", name, value]))?;
    }
    Ok(())
}

fn commit(out: &Path) -> Result<()> {
    // Its warnings about CRLF are what the tree is made for.
    read(git(out).args(["add", "-A"]))?;
    run(git(out).args(["commit", "-q", "-m", "base"]))?;
    run(git(out).args(["gc", "-q", "--prune=now"]))
}

/// Contents on their way into a pack, so that `git add` finds them there: minutes less than a loose object for each.
struct Blobs {
    importer: Child,
    stream: Mutex<BufWriter<ChildStdin>>,
}

impl Blobs {
    fn start(out: &Path) -> Result<Self> {
        let mut command = git(out);
        command.args(["-c", "core.compression=1", "fast-import", "--quiet", "--depth=0"]);
        let mut importer = command.stdin(Stdio::piped()).spawn().context("cannot start `git fast-import`")?;
        let stdin = importer.stdin.take().expect("the standard input was piped above");
        Ok(Self { importer, stream: Mutex::new(BufWriter::new(stdin)) })
    }

    fn add(&self, content: &[u8]) -> Result<()> {
        let mut stream = self.stream.lock().expect("no writer panics while it holds the stream");
        write!(stream, "blob\ndata {}\n", content.len())?;
        stream.write_all(content)?;
        stream.write_all(b"\n").context("cannot feed `git fast-import`")
    }

    fn finish(mut self) -> Result<()> {
        let stream = self.stream.into_inner().expect("no writer panics while it holds the stream");
        drop(stream.into_inner().context("cannot feed `git fast-import`")?);
        let status = self.importer.wait()?;
        if !status.success() {
            bail!("`git fast-import` failed: {status}");
        }
        Ok(())
    }
}

fn put_user_state(out: &Path, seed: u64) -> Result<()> {
    let mut rng = Rng::new(seed, u64::MAX);
    for folder in ["empty_dir", "ignored", "untracked"] {
        fs::create_dir(out.join(folder)).with_context(|| format!("cannot create {folder}"))?;
    }
    write(&out.join(".env"), b"KEY=before\n")?;
    set_mode(&out.join(".env"), 0o600)?;
    for i in 0..50 {
        write(&out.join(format!("ignored/cache_{i}.bin")), &rng.bytes(3_000))?;
    }
    write(&out.join("staged.txt"), b"staged\n")?;
    run(git(out).args(["add", "staged.txt"]))?;
    write(&out.join("crlf.txt"), b"one\r\ntwo\r\nchanged, unstaged")?;
    write(&out.join("untracked_a.txt"), b"mine\n")?;
    write(&out.join("untracked/b.txt"), b"mine too\n")
}

fn git(out: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(out).envs(super::peers::GIT_ENV);
    command
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot chmod {}", path.display()))
}

/// SplitMix64: small, fast, and the same on every machine.
#[derive(Debug)]
struct Rng(u64);

impl Rng {
    fn new(seed: u64, stream: u64) -> Self {
        let mut rng = Self(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        rng.next();
        rng
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[(self.next() % from.len() as u64) as usize]
    }

    fn word(&mut self) -> String {
        format!("{}{}", self.pick(&WORDS), self.pick(&ENDINGS))
    }

    /// A number from the standard normal distribution (Box and Muller).
    fn normal(&mut self) -> f64 {
        let mut unit = || (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let (a, b) = (unit().max(f64::MIN_POSITIVE), unit());
        (-2.0 * a.ln()).sqrt() * (TAU * b).cos()
    }

    fn bytes(&mut self, size: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(size + 8);
        while bytes.len() < size {
            bytes.extend_from_slice(&self.next().to_le_bytes());
        }
        bytes.truncate(size);
        bytes
    }

    /// Lines drawn from `lines`, cut at `size`.
    fn text(&mut self, lines: &[Vec<u8>], size: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(size + MAX_LINE);
        while text.len() < size {
            text.extend_from_slice(self.pick::<Vec<u8>>(lines));
        }
        text.truncate(size);
        text
    }

    /// An indented line of words: files made of such lines compress about as well as source text.
    fn line(&mut self) -> Vec<u8> {
        let indent = "    ".repeat((self.next() % 4) as usize);
        let words: Vec<String> = (0..3 + self.next() % 9).map(|_| self.word()).collect();
        format!("{indent}{}\n", words.join(" ")).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_tree_and_sizes_have_the_median_of_source_files() {
        let size = |i| (8.3 + 1.2 * Rng::new(1, i).normal()).exp() as usize;
        let mut sizes: Vec<usize> = (1..2_000).map(size).collect();
        assert_eq!(sizes, (1..2_000).map(size).collect::<Vec<_>>());
        sizes.sort_unstable();
        assert!((3_500..4_500).contains(&sizes[1_000]), "median {}", sizes[1_000]);
    }

    #[test]
    fn content_has_the_size_asked_for() {
        for size in [40, 41, 5_000] {
            let mut rng = Rng::new(1, 7);
            let lines = [rng.line(), rng.line()];
            assert_eq!((rng.text(&lines, size).len(), rng.bytes(size).len()), (size, size));
        }
    }
}
