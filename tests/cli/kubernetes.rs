//! A cluster as a person uses it: a table in the settings, a kubeconfig, a program.

use std::io::{BufRead, BufReader};
use std::process::Child;

use super::*;

/// A small API server over HTTPS with the whole document of Kubernetes, ended with the test. Its folder has a `kubeconfig`.
struct Cluster {
    process: Child,
    address: String,
    folder: tempfile::TempDir,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Cluster {
    fn start() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script = root.join("scripts/openapi-test-documents");
        let documents = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
        let document = Path::new(stdout(&documents).trim()).join("kubernetes.json");
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("/usr/bin/python3");
        command.arg(root.join("toolkits/kubernetes/tests/fixtures/api_server.py")).arg(folder.path()).arg(document);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { process, address: address.trim().to_owned(), folder }
    }
}

const PAGES: &str = r#"
pods, mark = [], None
while True:
    page = await kubernetes_toolkit.list_namespaced_pod("shop", limit=3, continue_=mark)
    pods += page["items"]
    mark = page.metadata["continue"]
    if not mark:
        break
print(len(pods), pods[-1].metadata.name)
print(len((await kubernetes_toolkit.list_namespaced_pod("shop", limit=3, pages=20))["items"]))
print([pod.metadata.name async for pod in kubernetes_toolkit.list_namespaced_pod("shop", limit=3)][2:5])
try:
    await kubernetes_toolkit.list_node()
except ToolError as error:
    print(type(error).__name__)
await kubernetes_toolkit.list_node()
"#;

#[test]
fn a_kubeconfig_makes_a_toolkit_and_a_program_follows_its_pages() {
    let cluster = Cluster::start();
    let home = Home::new();
    let settings = home.path().join("config/fimble/config.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(&settings, "[toolkits.kubernetes]\n").unwrap();
    std::fs::write(home.path().join("pages.py"), PAGES).unwrap();
    let run = |arguments: &[&str]| {
        home.fimble(arguments).env("KUBECONFIG", cluster.folder.path().join("kubeconfig")).output().unwrap()
    };
    let output = run(&["run", "pages.py"]);
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(1), "7 web-6\n7\n['web-2', 'web-3', 'web-4']\nForbidden\n"),
        "{}",
        stderr(&output)
    );
    let refused = "Forbidden: kubernetes_toolkit.list_node(): the server answered 403 Forbidden: nodes is forbidden: User \"ada\" cannot \
                   list resource \"nodes\" in API group \"\" at the cluster scope\n";
    assert!(stderr(&output).ends_with(refused), "{}", stderr(&output));

    // A change is asked for, and made when it is allowed.
    let scale = "body = {'spec': {'replicas': 5}}\n\
                 scale = await kubernetes_toolkit.patch_namespaced_deployment_scale('web', 'shop', body)\nprint(scale.spec.replicas)\n";
    std::fs::write(home.path().join("scale.py"), scale).unwrap();
    assert_eq!(run(&["run", "scale.py"]).status.code(), Some(4));
    let output = run(&["run", "scale.py", "--yes"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "5\n"), "{}", stderr(&output));

    // The prompt shows what the words need of it.
    let question = "How many replicas has the deployment web, and what does the log of its pods say?";
    let prompt = stdout(&run(&["-c", "llm.model=none", "-c", "llm.fill=none", "prompt", "show", question]));
    assert!(prompt.contains("async def read_namespaced_pod_log("), "{prompt}");
    assert!(!prompt.contains("t0ken-of-ada"), "{prompt}");

    let output = run(&["-c", "toolkits.kubernetes.context=none", "toolkits", "list"]);
    let file = cluster.folder.path().join("kubeconfig");
    let warning = format!(
        "warning: kubernetes_toolkit is left out: the kubeconfig {} cannot be used: it has no context `none`, only: ada, grace, nobody",
        file.display()
    );
    assert!(stderr(&output).contains(&warning) && !stdout(&output).contains("kubernetes"), "{}", stderr(&output));
}

#[test]
fn a_server_and_a_token_by_name_make_it_too() {
    let cluster = Cluster::start();
    let home = Home::new();
    let settings = format!(
        "[toolkits.kubernetes]\nserver = '{}'\nca = '{}'\ntoken = 'CLUSTER_TOKEN'\nmore = ['listCoreV1NamespacedSecret']\n",
        cluster.address,
        cluster.folder.path().join("ca.crt").display()
    );
    std::fs::create_dir_all(home.path().join("config/fimble")).unwrap();
    std::fs::write(home.path().join("config/fimble/config.toml"), settings).unwrap();
    let program = "pod = await kubernetes_toolkit.read_namespaced_pod('web-2', 'shop')\nprint(pod.status.phase)\n";
    std::fs::write(home.path().join("pod.py"), program).unwrap();
    let output = home.fimble(&["run", "pod.py"]).env("CLUSTER_TOKEN", "t0ken-of-ada").output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "Running\n"), "{}", stderr(&output));
    let shown =
        home.fimble(&["toolkits", "show", "kubernetes_toolkit"]).env("CLUSTER_TOKEN", "t0ken-of-ada").output().unwrap();
    assert!(stdout(&shown).contains("listCoreV1NamespacedSecret"), "{}", stdout(&shown));

    let output = home.fimble(&["toolkits", "list"]).output().unwrap();
    let warning = "warning: kubernetes_toolkit is left out: `token` cannot be used: there is no secret and no environment variable \
                   `CLUSTER_TOKEN`";
    assert!(stderr(&output).contains(warning), "{}", stderr(&output));
}

#[test]
fn a_server_that_is_no_url_is_told_as_that() {
    let home = Home::new();
    let file = home.path().join("kubeconfig");
    let kubeconfig = "\
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: 'localhost:8080'}}]
users: [{name: a, user: {}}]
current-context: a
";
    std::fs::write(&file, kubeconfig).unwrap();
    for (setting, server, value) in [
        ("server='x'".to_owned(), "`server`", "x"),
        ("server='https://'".to_owned(), "`server`", "https:"),
        (format!("kubeconfig='{}'", file.display()), "the kubeconfig's `server`", "localhost:8080"),
    ] {
        let output = home.output(&["-c", &format!("toolkits.kubernetes.{setting}"), "toolkits", "list"], "");
        let warning = format!(
            "warning: kubernetes_toolkit is left out: {server} cannot be used: `{value}` is no URL, such as https://10.0.0.1:6443"
        );
        assert!(stderr(&output).contains(&warning), "{}", stderr(&output));
    }
}
