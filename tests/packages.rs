//! Packages from wheels that the tests make: fetching, importing in the jail, and what is said when something is not there.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Writes a wheel: folder, package name, module name, source of the module.
const WHEEL: &str = "\
import sys, zipfile
folder, name, module, source = sys.argv[1:]
info = f'{name}-1.0.dist-info'
with zipfile.ZipFile(f'{folder}/{name}-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr(f'{module}/__init__.py', source)
    wheel.writestr(f'{info}/METADATA', f'Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n')
    wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(f'{info}/RECORD', ''.join(f'{one},,\\n' for one in (f'{module}/__init__.py', f'{info}/METADATA', f'{info}/WHEEL', f'{info}/RECORD')))
";

/// A home of its own for every test, which the jail's user may enter.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A requirement for a package with one module.
    fn wheel(&self, name: &str, module: &str, source: &str) -> String {
        let folder = self.path().to_str().unwrap();
        let made = Command::new("/usr/bin/python3").args(["-c", WHEEL, folder, name, module, source]).status().unwrap();
        assert!(made.success());
        format!("{name} @ file://{folder}/{name}-1.0-py3-none-any.whl")
    }

    fn configure(&self, packages: &[&str]) {
        std::fs::create_dir_all(self.path().join("config/fimble")).unwrap();
        let text = format!("[interpreter]\npackages = {packages:?}\n");
        std::fs::write(self.path().join("config/fimble/config.toml"), text).unwrap();
    }

    fn fimble(&self, arguments: &[&str], program: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fimble"));
        command.args(arguments).current_dir(self.path()).env_clear();
        let folders =
            [("HOME", ""), ("XDG_DATA_HOME", "data"), ("XDG_CONFIG_HOME", "config"), ("XDG_CACHE_HOME", "cache")];
        for (name, folder) in folders {
            command.env(name, self.path().join(folder));
        }
        command
            .env("PIP_NO_INDEX", "1")
            .env("USER", "tester")
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    fn run(&self, program: &str) -> (Option<i32>, String, String) {
        described(&self.fimble(&["run", "-"], program))
    }

    /// What lies in the folder of all packages, by name.
    fn kept(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path().join("cache/fimble/packages")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "lock").collect();
        names.sort();
        names
    }
}

fn described(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_configured_package_is_there_for_programs_once_it_was_made_ready() {
    let home = Home::new();
    let tiny = home.wheel(
        "Tiny_Sums",
        "tiny",
        "import os\nTHREADS = os.environ['OMP_NUM_THREADS']\ndef double(x):\n    return 2 * x\n",
    );
    home.configure(&[&tiny]);
    let (code, _, stderr) = home.run("import tiny\n");
    assert_eq!(code, Some(5), "{stderr}");
    assert!(stderr.contains("the configured packages are not there: Tiny_Sums @"), "{stderr}");
    assert!(stderr.ends_with("hint: `fimble packages sync` makes them ready\n"), "{stderr}");

    let (code, _, stderr) = described(&home.fimble(&["packages", "sync"], ""));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("trying them in the jail\nready: tiny-sums 1.0, in "), "{stderr}");
    let kept = home.kept();
    let (code, _, stderr) = described(&home.fimble(&["packages", "sync"], ""));
    assert!(code == Some(0) && stderr.starts_with("already there: tiny-sums 1.0, in "), "{stderr}");
    assert_eq!((home.kept(), kept.len()), (kept, 1));

    let ran = home.run("import tiny\nprint(tiny.double(21), tiny.THREADS)\n");
    assert_eq!(ran, (Some(0), "42 1\n".to_owned(), String::new()));
    let (code, stdout, _) = described(&home.fimble(&["packages", "list"], ""));
    let words: Vec<&str> = stdout.split_whitespace().collect();
    assert_eq!((code, words), (Some(0), vec!["tiny-sums", "1.0", "import", "tiny"]));
    let prompt = described(&home.fimble(&["prompt", "show", "What is 2 + 2?"], "")).1;
    assert!(prompt.contains("Programs can import the standard library and tiny-sums 1.0.\n"), "{prompt}");
    let doctor = described(&home.fimble(&["doctor"], "")).1;
    assert!(doctor.contains("ok    packages: tiny-sums 1.0, in "), "{doctor}");

    for level in ["full", "reduced"] {
        let program = "import tiny\nfor path in (tiny.__file__, tiny.__file__ + '.new'):\n    try:\n        open(path, 'w')\n    \
                       except OSError as error:\n        print(type(error).__name__)\n";
        let (code, stdout, stderr) = described(&home.fimble(&["run", "-", "--isolation", level], program));
        assert_eq!((code, stdout.lines().count()), (Some(0), 2), "{stdout}{stderr}");
    }

    let (code, _, stderr) = home.run("import requests\n");
    assert_eq!(code, Some(1));
    let hint = "hint: `requests` is not installed here; there is the standard library, tiny-sums 1.0, and the toolkits";
    assert!(stderr.contains("ModuleNotFoundError: No module named 'requests'\n") && stderr.contains(hint), "{stderr}");
}

