//! Programs that do not end by themselves, or take their process with them: when control is back, and when the next
//! round is over.

use std::time::Instant;

use fimble::interpreter::Ending;

use super::{Bench, Outcome};

const HAZARDS: [(&str, &str); 7] = [
    ("Python loop", "print('begun')\nwhile True:\n    pass"),
    ("C loop", "print('begun')\nx = sum(iter(int, 1))"),
    ("big power", "print('begun')\nx = 10 ** 10 ** 8"),
    ("sleep", "print('begun')\nimport time\ntime.sleep(60)"),
    ("4 GB", "print('begun')\nx = 'a' * (4 * 1024 ** 3)"),
    ("exit", "print('begun')\nimport os\nos._exit(1)"),
    ("crash", "print('begun')\nimport ctypes\nctypes.string_at(0)"),
];

/// Seconds.
const LIMIT: f64 = 1.0;

pub async fn measure(bench: &Bench) -> Outcome<()> {
    for (name, source) in HAZARDS {
        let begun = Instant::now();
        let finished = bench.run(source, Vec::new(), LIMIT).await?;
        let back = begun.elapsed();
        let (next, _) = bench.round("print(1 + 1)", Vec::new()).await?;
        let ending = match finished.ending {
            Ending::Limit { limit, .. } => limit,
            Ending::Crashed { .. } | Ending::Lost { .. } => "crashed",
            _ => "ended",
        };
        println!(
            "hazard, {name}: {ending}, back after {:.3} s, next round {:.2} ms, output {}, line reached {}",
            back.as_secs_f64(),
            next.as_secs_f64() * 1e3,
            if finished.output.is_empty() { "lost" } else { "kept" },
            finished.statements_done + 1
        );
    }
    Ok(())
}
