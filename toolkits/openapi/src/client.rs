//! The HTTP client: what all requests have in common. It does not know documents.

use std::error::Error as _;
use std::sync::Once;
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Identity, Response};
use url::Url;

use crate::{Error, Limits, Tls};

/// A client that stays with its server: it follows redirects only where scheme, host and port stay the same, because what
/// is sent may hold a credential.
///
/// # Errors
/// `Setting`: what `tls` has is no PEM, or does not fit together.
pub(crate) fn build(limits: &Limits, tls: &Tls) -> Result<Client, Error> {
    let wrong = |setting: &str| {
        let setting = setting.to_owned();
        move |error: reqwest::Error| Error::Setting { setting, problem: reason(&error) }
    };
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Another part of the program may have chosen already.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let most = limits.redirects;
    let policy = Policy::custom(move |attempt| {
        let stays = attempt.previous().first().is_some_and(|first| same_origin(first, attempt.url()));
        if stays && attempt.previous().len() <= most { attempt.follow() } else { attempt.stop() }
    });
    let mut builder = Client::builder();
    if let Some(authorities) = &tls.authorities {
        let setting = "the server's certificate authority";
        let certificates = Certificate::from_pem_bundle(authorities.as_bytes()).map_err(wrong(setting))?;
        if certificates.is_empty() {
            let problem = "it has no certificate in PEM form".to_owned();
            return Err(Error::Setting { setting: setting.to_owned(), problem });
        }
        builder = builder.tls_certs_only(certificates);
    }
    if let Some(identity) = &tls.identity {
        let identity = Identity::from_pem(identity.expose().as_bytes()).map_err(wrong("the client's certificate"))?;
        builder = builder.identity(identity);
    }
    builder
        .connect_timeout(limits.connect)
        .redirect(policy)
        .user_agent(concat!("fimble/", env!("CARGO_PKG_VERSION")))
        // A connection that a server closed while it was idle could fail the next call; few close one so soon.
        .pool_idle_timeout(LONGEST_IDLE)
        .build()
        .map_err(wrong("the HTTP client"))
}

/// How long a connection is kept for the next call.
const LONGEST_IDLE: Duration = Duration::from_secs(2);

/// True if both have the same scheme, host and port.
pub(crate) fn same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

/// An answer's body within its limit.
pub(crate) enum Body {
    /// All of it.
    Whole(Vec<u8>),
    /// It has more bytes than the limit; this is its beginning.
    TooLong(Vec<u8>),
}

/// Reads an answer's body up to `most` bytes.
pub(crate) async fn body(response: Response, most: usize) -> Result<Body, reqwest::Error> {
    let mut bytes = Vec::new();
    let mut stream = response.bytes_stream();
    while let Some(piece) = stream.next().await {
        let piece = piece?;
        if bytes.len() + piece.len() > most {
            return Ok(Body::TooLong(bytes));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Body::Whole(bytes))
}

/// Why a request failed, without its URL, which may hold a credential.
pub(crate) fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    if error.source().is_some() {
        return cause.to_string();
    }
    if error.is_timeout() { "it took too long".to_owned() } else { "the request failed".to_owned() }
}
