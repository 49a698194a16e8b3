//! Packages that programs may import besides the standard library: pip puts them into a folder of their own once, which the
//! jail shows read-only.
//!
//! `FOLDER/KEY/site` holds the modules, `FOLDER/KEY/packages.json` says which packages they are. The key is of the CPython's
//! version and the list, so that another list is another folder and what runs keeps its own. A program cannot load compiled
//! code, so the zygote loads all of it before it is locked in (`python/packages.py`).

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::python::Home;
use super::{Config, Ending, Error, Interpreter, Level, Nobody, Run};

/// The folder of the modules inside a prepared folder.
pub(super) const SITE: &str = "site";

/// The list inside a prepared folder. Written last: without it nothing is prepared.
const LIST: &str = "packages.json";

/// Part of the key; another number makes all packages anew.
const FORMAT: u32 = 1;

/// Prints the CPython's version, short and whole.
const FACTS: &str = "import sys\nprint('%d.%d' % sys.version_info[:2], sys.version.split()[0])";

const LIST_SCRIPT: &str = include_str!("../../python/package_list.py");

/// Makes the numeric libraries compute in the thread that calls them: a zygote has one thread, and its children no others.
const ONE_THREAD: [&str; 8] = [
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "RAYON_NUM_THREADS",
    "POLARS_MAX_THREADS",
];

/// The configured packages, ready to be shown to programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The folder with the modules and the list.
    pub folder: PathBuf,
    /// The packages by name, those that others need included.
    pub packages: Vec<Package>,
}

/// An installed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// Its name as PEP 503 spells it, e.g. `python-dateutil`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its top-level modules, which may have other names, e.g. `dateutil`.
    pub modules: Vec<String>,
    /// True if it is configured, false if another one needs it.
    pub requested: bool,
}

/// The body of the list.
#[derive(Debug, Serialize, Deserialize)]
struct List {
    /// The CPython that they are for, e.g. `3.11.2`.
    python: String,
    /// What was asked for.
    requirements: Vec<String>,
    packages: Vec<Package>,
}

/// The packages of the configuration; `None` if it names none.
///
/// # Errors
/// [`Error::Packages`] if they were not made ready, [`Error::Requirement`] if they cannot be.
pub fn find(config: &Config) -> Result<Option<Prepared>, Error> {
    if config.packages.is_empty() {
        return Ok(None);
    }
    let folder = folder(config)?.join(key(config));
    let sync = "`fimble packages sync` makes them ready";
    let text = match fs::read(folder.join(LIST)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            config.packages.iter().try_for_each(|requirement| check_requirement(requirement))?;
            let list = config.packages.join(", ");
            return Err(Error::packages(format!("the configured packages are not there: {list}"), sync));
        }
        Err(error) => return Err(Error::packages(format!("{} cannot be read: {error}", folder.display()), sync)),
    };
    let list: List = serde_json::from_slice(&text)
        .map_err(|error| Error::packages(format!("{} cannot be read: {error}", folder.display()), sync))?;
    Ok(Some(Prepared { folder, packages: list.packages }))
}

/// Makes the packages of the configuration ready, and tries them in the jail. Does nothing if they are, unless `again`.
/// `tell` gets a line for each step. False if there was nothing to do.
///
/// # Errors
/// [`Error::Packages`] says what could not be fetched, installed or imported, [`Error::Requirement`] what is no package; what
/// was there before is still there.
pub async fn sync(config: &Config, again: bool, tell: &mut (dyn FnMut(&str) + Send)) -> Result<bool, Error> {
    for requirement in &config.packages {
        check_requirement(requirement)?;
    }
    if config.packages.is_empty() || (!again && find(config).is_ok()) {
        return Ok(false);
    }
    let root = folder(config)?;
    make_readable(&root, config)?;
    let _lock = lock(&root.join("lock")).await?;
    if !again && find(config).is_ok() {
        return Ok(false);
    }
    let python = check_python(config).await?;
    let new = Temporary(root.join(format!(".{}", uuid::Uuid::now_v7().simple())));
    let made = new.0.join(key(config));
    written(&made, fs::create_dir_all(made.join(SITE)))?;
    let pip = pip(&python.program, &new.0, tell).await?;
    install(&pip, &made.join(SITE), &config.packages, tell).await?;
    let packages = list(&python.program, &made.join(SITE), &config.packages).await?;
    let list = List { python: python.version, requirements: config.packages.clone(), packages };
    written(&made, fs::write(made.join(LIST), serde_json::to_vec_pretty(&list).unwrap_or_default()))?;
    written(&made, fs::set_permissions(&made, fs::Permissions::from_mode(0o755)))?;
    tell("trying them in the jail");
    try_out(&Config { packages_folder: Some(new.0.clone()), ..config.clone() }, &list.packages).await?;
    let place = root.join(key(config));
    // What runs has the old one mounted or open, and keeps it.
    if place.exists() {
        written(&place, fs::rename(&place, new.0.join("old")))?;
    }
    written(&place, fs::rename(&made, &place))?;
    Ok(true)
}

