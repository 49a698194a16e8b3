//! CPython: starting it, warming it, forking it, running its half of a round. The only file that uses `pyo3`.

use std::ffi::{CStr, CString};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::packages::SITE;
use super::sources::SOURCES;

/// Extension modules that are not loaded ahead, and so cannot be loaded at all: they need what the jail has not, bring
/// libraries of some size, or are CPython's own tests.
const NOT_WARMED: [&str; 12] = [
    "_ssl",
    "_hashlib",
    "_tkinter",
    "_curses",
    "_curses_panel",
    "_crypt",
    "_dbm",
    "_gdbm",
    "nis",
    "ossaudiodev",
    "readline",
    "spwd",
];

/// Of those, the ones that the standard library can do without once they are known to be missing.
const HIDDEN: [&str; 3] = ["ssl", "_ssl", "_hashlib"];

/// Where CPython finds itself.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Home {
    /// `sys.prefix`.
    pub prefix: PathBuf,
    /// The standard library.
    pub library: PathBuf,
    /// Its extension modules.
    pub extensions: PathBuf,
    /// The prepared folder of packages.
    pub packages: Option<PathBuf>,
}

impl Home {
    /// Where the packages' modules lie.
    pub fn site(&self) -> Option<PathBuf> {
        Some(self.packages.as_ref()?.join(SITE))
    }

    /// The CPython that this program was built with, or another one of the same version.
    pub fn find(prefix: Option<&Path>, packages: Option<PathBuf>) -> Self {
        match prefix {
            None => Self {
                prefix: PathBuf::from(env!("EMBEDDED_PYTHON_PREFIX")),
                library: PathBuf::from(env!("EMBEDDED_PYTHON_STDLIB")),
                extensions: PathBuf::from(env!("EMBEDDED_PYTHON_DYNLOAD")),
                packages,
            },
            Some(prefix) => {
                let library = prefix.join(concat!("lib/python", env!("EMBEDDED_PYTHON_VERSION")));
                Self { prefix: prefix.to_owned(), extensions: library.join("lib-dynload"), library, packages }
            }
        }
    }
}

/// Starts CPython, loads Fimble's own modules and everything that a program may import later without loading code.
pub(super) fn start(home: &Home) -> Result<(), String> {
    initialize(home)?;
    Python::attach(|python| warm(python, home).map_err(|error| describe(python, &error)))
}

/// Runs `then` with CPython in hand. The zygote does so once for its whole life.
pub(super) fn attached<T>(then: impl FnOnce() -> T) -> T {
    Python::attach(|_| then())
}

/// Which side of a fork this is.
pub(super) enum Forked {
    /// The new process.
    Child,
    /// The old one, with the new one's process id.
    Parent(libc::pid_t),
}

/// Forks this process with CPython in it. Call it inside [`attached`], with one thread.
pub(super) fn fork() -> std::io::Result<Forked> {
    // SAFETY: the caller holds the interpreter and there is one thread, so the child may do all that the parent may.
    unsafe {
        ffi::PyOS_BeforeFork();
        match libc::fork() {
            0 => {
                ffi::PyOS_AfterFork_Child();
                Ok(Forked::Child)
            }
            pid => {
                let error = std::io::Error::last_os_error();
                ffi::PyOS_AfterFork_Parent();
                if pid < 0 { Err(error) } else { Ok(Forked::Parent(pid)) }
            }
        }
    }
}

/// Speaks frames over `socket` until the final one. Answers the process's exit code.
pub(super) fn run(socket: RawFd) -> i32 {
    Python::attach(|python| {
        let code = python.import("_fimble.runner").and_then(|runner| runner.call_method1("main", (socket,)));
        code.and_then(|code| code.extract()).unwrap_or(1)
    })
}

fn initialize(home: &Home) -> Result<(), String> {
    // SAFETY: these are the documented steps; every structure is initialised by CPython before it is read, and lives
    // until the call that uses it returns.
    unsafe {
        let mut early = std::mem::MaybeUninit::<ffi::PyPreConfig>::zeroed().assume_init();
        ffi::PyPreConfig_InitIsolatedConfig(&mut early);
        early.utf8_mode = 1;
        check(ffi::Py_PreInitialize(&early))?;

        let mut config = std::mem::MaybeUninit::<ffi::PyConfig>::zeroed().assume_init();
        ffi::PyConfig_InitIsolatedConfig(&mut config);
        config.site_import = 0;
        config.install_signal_handlers = 0;
        config.write_bytecode = 0;
        config.parse_argv = 0;
        config.pathconfig_warnings = 0;
        config.module_search_paths_set = 1;
        let result = configure(&mut config, home).and_then(|()| check(ffi::Py_InitializeFromConfig(&config)));
        ffi::PyConfig_Clear(&mut config);
        result
    }
}

