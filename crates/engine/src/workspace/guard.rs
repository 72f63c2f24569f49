//! Guards: which directories are refused as a workspace.

use std::path::{Path, PathBuf};

use crate::base::settings::Breadth;

/// Why `root` is too broad, if it is.
pub(crate) fn too_broad(root: &Path, homes: &[PathBuf], breadth: Breadth) -> Option<&'static str> {
    if breadth == Breadth::AllowBroad {
        return None;
    }
    if root.parent().is_none() {
        return Some("it is the root of the file system");
    }
    if homes.iter().any(|home| home == root) {
        return Some("it is a home directory");
    }
    homes.iter().any(|home| home.starts_with(root)).then_some("there is a home directory in it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_and_what_is_above_it_are_too_broad() {
        let homes = [PathBuf::from("/home/ann")];
        let verdict = |root: &str| too_broad(Path::new(root), &homes, Breadth::Guarded).is_some();
        assert!(verdict("/"));
        assert!(verdict("/home"));
        assert!(verdict("/home/ann"));
        assert!(!verdict("/home/ann/project"));
        assert!(!verdict("/home/annabel"));
        assert!(too_broad(Path::new("/"), &homes, Breadth::AllowBroad).is_none());
    }
}
