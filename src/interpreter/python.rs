//! CPython: starting it, warming it, forking it, running its half of a round. Only this file and those below it use `pyo3`.

mod look;
mod plain;
mod read;
mod socket;
mod statements;

use std::ffi::{CStr, CString};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyStopIteration;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use super::jail::{OPEN_FILES, SCRATCH_INODES};
use super::packages::SITE;
use super::sources::{EARLY, LATE, Source};

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

/// Where the system keeps its time zones, and the variable that tells `zoneinfo`.
pub(super) const TIME_ZONES: &str = "/usr/share/zoneinfo";
const TIME_ZONE_PATH: &str = "PYTHONTZPATH";

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

/// Starts CPython, and loads Fimble's own modules and all machine code that a program may import later.
pub(super) fn start(home: &Home) -> Result<(), String> {
    initialize(home)?;
    Python::attach(|python| load(python, home).map_err(|error| describe(python, &error)))
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
        // A set of strings has the same order in every process, so that a round that is run again goes the same way.
        config.use_hash_seed = 1;
        config.hash_seed = 0;
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

fn load(python: Python<'_>, home: &Home) -> PyResult<()> {
    let modules = python.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    for name in HIDDEN {
        modules.set_item(name, python.None())?;
    }
    load_sources(python, &modules)?;
    map_extensions(&home.extensions);
    if let Some(folder) = &home.packages {
        // Packages may bring libraries of their own, which cannot be loaded later.
        import_time_zones(python)?;
        python.import("_fimble.runner")?.call_method0("prepare")?;
        python.import("_fimble.packages")?.call_method1("load", (folder,))?;
    }
    python.import("gc")?.call_method0("freeze")?;
    Ok(())
}

/// Without this, `zoneinfo` asks how CPython was built, which takes longer than all other modules together.
fn import_time_zones(python: Python<'_>) -> PyResult<()> {
    let environment = python.import("os")?.getattr("environ")?;
    environment.set_item(TIME_ZONE_PATH, TIME_ZONES)?;
    python.import("zoneinfo")?;
    environment.del_item(TIME_ZONE_PATH)
}

/// What makes the children of this process quicker, a module a step. None of it is needed.
pub(super) struct Warming {
    /// What went wrong, if anything did.
    pub problem: Option<String>,
    /// The time zones are not imported yet.
    has_no_zones: bool,
    /// The generator; None once it is at its end.
    modules: Option<Py<PyAny>>,
    /// Extension modules that are left to initialise.
    extensions: Vec<String>,
}

impl Warming {
    /// Call this and [`step`](Self::step) inside [`attached`].
    pub fn begin(home: &Home) -> Self {
        let extensions = extension_modules(&home.extensions);
        let begun = Python::attach(|python| {
            let modules = python.import("_fimble.runner").and_then(|runner| runner.call_method0("warming"));
            modules.map(Bound::unbind).map_err(|error| describe(python, &error))
        });
        match begun {
            Ok(modules) => Self { problem: None, has_no_zones: true, modules: Some(modules), extensions },
            Err(problem) => Self { problem: Some(problem), has_no_zones: true, modules: None, extensions },
        }
    }

    /// Does one step; false once there is nothing left to do. A module that cannot be imported is left out: programs read why
    /// when they import it.
    pub fn step(&mut self) -> bool {
        Python::attach(|python| {
            if std::mem::take(&mut self.has_no_zones) {
                self.problem = import_time_zones(python).err().map(|error| describe(python, &error));
                return true;
            }
            if let Some(modules) = &self.modules {
                if let Err(error) = modules.bind(python).call_method0("__next__") {
                    if !error.is_instance_of::<PyStopIteration>(python) {
                        self.problem = Some(describe(python, &error));
                    }
                    self.modules = None;
                }
                return true;
            }
            if let Some(name) = self.extensions.pop() {
                let _ = python.import(name.as_str());
                return true;
            }
            if let Ok(gc) = python.import("gc") {
                let _ = gc.call_method0("collect").and_then(|_| gc.call_method0("freeze"));
            }
            false
        })
    }
}

/// Fimble's half inside the jail, as the modules of a package `_fimble`.
fn load_sources(python: Python<'_>, modules: &Bound<'_, PyDict>) -> PyResult<()> {
    let package = PyModule::new(python, "_fimble")?;
    package.setattr("__path__", Vec::<String>::new())?;
    modules.set_item("_fimble", &package)?;
    let native = PyModule::new(python, "_fimble.native")?;
    native.add_function(wrap_pyfunction!(read::loads, &native)?)?;
    native.add_function(wrap_pyfunction!(read::values, &native)?)?;
    native.add_function(wrap_pyfunction!(plain::plain, &native)?)?;
    native.add_function(wrap_pyfunction!(plain::call, &native)?)?;
    native.add_function(wrap_pyfunction!(replace, &native)?)?;
    native.add_function(wrap_pyfunction!(look::unsettled, &native)?)?;
    native.add_function(wrap_pyfunction!(look::describe, &native)?)?;
    native.add_function(wrap_pyfunction!(statements::statements, &native)?)?;
    native.add_function(wrap_pyfunction!(socket::comes, &native)?)?;
    native.setattr("SCRATCH_FILES", SCRATCH_INODES)?;
    native.setattr("OPEN_FILES", OPEN_FILES)?;
    modules.set_item("_fimble.native", &native)?;
    package.setattr("native", native)?;
    for source in EARLY {
        let qualified = CString::new(format!("_fimble.{}", source.name))?;
        let code = code(python, source)?;
        // SAFETY: the interpreter is held; CPython answers a new reference or null with an exception set.
        let module = unsafe {
            Bound::from_owned_ptr_or_err(python, ffi::PyImport_ExecCodeModule(qualified.as_ptr(), code.as_ptr()))
        }?;
        package.setattr(source.name, module)?;
    }
    let late = python.import("_fimble.runner")?.getattr("LATE_CODE")?;
    for source in LATE {
        late.set_item(source.name, code(python, source)?)?;
    }
    Ok(())
}

/// Puts `value` in the place of a method of a class that Python lets nobody change, such as `datetime.datetime.now`.
#[pyfunction]
fn replace(class: &Bound<'_, PyType>, name: &Bound<'_, PyString>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    // SAFETY: the interpreter is held, all three objects are live, and a class has a dictionary from its first use on;
    // `PyType_Modified` tells what was remembered of it.
    unsafe {
        let class = class.as_type_ptr();
        if ffi::PyDict_SetItem((*class).tp_dict, name.as_ptr(), value.as_ptr()) != 0 {
            return Err(PyErr::fetch(value.py()));
        }
        ffi::PyType_Modified(class);
    }
    Ok(())
}

/// A module's code: read where the byte code is this CPython's, else compiled.
fn code<'py>(python: Python<'py>, source: &Source) -> PyResult<Bound<'py, PyAny>> {
    let (magic, code) = source.code.split_at_checked(4).unwrap_or_default();
    let file = CString::new(format!("<fimble>/{}.py", source.name))?;
    // SAFETY: the interpreter is held; the buffers live until the calls return; each answers a new reference, or null with an
    // exception set.
    unsafe {
        let own = ffi::PyImport_GetMagicNumber() as u32;
        let object = if magic == own.to_le_bytes() {
            ffi::PyMarshal_ReadObjectFromString(code.as_ptr().cast(), code.len() as ffi::Py_ssize_t)
        } else {
            ffi::Py_CompileString(CString::new(source.text)?.as_ptr(), file.as_ptr(), ffi::Py_file_input)
        };
        Bound::from_owned_ptr_or_err(python, object)
    }
}

