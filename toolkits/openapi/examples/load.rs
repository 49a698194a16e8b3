//! Loads OpenAPI documents and prints what they are and how long it takes: `load FILE…`, or `load --stubs FILE [PATTERN]`.

use std::path::PathBuf;
use std::time::Instant;

use fimble_openapi::{Config, Filter, Source, load};
use fimble_toolkit::signature;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--stubs", file] => stubs(file, "*").await,
        ["--stubs", file, pattern] => stubs(file, pattern).await,
        files => {
            for file in files {
                measure(file).await;
            }
        }
    }
}

fn config() -> Config {
    Config { base_url: Some("http://127.0.0.1:1".to_owned()), ..Config::default() }
}

async fn measure(file: &str) {
    let (started, before) = (Instant::now(), processor_ms());
    let loaded = load(Source::File(PathBuf::from(file)), config()).await;
    let (elapsed, spent) = (started.elapsed(), processor_ms() - before);
    match loaded {
        Ok(loaded) => {
            let declaration = loaded.toolkit.declaration();
            let parameters: usize = declaration.operations.iter().map(|operation| operation.parameters.len()).sum();
            let bytes = serde_json::to_vec(&declaration).map(|bytes| bytes.len()).unwrap_or_default();
            let operations = declaration.operations.len();
            println!(
                "{:7.1} ms, {spent:6.1} ms of processor  {operations:5} operations  {parameters:6} parameters  {:5} problems  {:6} KiB of declaration  {file}",
                elapsed.as_secs_f64() * 1_000.0,
                loaded.problems.len(),
                bytes / 1_024,
            );
            for problem in loaded.problems.iter().take(3) {
                println!("            {problem}");
            }
        }
        Err(error) => println!("{:7.1} ms  {error}", elapsed.as_secs_f64() * 1_000.0),
    }
}

/// Milliseconds that this process had a processor: other programs do not make it longer.
fn processor_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse::<f64>().ok()).unwrap_or_default() / 1_000_000.0
}

async fn stubs(file: &str, pattern: &str) {
    let filter = Filter { include: vec![pattern.to_owned()], ..Filter::default() };
    match load(Source::File(PathBuf::from(file)), Config { filter, ..config() }).await {
        Ok(loaded) => {
            for operation in loaded.toolkit.declaration().operations {
                println!("{}  # {} [{}]", signature(&operation), operation.description, operation.risk);
            }
        }
        Err(error) => println!("{error}"),
    }
}
