//! The key that signs cookies: random, in the store's directory, readable by the user only.
//!
//! It outlives the server, so that one which is started again on the same port knows its tabs. A key that others could have read, or that
//! is no key, is replaced: then tabs have to be opened anew, and nothing else is lost. What is no file at all is somebody else's, and stays.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The file's name.
const FILE: &str = "web.key";

/// Signs cookies.
pub(crate) type CookieKey = [u8; 32];

/// The key of the store in `directory`, which is made if there is none.
pub(crate) fn load(directory: &Path) -> io::Result<CookieKey> {
    let path = directory.join(FILE);
    if let Some(key) = read(&path)? {
        return Ok(key);
    }
    let key = random();
    let fresh = directory.join(format!("{FILE}.{}", hex(&random()[..8])));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let linked = file.write_all(&key).and_then(|()| file.sync_all()).and_then(|()| fs::hard_link(&fresh, &path));
    let done = match linked {
        // Another server was faster, or what is there is no key.
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => match read(&path)? {
            Some(theirs) => Ok(theirs),
            None => return fs::rename(&fresh, &path).map(|()| key),
        },
        linked => linked.map(|()| key),
    };
    fs::remove_file(&fresh)?;
    done
}

/// The key, if it is there, whole, and nobody else's.
fn read(path: &Path) -> io::Result<Option<CookieKey>> {
    let mut file = match OpenOptions::new().read(true).custom_flags(FLAGS).open(path) {
        Ok(file) => file,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        // A link, say.
        Err(_) if fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_symlink()) => return Ok(None),
        Err(err) => return Err(err),
    };
    let meta = file.metadata()?;
    if !meta.is_file() {
        let text =
            format!("`{}` is there and is no file; once it is out of the way, a key is put there", path.display());
        return Err(io::Error::other(text));
    }
    let mut key = CookieKey::default();
    let is_ours = meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o077 == 0;
    if !is_ours || meta.len() != key.len() as u64 {
        return Ok(None);
    }
    file.read_exact(&mut key)?;
    Ok(Some(key))
}

/// Opening a link fails, and opening a pipe does not wait for somebody who writes to it.
const FLAGS: i32 = rustix::fs::OFlags::NOFOLLOW.union(rustix::fs::OFlags::NONBLOCK).bits() as i32;

/// Random bytes that nobody can guess.
pub(crate) fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    retake_agent::ids::fill(&mut bytes);
    bytes
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may")]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_key_is_made_once_and_is_the_users_alone() {
        let dir = tempfile::tempdir().unwrap();
        let key = load(dir.path()).unwrap();
        assert_eq!(load(dir.path()).unwrap(), key);
        assert_eq!(fs::metadata(dir.path().join(FILE)).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn what_is_no_file_in_the_place_of_the_key_is_refused_at_once_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        for make in ["mkfifo", "mkdir"] {
            let made = std::process::Command::new(make).arg(&path).status().unwrap();
            assert!(made.success());
            let said = load(dir.path()).unwrap_err().to_string();
            assert!(said.contains("web.key` is there and is no file"), "{said}");
            assert!(fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).is_ok());
        }
    }

    #[test]
    fn a_key_that_others_could_have_read_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let key = load(dir.path()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let second = load(dir.path()).unwrap();
        assert_ne!(key, second);
        fs::write(&path, "short").unwrap();
        let third = load(dir.path()).unwrap();
        assert_ne!(second, third);
        fs::rename(&path, dir.path().join("elsewhere")).unwrap();
        symlink(dir.path().join("elsewhere"), &path).unwrap();
        assert_ne!(load(dir.path()).unwrap(), third, "a link is not followed");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }
}
