//! A control group around each zygote: what all its rounds take together, where the host may make one. It is the outermost
//! layer, and the only one that nobody has to have: the others hold each round by itself.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// What begins the name of every group, before the host's process id and the zygote's.
const PREFIX: &str = "fimble-";

/// How long the processes of a killed zygote may take to be gone, and how often that is looked at.
const GONE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(5);

/// What a group holds its processes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ceiling {
    /// Memory and scratch together, in MiB.
    pub memory_mib: u64,
    /// Processes and threads.
    pub tasks: u64,
    /// Processors, if they are bounded.
    pub cpus: Option<f64>,
}

/// The period in which the kernel counts the time on processors, in microseconds: its own default.
const PERIOD_US: u64 = 100_000;

impl Ceiling {
    /// Microseconds of each period; the kernel takes no less than a millisecond.
    fn quota_us(&self) -> Option<u64> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the configuration is above 0")]
        self.cpus.map(|cpus| ((cpus * PERIOD_US as f64).round() as u64).max(1_000))
    }
}

/// A group of this process's making: one folder, or one for each controller in version 1. Removed by [`Group::remove`].
#[derive(Debug)]
pub(super) struct Group {
    folders: Vec<PathBuf>,
    /// It bounds the processors.
    pub holds_cpus: bool,
}

impl Group {
    /// Puts the processes, and all that they will start, into a new group. `None` where that is not allowed or not there.
    /// The kernel may take 20 ms, and starts no process meanwhile.
    pub fn around(pids: &[u32], ceiling: Ceiling) -> Option<Self> {
        let places = Places::of(
            &fs::read_to_string("/proc/self/cgroup").ok()?,
            &fs::read_to_string("/proc/self/mountinfo").ok()?,
        );
        let name = format!("{PREFIX}{}-{}", std::process::id(), pids.first()?);
        places.unified(&name, pids, ceiling).or_else(|| places.separate(&name, pids, ceiling))
    }

    /// Removes it once its processes are gone, and answers whether they are. To be called when they have been killed.
    pub fn remove(self) -> bool {
        let mut is_empty = true;
        for folder in &self.folders {
            let mut left = GONE.as_millis() / LOOK.as_millis();
            let mut removed = fs::remove_dir(folder);
            while removed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy) && left > 0 {
                // Version 1 has no event for an empty group.
                thread::sleep(LOOK);
                left -= 1;
                removed = fs::remove_dir(folder);
            }
            is_empty &= removed.is_ok();
        }
        is_empty
    }
}

/// Where this process's own groups are.
#[derive(Debug, Default, PartialEq, Eq)]
struct Places {
    /// Version 2.
    unified: Option<PathBuf>,
    /// Version 1: the folders of the controllers `memory` and `pids`.
    memory: Option<PathBuf>,
    pids: Option<PathBuf>,
    /// Version 1: that of `cpu`, which is needed only where processors are bounded.
    cpu: Option<PathBuf>,
}

impl Places {
    /// Reads `/proc/self/cgroup` and `/proc/self/mountinfo`, see `cgroups(7)` and `proc_pid_mountinfo(5)`.
    fn of(own: &str, mounts: &str) -> Self {
        let mut places = Self::default();
        for line in own.lines() {
            let mut fields = line.splitn(3, ':');
            let (Some(number), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
                continue;
            };
            let place = |filesystem, option| mounted(mounts, filesystem, option).map(|at| below(&at, path));
            if number == "0" {
                places.unified = place("cgroup2", None);
            } else if controllers.split(',').any(|one| one == "memory") {
                places.memory = place("cgroup", Some("memory"));
            } else if controllers.split(',').any(|one| one == "pids") {
                places.pids = place("cgroup", Some("pids"));
            } else if controllers.split(',').any(|one| one == "cpu") {
                places.cpu = place("cgroup", Some("cpu"));
            }
        }
        places
    }

