//! Which paths are allowed, and how a file is opened so that the answer still holds when it is open.

use std::fs::File;
use std::io::ErrorKind as Io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use fimble_toolkit::{ErrorKind, ToolError};
use rustix::fs::{Mode, OFlags, ResolveFlags};

/// The allowed folders, canonical.
#[derive(Debug)]
pub(crate) struct Roots(Vec<PathBuf>);

/// A path that is allowed: the root it is in, and its own canonical form.
#[derive(Debug)]
pub(crate) struct Allowed<'roots> {
    root: &'roots Path,
    pub(crate) path: PathBuf,
}

impl Roots {
    pub(crate) fn new(roots: Vec<PathBuf>) -> Self {
        Self(roots.into_iter().filter_map(|root| root.canonicalize().ok()).collect())
    }

    /// The path with all links followed, if it is there and within a root.
    pub(crate) fn resolve(&self, path: &str) -> Result<Allowed<'_>, ToolError> {
        let first = self.0.first().ok_or_else(|| ToolError::unavailable("no folder is open to files_toolkit"))?;
        let asked = first.join(path);
        match asked.canonicalize() {
            Ok(found) => match self.root_of(&found) {
                Some(root) => Ok(Allowed { root, path: found }),
                None => Err(self.denied(path)),
            },
            // What is outside is refused whether it is there or not, lest the answer tell.
            Err(_) if self.leads_outside(&asked) => Err(self.denied(path)),
            Err(error) => Err(self.failed(path, &error)),
        }
    }

    /// The path as a later call may name it: relative to the first root where it is within that.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let relative = self.0.first().and_then(|first| path.strip_prefix(first).ok());
        match relative {
            Some(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
            Some(relative) => relative.display().to_string(),
            None => path.display().to_string(),
        }
    }

    /// What the system said about a path.
    pub(crate) fn failed(&self, path: &str, error: &std::io::Error) -> ToolError {
        match error.kind() {
            Io::NotFound | Io::NotADirectory => {
                ToolError::not_found(format!("there is no file or folder `{path}`")).with_hint(self.hint())
            }
            Io::PermissionDenied => ToolError::new(ErrorKind::Forbidden, format!("the user may not read `{path}`")),
            _ => ToolError::failed(format!("`{path}` cannot be read: {error}")),
        }
    }

    fn root_of(&self, path: &Path) -> Option<&Path> {
        self.0.iter().find(|root| path.starts_with(root)).map(PathBuf::as_path)
    }

    /// True if the part of `path` that is there is outside all roots.
    fn leads_outside(&self, path: &Path) -> bool {
        let there = path.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
        there.is_none_or(|there| self.root_of(&there).is_none())
    }

    fn denied(&self, path: &str) -> ToolError {
        ToolError::new(ErrorKind::Forbidden, format!("`{path}` is outside the folders that files_toolkit may read"))
            .with_hint(self.hint())
    }

    fn hint(&self) -> String {
        let roots: Vec<String> = self.0.iter().map(|root| format!("`{}`", root.display())).collect();
        match roots.as_slice() {
            [only] => format!("paths are relative to {only}"),
            _ => format!("the folders are {}; relative paths start at the first", roots.join(", ")),
        }
    }
}

impl Allowed<'_> {
    /// Opens the file for reading. It is beneath the root even if a folder on the way became a link meanwhile.
    pub(crate) fn open(&self) -> std::io::Result<File> {
        let root: OwnedFd = File::open(self.root)?.into();
        let relative = self.path.strip_prefix(self.root).unwrap_or(&self.path);
        let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        // Without `NONBLOCK` a named pipe would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        Ok(File::from(rustix::fs::openat2(root, relative, flags, Mode::empty(), resolve)?))
    }

    /// The same root, another path within it, which was found without following links.
    pub(crate) fn beside(&self, path: PathBuf) -> Self {
        Self { root: self.root, path }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_becomes_a_link_after_the_check_is_not_followed() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = folder.path();
        fs::create_dir(root.join("src")).unwrap();
        fs::write(root.join("src/file"), "inside").unwrap();
        fs::write(root.join("plain"), "inside").unwrap();
        fs::write(outside.path().join("file"), "outside").unwrap();
        let roots = Roots::new(vec![root.to_owned()]);
        let (within, plain) = (roots.resolve("src/file").unwrap(), roots.resolve("plain").unwrap());
        assert_eq!(std::io::read_to_string(within.open().unwrap()).unwrap(), "inside");
        fs::rename(root.join("src"), root.join("away")).unwrap();
        symlink(outside.path(), root.join("src")).unwrap();
        fs::remove_file(root.join("plain")).unwrap();
        symlink(outside.path().join("file"), root.join("plain")).unwrap();
        for allowed in [within, plain] {
            let error = allowed.open().unwrap_err();
            assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::LOOP.raw_os_error()));
        }
    }
}
