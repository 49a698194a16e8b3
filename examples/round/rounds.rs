//! Rounds: after a pause, as after a model's turn; one after the other; many sessions at once.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fimble::interpreter::Carried;
use fimble::record::VariableKind;
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use super::{Bench, Outcome, show};

const ROUNDS: usize = 500;
const SESSIONS: usize = 50;

pub const TEN_LINES: &str = "\
total = 0
for row in rows:
    if row['open']:
        total += row['id']
names = [row['name'] for row in rows]
joined = ', '.join(names)
best = max(l0)
d0['new'] = n0 + n1
summary = {'total': total, 'best': best, 'first': names[0]}
print(joined[:20], total)
";

pub async fn measure(bench: &Bench) -> Outcome<()> {
    let variables = variables();
    let bytes: usize = variables.iter().map(|one| one.content.len()).sum();
    let mut times = Vec::new();
    let mut cpu = Vec::new();
    for _ in 0..ROUNDS {
        tokio::time::sleep(Duration::from_millis(30)).await;
        let (time, finished) = bench.round(TEN_LINES, variables.clone()).await?;
        times.push(time);
        cpu.push(finished.usage.cpu);
    }
    show(&format!("round after 30 ms idle, {} variables of {bytes} bytes", variables.len()), &mut times);
    show("of it, CPU time of the child, its making included", &mut cpu);
    show("the same work in a bare fork of python3 after 30 ms idle", &mut bare_forks(&variables)?);
    times.clear();
    for _ in 0..ROUNDS {
        times.push(bench.round(TEN_LINES, variables.clone()).await?.0);
    }
    show("the same, one after the other", &mut times);
    times.clear();
    for _ in 0..10 {
        let begun = Instant::now();
        try_join_all((0..SESSIONS).map(|_| bench.round("x = 1", Vec::new()))).await?;
        times.push(begun.elapsed());
    }
    show(&format!("{SESSIONS} sessions, each with its first line run"), &mut times);
    Ok(())
}

/// What forking costs on this machine, without anything of Fimble's.
fn bare_forks(variables: &[Carried]) -> Outcome<Vec<Duration>> {
    let values: serde_json::Map<_, _> = variables.iter().map(|one| (one.name.clone(), json!(one.content))).collect();
    let mut python = Command::new("/usr/bin/python3")
        .args(["-I", "-c", include_str!("floor.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = python.stdin.take().ok_or("no input")?;
    input.write_all(json!({"source": TEN_LINES, "variables": values}).to_string().as_bytes())?;
    drop(input);
    let milliseconds: Vec<f64> = serde_json::from_slice(&python.wait_with_output()?.stdout)?;
    Ok(milliseconds.into_iter().map(|one| Duration::from_secs_f64(one / 1e3)).collect())
}

/// Twenty values as the store would hand them out.
pub fn variables() -> Vec<Carried> {
    let carried = |name: String, value: &Value| Carried { name, kind: VariableKind::Value, content: value.to_string() };
    let text = "abc defghi j ghij abcd efg hi jabc def ghij abcde fghi jab cd";
    let list: Vec<u32> = (0..20).map(|n| n * 37 % 1_000).collect();
    let dict: serde_json::Map<String, Value> = (0..12).map(|n| (format!("k{n}"), json!(n * 7))).collect();
    let rows: Vec<Value> =
        (0..6).map(|n| json!({"id": n, "name": format!("project-{n}"), "open": n % 2 == 0})).collect();
    let mut all = vec![carried("rows".to_owned(), &json!(rows))];
    all.extend((0..8).map(|n| carried(format!("s{n}"), &json!(text))));
    all.extend((0..4).map(|n| carried(format!("n{n}"), &json!(n * 123_457))));
    all.extend((0..4).map(|n| carried(format!("l{n}"), &json!(list))));
    all.extend((0..3).map(|n| carried(format!("d{n}"), &json!(dict))));
    all
}
