//! A shorter run of `examples/soak.rs`: rounds that die and are killed leave nothing behind.

use super::*;

#[expect(dead_code, reason = "its `main` is for the long run")]
#[path = "../../examples/soak.rs"]
mod example;

#[tokio::test]
async fn five_hundred_rounds_with_random_kills_leave_nothing() {
    for isolation in [Level::Full, Level::Reduced] {
        let soaked = example::soak(Config { isolation, ..config() }, 500, 7).await;
        assert!(soaked.is_ok(), "{}", soaked.unwrap_err());
    }
}
