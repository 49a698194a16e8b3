//! Packages with compiled code, for real: numpy and pandas from the package index, in the jail. Long, and needs the network.

use std::collections::HashSet;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use fimble::interpreter::{Config, Host, HostCall, Interpreter, Repeat, Run};
use fimble_toolkit::ToolError;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

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

/// Rounds of one session; each needs what those before it left, and is followed by what it prints.
const ROUNDS: [(&str, &str); 4] = [
    (
        "\
import numpy as np
import pandas as pd
with open('sales.csv', 'w') as file:
    file.write('day,shop,sold,price\\n2024-01-01,north,3,1.5\\n2024-01-01,south,1,2.0\\n2024-02-03,north,4,\\n')
table = pd.read_csv('sales.csv', parse_dates=['day'])
prices = table['price'].to_numpy()
grid = np.arange(6, dtype='f4').reshape(2, 3, order='F')
mean = prices[:2].mean()
rows = [table, grid, grid]
print(table.shape, mean)
",
        "(3, 4) 1.75\n",
    ),
    (
        "\
table['value'] = table['sold'] * table['price']
by_shop = table.groupby('shop')[['sold', 'value']].sum()
monthly = table.set_index('day').tz_localize('Europe/Berlin')['sold'].resample('MS').sum()
last = table['day'].max()
rows[1][0, 0] = 9
print(by_shop.loc['north', 'sold'], type(mean).__name__, grid.flags.f_contiguous, rows[1] is rows[2], np.isnan(prices).sum())
",
        "7 float64 True True 1\n",
    ),
    (
        "\
print(monthly.tolist(), monthly.index.tz, last + pd.Timedelta(days=1), rows[2][0, 0])
print(by_shop.to_csv().splitlines())
odd = pd.Series(pd.arrays.SparseArray([0, 1]))
",
        "[4, 4] Europe/Berlin 2024-02-04 00:00:00 9.0\n['shop,sold,value', 'north,7,4.5', 'south,1,2.0']\n",
    ),
    ("print(table['value'].sum(), str(table['day'].dtype)[:10], list(table.columns))\n", "6.5 datetime64 ['day', 'shop', 'sold', 'price', 'value']\n"),
];

/// What rounds of one zygote draw from numpy's own generators: two of the same seed, and two without.
#[expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]
async fn draws(config: &Config) -> HashSet<String> {
    let interpreter = Interpreter::start(config).await.unwrap();
    let mut drawn = HashSet::new();
    for seed in [Some("00ff"), Some("00ff"), None, None] {
        let mut run = Run::of("import numpy\nprint(numpy.random.rand(), numpy.random.default_rng().random())\n");
        run.repeat = seed.map(|seed| Repeat { seed: seed.to_owned(), readings: Default::default() });
        drawn.insert(interpreter.run(run, Arc::new(Nobody), CancellationToken::new()).await.unwrap().output);
    }
    drawn
}

struct Nobody;

#[async_trait]
impl Host for Nobody {
    async fn call(&self, _call: HostCall) -> Result<Value, ToolError> {
        Err(ToolError::not_found("there is no toolkit"))
    }
    fn print(&self, _text: &str) {}
    fn statement(&self, _number: u32, _of: u32) {}
}

#[test]
fn numpy_and_pandas_compute_in_the_jail_and_their_values_are_kept() {
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let fimble = |arguments: &[&str], program: &str| -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fimble"));
        command.args(["-c", "interpreter.packages=[\"numpy\",\"pandas\"]"]).args(arguments).current_dir(home.path());
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
    let config = Config {
        executable: Some(env!("CARGO_BIN_EXE_fimble").into()),
        packages: vec!["numpy".to_owned(), "pandas".to_owned()],
        packages_folder: Some(home.path().join("cache/fimble/packages")),
        ..Default::default()
    };
    let drawn = tokio::runtime::Runtime::new().unwrap().block_on(draws(&config));
    assert_eq!(drawn.len(), 3, "{drawn:?}");
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
    let refused = "`odd` is not kept: a SparseArray cannot be carried";
    for (number, (program, expected)) in ROUNDS.into_iter().enumerate() {
        let ran = fimble(&["run", "-", "--session", session], program);
        let said = (ran.status.code(), text(&ran.stdout));
        assert_eq!((said.0, said.1.as_str()), (Some(0), expected), "round {number}: {}", text(&ran.stderr));
        assert_eq!(text(&ran.stderr).contains(refused), number == 2, "{}", text(&ran.stderr));
    }
    let variables = text(&fimble(&["sessions", "vars", session], "").stdout);
    assert!(variables.contains("3 rows x 5 columns: day: datetime64"), "{variables}");
    // Without the packages their values wait, and say so.
    let ran = fimble(&["-c", "interpreter.packages=[]", "run", "-", "--session", session], "print(len(table))\n");
    assert!(text(&ran.stderr).contains("it needs the package `pandas`"), "{}", text(&ran.stderr));
    let ran = fimble(&["run", "-", "--session", session], "print(len(table))\n");
    assert_eq!(text(&ran.stdout), "3\n", "{}", text(&ran.stderr));
    // The Python half's own tests of these values, with what was fetched.
    let folder = home.path().join("cache/fimble/packages");
    let site = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().join("site"));
    let site = site.into_iter().find(|path| path.is_dir()).unwrap();
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python");
    let ran = Command::new("/usr/bin/python3")
        .args(["-m", "unittest", "discover", "-v", "-s", tests, "-p", "test_arrays.py"])
        .env("PYTHONPATH", site)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = text(&ran.stderr);
    assert!(ran.status.success() && said.contains("OK") && !said.contains("skipped"), "{said}");
}
