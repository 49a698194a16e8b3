//! The room's settings. It does not know where they are written.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Limits;

/// How programs are run. Written under `interpreter` in the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Which layers of the jail must be there. Default `full`.
    pub isolation: Level,
    /// What one program may use, unless its [`Run`](super::Run) says less.
    pub limits: Limits,
    /// The prefix of another CPython of the same version, whose `lib/pythonX.Y` is used. Default: the one that the
    /// binary was built with.
    pub python_home: Option<PathBuf>,
    /// Rounds after which a zygote is replaced, because its children share its address layout and hash seed.
    /// Default 1,000.
    pub rounds_per_zygote: u64,
    /// MiB that all programs of a zygote may take together, their scratch folders included. Held by a control group where one
    /// can be made. Default 4,096.
    pub zygote_memory_mib: u64,
    /// Processes and threads of all programs of a zygote together; as above. Default 1,024.
    pub zygote_tasks: u64,
    /// Processors that all programs of a zygote may keep busy together, e.g. 1.5; as above, and a warning in the log where that
    /// controller is not there. Above 0. Default none: as many as there are.
    pub zygote_cpus: Option<f64>,
    /// Microseconds that program and host look for each other's next word before they sleep, while the last one came as soon. A call
    /// that is answered at once takes a third of the time; a slow one costs this much CPU time once. 0 to 1,000, 0 is never.
    /// Nobody looks where there is one processor, or fewer than two for each round that runs. Default 50.
    pub spin_us: u64,
    /// The user id that the jail drops to when it is started by root; no account should have it. Default 64,023.
    pub uid: u32,
    /// Where rounds keep their scratch files in `reduced` and `none`; `full` mounts its own. Default `/tmp`.
    pub scratch_folder: PathBuf,
    /// Seconds in which a zygote must be ready, and a child after it was asked for. Default 30.
    pub start_s: f64,
    /// Packages that programs may import besides the standard library, as pip names them, e.g. `numpy` or `pandas>=2`.
    /// `fimble packages sync` makes them ready. Default none.
    pub packages: Vec<String>,
    /// Where packages are kept. Every user must be able to enter it when the jail is started by root. Default:
    /// `$XDG_CACHE_HOME/fimble/packages`, for root without that variable `/var/cache/fimble/packages`.
    pub packages_folder: Option<PathBuf>,
    /// The program that is started as the zygote; it must call [`init`](super::init) first. Default: this program.
    pub executable: Option<PathBuf>,
    /// For tests of the jail: system calls that only an attack makes fail with EPERM, where otherwise they kill. A program
    /// is held no less, but its first such call does not hide what it tries next. Default false. It is a field that only
    /// Rust can set, and not a feature of the build, so that the tests try the very program that is shipped; no file, flag
    /// or variable of the environment reaches it.
    #[serde(skip)]
    pub spares_deadly_calls: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            isolation: Level::Full,
            limits: Limits::default(),
            python_home: None,
            rounds_per_zygote: 1_000,
            zygote_memory_mib: 4_096,
            zygote_tasks: 1_024,
            zygote_cpus: None,
            spin_us: 50,
            uid: 64_023,
            scratch_folder: PathBuf::from("/tmp"),
            start_s: 30.0,
            packages: Vec::new(),
            packages_folder: None,
            executable: None,
            spares_deadly_calls: false,
        }
    }
}

/// How much of the jail must be there. A missing layer is an error, never a silent fall-back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Namespaces, a root of its own, seccomp, Landlock and limits.
    #[default]
    Full,
    /// Seccomp, Landlock and limits. The scratch folder's quota is kept by the host, which looks every 10 ms: what is written
    /// between two looks comes on top, and for an ordinary user files that were removed while they were open, 64 of
    /// [`Limits::scratch_mib`] at most. Files cannot be mapped into memory, setting a file's mode or times does nothing, threads are bounded only by memory unless the zygote has a user id of its own,
    /// and the machine's name and the names, sizes and owners of its files are not hidden; their contents are.
    Reduced,
    /// Limits only: the program can do whatever the user can. For trusted programs.
    None,
}

impl Level {
    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Full => "full",
            Level::Reduced => "reduced",
            Level::None => "none",
        }
    }
}

/// The layers of a complete jail, outermost first. Started by root, `user` comes before them.
const COMPLETE: [&str; 5] = ["namespaces", "root", "seccomp", "landlock", "limits"];

/// What confines the programs of an interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// What was asked for.
    pub level: Level,
    /// The active layers, outermost first, e.g. `namespaces`, `seccomp`, `landlock 7`, `limits`.
    pub layers: Vec<String>,
    /// The layers of a complete jail that are not active, outermost first; none in `full`.
    pub missing: Vec<String>,
}

impl Isolation {
    /// What is missing beside the active layers; `as_root` says that the host runs as root.
    pub(super) fn of(level: Level, layers: Vec<String>, as_root: bool) -> Self {
        // A layer may have its version behind its name.
        let is_active = |name: &str| layers.iter().any(|layer| layer.split(' ').next() == Some(name));
        let user = as_root.then_some("user");
        let missing = user.into_iter().chain(COMPLETE).filter(|name| !is_active(name)).map(str::to_owned).collect();
        Self { level, layers, missing }
    }

    /// The sentence that every session of trusted programs begins with; `None` where the kernel confines them.
    pub fn warning(&self) -> Option<&'static str> {
        (self.level == Level::None).then_some(
            "isolation is none: a program can read, change and send whatever you can; run only programs that you trust",
        )
    }
}
