//! Ports that something listens on, and what it is.

use std::collections::HashMap;
use std::net::SocketAddr;

use fimble_toolkit::ToolError;
use procfs::net::TcpState;
use procfs::process::FDTarget;
use schemars::JsonSchema;
use serde::Serialize;

use crate::resources::unavailable;

/// Most ports in one result.
const PORTS: usize = 1_000;

/// Ports that something listens on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Ports {
    /// By port; at most 1000.
    pub ports: Vec<Port>,
    /// True if some processes could not be looked into, so that a `pid` may be missing.
    pub incomplete: bool,
    /// True if there are more ports.
    pub truncated: bool,
}

/// A port that something listens on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Port {
    /// Its number.
    pub port: u16,
    /// `tcp`, `tcp6`, `udp` or `udp6`.
    pub protocol: String,
    /// The address it listens on; `0.0.0.0` and `::` are all addresses.
    pub address: String,
    /// The process, if it may be seen.
    pub pid: Option<i32>,
    /// The process's short name, if it may be seen.
    pub process: Option<String>,
}

/// All listening ports, or one.
pub(crate) fn listening(wanted: Option<u16>) -> Result<Ports, ToolError> {
    let mut sockets: Vec<(&str, SocketAddr, u64)> = Vec::new();
    // A kernel without IPv6 has no file for it.
    for (protocol, entries) in
        [("tcp", procfs::net::tcp().map_err(unavailable)?), ("tcp6", procfs::net::tcp6().unwrap_or_default())]
    {
        let listening = entries.into_iter().filter(|entry| entry.state == TcpState::Listen);
        sockets.extend(listening.map(|entry| (protocol, entry.local_address, entry.inode)));
    }
    for (protocol, entries) in
        [("udp", procfs::net::udp().map_err(unavailable)?), ("udp6", procfs::net::udp6().unwrap_or_default())]
    {
        // UDP knows no listening; without a peer it takes from everybody.
        let open = entries.into_iter().filter(|entry| entry.remote_address.port() == 0);
        sockets.extend(open.map(|entry| (protocol, entry.local_address, entry.inode)));
    }
    sockets.retain(|(_, address, _)| wanted.is_none_or(|port| address.port() == port));
    let (owners, incomplete) = owners()?;
    let mut ports: Vec<Port> = sockets
        .into_iter()
        .map(|(protocol, address, inode)| {
            let owner = owners.get(&inode);
            Port {
                port: address.port(),
                protocol: protocol.to_owned(),
                address: address.ip().to_string(),
                pid: owner.map(|owner| owner.pid),
                process: owner.map(|owner| owner.name.clone()),
            }
        })
        .collect();
    ports.sort_by(|left, right| {
        (left.port, &left.protocol, &left.address, left.pid).cmp(&(
            right.port,
            &right.protocol,
            &right.address,
            right.pid,
        ))
    });
    ports.dedup();
    let total = ports.len();
    ports.truncate(PORTS);
    Ok(Ports { truncated: ports.len() < total, ports, incomplete })
}

/// The process that holds a socket.
struct Owner {
    pid: i32,
    name: String,
}

/// Sockets by inode with the first process that holds them, and whether some process could not be looked into.
fn owners() -> Result<(HashMap<u64, Owner>, bool), ToolError> {
    let mut owners = HashMap::new();
    let mut incomplete = false;
    for process in procfs::process::all_processes().map_err(unavailable)? {
        // A process may end while it is looked at.
        let Ok(process) = process else { continue };
        let handles = match process.fd() {
            Ok(handles) => handles,
            Err(error) => {
                incomplete |= matches!(error, procfs::ProcError::PermissionDenied(_));
                continue;
            }
        };
        let mut name = None;
        for handle in handles.flatten() {
            if let FDTarget::Socket(inode) = handle.target {
                let name = name.get_or_insert_with(|| process.stat().map(|stat| stat.comm).unwrap_or_default());
                owners.entry(inode).or_insert_with(|| Owner { pid: process.pid(), name: name.clone() });
            }
        }
    }
    Ok((owners, incomplete))
}
