//! Calls from a program to the host, timed inside the program.

use std::process::Command;

use super::{Bench, LARGE_RESULTS, Outcome};

const CALLS: usize = 20_000;

const PURE: &str = "\
import time
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
times = []
for _ in range(40):
    begun = time.perf_counter()
    fib(24)
    times.append(time.perf_counter() - begun)
print(f'{min(times) * 1e3:.2f}')
";

pub async fn measure(bench: &Bench) -> Outcome<()> {
    let calls = format!(
        "import time\ntimes = []\nfor n in range({CALLS}):\n    begun = time.perf_counter()\n    await tools.echo(n)\n    \
         times.append(time.perf_counter() - begun)\ntimes.sort()\n\
         print(f'p50 {{times[{CALLS} // 2] * 1e6:.1f}} us, p99 {{times[{CALLS} * 99 // 100] * 1e6:.1f}} us')\n\
         begun = time.perf_counter()\nfor n in range({CALLS}):\n    await tools.echo(n)\n\
         print(f'{{{CALLS} / (time.perf_counter() - begun):,.0f}}/s')"
    );
    println!("awaited call: {}", bench.output(&calls).await?.replace('\n', ", "));
    for name in ["big", "dense"] {
        let large = format!(
            "import time\ntimes = []\nfor n in range({LARGE_RESULTS}):\n    kept = None\n    begun = time.perf_counter()\n    kept = await tools.{name}()\n    \
             times.append(time.perf_counter() - begun)\ntimes.sort()\n\
             print(f'p50 {{times[15] * 1e3:.2f}} ms, best {{times[0] * 1e3:.2f}} ms')\nkept = None"
        );
        println!("1 MB result, {name}: {}", bench.output(&large).await?);
    }
    for count in [100, 1_000] {
        let gathered = format!(
            "import asyncio, time\ntimes = []\nfor n in range(10):\n    begun = time.perf_counter()\n    \
             await asyncio.gather(*(tools.wait() for _ in range({count})))\n    times.append(time.perf_counter() - begun)\n\
             times.sort()\nprint(f'p50 {{times[5] * 1e3:.1f}} ms, best {{times[0] * 1e3:.1f}} ms')"
        );
        println!("{count} calls of 10 ms at once: {}", bench.output(&gathered).await?);
    }
    let outside = Command::new("/usr/bin/python3").args(["-I", "-c", PURE]).output()?;
    let outside = String::from_utf8(outside.stdout)?;
    println!("pure Python, fib(24), best: {} ms here, {} ms in python3", bench.output(PURE).await?, outside.trim());
    Ok(())
}
