//! Fimble: a code-driven agent runtime. The model completes a Python program; a kernel-jailed CPython runs it; every
//! effect goes through one gate and is journaled.
//!
//! The modules in reading order. A module uses only modules of lower rows; `tests/architecture.rs` enforces it.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "fimble confines programs with Linux namespaces, Landlock and seccomp and cannot be built for this system; build it in a \
     Linux container or virtual machine"
);

// Row 1: the vocabulary, and where tests let a process die.
pub mod crash;
pub mod event;
pub mod record;
pub mod segment;
pub mod shape;

// Row 2: the three ports to the world outside the process.
pub mod interpreter;
pub mod llm;
pub mod store;

// Row 3: pure, or nearly.
pub mod program;
pub mod prompt;
pub mod registry;

// Row 4: what outlives a turn.
pub mod session;

// Row 5: the one door for every effect.
pub mod gate;

// Row 6: one message to one reply; who runs what on this machine.
pub mod agent;
pub mod live;

// Row 7: every module's own settings, read once; turns that any machine makes.
pub mod config;
pub mod worker;

// Row 8: the terminal.
pub mod cli;