/// Switches off the threads of numeric libraries. Call it before CPython is started, with one thread.
pub(super) fn forbid_threads() {
    for name in ONE_THREAD {
        // SAFETY: the process has one thread, so nobody reads the environment meanwhile.
        unsafe { std::env::set_var(name, "1") };
    }
}

fn folder(config: &Config) -> Result<PathBuf, Error> {
    config.packages_folder.clone().ok_or_else(|| {
        Error::packages("there is no folder for packages", "set `interpreter.packages_folder`, or the variable HOME")
    })
}

/// The name of the folder of a list of packages.
fn key(config: &Config) -> String {
    let mut requirements: Vec<&str> = config.packages.iter().map(|requirement| requirement.trim()).collect();
    requirements.sort_unstable();
    requirements.dedup();
    let prefix = config.python_home.as_deref().unwrap_or(Path::new(""));
    let text = format!(
        "{FORMAT}\n{}\n{}\n{}\n{}",
        env!("EMBEDDED_PYTHON_VERSION"),
        std::env::consts::ARCH,
        prefix.display(),
        requirements.join("\n")
    );
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The name at the beginning of a requirement.
fn requirement_name(requirement: &str) -> &str {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    requirement.split(|letter| !is_part(letter)).next().unwrap_or_default()
}

/// Refuses what pip would take for an option, a path or a file.
fn check_requirement(requirement: &str) -> Result<(), Error> {
    let name = requirement_name(requirement);
    let rest = requirement.get(name.len()..).unwrap_or_default().trim_start();
    let begins_well = name.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    if begins_well && (rest.is_empty() || rest.starts_with(['=', '<', '>', '!', '~', ';', '[', '@'])) {
        return Ok(());
    }
    Err(Error::Requirement {
        reason: format!("`{requirement}` in `interpreter.packages` is no package"),
        hint: "write a name with or without a version, e.g. `numpy` or `pandas>=2`".to_owned(),
    })
}

/// Makes the folder, and refuses one that the jail's user could not enter.
fn make_readable(folder: &Path, config: &Config) -> Result<(), Error> {
    written(folder, fs::create_dir_all(folder))?;
    if !nix::unistd::geteuid().is_root() || config.isolation == Level::None {
        return Ok(());
    }
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let closed =
        folder.ancestors().find(|part| fs::metadata(part).is_ok_and(|about| about.permissions().mode() & 0o001 == 0));
    match closed {
        None => Ok(()),
        Some(part) => Err(Error::packages(
            format!("the user that programs run as may not enter {}, where packages would be kept", part.display()),
            "set `interpreter.packages_folder` to a folder that every user may enter",
        )),
    }
}

/// A folder that is removed with all that is left in it.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn lock(path: &Path) -> Result<Flock<fs::File>, Error> {
    let file = written(path, fs::OpenOptions::new().create(true).truncate(false).write(true).open(path))?;
    let locked = tokio::task::spawn_blocking(|| Flock::lock(file, FlockArg::LockExclusive)).await;
    let locked = locked.map_err(|error| Error::packages(error, "try again"))?;
    locked.map_err(|(_, error)| Error::packages(format!("{} cannot be locked: {error}", path.display()), "try again"))
}

