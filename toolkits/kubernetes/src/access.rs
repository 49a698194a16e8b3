//! Which server is asked, how it is trusted, and who asks: from the settings, the kubeconfig, or the pod. It asks nobody.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use fimble_openapi::{Credential, Error, Secret, Tls};
use fimble_toolkit::named_value;

use crate::{Config, kubeconfig};

/// What a request needs.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Access {
    /// The server's address, without a slash at its end.
    pub(crate) server: String,
    /// How both sides prove who they are.
    pub(crate) tls: Tls,
    /// The token, or a user with a password.
    pub(crate) credential: Option<Credential>,
}

/// The access that the settings mean.
///
/// # Errors
/// `Setting`: what cannot be used, and why.
pub(crate) fn of(config: &Config) -> Result<Access, Error> {
    let mut access = match (&config.kubeconfig, &config.server) {
        (Some(file), _) => kubeconfig::read(file, config.context.as_deref())?,
        (None, Some(_)) => Access::default(),
        (None, None) => found(config.context.as_deref())?,
    };
    if let Some(server) = &config.server {
        access.server = server.clone();
    }
    access.server = access.server.trim_end_matches('/').to_owned();
    if !is_url(&access.server) {
        let setting = if config.server.is_some() { "`server`" } else { "the kubeconfig's `server`" };
        let problem = format!("`{}` is no URL, such as https://10.0.0.1:6443", access.server);
        return Err(wrong(setting, problem));
    }
    if let Some(name) = &config.token {
        let value = named_value(name)
            .filter(|value| !value.trim().is_empty())
            .ok_or_else(|| wrong("`token`", format!("there is no secret and no environment variable `{name}`")))?;
        access.credential = Some(Credential::Token(Secret::new(value)));
    }
    if let Some(file) = &config.ca {
        access.tls.authorities = Some(text(file, "`ca`")?);
    }
    match (&config.client_certificate, &config.client_key) {
        (Some(certificate), Some(key)) => {
            let certificate = text(certificate, "`client_certificate`")?;
            access.tls.identity = Some(Secret::new(format!("{certificate}\n{}", text(key, "`client_key`")?)));
        }
        (None, None) => {}
        _ => return Err(wrong("`client_certificate`", "it needs `client_key`, and that needs it".to_owned())),
    }
    if access.credential.is_some() && !access.server.starts_with("https://") {
        return Err(wrong("`server`", format!("a credential is sent over https:// only, not to `{}`", access.server)));
    }
    Ok(access)
}

fn is_url(server: &str) -> bool {
    let behind = server.strip_prefix("https://").or_else(|| server.strip_prefix("http://"));
    behind.is_some_and(|host| !host.is_empty() && !host.starts_with('/'))
}

/// Where the cluster's own programs look.
fn found(context: Option<&str>) -> Result<Access, Error> {
    let listed = env::var_os("KUBECONFIG").filter(|list| !list.is_empty());
    if let Some(first) = listed.and_then(|list| env::split_paths(&list).next()) {
        return kubeconfig::read(&first, context);
    }
    let usual = env::var_os("HOME").map(|home| PathBuf::from(home).join(".kube/config"));
    if let Some(usual) = usual.filter(|file| file.exists()) {
        return kubeconfig::read(&usual, context);
    }
    let (Ok(host), Ok(port)) = (env::var("KUBERNETES_SERVICE_HOST"), env::var("KUBERNETES_SERVICE_PORT_HTTPS")) else {
        let problem = "there is neither a `server` nor a kubeconfig, and this is no pod".to_owned();
        return Err(wrong("[toolkits.kubernetes]", problem));
    };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let token = text(&Path::new(ACCOUNT).join("token"), "the pod's token")?;
    let authorities = text(&Path::new(ACCOUNT).join("ca.crt"), "the pod's certificate authority")?;
    Ok(Access {
        server: format!("https://{host}:{port}"),
        tls: Tls { authorities: Some(authorities), identity: None },
        credential: Some(Credential::Token(Secret::new(token))),
    })
}

/// Where a pod finds who it is.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A setting that cannot be used.
pub(crate) fn wrong(setting: impl Into<String>, problem: String) -> Error {
    Error::Setting { setting: setting.into(), problem }
}

/// The text of a file that a setting names.
pub(crate) fn text(file: &Path, setting: &str) -> Result<String, Error> {
    fs::read_to_string(file).map_err(|error| wrong(setting, format!("{}: {error}", file.display())))
}
