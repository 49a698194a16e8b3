//! Memory of the zygote, of a child that waits and of one that runs: what is its own alone, and what the kernel shares out
//! to it (PSS), which is the more the fewer children there are to share with.

use std::fs;
use std::time::Duration;

use super::{Bench, Outcome};

pub async fn measure(bench: &Bench) -> Outcome<()> {
    let (round, ()) = tokio::join!(bench.output("import time\nx = list(range(1000))\ntime.sleep(0.5)"), async {
        tokio::time::sleep(Duration::from_millis(250)).await;
        match bench.interpreter.zygote_pid().await {
            0 => println!("memory: no zygote"),
            pid => print(pid, 0),
        }
    });
    round?;
    Ok(())
}

fn print(pid: u32, depth: usize) {
    let name = ["outside the namespaces", "zygote", "child (one runs, one is spare)"].get(depth).unwrap_or(&"deeper");
    match (kib(pid, &["Pss:"]), kib(pid, &["Private_Clean:", "Private_Dirty:"])) {
        (Some(pss), Some(own)) => {
            println!("memory, {name}: {:.2} MB its own, {:.2} MB shared out", own / 1024.0, pss / 1024.0)
        }
        _ => println!("memory, {name}: not readable, run as root"),
    }
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
        print(child, depth + 1);
    }
}

/// The sum of some lines.
fn kib(pid: u32, names: &[&str]) -> Option<f64> {
    let facts = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let value = |name: &str| {
        facts.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse::<f64>().ok())
    };
    names.iter().map(|name| value(name)).sum()
}
