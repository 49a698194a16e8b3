//! Work that blocks its thread, done beside the asynchronous ones and told when nobody waits for it any more.

use tokio_util::sync::CancellationToken;

use crate::ToolError;

/// Runs `work` on a thread of its own and waits for it.
///
/// A thread cannot be stopped from outside: when this future is dropped the token is cancelled, and `work` should ask
/// [`is_cancelled`](CancellationToken::is_cancelled) in its loops and return early with whatever it likes.
///
/// # Errors
/// What `work` returned, or `Failed` if it panicked or the runtime is shutting down.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let token = CancellationToken::new();
    let dropped = token.clone().drop_guard();
    let result = tokio::task::spawn_blocking(move || work(&token)).await;
    drop(dropped);
    result.unwrap_or_else(|error| {
        let what = if error.is_panic() { "it hit a defect of its own" } else { "the host is shutting down" };
        Err(ToolError::failed(format!("the operation did not end: {what}")).with_hint("do it another way"))
    })
}
