//! OpenAPI documents as toolkits: each operation of a document is one operation of the toolkit, each call one request.
//!
//! OpenAPI 3.0 and 3.1 are read, Swagger 2.0 is converted, as JSON or YAML. The document is from outside: names are made
//! into Python names, texts, schemas and counts are bounded, and what cannot be read is a problem of its own that leaves
//! the other operations alone. Credentials are the host's; they are put into requests here, go only to the server that
//! the document itself names first (or to `base_url`), and are in no parameter, result or error.
//!
//! What is not protected: the document decides which address is asked, and what `x-fimble-risk` says is believed; do not
//! load documents from strangers. Descriptions reach the model as the document has them. `$ref`s to other files are not
//! followed.
//!
//! It does not know the registry, the gate or the programs that call.

mod body;
mod client;
mod config;
mod document;
mod encode;
mod error;
mod limits;
mod operation;
mod outcome;
mod pages;
mod parameter;
mod payload;
mod read;
mod request;
mod response;
mod schema;
mod security;
mod server;
mod source;
mod swagger;
mod toolkit;
mod value;
mod view;

use std::sync::Arc;

use fimble_toolkit::Toolkit;

pub use config::{Config, Credential, Filter, Secret, Source, Tls};
pub use error::{Error, Problem};
pub use limits::Limits;

/// A document as a toolkit, and what of it could not be used.
pub struct Loaded {
    /// The toolkit.
    pub toolkit: Arc<dyn Toolkit>,
    /// Why parts of the document are left out, at most `limits.problems` of them.
    pub problems: Vec<Problem>,
}

/// Reads a document and makes its operations callable. Needs a tokio runtime.
///
/// # Errors
/// The document cannot be read, is too large or no OpenAPI document; it does not say where its server is; nothing of it
/// can be called; or a setting cannot be used.
pub async fn load(source: Source, config: Config) -> Result<Loaded, Error> {
    let (root, origin) = source::read(&source, &config).await?;
    let (toolkit, problems) = read::toolkit(root, origin.as_ref(), &source, &config)?;
    Ok(Loaded { toolkit: Arc::new(toolkit), problems })
}
