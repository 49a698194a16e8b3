//! A program that runs Python of its own in the jail. `cargo run --example embed`.

use fimble::interpreter::{self, Config, Interpreter, Nobody, Run};
use tokio_util::sync::CancellationToken;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    interpreter::init(); // First: the process that programs are forked from is this program again.
    tokio::runtime::Runtime::new()?.block_on(async {
        let jail = Interpreter::start(&Config::default()).await?;
        let run = Run::of("print('hello from the jail')\nsum(n * n for n in range(10))");
        let finished = jail.run(run, std::sync::Arc::new(Nobody), CancellationToken::new()).await?;
        print!("{}", finished.output);
        println!("{:?}", finished.ending);
        Ok(())
    })
}
