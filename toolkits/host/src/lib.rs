//! This machine: processors, memory, disks, processes, ports and services, as the kernel and systemd tell them.
//!
//! It changes nothing. Within a container it sees what the container sees. Command lines are shortened and values that
//! look like secrets are hidden; that is a courtesy, no protection: who may call this may see other users' processes.

mod ports;
mod processes;
mod resources;
mod services;

use fimble_toolkit::{ToolError, blocking, toolkit};

pub use ports::{Port, Ports};
pub use processes::{Process, Processes, SortBy};
pub use resources::{Cpu, Disk, Memory, System, Uptime};
pub use services::{Service, Services};

/// The toolkit `host_toolkit`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Host;

impl Host {
    /// The machine that this process runs on.
    pub fn new() -> Self {
        Self
    }
}

/// The machine itself: processors, memory, disks, processes, ports and services. Read only.
#[toolkit(name = "host_toolkit")]
impl Host {
    /// Number of processors, how busy they are now, and the load averages.
    #[operation(risk = "read", timeout_s = 10)]
    async fn cpu(&self) -> Result<Cpu, ToolError> {
        blocking(|_| resources::cpu()).await
    }

    /// Memory and swap in bytes.
    #[operation(risk = "read", timeout_s = 10)]
    async fn memory(&self) -> Result<Memory, ToolError> {
        blocking(|_| resources::memory()).await
    }

    /// Mounted disks and how full they are, fullest first. Memory file systems are left out.
    #[operation(risk = "read", timeout_s = 30)]
    async fn disks(&self) -> Result<Vec<Disk>, ToolError> {
        blocking(|_| resources::disks()).await
    }

    /// The processes that use most.
    #[operation(risk = "read", timeout_s = 15)]
    async fn processes(
        &self,
        /// Most processes to return, up to 1000.
        #[default(10)]
        limit: u32,
        /// What the first ones use most of.
        #[default(SortBy::Cpu)]
        sort_by: SortBy,
        /// Only processes whose name or command line contains this, in any case.
        name: Option<String>,
    ) -> Result<Processes, ToolError> {
        blocking(move |_| processes::processes(limit, sort_by, name.as_deref())).await
    }

    /// TCP and UDP ports that something listens on, and which process where that may be seen.
    #[operation(risk = "read", timeout_s = 15)]
    async fn listening_ports(
        &self,
        /// Only this port.
        port: Option<u16>,
    ) -> Result<Ports, ToolError> {
        blocking(move |_| ports::listening(port)).await
    }

    /// The services that systemd knows.
    #[operation(risk = "read", timeout_s = 15)]
    async fn services(
        &self,
        /// Only services in this state, e.g. `failed`, `running`, `active`, `inactive`.
        state: Option<String>,
        /// Only services whose name contains this.
        name: Option<String>,
    ) -> Result<Services, ToolError> {
        services::services(state.as_deref(), name.as_deref()).await
    }

    /// Name, operating system, kernel, architecture and age since boot.
    #[operation(risk = "read", timeout_s = 10)]
    async fn system(&self) -> Result<System, ToolError> {
        blocking(|_| resources::system()).await
    }

    /// How long the machine has been up.
    #[operation(risk = "read", timeout_s = 10)]
    async fn uptime(&self) -> Result<Uptime, ToolError> {
        blocking(|_| resources::uptime()).await
    }
}
