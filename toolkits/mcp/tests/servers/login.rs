//! A server that wants a login, with an authorization server that somebody else wrote.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use fimble_mcp::{Error, Settings, Transport, connect, login, logout};
use fimble_toolkit::ErrorKind;
use serde_json::json;
use tempfile::TempDir;

use crate::{address, call, fixture};

/// The browser of a user who agrees: it goes where it is sent.
fn visit(address: &str) {
    let address = address.to_owned();
    tokio::spawn(async move { reqwest::get(address).await.unwrap().text().await.unwrap() });
}

#[tokio::test]
async fn a_login_lasts_until_the_server_forgets_it() {
    let (_process, url) = fixture("oauth_server.py", &[]);
    let folder = TempDir::new().unwrap();
    let settings = Settings { tokens: Some(folder.path().join("tokens")), ..Settings::default() };
    let server = address(&url, Transport::Either);
    let error = connect(server.clone(), settings.clone()).await.err().unwrap();
    assert_eq!(error.to_string(), "the MCP server `remote` wants you to log in");
    assert!(matches!(error, Error::Login { .. }));

    login(&server, &settings, visit).await.unwrap();
    let file = fs::read_dir(folder.path().join("tokens")).unwrap().next().unwrap().unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    // A token that is refused is renewed, and a host that starts later has the new one.
    let toolkit = connect(server.clone(), settings.clone()).await.unwrap();
    assert_eq!(call(&*toolkit, "refreshed", json!({})).await, Ok(json!(0)));
    call(&*toolkit, "expire", json!({})).await.unwrap();
    assert_eq!(call(&*toolkit, "refreshed", json!({})).await, Ok(json!(1)));
    drop(toolkit);
    let toolkit = connect(server.clone(), settings.clone()).await.unwrap();
    assert_eq!(call(&*toolkit, "refreshed", json!({})).await, Ok(json!(1)));

    call(&*toolkit, "forget", json!({})).await.unwrap();
    let error = call(&*toolkit, "refreshed", json!({})).await.unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::Denied, "the MCP server `remote` wants the user to log in")
    );
    assert_eq!(error.hint.as_deref(), Some("tell the user to run `fimble toolkits login remote`"));
    assert!(logout(&server, &settings) && !logout(&server, &settings));
}

#[tokio::test]
async fn a_refused_login_says_so() {
    let (_process, url) = fixture("oauth_server.py", &["refuse"]);
    let folder = TempDir::new().unwrap();
    let settings = Settings { tokens: Some(folder.path().to_owned()), ..Settings::default() };
    let error = login(&address(&url, Transport::Either), &settings, visit).await.unwrap_err();
    let expected = "the MCP server `remote` cannot be logged in to: it was refused: access_denied";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn the_events_of_2024_carry_the_token_too() {
    let (_process, url) = fixture("oauth_server.py", &["sse"]);
    let folder = TempDir::new().unwrap();
    let settings = Settings { tokens: Some(folder.path().to_owned()), ..Settings::default() };
    let server = address(&url.replace("/mcp", "/sse"), Transport::Sse);
    assert!(matches!(connect(server.clone(), settings.clone()).await, Err(Error::Login { .. })));
}

#[tokio::test]
async fn a_token_that_is_too_old_is_renewed_before_it_is_used() {
    let (_process, url) = fixture("oauth_server.py", &["short"]);
    let folder = TempDir::new().unwrap();
    let settings = Settings { tokens: Some(folder.path().to_owned()), ..Settings::default() };
    let server = address(&url, Transport::Either);
    login(&server, &settings, visit).await.unwrap();
    let mut before = 0;
    // A host that goes in the middle of it all loses nothing: what renews a token is good for one time.
    for _ in 0..5 {
        let toolkit = connect(server.clone(), settings.clone()).await.unwrap();
        let refreshed = call(&*toolkit, "refreshed", json!({})).await.unwrap().as_i64().unwrap();
        assert!(refreshed > before, "{refreshed} {before}");
        before = refreshed;
    }
}