/// Maps the extension modules of a folder into this process, so that they can be imported once the jail is closed and no more
/// code can be loaded. They are not initialised: some import much.
fn map_extensions(folder: &Path) {
    for name in extension_files(folder) {
        let Ok(path) = CString::new(folder.join(name).into_os_string().into_encoded_bytes()) else { continue };
        // SAFETY: the path is a live string. The modules of the standard library run nothing when they are mapped; one that
        // lacks a library on this machine is simply not there.
        unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    }
}

/// The files of the extension modules in a folder.
fn extension_files(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str().map(str::to_owned))
        .filter(|file| file.ends_with(".so"))
        .filter(|file| {
            let name = module_name(file);
            let own_tests = name.starts_with("_test") || name.starts_with("_xx") || name.starts_with("xx");
            !own_tests && name != "_ctypes_test" && !NOT_WARMED.contains(&name)
        })
        .collect();
    files.sort();
    files
}

/// The names of those modules.
fn extension_modules(folder: &Path) -> Vec<String> {
    extension_files(folder).iter().map(|file| module_name(file).to_owned()).collect()
}

fn module_name(file: &str) -> &str {
    file.split('.').next().unwrap_or(file)
}

fn describe(python: Python<'_>, error: &PyErr) -> String {
    let trace = error.traceback(python).and_then(|trace| trace.format().ok()).unwrap_or_default();
    format!("{error}\n{trace}").trim().to_owned()
}
