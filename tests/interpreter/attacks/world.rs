//! What an attack must not reach, and the look at it from outside: files, sockets and a process of the jail's own user, and
//! what the processes of this test use at their peak.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::life::descendants;

/// Numbers of the system calls that attacks make by number.
macro_rules! numbers {
    ($($name:ident)*) => { [$((stringify!($name).trim_start_matches("SYS_"), libc::$name)),*] };
}

/// A folder with a secret, listeners, and a process, all of the user that the jail runs as.
pub struct World {
    folder: tempfile::TempDir,
    secret: String,
    before: Vec<String>,
    tcp: TcpListener,
    udp: UdpSocket,
    name: String,
    abstracts: (UnixListener, UnixDatagram),
    named: UnixListener,
    bystander: Child,
    scheduled: String,
}

impl World {
    pub fn new(jailed_uid: u32) -> Self {
        let folder = tempfile::Builder::new().prefix("canary-").tempdir_in("/tmp").unwrap();
        let path = folder.path().to_owned();
        let secret = format!("secret-{}", uuid::Uuid::now_v7());
        let write = |name: &str, text: String| {
            std::fs::write(path.join(name), text).unwrap();
            std::fs::set_permissions(path.join(name), PermissionsExt::from_mode(0o644)).unwrap();
        };
        write("secret", secret.clone());
        write("canary_module.py", format!("SECRET = {secret:?}\n"));
        write(&format!("name-{secret}"), String::new());
        std::fs::create_dir(path.join("empty")).unwrap();
        let named = UnixListener::bind(path.join("socket")).unwrap();
        set_attribute(&path.join("secret"), &secret);
        let is_root = nix::unistd::geteuid().is_root();
        let user = if is_root { jailed_uid } else { nix::unistd::geteuid().as_raw() };
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        if is_root {
            for entry in std::fs::read_dir(&path).unwrap() {
                chown(entry.unwrap().path(), Some(user), Some(user)).unwrap();
            }
            chown(&path, Some(user), Some(user)).unwrap();
        }
        let name = format!("fimble-canary-{secret}").replace("secret-", "");
        let address = |suffix: &str| SocketAddr::from_abstract_name(format!("{name}{suffix}")).unwrap();
        let abstracts =
            (UnixListener::bind_addr(&address("")).unwrap(), UnixDatagram::bind_addr(&address("-datagrams")).unwrap());
        let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        for listens in [tcp.set_nonblocking(true), udp.set_nonblocking(true), named.set_nonblocking(true)] {
            listens.unwrap();
        }
        abstracts.0.set_nonblocking(true).unwrap();
        abstracts.1.set_nonblocking(true).unwrap();
        let mut command = Command::new("/bin/sleep");
        command.arg("1000").env_clear().env("SECRET", &secret).current_dir(&path);
        command.stdin(std::fs::File::open(path.join("secret")).unwrap()).stdout(Stdio::null());
        if is_root {
            command.uid(user).gid(user);
        }
        let bystander = command.spawn().unwrap();
        let mut world = Self {
            folder,
            secret,
            before: vec![],
            tcp,
            udp,
            name,
            abstracts,
            named,
            bystander,
            scheduled: String::new(),
        };
        world.before = world.files();
        world.scheduled = world.schedule();
        world
    }

    /// What a script is told about it, as Python.
    pub fn names(&self) -> String {
        let numbers: serde_json::Map<String, serde_json::Value> = calls_by_number();
        format!(
            "CANARY = {:?}\nPORT = {}\nUDP_PORT = {}\nNAME = {:?}\nBYSTANDER = {}\nNR = {}\n",
            self.folder.path().to_str().unwrap(),
            self.tcp.local_addr().unwrap().port(),
            self.udp.local_addr().unwrap().port(),
            self.name,
            self.bystander.id(),
            serde_json::Value::Object(numbers),
        )
    }

