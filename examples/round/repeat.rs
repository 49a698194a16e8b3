//! What a seed and recorded clocks cost: the same programs with and without them, in turn, so that both meet the same machine.

use std::time::{Duration, Instant};

use fimble::interpreter::Repeat;
use fimble::record::Readings;

use super::rounds::{TEN_LINES, variables};
use super::{Bench, Outcome, show};

const ROUNDS: usize = 500;
const TIMES: usize = 15;

/// Programs that print microseconds: what one of their steps took.
const STEPS: &[(&str, &str)] = &[
    ("awaited call", "for n in range(2_000):\n    await tools.echo(n)\n"),
    ("awaited call and a look at the clock", "for n in range(2_000):\n    time.time()\n    await tools.echo(n)\n"),
    ("time.time()", "for n in range(2_000):\n    time.time()\n"),
    ("datetime.now()", "import datetime\nnow = datetime.datetime.now\nfor n in range(2_000):\n    now()\n"),
    ("random.random()", "import random\nfor n in range(2_000):\n    random.random()\n"),
    ("uuid.uuid4()", "import uuid\nfor n in range(2_000):\n    uuid.uuid4()\n"),
];

pub async fn measure(bench: &Bench) -> Outcome<()> {
    let repeat = || Some(Repeat { seed: "5eed".repeat(16), readings: Readings::default() });
    for (what, source) in [
        ("round", TEN_LINES.to_owned()),
        ("round that imports random, datetime, uuid", format!("import random, datetime, uuid\n{TEN_LINES}")),
    ] {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            without.push(bench.repeated(&source, variables(), None).await?.0);
            with.push(bench.repeated(&source, variables(), repeat()).await?.0);
        }
        show(&format!("{what}, without"), &mut without);
        show(&format!("{what}, with a seed and clocks"), &mut with);
    }
    for (what, step) in STEPS {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..TIMES {
            without.push(timed(bench, step, None).await?);
            with.push(timed(bench, step, repeat()).await?);
        }
        let median = |times: &mut Vec<Duration>| {
            times.sort();
            times.get(TIMES / 2).copied().unwrap_or_default().as_secs_f64() * 1e6 / 2_000.0
        };
        println!("{what}: {:.2} us without, {:.2} us with a seed and clocks", median(&mut without), median(&mut with));
    }
    Ok(())
}

/// The time of a round, less that of one that does nothing.
async fn timed(bench: &Bench, step: &str, repeat: Option<Repeat>) -> Outcome<Duration> {
    let empty = bench.repeated("import time\n", Vec::new(), repeat.clone()).await?.0;
    let begun = Instant::now();
    bench.repeated(&format!("import time\n{step}"), Vec::new(), repeat).await?;
    Ok(begun.elapsed().saturating_sub(empty))
}
