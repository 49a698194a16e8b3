//! The Python half, embedded: as byte code, and as source for a CPython that reads other byte code.

/// One module of the package `_fimble`.
pub(super) struct Source {
    /// Its name in the package.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
    /// The magic number of the byte code, four bytes, and the code as `marshal` writes it. See `build.rs`.
    pub code: &'static [u8],
}

macro_rules! sources {
    ($($name:literal)*) => {
        &[$(Source {
            name: $name,
            text: include_str!(concat!("../../python/", $name, ".py")),
            code: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".code")),
        }),*]
    };
}

/// What every child needs, in the order in which the modules load, which is that of `MODULES` in `python/runner.py`.
pub(super) const EARLY: &[Source] = sources! {
    "wire" "limits" "errors" "records" "objects" "late_types" "carriable" "codec" "decoding" "preview" "arrays" "frames" "output"
    "pending" "arguments" "pages" "calls" "proxies" "packages" "missing" "definitions" "namespace" "imports" "statements"
    "tracebacks" "capture" "repeat" "runner"
};

/// What `LATE` in `python/runner.py` names: loaded at its first use.
pub(super) const LATE: &[Source] = sources! { "loops" };

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(tuple: &str) -> Vec<&'static str> {
        let runner = EARLY.iter().find(|source| source.name == "runner").unwrap().text;
        let (_, rest) = runner.split_once(&format!("\n{tuple} = (")).unwrap();
        rest.split_once(')').unwrap().0.split('"').skip(1).step_by(2).collect()
    }

    #[test]
    fn the_order_is_the_one_that_the_runner_asks_for() {
        let names = |sources: &[Source]| sources.iter().map(|source| source.name).collect::<Vec<_>>();
        assert_eq!((names(EARLY), names(LATE)), (asked("MODULES"), asked("LATE")));
    }
}
