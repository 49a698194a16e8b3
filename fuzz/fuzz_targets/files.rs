//! The files that people write: the configuration, and the manifest of a toolkit.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use fimble::config::{Config, Sources};
use fimble_manifest::Manifest;
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

fn written(name: &str, bytes: &[u8]) -> PathBuf {
    let path = FOLDER.path().join(name);
    std::fs::write(&path, bytes).expect("a file");
    path
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let sources = Sources {
        user_file: Some(written("config.toml", bytes)),
        flags: text.lines().map(str::to_owned).collect(),
        ..Sources::default()
    };
    let of_flags = Sources { user_file: None, ..sources.clone() };
    for sources in [sources, of_flags] {
        if let Err(error) = Config::read(&sources) {
            assert!(!error.to_string().is_empty());
        }
    }
    if let Err(problem) = Manifest::read(&written("toolkit.toml", bytes)) {
        assert!(!problem.to_string().is_empty());
    }
});
