//! Work on a thread of its own: its result, its panic, and that it learns when nobody waits any more.

use std::time::Duration;

use fimble_toolkit::{ErrorKind, ToolError, blocking};

#[tokio::test]
async fn results_and_errors_come_back() {
    assert_eq!(blocking(|_| Ok(3)).await, Ok(3));
    let error = ToolError::not_found("nothing there");
    let returned = error.clone();
    assert_eq!(blocking(move |_| Err::<(), _>(returned)).await, Err(error));
}

#[tokio::test]
async fn a_panic_is_an_error_of_the_call() {
    let error = blocking(|_| -> Result<(), ToolError> { panic!("a defect") }).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Failed);
    assert_eq!(error.to_string(), "the operation did not end: it hit a defect of its own (hint: do it another way)");
}

#[tokio::test]
async fn work_that_nobody_waits_for_is_told_so() {
    let (started, has_started) = tokio::sync::oneshot::channel();
    let (ended, has_ended) = tokio::sync::oneshot::channel();
    let waiting = tokio::spawn(blocking(move |cancelled| {
        let _ = started.send(());
        while !cancelled.is_cancelled() {
            std::thread::yield_now();
        }
        let _ = ended.send(());
        Ok(())
    }));
    has_started.await.unwrap();
    waiting.abort();
    tokio::time::timeout(Duration::from_secs(10), has_ended).await.unwrap().unwrap();
}
