//! HTTP requests that carry the token of a login. It does not know what is said.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::auth::{AuthError, AuthorizationManager};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio::sync::Mutex;

/// A client that is logged in.
#[derive(Clone)]
pub(crate) struct Authorized {
    client: reqwest::Client,
    manager: Arc<Mutex<AuthorizationManager>>,
}

type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

impl Authorized {
    pub(crate) fn new(client: reqwest::Client, manager: AuthorizationManager) -> Self {
        Self { client, manager: Arc::new(Mutex::new(manager)) }
    }

    /// A token that is not `refused`, renewed if need be; `None` if the user must log in again.
    async fn token(&self, refused: Option<String>) -> Result<Option<String>, AuthError> {
        let manager = Arc::clone(&self.manager);
        // What renews a token is often good for one time only. So the exchange goes on to its end, even if the request
        // that it is for is given up meanwhile.
        let exchange = tokio::spawn(async move {
            let manager = manager.lock().await;
            let token = manager.get_access_token().await?;
            if refused.as_ref() != Some(&token) {
                return Ok(token);
            }
            manager.refresh_token().await?;
            manager.get_access_token().await
        });
        match exchange.await {
            Ok(Ok(token)) => Ok(Some(token)),
            Ok(Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_))) => Ok(None),
            Ok(Err(error)) => Err(error),
            Err(error) => Err(AuthError::InternalError(error.to_string())),
        }
    }

    /// Makes a request, and makes it again with a new token if the first was refused.
    async fn request<T, F, R>(&self, request: F) -> Result<T, Failure>
    where
        F: Fn(Option<String>) -> R + Send,
        R: Future<Output = Result<T, Failure>> + Send,
        T: Send,
    {
        let token = self.token(None).await?;
        match request(token.clone()).await {
            Err(StreamableHttpError::AuthRequired(challenge)) if token.is_some() => match self.token(token).await? {
                Some(new) => request(Some(new)).await,
                None => Err(StreamableHttpError::AuthRequired(challenge)),
            },
            result => result,
        }
    }
}

impl StreamableHttpClient for Authorized {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.request(|token| {
            self.client.post_message(uri.clone(), message.clone(), session.clone(), token, headers.clone())
        })
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.request(|token| {
            let (uri, message, session, headers) = (uri.clone(), message.clone(), session.clone(), headers.clone());
            self.client.post_message_with_max_sse_event_size(uri, message, session, token, headers, most)
        })
        .await
    }

    /// The last words of a session. They are not worth a new token, least of all when the program is about to end.
    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.client.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.request(|token| {
            self.client.get_stream(uri.clone(), session.clone(), last_event.clone(), token, headers.clone())
        })
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.request(|token| {
            let (uri, session, last_event) = (uri.clone(), session.clone(), last_event.clone());
            self.client.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers.clone(), most)
        })
        .await
    }
}