/// Fills in the paths.
///
/// # Safety
///
/// `config` must have been initialised by CPython.
unsafe fn configure(config: &mut ffi::PyConfig, home: &Home) -> Result<(), String> {
    let owner: *mut ffi::PyConfig = config;
    let prefix = wide(&home.prefix)?;
    let executable = wide(&home.prefix.join("bin/python3"))?;
    // SAFETY: CPython copies each string; the pointers are to fields of the live structure.
    unsafe {
        for (field, value) in [
            (&raw mut (*owner).home, &prefix),
            (&raw mut (*owner).prefix, &prefix),
            (&raw mut (*owner).base_prefix, &prefix),
            (&raw mut (*owner).exec_prefix, &prefix),
            (&raw mut (*owner).base_exec_prefix, &prefix),
            (&raw mut (*owner).executable, &executable),
            (&raw mut (*owner).program_name, &executable),
        ] {
            check(ffi::PyConfig_SetString(owner, field, value.as_ptr()))?;
        }
        for folder in [&home.library, &home.extensions].into_iter().chain(home.site().as_ref()) {
            check(ffi::PyWideStringList_Append(&raw mut (*owner).module_search_paths, wide(folder)?.as_ptr()))?;
        }
    }
    Ok(())
}

fn wide(path: &Path) -> Result<Vec<libc::wchar_t>, String> {
    let text = path.to_str().ok_or_else(|| format!("not a UTF-8 path: {}", path.display()))?;
    Ok(text.chars().map(|letter| letter as libc::wchar_t).chain([0]).collect())
}

fn check(status: ffi::PyStatus) -> Result<(), String> {
    // SAFETY: CPython's messages are static C strings.
    unsafe {
        if ffi::PyStatus_Exception(status) == 0 {
            return Ok(());
        }
        if status.err_msg.is_null() {
            return Err("CPython did not start".to_owned());
        }
        Err(CStr::from_ptr(status.err_msg).to_string_lossy().into_owned())
    }
}

fn warm(python: Python<'_>, home: &Home) -> PyResult<()> {
    let modules = python.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    for name in HIDDEN {
        modules.set_item(name, python.None())?;
    }
    load_sources(python, &modules)?;
    python.import("_fimble.runner")?.call_method0("prepare")?;
    let importlib = python.import("importlib")?;
    for name in extension_modules(&home.extensions) {
        // One that lacks a library on this machine is simply not there.
        let _ = importlib.call_method1("import_module", (name,));
    }
    if let Some(folder) = &home.packages {
        python.import("_fimble.packages")?.call_method1("load", (folder,))?;
    }
    let gc = python.import("gc")?;
    gc.call_method0("collect")?;
    gc.call_method0("freeze")?;
    Ok(())
}

/// Fimble's half inside the jail, as the modules of a package `_fimble`.
fn load_sources(python: Python<'_>, modules: &Bound<'_, PyDict>) -> PyResult<()> {
    let package = PyModule::new(python, "_fimble")?;
    package.setattr("__path__", Vec::<String>::new())?;
    modules.set_item("_fimble", &package)?;
    for (name, source) in SOURCES {
        let file = CString::new(format!("<fimble>/{name}.py"))?;
        let qualified = CString::new(format!("_fimble.{name}"))?;
        let module = PyModule::from_code(python, CString::new(*source)?.as_c_str(), &file, &qualified)?;
        package.setattr(*name, module)?;
    }
    Ok(())
}

/// The names of the extension modules in a folder. Once the jail is closed, no more code can be loaded.
fn extension_modules(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str().map(str::to_owned))
        .filter(|file| file.ends_with(".so"))
        .filter_map(|file| file.split('.').next().map(str::to_owned))
        .filter(|name| {
            let own_tests = name.starts_with("_test") || name.starts_with("_xx") || name.starts_with("xx");
            !own_tests && name != "_ctypes_test" && !NOT_WARMED.contains(&name.as_str())
        })
        .collect();
    names.sort();
    names
}

fn describe(python: Python<'_>, error: &PyErr) -> String {
    let trace = error.traceback(python).and_then(|trace| trace.format().ok()).unwrap_or_default();
    format!("{error}\n{trace}").trim().to_owned()
}
