//! Values that settings name instead of holding them: the process's environment, and beneath it the host's own secrets.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// What the host offers, one map for the process as the environment is.
static OFFERED: RwLock<BTreeMap<String, String>> = RwLock::new(BTreeMap::new());

/// The value of that name: the environment variable's if it is set to anything, else the secret's that the host offers.
/// Toolkits take the values that their settings name from here.
pub fn named_value(name: &str) -> Option<String> {
    let variable = std::env::var(name).ok().filter(|value| !value.is_empty());
    variable.or_else(|| OFFERED.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned())
}

/// The secrets that the host offers, by name.
pub fn offered_values() -> BTreeMap<String, String> {
    OFFERED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Offers these secrets to all toolkits of the process, in place of what was offered before. For the host; it sees to it that
/// their values are shown nowhere.
pub fn offer_values(values: BTreeMap<String, String>) {
    *OFFERED.write().unwrap_or_else(PoisonError::into_inner) = values;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_comes_before_what_is_offered() {
        offer_values([("PATH", "offered"), ("FIMBLE_TEST_OFFERED", "value")].map(|(a, b)| (a.into(), b.into())).into());
        assert_eq!(named_value("FIMBLE_TEST_OFFERED").as_deref(), Some("value"));
        assert_eq!((named_value("PATH"), named_value("FIMBLE_TEST_NONE")), (std::env::var("PATH").ok(), None));
    }
}