    /// What happened to it that must not; `said` is all that the attack could say to the host.
    pub fn harm(&mut self, said: &str) -> Vec<String> {
        let mut harm = Vec::new();
        if said.contains(&self.secret) {
            harm.push("the secret was read".to_owned());
        }
        let now = self.files();
        if now != self.before {
            harm.push(format!("files changed: {now:#?} were {:#?}", self.before));
        }
        let mut heard = |what: &str, result: std::io::Result<()>| match result {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            other => harm.push(format!("{what}: {other:?}")),
        };
        heard("a TCP connection", self.tcp.accept().map(drop));
        heard("a UDP datagram", self.udp.recv_from(&mut [0; 16]).map(drop));
        heard("an abstract connection", self.abstracts.0.accept().map(drop));
        heard("an abstract datagram", self.abstracts.1.recv(&mut [0; 16]).map(drop));
        heard("a named connection", self.named.accept().map(drop));
        if self.bystander.try_wait().unwrap().is_some() {
            harm.push("the bystander ended".to_owned());
        } else if self.schedule() != self.scheduled {
            harm.push(format!("the bystander is {} and was {}", self.schedule(), self.scheduled));
        }
        harm
    }

    /// Each file with all that can be changed about it.
    fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            found.push(describe(&folder));
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() { folders.push(path) } else { found.push(describe(&path)) }
            }
        }
        found.sort();
        found
    }

    /// State, priority, cores and limits of the bystander.
    fn schedule(&self) -> String {
        let folder = PathBuf::from(format!("/proc/{}", self.bystander.id()));
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        // It starts as a copy of this process, and sleeps from then on.
        let begun = std::time::Instant::now();
        loop {
            let stat = read("stat");
            let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
            let state = fields.first().copied().unwrap_or_default();
            if read("comm") != "sleep\n" || (state == "R" || state == "D") && begun.elapsed() < Duration::from_secs(20)
            {
                std::thread::yield_now();
                continue;
            }
            let allowed = read("status").lines().find(|line| line.starts_with("Cpus_allowed:")).map(str::to_owned);
            return format!(
                "{state} {:?} {:?} {:?} {allowed:?} {}",
                fields.get(15),
                fields.get(16),
                fields.get(38),
                read("limits")
            );
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
        // So that it can be removed whatever an attack did to it.
        let _ = std::fs::set_permissions(self.folder.path(), PermissionsExt::from_mode(0o755));
    }
}

fn describe(path: &Path) -> String {
    let Ok(of) = std::fs::symlink_metadata(path) else { return format!("{} is gone", path.display()) };
    let text = if of.is_file() { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    let times = (of.mtime_nsec(), of.mtime(), of.ctime_nsec(), of.ctime());
    format!("{} {:o} {}:{} {} {times:?} {text:?}", path.display(), of.mode(), of.uid(), of.gid(), of.size())
}

/// File systems without such attributes have nothing to protect.
fn set_attribute(path: &Path, value: &str) {
    let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: all pointers are to live memory of the told size.
    unsafe { libc::setxattr(path.as_ptr(), c"user.secret".as_ptr(), value.as_ptr().cast(), value.len(), 0) };
}

/// The most that the processes below this one had at the same time, and this one's own peak.
#[derive(Debug, Default, Clone, Copy)]
pub struct Peak {
    pub tasks: u64,
    pub scratch_bytes: u64,
    pub scratch_files: u64,
}

/// Looks at the processes again and again, from a thread of its own.
pub struct Sampler {
    peak: Arc<Mutex<Peak>>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Sampler {
    pub fn start() -> Self {
        let (peak, stop) = (Arc::<Mutex<Peak>>::default(), Arc::<AtomicBool>::default());
        let (shared, stopped) = (Arc::clone(&peak), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let now = sample();
                let mut peak = shared.lock().unwrap();
                peak.tasks = peak.tasks.max(now.tasks);
                peak.scratch_bytes = peak.scratch_bytes.max(now.scratch_bytes);
                peak.scratch_files = peak.scratch_files.max(now.scratch_files);
                drop(peak);
                std::thread::sleep(Duration::from_millis(15));
            }
        });
        Self { peak, stop, thread: Some(thread) }
    }

    /// The peak since the last time.
    pub fn take(&self) -> Peak {
        std::mem::take(&mut self.peak.lock().unwrap())
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

fn sample() -> Peak {
    let mut peak = Peak::default();
    let descendants = descendants();
    let mut held: u64 = descendants.iter().map(|pid| unnamed(Path::new(&format!("/proc/{pid}")))).sum();
    for pid in descendants {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let Ok(status) = std::fs::read_to_string(folder.join("status")) else { continue };
        peak.tasks += field(&status, "Threads:");
        // Only root may look into another mount namespace. Without one, this is the machine's own folder, if any.
        for scratch in [folder.join("root/scratch"), PathBuf::from(format!("/tmp/fimble-{pid}"))] {
            let mut there = BTreeMap::new();
            measure(&scratch, 3, &mut there);
            peak.scratch_bytes = peak.scratch_bytes.max(there.values().sum());
            peak.scratch_files = peak.scratch_files.max(there.len() as u64);
            // A mount's quota counts them too.
            if scratch.starts_with("/tmp") && scratch.exists() {
                peak.scratch_bytes += std::mem::take(&mut held);
            }
        }
    }
    peak
}

/// Bytes of files that are open and have no name. Only root sees them.
fn unnamed(process: &Path) -> u64 {
    let open = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let files = open.filter_map(|entry| std::fs::metadata(entry.path()).ok());
    files.filter(|of| of.is_file() && of.nlink() == 0).map(|of| of.blocks() * 512).sum()
}

/// The bytes of each file below a folder. One that moves meanwhile is one.
fn measure(folder: &Path, depth: u32, there: &mut BTreeMap<(u64, u64), u64>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(of) = entry.metadata() else { continue };
        there.insert((of.dev(), of.ino()), of.blocks() * 512);
        if of.is_dir() && depth > 0 {
            measure(&entry.path(), depth - 1, there);
        }
    }
}

/// The first number on a line of `/proc/…/status`.
pub fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Forgets this process's peak of resident memory; answers what it has now, in KiB.
pub fn reset_own_peak() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    field(&std::fs::read_to_string("/proc/self/status").unwrap(), "VmRSS:")
}