fn written<T>(path: &Path, result: io::Result<T>) -> Result<T, Error> {
    result.map_err(|error| {
        Error::packages(
            format!("{} cannot be written: {error}", path.display()),
            "check the disk and who owns it, or set `interpreter.packages_folder`",
        )
    })
}

/// The CPython that installs.
struct Python {
    program: PathBuf,
    version: String,
}

/// The program of the embedded CPython, which must be of the same version: compiled modules of another one do not load.
async fn check_python(config: &Config) -> Result<Python, Error> {
    let wanted = env!("EMBEDDED_PYTHON_VERSION");
    let program = Home::find(config.python_home.as_deref(), None).prefix.join(format!("bin/python{wanted}"));
    let hint = format!(
        "install the programs of CPython {wanted} (`apt install python3-venv`), or set `interpreter.python_home`"
    );
    let output = Command::new(&program).args(["-I", "-c", FACTS]).stdin(Stdio::null()).output().await;
    let output = output.map_err(|error| Error::packages(format!("{}: {error}", program.display()), &hint))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match said.split_whitespace().collect::<Vec<_>>().as_slice() {
        [version, full] if *version == wanted => Ok(Python { program, version: (*full).to_owned() }),
        [version, ..] => {
            Err(Error::packages(format!("{} is CPython {version}, and {wanted} is needed", program.display()), hint))
        }
        [] => Err(Error::packages(format!("{} does not run: {}", program.display(), last_line(&output)), hint)),
    }
}

/// A Python with pip: the system's own, or one in an environment made for it.
async fn pip(python: &Path, within: &Path, tell: &mut (dyn FnMut(&str) + Send)) -> Result<PathBuf, Error> {
    let has_pip = Command::new(python).args(["-I", "-m", "pip", "--version"]).stdin(Stdio::null()).output().await;
    if has_pip.is_ok_and(|output| output.status.success()) {
        return Ok(python.to_owned());
    }
    tell("making an environment for pip");
    let environment = within.join("pip");
    let mut command = Command::new(python);
    command.args(["-I", "-m", "venv"]).arg(&environment).stdin(Stdio::null()).kill_on_drop(true);
    let hint = "install pip: `apt install python3-venv` on Debian and Ubuntu";
    let output = command.output().await.map_err(|error| Error::packages(error, hint))?;
    if output.status.success() {
        return Ok(environment.join("bin/python"));
    }
    Err(Error::packages(format!("there is no pip for {}: {}", python.display(), last_line(&output)), hint))
}

/// Lets pip fetch and install. Only built packages: building one would run its own program with the user's rights.
async fn install(
    python: &Path,
    site: &Path,
    requirements: &[String],
    tell: &mut (dyn FnMut(&str) + Send),
) -> Result<(), Error> {
    let mut command = Command::new(python);
    command
        .args(["-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"])
        .args(["--only-binary", ":all:", "--target"])
        .arg(site)
        .arg("--")
        .args(requirements)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let failed =
        |error: io::Error| Error::packages(format!("pip cannot be started: {error}"), "see that Python is whole");
    let mut child = command.spawn().map_err(failed)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let reading = tokio::spawn(async move {
        let mut said = String::new();
        if let Some(stderr) = stderr {
            let _ = BufReader::new(stderr).read_to_string(&mut said).await;
        }
        said
    });
    if let Some(stdout) = stdout {
        let mut lines = BufReader::new(stdout).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let line = line.trim();
            if ["Collecting", "Downloading", "Installing"].iter().any(|word| line.starts_with(word)) {
                tell(line);
            }
        }
    }
    let status = child.wait().await.map_err(failed)?;
    let said = reading.await.unwrap_or_default();
    if status.success() { Ok(()) } else { Err(pip_failure(&said)) }
}

