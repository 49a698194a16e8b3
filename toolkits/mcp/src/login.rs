//! Logging in to a server that wants to know who the user is: OAuth with a browser, once, and tokens that are renewed.
//!
//! Tokens lie in a file of mode 600. What is not protected: whoever reads the user's files has them.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::http::header;
use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationRequest, AuthorizationSession,
    CredentialRefreshGuard, CredentialStore, OAuthClientConfig, StoredCredentials,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::config::Transport;
use crate::variables::Variables;
use crate::{Endpoint, Error, Server, Settings, http};
use fimble_toolkit::python_name;

/// Logs in to a server: finds its authorization server, registers there if need be, lets `open_url` show the user an
/// address to visit, waits there until the browser comes back, and keeps the tokens. They are used from the next
/// connection on. Dropping the future gives it up.
///
/// # Errors
/// The server has no address or wants no login, there is no folder for tokens, the user refused, or nobody came back
/// within ten minutes.
pub async fn login(server: &Server, settings: &Settings, open_url: impl FnOnce(&str) + Send) -> Result<(), Error> {
    let server = &server.with_variables(&Variables::of_process())?;
    let failed = |problem: String| Error::of(server, settings.limits.text(&problem), String::new());
    let Endpoint::Url { url, client, .. } = &server.endpoint else {
        return Err(failed("is a program of this machine: its own settings say who you are".to_owned()));
    };
    let Some(file) = file(settings, server) else {
        return Err(failed("cannot be logged in to: there is no folder for its tokens".to_owned()));
    };
    let refused = |error: AuthError| failed(format!("cannot be logged in to: {error}"));
    http::choose_encryption();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(|error| failed(error.to_string()))?;
    let port = listener.local_addr().map_err(|error| failed(error.to_string()))?.port();
    let origin = format!("http://127.0.0.1:{port}");

    let mut manager = AuthorizationManager::new(url.as_str()).await.map_err(refused)?;
    let challenge = challenge(server, settings).await;
    let metadata = manager.resolve_metadata_from_challenge(challenge.as_deref()).await.map_err(refused)?.metadata;
    let describes_clients = metadata.additional_fields.get("client_id_metadata_document_supported");
    let describes_clients = describes_clients.and_then(Value::as_bool) == Some(true);
    manager.set_metadata(metadata.clone());
    // What the server names, what the settings name, and what was allowed before.
    let mut scopes = manager.select_initial_scopes(&[]).await;
    let allowed = Kept::read(&file).map(|kept| kept.credentials.granted_scopes).unwrap_or_default();
    for scope in client.scopes.iter().chain(&allowed) {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
    let back = format!("{origin}/callback");
    let mut request = AuthorizationRequest::new(&back).with_initial_scope_selection().with_scopes(scopes.clone());
    let mut secret = client.secret.clone();
    if let Some(id) = &client.id {
        request = request.with_preregistered_client(id);
    } else if let Some(metadata_url) = client.metadata_url.as_ref().filter(|_| describes_clients) {
        request = request.with_client_metadata_url(metadata_url);
    } else {
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let registered = manager.register_client("Fimble", &back, &scopes).await.map_err(refused)?;
        secret = registered.client_secret;
        request = request.with_preregistered_client(registered.client_id);
    }
    if let Some(secret) = &secret {
        request = request.with_client_secret(secret);
    }
    manager.set_credential_store(Tokens { file, secret, metadata });
    let session = AuthorizationSession::new(manager, request).await.map_err(|(_, error)| refused(error))?;
    open_url(session.get_authorization_url());
    let back = timeout(COMES_BACK_WITHIN, callback(&listener, &origin)).await;
    let back = back.map_err(|_| failed("cannot be logged in to: nobody came back from the browser".to_owned()))?;
    let address = back.map_err(|problem| failed(format!("cannot be logged in to: {problem}")))?;
    session.handle_callback_url(&address).await.map_err(refused)?;
    Ok(())
}

/// Forgets what a login left. False if there was nothing.
pub fn logout(server: &Server, settings: &Settings) -> bool {
    let Ok(server) = server.with_variables(&Variables::of_process()) else { return false };
    file(settings, &server).is_some_and(|file| fs::remove_file(file).is_ok())
}

/// What a login left, ready to be used; `None` if nobody has logged in.
pub(crate) async fn manager(server: &Server, settings: &Settings) -> Result<Option<AuthorizationManager>, AuthError> {
    let Endpoint::Url { url, .. } = &server.endpoint else { return Ok(None) };
    let Some(file) = file(settings, server).filter(|file| file.exists()) else { return Ok(None) };
    http::choose_encryption();
    let Some(kept) = Kept::read(&file) else { return Ok(None) };
    let mut manager = AuthorizationManager::new(url.as_str()).await?;
    let (secret, metadata) = (kept.client_secret.clone(), kept.metadata);
    manager.set_metadata(metadata.clone());
    manager.set_credential_store(Tokens { file, secret, metadata });
    let known = timeout(settings.limits.start, manager.initialize_from_store()).await;
    let known = known.map_err(|_| AuthError::OAuthError("the authorization server does not answer".to_owned()))??;
    if !known {
        return Ok(None);
    }
    if let Some(secret) = &kept.client_secret {
        let config = OAuthClientConfig::new(kept.credentials.client_id, url.as_str()).with_client_secret(secret);
        manager.configure_client(config)?;
    }
    Ok(Some(manager))
}

/// What a server says to a request without a token: where to log in, and for what. `None` if it says nothing of it.
async fn challenge(server: &Server, settings: &Settings) -> Option<String> {
    let Endpoint::Url { url, headers, transport, .. } = &server.endpoint else { return None };
    let client = http::client(server, &settings.limits).ok()?;
    let request = match transport {
        Transport::Sse => client.get(url),
        _ => client.post(url).header(header::CONTENT_TYPE, "application/json").body(PROBE),
    };
    let request = request.headers(http::headers(server, headers).ok()?).timeout(settings.limits.start);
    let answer = request.header(header::ACCEPT, "application/json, text/event-stream").send().await.ok()?;
    let challenge = answer.headers().get(header::WWW_AUTHENTICATE).filter(|_| answer.status() == http::UNAUTHORIZED);
    challenge.and_then(|challenge| challenge.to_str().ok()).map(str::to_owned)
}

/// The harmless request to which a server says that it wants a login.
const PROBE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;

/// How long the user may take in the browser.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(600);

/// Bytes of the browser's request.
const REQUEST_BYTES: usize = 16 * 1024;

/// How long the browser may take to send it.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// Waits for the browser; the whole address that it was sent to.
async fn callback(listener: &TcpListener, origin: &str) -> Result<String, String> {
    loop {
        let (mut stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
        let Ok(Some(path)) = timeout(REQUEST_WITHIN, requested(&mut stream)).await else { continue };
        // Browsers ask for an icon too.
        let Some(query) = path.strip_prefix("/callback?") else {
            answer(&mut stream, "404 Not Found", "There is nothing here.").await;
            continue;
        };
        let refusal = query.split('&').find_map(|pair| pair.strip_prefix("error="));
        if let Some(refusal) = refusal {
            answer(&mut stream, "200 OK", "The login was refused. You can close this window.").await;
            return Err(format!("it was refused: {}", refusal.chars().take(100).collect::<String>()));
        }
        answer(&mut stream, "200 OK", "You are logged in. You can close this window.").await;
        return Ok(format!("{origin}{path}"));
    }
}

/// The path of a request for a page, if it is one.
async fn requested(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut part).await.ok().filter(|count| *count > 0)?;
        head.extend_from_slice(part.get(..count)?);
        if head.len() > REQUEST_BYTES {
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    head.strip_prefix("GET ")?.split(' ').next().map(str::to_owned)
}

async fn answer(stream: &mut TcpStream, status: &str, text: &str) {
    let page = format!("<!doctype html><title>Fimble</title><p>{text}</p>");
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\n", page.len());
    // The browser may be gone; what matters was read.
    let _ = stream.write_all(format!("{head}Connection: close\r\n\r\n{page}").as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// The file of a server's tokens: another address is another server.
fn file(settings: &Settings, server: &Server) -> Option<PathBuf> {
    let Endpoint::Url { url, .. } = &server.endpoint else { return None };
    let hash: String = Sha256::digest(url).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let name = python_name(&server.name, "server");
    settings.tokens.as_ref().map(|folder| folder.join(format!("{name}-{hash}.json")))
}

/// The tokens of one server, in a file that other processes use too.
struct Tokens {
    file: PathBuf,
    /// What belongs to the client's id.
    secret: Option<String>,
    metadata: AuthorizationMetadata,
}

/// What the file holds.
#[derive(Serialize, Deserialize)]
struct Kept {
    credentials: StoredCredentials,
    client_secret: Option<String>,
    /// Where tokens are renewed. What a server says of that is looked for at a login only.
    metadata: AuthorizationMetadata,
}

impl Kept {
    /// What cannot be read is as good as nothing: the user logs in again.
    fn read(file: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(file).ok()?).ok()
    }
}

#[async_trait]
impl CredentialStore for Tokens {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(Kept::read(&self.file).map(|kept| kept.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let failed = |problem: String| AuthError::CredentialStoreError(problem);
        let kept = Kept { credentials, client_secret: self.secret.clone(), metadata: self.metadata.clone() };
        let bytes = serde_json::to_vec(&kept).map_err(|error| failed(error.to_string()))?;
        write_private(&self.file, &bytes).map_err(|error| failed(error.to_string()))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(AuthError::CredentialStoreError(error.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// A refresh token is often good for one time only: two processes must not use it at once.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let path = self.file.with_extension("lock");
        let locked = tokio::task::spawn_blocking(move || {
            let file = File::create(path)?;
            file.lock().map(|()| file)
        });
        match locked.await {
            Ok(Ok(file)) => Ok(Some(CredentialRefreshGuard::new(file))),
            Ok(Err(error)) => Err(AuthError::CredentialStoreError(error.to_string())),
            Err(error) => Err(AuthError::CredentialStoreError(error.to_string())),
        }
    }
}

/// Writes a file that only the user can read, whole or not at all.
pub(crate) fn write_private(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let beside = file.with_extension(format!("{}.new", std::process::id()));
    let mut new = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    let written = new.write_all(bytes).and_then(|()| fs::rename(&beside, file));
    written.inspect_err(|_| drop(fs::remove_file(&beside)))
}