    /// A group of version 2: below the own one if that may have groups, which one with processes of its own mostly may not,
    /// else beside it.
    fn unified(&self, name: &str, pids: &[u32], ceiling: Ceiling) -> Option<Group> {
        let own = self.unified.as_deref()?;
        let controllers = |folder: &Path| {
            let names = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
            names.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let controls =
            |folder: &&Path| ["memory", "pids"].iter().all(|one| controllers(folder).iter().any(|name| name == one));
        let parent = [Some(own), own.parent()].into_iter().flatten().find(controls)?;
        let quota = ceiling.quota_us().filter(|_| controllers(parent).iter().any(|name| name == "cpu"));
        let mut files = vec![("memory.max", bytes(ceiling)), ("pids.max", ceiling.tasks.to_string())];
        files.extend(quota.map(|quota| ("cpu.max", format!("{quota} {PERIOD_US}"))));
        make(parent, name, &files, pids).map(|folder| Group { folders: vec![folder], holds_cpus: quota.is_some() })
    }

    fn separate(&self, name: &str, pids: &[u32], ceiling: Ceiling) -> Option<Group> {
        let (memory, tasks) = (self.memory.as_deref()?, self.pids.as_deref()?);
        let first = make(memory, name, &[("memory.limit_in_bytes", bytes(ceiling))], pids)?;
        let Some(second) = make(tasks, name, &[("pids.max", ceiling.tasks.to_string())], pids) else {
            // Back to where it was; then the group is empty.
            move_all(memory, pids);
            let _ = fs::remove_dir(first);
            return None;
        };
        let mut group = Group { folders: vec![first, second], holds_cpus: false };
        if let Some((quota, cpu)) = ceiling.quota_us().zip(self.cpu.as_deref()) {
            let files = [("cpu.cfs_period_us", PERIOD_US.to_string()), ("cpu.cfs_quota_us", quota.to_string())];
            let third = make(cpu, name, &files, pids);
            group.holds_cpus = third.is_some();
            group.folders.extend(third);
        }
        Some(group)
    }
}

/// The most memory, as the kernel's files have it.
fn bytes(ceiling: Ceiling) -> String {
    ceiling.memory_mib.saturating_mul(1024 * 1024).to_string()
}

/// A new folder with the files written in order, and then the processes in it; nothing is left if that cannot be.
fn make(parent: &Path, name: &str, files: &[(&str, String)], pids: &[u32]) -> Option<PathBuf> {
    sweep(parent);
    let folder = parent.join(name);
    fs::create_dir(&folder).ok()?;
    let is_written = files.iter().all(|(file, value)| fs::write(folder.join(file), value).is_ok());
    if is_written && move_all(&folder, pids) {
        return Some(folder);
    }
    move_all(parent, pids);
    let _ = fs::remove_dir(&folder);
    None
}

/// True if all of them are in that group now.
fn move_all(folder: &Path, pids: &[u32]) -> bool {
    let mut all = pids.iter();
    all.all(|pid| fs::write(folder.join("cgroup.procs"), pid.to_string()).is_ok())
}

/// Removes groups of hosts that were killed before they could: the kernel refuses where processes are left.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(host) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()) else { continue };
        if !Path::new("/proc").join(host).exists() {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Where a group file system is mounted: its root within the hierarchy, and the folder.
fn mounted(mounts: &str, filesystem: &str, option: Option<&str>) -> Option<(String, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let (before, after): (Vec<&str>, Vec<&str>) = (before.split(' ').collect(), after.split(' ').collect());
        let [_, _, _, root, folder, ..] = before.as_slice() else { return None };
        let [kind, _, options, ..] = after.as_slice() else { return None };
        let fits = *kind == filesystem && option.is_none_or(|option| options.split(',').any(|one| one == option));
        fits.then(|| ((*root).to_owned(), PathBuf::from(folder)))
    })
}