fn pip_failure(said: &str) -> Error {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let errors: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("ERROR: ")).collect();
    let why = errors.first().copied().or(said.lines().last()).unwrap_or("it did not say why");
    let reason = format!("pip could not install the packages: {}", why.trim());
    let hint = if has(&["No space left on device", "Disk quota exceeded"]) {
        "free some space, or set `interpreter.packages_folder`"
    } else if has(&["Connection", "Temporary failure", "timed out", "ProxyError", "SSLError"]) {
        "check the network; pip's own configuration applies"
    } else if has(&["No matching distribution found"]) {
        let hint = "check the name and the version; only packages that are built for this CPython can be used";
        return Error::Requirement { reason, hint: hint.to_owned() };
    } else {
        "change `interpreter.packages` so that pip can install it"
    };
    Error::packages(reason, hint)
}

/// What is in the folder.
async fn list(python: &Path, site: &Path, requirements: &[String]) -> Result<Vec<Package>, Error> {
    let names = requirements.iter().map(|requirement| requirement_name(requirement));
    let mut command = Command::new(python);
    command.args(["-I", "-c", LIST_SCRIPT]).arg(site).args(names).stdin(Stdio::null()).kill_on_drop(true);
    let hint = "run `fimble packages sync --again`";
    let output = command.output().await.map_err(|error| Error::packages(error, hint))?;
    if !output.status.success() {
        return Err(Error::packages(format!("the packages are not whole: {}", last_line(&output)), hint));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| Error::packages(format!("the packages cannot be listed: {error}"), hint))
}

/// Imports every configured package where programs will.
async fn try_out(config: &Config, packages: &[Package]) -> Result<(), Error> {
    let hint = "it may need a library of the system, or what the jail has not; leave it out of `interpreter.packages`";
    let interpreter = Interpreter::start(config).await.map_err(|error| match error {
        Error::Spawn { reason, .. } => Error::packages(reason, hint),
        other => other,
    })?;
    let requested = packages.iter().filter(|package| package.requested);
    let modules = requested.flat_map(|package| &package.modules);
    let source: String = modules.map(|name| format!("import {name}\n")).collect();
    let run = Run { limits: config.limits.clone(), ..Run::of(source) };
    match interpreter.run(run, Arc::new(Nobody), CancellationToken::new()).await?.ending {
        Ending::Returned { .. } => Ok(()),
        Ending::Raised { traceback, .. } => {
            Err(Error::packages(format!("a package does not work in the jail\n{traceback}"), hint))
        }
        Ending::Limit { message, .. } | Ending::Crashed { message } | Ending::Lost { message } => {
            Err(Error::packages(message, hint))
        }
        Ending::Cancelled => Err(Error::packages("the packages were not tried", "try again")),
    }
}

fn last_line(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = said.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it did not say why");
    line.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(packages: &[&str]) -> Config {
        let packages = packages.iter().map(|&name| name.to_owned()).collect();
        Config { packages, packages_folder: Some(PathBuf::from("/nowhere")), ..Config::default() }
    }

    #[test]
    fn what_pip_would_take_for_an_option_or_a_path_is_refused() {
        for wrong in ["--index-url=http://x", "-e .", "./numpy", "/tmp/x.whl", "", " numpy", "a b", "git+https://x/y"] {
            assert!(check_requirement(wrong).is_err(), "{wrong}");
        }
        for right in
            ["numpy", "pandas>=2", "a[b]==1; python_version > '3'", "tiny @ file:///tmp/tiny-1-py3-none-any.whl"]
        {
            assert_eq!(check_requirement(right), Ok(()), "{right}");
        }
    }

    #[test]
    fn the_order_of_the_packages_does_not_matter_and_the_list_does() {
        assert_eq!(key(&config(&["a", "b"])), key(&config(&["b", "a", "b"])));
        assert_ne!(key(&config(&["a", "b"])), key(&config(&["a"])));
    }

    #[test]
    fn packages_that_were_never_made_ready_are_named_with_the_command() {
        let error = find(&config(&["numpy", "pandas"])).unwrap_err();
        let expected =
            "the configured packages are not there: numpy, pandas\n\nhint: `fimble packages sync` makes them ready";
        assert_eq!(error.to_string(), expected);
        assert_eq!(find(&config(&[])), Ok(None));
    }
}
