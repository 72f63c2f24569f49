//! Home directories, which the engine refuses as workspaces: `$HOME` and those of people in `/etc/passwd`.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::read_if_possible;

/// User ids of people; between root and these are system accounts, whose "homes" are places like `/var/lib/x`.
const PEOPLE: RangeInclusive<u32> = 1000..=60_000;

/// `home` and the home directories of root and of people, as far as they exist; canonical, as the workspace's root is.
pub fn find(home: Option<&Path>) -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = home.map(Path::to_owned).into_iter().collect();
    homes.extend(read_if_possible(Path::new("/etc/passwd")).map(|text| in_passwd(&text)).unwrap_or_default());
    let mut homes: Vec<PathBuf> =
        homes.iter().filter(|dir| dir.is_absolute()).filter_map(|dir| dir.canonicalize().ok()).collect();
    homes.retain(|dir| is_real(dir));
    homes.sort();
    homes.dedup();
    homes
}

fn in_passwd(text: &[u8]) -> Vec<PathBuf> {
    text.split(|&byte| byte == b'\n').filter_map(home_in_line).collect()
}

/// `name:password:uid:gid:comment:home:shell`
fn home_in_line(line: &[u8]) -> Option<PathBuf> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b':').collect();
    let [_, _, uid, _, _, home, ..] = fields[..] else { return None };
    let uid: u32 = str::from_utf8(uid).ok()?.parse().ok()?;
    (uid == 0 || PEOPLE.contains(&uid)).then(|| PathBuf::from(OsStr::from_bytes(home)))
}

/// Daemons and containers often have `/` or a directory that does not exist; neither is anybody's home.
fn is_real(dir: &Path) -> bool {
    dir != Path::new("/") && dir != Path::new("/nonexistent") && dir.is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_and_root_have_homes_and_system_accounts_do_not() {
        let passwd = b"root:x:0:0:root:/root:/bin/sh\n\
            daemon:x:1:1::/usr/sbin:/sbin/nologin\n\
            ann:x:1000:1000:Ann,,,:/home/ann:/bin/sh\n\
            nobody:x:65534:65534::/nonexistent:/sbin/nologin\n\
            +broken\n";
        assert_eq!(in_passwd(passwd), [PathBuf::from("/root"), PathBuf::from("/home/ann")]);
    }

    #[test]
    fn only_directories_below_the_root_count() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let home = dir.path().canonicalize().expect("it exists");
        assert!(!find(Some(Path::new("/"))).contains(&PathBuf::from("/")));
        assert!(!find(Some(&home.join("gone"))).contains(&home.join("gone")));
        assert!(find(Some(&home)).contains(&home));
    }

    #[test]
    fn a_home_behind_a_symlink_is_found_where_it_is() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let real = dir.path().canonicalize().expect("it exists").join("real");
        std::fs::create_dir(&real).expect("it is new");
        std::os::unix::fs::symlink(&real, dir.path().join("home")).expect("it is new");
        assert!(find(Some(&dir.path().join("home"))).contains(&real));
    }
}