/// The folder of a group, whose path counts from the hierarchy's root.
fn below((root, folder): &(String, PathBuf), path: &str) -> PathBuf {
    let path = path.strip_prefix(root.trim_end_matches('/')).unwrap_or(path);
    folder.join(path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_groups_are_found_in_either_version() {
        let first = Places::of(
            "8:pids:/\n3:cpu,cpuacct:/c\n4:memory,hugetlb:/a/b\n0::/\n",
            "33 31 0:29 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
             34 31 0:30 /a /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory,hugetlb\n\
             36 31 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
             35 31 0:31 / /sys/fs/cgroup/unified rw shared:1 - cgroup2 none rw\n",
        );
        let expected = Places {
            unified: Some(PathBuf::from("/sys/fs/cgroup/unified/")),
            memory: Some(PathBuf::from("/sys/fs/cgroup/memory/b")),
            pids: Some(PathBuf::from("/sys/fs/cgroup/pids/")),
            cpu: Some(PathBuf::from("/sys/fs/cgroup/cpu/c")),
        };
        assert_eq!(first, expected);
        let second = Places::of("0::/user.slice/x.scope\n", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        let expected = PathBuf::from("/sys/fs/cgroup/user.slice/x.scope");
        assert_eq!(second, Places { unified: Some(expected), ..Places::default() });
        assert_eq!(Places::of("nonsense", "nonsense"), Places::default());
    }

    /// Folders in which a group looks like the kernel's, but for what the kernel does.
    fn places(root: &Path, controllers: &str) -> Places {
        for folder in ["unified", "memory", "pids", "cpu"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        fs::write(root.join("unified/cgroup.subtree_control"), controllers).unwrap();
        let place = |name: &str| Some(root.join(name));
        Places { unified: place("unified"), memory: place("memory"), pids: place("pids"), cpu: place("cpu") }
    }

    #[test]
    fn what_is_bounded_is_written_in_either_version() {
        let root = tempfile::tempdir().unwrap();
        let ceiling = Ceiling { memory_mib: 2, tasks: 7, cpus: Some(1.5) };
        let read = |file: &str| fs::read_to_string(root.path().join(file)).ok();
        let found = places(root.path(), "cpu memory pids");
        let group = found.unified("one", &[1], ceiling).unwrap();
        assert!(group.holds_cpus);
        let written = ["cpu.max", "memory.max", "pids.max"].map(|file| read(&format!("unified/one/{file}")).unwrap());
        assert_eq!(written, ["150000 100000", "2097152", "7"]);
        let group = found.separate("two", &[1], ceiling).unwrap();
        assert_eq!((group.holds_cpus, group.folders.len()), (true, 3));
        assert_eq!(read("cpu/two/cpu.cfs_period_us").unwrap(), "100000");
        assert_eq!(read("cpu/two/cpu.cfs_quota_us").unwrap(), "150000");
        assert_eq!(read("memory/two/memory.limit_in_bytes").unwrap(), "2097152");
        // By default none, and less than the kernel takes is the least that it takes.
        found.unified("three", &[1], Ceiling { cpus: None, ..ceiling }).unwrap();
        found.separate("three", &[1], Ceiling { cpus: None, ..ceiling }).unwrap();
        assert_eq!((read("unified/three/cpu.max"), read("cpu/three/cpu.cfs_quota_us")), (None, None));
        assert_eq!(Ceiling { cpus: Some(0.001), ..ceiling }.quota_us(), Some(1_000));
    }

    #[test]
    fn where_processors_cannot_be_bounded_the_rest_is() {
        let root = tempfile::tempdir().unwrap();
        let ceiling = Ceiling { memory_mib: 2, tasks: 7, cpus: Some(2.0) };
        let found = places(root.path(), "memory pids");
        assert!(!found.unified("one", &[1], ceiling).unwrap().holds_cpus);
        let found = Places { cpu: None, ..found };
        let group = found.separate("two", &[1], ceiling).unwrap();
        assert_eq!((group.holds_cpus, group.folders.len()), (false, 2));
    }
}