/// This process's peak of resident memory since then, in KiB.
pub fn own_peak() -> u64 {
    field(&std::fs::read_to_string("/proc/self/status").unwrap(), "VmHWM:")
}

fn calls_by_number() -> serde_json::Map<String, serde_json::Value> {
    let numbers = numbers!(SYS_openat SYS_openat2 SYS_name_to_handle_at SYS_open_by_handle_at SYS_renameat2 SYS_io_uring_setup
        SYS_io_setup SYS_mount SYS_umount2 SYS_pivot_root SYS_open_tree SYS_fsopen SYS_chroot SYS_inotify_init1
        SYS_fanotify_init SYS_clone SYS_clone3 SYS_execveat SYS_memfd_create SYS_memfd_secret SYS_prctl SYS_ptrace
        SYS_process_vm_readv SYS_process_vm_writev SYS_pidfd_open SYS_pidfd_getfd SYS_ioprio_set SYS_setfsuid SYS_capset
        SYS_unshare SYS_setns SYS_keyctl SYS_add_key SYS_bpf SYS_init_module SYS_perf_event_open SYS_sethostname SYS_reboot
        SYS_swapoff SYS_acct SYS_syslog SYS_shmget SYS_msgget SYS_semget SYS_mq_open SYS_socket SYS_bind SYS_listen
        SYS_sendmmsg SYS_recvmmsg SYS_mprotect SYS_pkey_mprotect SYS_personality SYS_seccomp SYS_landlock_restrict_self
        SYS_userfaultfd SYS_tgkill SYS_tkill SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo SYS_pidfd_send_signal
        SYS_timer_create);
    let mut all: serde_json::Map<String, serde_json::Value> =
        numbers.into_iter().map(|(name, number)| (name.to_owned(), number.into())).collect();
    // The number that the C library's headers do not have yet, and that of `getpid` with the mark of the x32 calls.
    all.insert("fchmodat2".to_owned(), 452.into());
    all.insert("x32".to_owned(), (0x4000_0000 + libc::SYS_getpid).into());
    // Where an architecture has no such call, its modern form is the same attack.
    #[cfg(target_arch = "x86_64")]
    let old = numbers!(SYS_fork SYS_vfork);
    #[cfg(not(target_arch = "x86_64"))]
    let old = [("fork", libc::SYS_clone), ("vfork", libc::SYS_clone)];
    all.extend(old.into_iter().map(|(name, number)| (name.to_owned(), number.into())));
    all
}
