//! What the machine has and how much of it is used.

use fimble_toolkit::ToolError;
use jiff::Timestamp;
use nix::sys::statvfs::statvfs;
use schemars::JsonSchema;
use serde::Serialize;
use sysinfo::{CpuRefreshKind, Disks, MINIMUM_CPU_UPDATE_INTERVAL, MemoryRefreshKind};

/// Processors.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Cpu {
    /// Logical processors.
    pub count: u64,
    /// The model's name; empty if unknown.
    pub model: String,
    /// How busy all together are, 0 to 100, measured for a fifth of a second.
    pub usage_percent: f64,
    /// How busy each is, 0 to 100.
    pub per_cpu_percent: Vec<f64>,
    /// Load average of one minute.
    pub load_1m: f64,
    /// Load average of five minutes.
    pub load_5m: f64,
    /// Load average of fifteen minutes.
    pub load_15m: f64,
}

/// Memory and swap.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Memory {
    /// All memory.
    pub total_bytes: u64,
    /// Memory in use, without what is only cached.
    pub used_bytes: u64,
    /// Memory that programs can still get without swapping.
    pub free_bytes: u64,
    /// Used of total, 0 to 100.
    pub used_percent: f64,
    /// All swap; 0 without swap.
    pub swap_total_bytes: u64,
    /// Swap in use.
    pub swap_used_bytes: u64,
}

/// A mounted disk.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Disk {
    /// Where it is mounted.
    pub mount: String,
    /// The device, e.g. `/dev/sda1`.
    pub device: String,
    /// The file system, e.g. `ext4`.
    pub file_system: String,
    /// All of it, with what is reserved for the administrator.
    pub total_bytes: u64,
    /// What is in use.
    pub used_bytes: u64,
    /// What users can still write.
    pub free_bytes: u64,
    /// Used of what users can use, 0 to 100, as `df` tells it.
    pub used_percent: f64,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct System {
    /// Its name.
    pub hostname: String,
    /// The operating system and its version, e.g. `Debian GNU/Linux 13`.
    pub os: String,
    /// The kernel's release.
    pub kernel: String,
    /// E.g. `x86_64`.
    pub architecture: String,
    /// Logical processors.
    pub cpu_count: u64,
    /// All memory.
    pub memory_bytes: u64,
    /// Seconds since boot.
    pub uptime_seconds: u64,
    /// When it booted, RFC 3339 in UTC.
    pub boot_time: String,
}

/// Time since boot.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Uptime {
    /// Seconds since boot.
    pub uptime_seconds: u64,
    /// When it booted, RFC 3339 in UTC.
    pub boot_time: String,
}

pub(crate) fn cpu() -> Result<Cpu, ToolError> {
    let mut system = observer()?;
    system.refresh_cpu_list(CpuRefreshKind::nothing().with_usage());
    // Usage is what changes between two looks.
    std::thread::sleep(MINIMUM_CPU_UPDATE_INTERVAL);
    system.refresh_cpu_usage();
    let load = sysinfo::System::load_average().map_err(unavailable)?;
    Ok(Cpu {
        count: system.cpus().len() as u64,
        model: system.cpus().first().map(|cpu| cpu.brand().to_owned()).unwrap_or_default(),
        usage_percent: rounded(system.global_cpu_usage().into()),
        per_cpu_percent: system.cpus().iter().map(|cpu| rounded(cpu.usage().into())).collect(),
        load_1m: load.one,
        load_5m: load.five,
        load_15m: load.fifteen,
    })
}

pub(crate) fn memory() -> Result<Memory, ToolError> {
    let mut system = observer()?;
    system.refresh_memory_specifics(MemoryRefreshKind::everything());
    Ok(Memory {
        total_bytes: system.total_memory(),
        used_bytes: system.used_memory(),
        free_bytes: system.available_memory(),
        used_percent: percent(system.used_memory(), system.total_memory()),
        swap_total_bytes: system.total_swap(),
        swap_used_bytes: system.used_swap(),
    })
}

/// Fullest first; a device that is mounted more than once is told once, at its shortest mount.
pub(crate) fn disks() -> Result<Vec<Disk>, ToolError> {
    let mounted = Disks::new_with_refreshed_list().map_err(unavailable)?;
    let mut disks: Vec<Disk> = mounted
        .iter()
        .filter(|disk| disk.total_space() > 0)
        .filter_map(|disk| {
            // One that went meanwhile is left out.
            let space = statvfs(disk.mount_point()).ok()?;
            let bytes = |blocks: u64| blocks.saturating_mul(space.fragment_size());
            let used = bytes(space.blocks().saturating_sub(space.blocks_free()));
            let free = bytes(space.blocks_available());
            Some(Disk {
                mount: disk.mount_point().display().to_string(),
                device: disk.name().display().to_string(),
                file_system: disk.file_system().display().to_string(),
                total_bytes: bytes(space.blocks()),
                used_bytes: used,
                free_bytes: free,
                used_percent: percent(used, used.saturating_add(free)),
            })
        })
        .collect();
    disks.sort_by(|left, right| (&left.device, left.mount.len()).cmp(&(&right.device, right.mount.len())));
    disks.dedup_by(|later, earlier| later.device == earlier.device && later.total_bytes == earlier.total_bytes);
    disks.sort_by(|left, right| right.used_percent.total_cmp(&left.used_percent));
    Ok(disks)
}

pub(crate) fn system() -> Result<System, ToolError> {
    let Uptime { uptime_seconds, boot_time } = uptime()?;
    let mut observed = observer()?;
    observed.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    observed.refresh_cpu_list(CpuRefreshKind::nothing());
    Ok(System {
        hostname: sysinfo::System::host_name().map_err(unavailable)?,
        os: sysinfo::System::long_os_version().map_err(unavailable)?,
        kernel: sysinfo::System::kernel_version().map_err(unavailable)?,
        architecture: sysinfo::System::cpu_arch(),
        cpu_count: observed.cpus().len() as u64,
        memory_bytes: observed.total_memory(),
        uptime_seconds,
        boot_time,
    })
}

pub(crate) fn uptime() -> Result<Uptime, ToolError> {
    let boot = sysinfo::System::boot_time().map_err(unavailable)?;
    Ok(Uptime { uptime_seconds: sysinfo::System::uptime().map_err(unavailable)?, boot_time: rfc3339(boot) })
}

/// Something that can look, and has not looked yet.
pub(crate) fn observer() -> Result<sysinfo::System, ToolError> {
    sysinfo::System::new().map_err(unavailable)
}

/// The kernel does not tell.
pub(crate) fn unavailable(error: impl std::fmt::Display) -> ToolError {
    ToolError::unavailable(format!("the system does not tell: {error}"))
}

/// Seconds since 1970 as RFC 3339 in UTC; empty outside the years that it can write.
pub(crate) fn rfc3339(seconds: u64) -> String {
    let timestamp = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    timestamp.map(|timestamp| timestamp.to_string()).unwrap_or_default()
}

/// To one decimal, as people read it.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { rounded(part as f64 / whole as f64 * 100.0) }
}
