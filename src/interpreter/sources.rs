//! The Python half, embedded. In the order in which the modules load, which is that of `MODULES` in `python/runner.py`.

macro_rules! sources {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../python/", $name, ".py")))),*]
    };
}

/// Name and source of each module of the package `_fimble`.
pub(super) const SOURCES: &[(&str, &str)] = sources! {
    "wire" "limits" "errors" "records" "objects" "carriable" "codec" "decoding" "preview" "output" "pending"
    "arguments" "calls" "proxies" "packages" "missing" "definitions" "namespace" "statements" "tracebacks" "capture"
    "runner"
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_the_one_that_the_runner_asks_for() {
        let runner = SOURCES.iter().find(|(name, _)| *name == "runner").unwrap().1;
        let (_, rest) = runner.split_once("MODULES = (").unwrap();
        let (asked, _) = rest.split_once(')').unwrap();
        let asked: Vec<&str> = asked.split('"').skip(1).step_by(2).collect();
        assert_eq!(SOURCES.iter().map(|(name, _)| *name).collect::<Vec<_>>(), asked);
    }
}
