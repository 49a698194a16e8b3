//! A kubeconfig: the one context of it that is used.

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use fimble_openapi::{Credential, Error, Secret, Tls};
use serde::Deserialize;

use crate::access::{Access, text, wrong};

/// The file as far as it matters. Other fields are left alone.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", default)]
#[derive(Default)]
struct File {
    current_context: String,
    contexts: Vec<Named>,
    clusters: Vec<Named>,
    users: Vec<Named>,
}

/// An item of one of its lists; only the field of its own kind is there.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    name: String,
    context: Context,
    cluster: Cluster,
    user: User,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
struct Cluster {
    server: String,
    certificate_authority: Option<String>,
    certificate_authority_data: Option<String>,
    insecure_skip_tls_verify: bool,
    tls_server_name: Option<String>,
    proxy_url: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<String>,
    client_certificate: Option<String>,
    client_certificate_data: Option<String>,
    client_key: Option<String>,
    client_key_data: Option<String>,
    username: Option<String>,
    password: Option<String>,
    exec: Option<Present>,
    auth_provider: Option<Present>,
}

/// Something that is not read, only seen to be there.
#[derive(Deserialize)]
struct Present {}

/// What the context (default: the current one) of that file means.
///
/// # Errors
/// `Setting`: a file that cannot be read, a name that is not in it, or an access that is not spoken here.
pub(crate) fn read(path: &Path, context: Option<&str>) -> Result<Access, Error> {
    let setting = format!("the kubeconfig {}", path.display());
    let refused = |problem: String| wrong(setting.as_str(), problem);
    let written = text(path, "the kubeconfig")?;
    // Its message would show what is written there, and that may be a key.
    let file: File = serde_saphyr::from_str(&written).map_err(|error| match error.location() {
        Some(location) => refused(format!("line {} is not as a kubeconfig has it", location.line())),
        None => refused("it is no kubeconfig".to_owned()),
    })?;
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let name = context.unwrap_or(&file.current_context);
    let find = |kind: &str, list: &'_ [Named], name: &str| match list.iter().position(|one| one.name == name) {
        Some(place) => Ok(place),
        None => {
            let known: Vec<&str> = list.iter().map(|one| one.name.as_str()).collect();
            Err(refused(format!("it has no {kind} `{name}`, only: {}", known.join(", "))))
        }
    };
    let empty = Named::default();
    let context = &file.contexts.get(find("context", &file.contexts, name)?).unwrap_or(&empty).context;
    let cluster = &file.clusters.get(find("cluster", &file.clusters, &context.cluster)?).unwrap_or(&empty).cluster;
    let user = &file.users.get(find("user", &file.users, &context.user)?).unwrap_or(&empty).user;

    for (is_there, what) in [
        (cluster.insecure_skip_tls_verify, "`insecure-skip-tls-verify` is not taken: name a certificate authority"),
        (cluster.tls_server_name.is_some(), "`tls-server-name` is not taken: name the server by that name"),
        (cluster.proxy_url.is_some(), "`proxy-url` is not taken: set HTTPS_PROXY"),
        (
            user.exec.is_some() || user.auth_provider.is_some(),
            "another program makes the user's credential, and none is run for it: give a `token`",
        ),
    ] {
        if is_there {
            return Err(refused(what.to_owned()));
        }
    }
    let pem = |data: &Option<String>, file: &Option<String>, what: &str| match (data, file) {
        (Some(data), _) => {
            let bytes = BASE64_STANDARD.decode(data.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            bytes.map(Some).ok_or_else(|| refused(format!("`{what}-data` is no base64 of a text")))
        }
        (None, Some(file)) => text(&folder.join(file), &format!("`{what}` of {setting}")).map(Some),
        (None, None) => Ok(None),
    };
    let authorities =
        pem(&cluster.certificate_authority_data, &cluster.certificate_authority, "certificate-authority")?;
    let certificate = pem(&user.client_certificate_data, &user.client_certificate, "client-certificate")?;
    let key = pem(&user.client_key_data, &user.client_key, "client-key")?;
    let identity = certificate.zip(key).map(|(certificate, key)| Secret::new(format!("{certificate}\n{key}")));
    let token = match (&user.token_file, &user.token) {
        (Some(file), _) => Some(text(&folder.join(file), &format!("`tokenFile` of {setting}"))?),
        (None, token) => token.clone(),
    };
    let basic = user.username.clone().zip(user.password.clone());
    let credential = match (token, basic) {
        (Some(token), _) => Some(Credential::Token(Secret::new(token))),
        (None, Some((user, password))) => Some(Credential::Basic { user, password: Secret::new(password) }),
        (None, None) => None,
    };
    Ok(Access { server: cluster.server.clone(), tls: Tls { authorities, identity }, credential })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
apiVersion: v1
kind: Config
current-context: prod
preferences: {}
contexts:
- {name: prod, context: {cluster: main, user: ada, namespace: shop}}
- {name: cloud, context: {cluster: main, user: program}}
- {name: careless, context: {cluster: open, user: ada}}
- {name: half, context: {cluster: main, user: nobody}}
- {name: file, context: {cluster: main, user: robot}}
clusters:
- name: main
  cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: LS0tCg==}
- name: open
  cluster: {server: "https://10.0.0.2", insecure-skip-tls-verify: true}
users:
- name: ada
  user: {token: tops3cret, client-certificate-data: Y2VydA==, client-key-data: a2V5}
- name: program
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: cloud-login}}
- name: robot
  user: {tokenFile: token.txt}
"#;

    fn read_context(context: Option<&str>) -> Result<Access, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(&file, FILE).unwrap();
        std::fs::write(folder.path().join("token.txt"), "from-a-file\n").unwrap();
        let shown = file.display().to_string();
        read(&file, context).map_err(|error| error.to_string().replace(&shown, "FILE"))
    }

    #[test]
    fn a_context_is_read() {
        let main = |credential: &str, identity: Option<&str>| Access {
            server: "https://10.0.0.1:6443".to_owned(),
            tls: Tls { authorities: Some("---\n".to_owned()), identity: identity.map(Secret::new) },
            credential: Some(Credential::Token(Secret::new(credential))),
        };
        assert_eq!(read_context(None), Ok(main("tops3cret", Some("cert\nkey"))));
        assert_eq!(read_context(Some("file")), Ok(main("from-a-file", None)));
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        let table = [
            ("none", "it has no context `none`, only: prod, cloud, careless, half, file"),
            ("half", "it has no user `nobody`, only: ada, program, robot"),
            ("cloud", "another program makes the user's credential, and none is run for it: give a `token`"),
            ("careless", "`insecure-skip-tls-verify` is not taken: name a certificate authority"),
        ];
        for (context, problem) in table {
            let expected = format!("the kubeconfig FILE cannot be used: {problem}");
            assert_eq!(read_context(Some(context)), Err(expected));
        }
    }

    #[test]
    fn what_is_no_kubeconfig_says_where_and_shows_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(&file, "apiVersion: v1\nusers:\n- name: ada\n  user: tops3cret\n").unwrap();
        let error = read(&file, None).unwrap_err().to_string();
        assert!(error.ends_with("line 4 is not as a kubeconfig has it") && !error.contains("tops3cret"), "{error}");
    }
}