#[test]
fn what_cannot_be_made_ready_says_why_and_changes_nothing() {
    let home = Home::new();
    let tiny = home.wheel("tiny", "tiny", "VALUE = 1\n");
    home.configure(&[&tiny]);
    assert_eq!(home.fimble(&["packages", "sync"], "").status.code(), Some(0));
    let kept = home.kept();

    let broken = home.wheel("broken", "broken", "import socket\nsocket.create_connection(('127.0.0.1', 9))\n");
    home.configure(&[&tiny, &broken]);
    let (code, _, stderr) = described(&home.fimble(&["packages", "sync"], ""));
    assert_eq!(code, Some(5));
    assert!(stderr.contains("the package broken cannot be imported: ") && stderr.contains("\nhint: "), "{stderr}");
    let missing = format!("gone @ file://{}/gone-1.0-py3-none-any.whl", home.path().display());
    let no_package = "`--index-url=http://elsewhere` in `interpreter.packages` is no package";
    for (wrong, expected, words) in [
        (missing.as_str(), 5, "pip could not install the packages: "),
        ("--index-url=http://elsewhere", 2, no_package),
        // No index is asked here, so it knows none.
        (
            "no-such-package-of-fimble",
            2,
            "Could not find a version that satisfies the requirement no-such-package-of-fimble",
        ),
    ] {
        home.configure(&[wrong]);
        let (code, _, stderr) = described(&home.fimble(&["packages", "sync"], ""));
        assert!(code == Some(expected) && stderr.contains(words) && stderr.contains("\nhint: "), "{stderr}");
    }
    home.configure(&["--index-url=http://elsewhere"]);
    let (code, _, stderr) = home.run("1\n");
    assert!(code == Some(2) && stderr.contains(no_package), "{stderr}");
    assert_eq!(home.kept(), kept, "nothing half-made is left");

    home.configure(&[&tiny]);
    assert_eq!(home.run("import tiny\ntiny.VALUE\n"), (Some(0), "1\n".to_owned(), String::new()));
}

#[test]
fn without_packages_a_missing_module_is_explained() {
    let home = Home::new();
    let (code, _, stderr) = described(&home.fimble(&["packages", "sync"], ""));
    assert!(code == Some(0) && stderr.starts_with("no packages are configured\n"), "{stderr}");
    let (code, _, stderr) = home.run("def load():\n    import numpy\nload()\n");
    assert_eq!(code, Some(1));
    let hint = "hint: `numpy` is not installed here; there is the standard library, and the toolkits";
    assert!(stderr.contains(hint), "{stderr}");
    let (_, _, stderr) = home.run("import ssl\n");
    assert!(stderr.contains("hint: a program has no network; call a toolkit"), "{stderr}");
    let caught = home.run("try:\n    import numpy\nexcept ImportError as error:\n    print(error)\n");
    assert_eq!(caught, (Some(0), "No module named 'numpy'\n".to_owned(), String::new()));
}
