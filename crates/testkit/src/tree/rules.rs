//! Carrying out steps: rule files, and what git tracks in spite of them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::apply::{make_special, remove};
use super::change::{modified, set_modified};
use super::kinds::Happened;
use super::pools::RULE_LINES;
use super::sandbox::{Attempt, Impossible, Is, Sandbox, shown};
use super::step::{Pick, RuleChange, RuleName, Special};

impl Sandbox<'_> {
    pub(super) fn change_rules(&mut self, dir: Pick, name: RuleName, change: &RuleChange) -> Attempt {
        let (path, shown) = self.rule_file(dir, name)?;
        let existed = fs::symlink_metadata(&path).is_ok();
        let happened = match change {
            RuleChange::Lines(lines) => write(&path, &text(lines, b"", b"\n"), existed)?,
            RuleChange::Windows(lines) => write(&path, &text(lines, b"\xef\xbb\xbf", b"\r\n"), existed)?,
            RuleChange::SameSizeSameTime => rewrite_at_same_size(&path)?,
            RuleChange::Remove => {
                remove(&path)?;
                Happened::RulesRemoved
            }
            // Git would never start with any of these in place of `info/exclude` or the global excludes.
            _ if matches!(name, RuleName::Exclude | RuleName::Global) => return Err(Impossible),
            RuleChange::Directory => {
                clear(&path)?;
                fs::create_dir(&path)?;
                fs::write(path.join("a.o"), "rules for nobody\n")?;
                Happened::RulesDirectory
            }
            RuleChange::Link => {
                clear(&path)?;
                let rules = self.outside.join("rules");
                fs::write(&rules, "*\n")?;
                symlink(&rules, &path)?;
                Happened::RulesLink
            }
            RuleChange::Fifo => {
                clear(&path)?;
                make_special(&path, Special::Fifo)?;
                Happened::RulesFifo
            }
        };
        match name {
            RuleName::Git if path.parent() != Some(&self.root) => self.counts.add(Happened::RulesBelow),
            RuleName::Git => {}
            RuleName::Ours => self.counts.add(Happened::RulesOurs),
            RuleName::Exclude => self.counts.add(Happened::RulesExclude),
            RuleName::Global => self.counts.add(Happened::RulesGlobal),
        }
        let is_file = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
        let now = if is_file { fs::read(&path)?.escape_ascii().to_string() } else { String::new() };
        self.done(happened, format!("{change:?} for {shown}: \"{now}\""))
    }

    pub(super) fn track(&mut self, what: Pick) -> Attempt {
        let path = self.pick(what, |found| !matches!(found.is, Is::Directory | Is::Special))?.path;
        let git = self.root.join(".git");
        if git.symlink_metadata().is_err() {
            fs::create_dir(&git)?;
            fs::write(git.join("HEAD"), "ref: refs/heads/main\n")?;
        }
        let name = path.as_os_str().as_bytes().to_vec();
        let (happened, line) = if self.tracked.remove(&name) {
            (Happened::Untracked, format!("track {} no more", shown(&path)))
        } else {
            self.tracked.insert(name);
            (Happened::Tracked, format!("track {}", shown(&path)))
        };
        // As git does: beside, then renamed.
        fs::write(git.join("index.lock"), index_of(&self.tracked))?;
        fs::rename(git.join("index.lock"), git.join("index"))?;
        self.done(happened, line)
    }

    fn rule_file(&mut self, dir: Pick, name: RuleName) -> Result<(PathBuf, String), Impossible> {
        let below = match name {
            RuleName::Git => self.directory(dir).join(".gitignore"),
            RuleName::Ours => self.directory(dir).join(".retakeignore"),
            RuleName::Exclude => {
                if self.repository(dir).is_err() {
                    self.nest(dir)?;
                }
                let info = self.repository(dir)?.join(".git/info");
                fs::create_dir_all(self.at(&info))?;
                info.join("exclude")
            }
            RuleName::Global => return Ok((self.global_excludes(), "the global excludes".to_owned())),
        };
        Ok((self.at(&below), shown(&below)))
    }
}

/// An index file of git's, version 2, with nothing true in it but the names.
fn index_of(names: &BTreeSet<Vec<u8>>) -> Vec<u8> {
    let count = u32::try_from(names.len()).expect("few names");
    let mut index = [b"DIRC".as_slice(), &2_u32.to_be_bytes(), &count.to_be_bytes()].concat();
    for name in names {
        let length = u16::try_from(name.len().min(0xfff)).expect("twelve bits");
        index.extend([[0; 60].as_slice(), &length.to_be_bytes(), name].concat());
        // One to eight zeros, to a multiple of eight from the entry's start.
        index.resize(index.len() + 8 - (62 + name.len()) % 8, 0);
    }
    index.extend([0; 20]);
    index
}

fn text(lines: &[u8], start: &[u8], end: &[u8]) -> Vec<u8> {
    let lines = lines.iter().map(|&line| [RULE_LINES[usize::from(line)], end].concat());
    [start.to_vec(), lines.collect::<Vec<_>>().concat()].concat()
}

fn write(path: &Path, text: &[u8], existed: bool) -> Result<Happened, Impossible> {
    if !path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
        clear(path)?;
    }
    fs::write(path, text)?;
    Ok(if existed { Happened::RulesChanged } else { Happened::RulesWritten })
}

/// Replaces the first line that has a partner of equal length in the pool, and puts the mtime back.
fn rewrite_at_same_size(path: &Path) -> Result<Happened, Impossible> {
    if !path.symlink_metadata()?.is_file() {
        return Err(Impossible);
    }
    let (old, before) = (fs::read(path)?, modified(path)?);
    let mut lines: Vec<&[u8]> = old.split(|&b| b == b'\n').collect();
    let partner = |line: &[u8]| {
        let at = RULE_LINES.iter().position(|known| *known == line)?;
        let round = RULE_LINES[at + 1..].iter().chain(&RULE_LINES[..at]);
        round.copied().find(|other| other.len() == line.len() && !line.is_empty())
    };
    let (at, new) =
        lines.iter().enumerate().find_map(|(at, line)| partner(line).map(|new| (at, new))).ok_or(Impossible)?;
    lines[at] = new;
    fs::write(path, lines.join(&b'\n'))?;
    set_modified(path, before)?;
    Ok(Happened::RulesSameSize)
}

fn clear(path: &Path) -> std::io::Result<()> {
    if fs::symlink_metadata(path).is_ok() { remove(path) } else { Ok(()) }
}
