//! A package with compiled code, for real: numpy from the package index, in the jail. Long, and needs the network.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = "\
import numpy as np
import numpy.random, numpy.fft, numpy.linalg, numpy.polynomial
a = np.arange(250_000, dtype=float).reshape(500, 500)
b = a @ a.T
print(b.shape, b[0, 0] == (a[0] * a[0]).sum())
print(np.linalg.solve(np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([9.0, 8.0])).tolist())
print(round(float(np.random.default_rng(0).normal()), 6), np.fft.fft([1, 0, 0, 0]).real.tolist())
import threading, os
print(threading.active_count(), os.environ['OPENBLAS_NUM_THREADS'])
";

#[test]
fn numpy_computes_in_the_jail() {
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let fimble = |arguments: &[&str], program: &str| -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fimble"));
        command.args(["-c", "interpreter.packages=[\"numpy\"]"]).args(arguments).current_dir(home.path());
        for (name, folder) in
            [("HOME", ""), ("XDG_DATA_HOME", "data"), ("XDG_CONFIG_HOME", "config"), ("XDG_CACHE_HOME", "cache")]
        {
            command.env(name, home.path().join(folder));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let synced = fimble(&["packages", "sync"], "");
    assert_eq!(synced.status.code(), Some(0), "{}", text(&synced.stderr));
    for level in ["full", "reduced"] {
        let ran = fimble(&["run", "-", "--isolation", level], PROGRAM);
        let expected = "(500, 500) True\n[2.0, 3.0]\n0.12573 [1.0, 1.0, 1.0, 1.0]\n1 1\n";
        assert_eq!(
            (ran.status.code(), text(&ran.stdout).as_str()),
            (Some(0), expected),
            "{level}: {}",
            text(&ran.stderr)
        );
    }
    // The import is kept, as that of a module of the standard library is.
    let list = text(&fimble(&["sessions", "list"], "").stdout);
    let session = list.split_whitespace().next().unwrap();
    let ran = fimble(&["run", "-", "--session", session], "float(np.sqrt(np.float64(2)))\n");
    assert_eq!(
        (ran.status.code(), text(&ran.stdout).as_str()),
        (Some(0), "1.4142135623730951\n"),
        "{}",
        text(&ran.stderr)
    );
}
