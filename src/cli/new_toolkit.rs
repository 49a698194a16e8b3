//! `fimble toolkits new`: writes a folder with a working toolkit and its test.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use fimble_toolkit::is_python_name;
use minijinja::{Environment, context};

use super::Failure;
use super::more_toolkits::MoreToolkits;

/// Write a folder NAME with a working toolkit and its test. Default: a manifest, whose operations are commands and need no Rust.
/// With `--mcp URL` it is an MCP server, with `--openapi FILE|URL` the API of a document.
#[derive(Debug, Args)]
pub(super) struct NewToolkit {
    /// Its name, e.g. `weather` for `weather_toolkit`; also the folder's.
    name: String,
    /// A manifest.
    #[arg(long, conflicts_with = "rust")]
    manifest: bool,
    /// A crate in Rust.
    #[arg(long)]
    rust: bool,
    /// Fimble's sources, for `--rust`. Default: those around this folder, or those that this binary was built from.
    #[arg(long, value_name = "DIR", requires = "rust")]
    sources: Option<PathBuf>,
}

/// What the templates name.
struct Names {
    name: String,
    toolkit: String,
    folder: PathBuf,
}

/// A file below the new folder, with its text.
type Text = (&'static str, String);

impl NewToolkit {
    pub(super) fn execute(self, more: &MoreToolkits) -> Result<ExitCode, Failure> {
        let names = self.names()?;
        let (mut texts, copied, calls) = match (more.server(), more.document()) {
            (None, None) if self.rust => (self.rust(&names)?, None, None),
            (None, None) => (manifest(&names)?, None, Some("weekday date=2026-05-01")),
            _ if self.rust || self.manifest => return Err(one_kind()),
            (Some(url), None) => (mcp(&names, &url)?, None, None),
            (None, Some(document)) => openapi(&names, &document)?,
            (Some(_), Some(_)) => return Err(one_kind()),
        };
        let folder = names.folder.as_path();
        std::fs::create_dir(folder).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Failure::usage(format!("there is already a `{}`", folder.display()))
                .with_hint("give another name, or remove it first; nothing was written"),
            _ => Failure::usage(format!("cannot make the folder `{}`: {error}", folder.display())),
        })?;
        if let Some((name, bytes)) = copied {
            write(&folder.join(name), &bytes)?;
        }
        texts.sort();
        for (name, text) in texts {
            // The manifest is named after its folder, so that its file tells which one it is.
            let name = if name == "toml" { format!("{}.toml", names.name) } else { name.to_owned() };
            write(&folder.join(name), text.as_bytes())?;
        }
        self.tell_how(&names, calls);
        Ok(ExitCode::SUCCESS)
    }

    fn names(&self) -> Result<Names, Failure> {
        let name = self.name.strip_suffix("_toolkit").unwrap_or(&self.name).to_owned();
        let is_lower = name.chars().all(|character| !character.is_ascii_uppercase());
        if !is_python_name(&name) || name.starts_with('_') || !is_lower {
            return Err(Failure::usage(format!("`{}` cannot be a toolkit's name", self.name)).with_hint(
                "use lower-case ASCII letters, digits and `_`, a letter first, and no Python keyword: `weather`",
            ));
        }
        if ["system", "test"].contains(&name.as_str()) {
            return Err(
                Failure::usage(format!("the name `{name}` is kept for something else")).with_hint("give another name")
            );
        }
        Ok(Names { toolkit: format!("{name}_toolkit"), folder: PathBuf::from(&name), name })
    }

    fn rust(&self, names: &Names) -> Result<Vec<Text>, Failure> {
        let sources = self.sources()?;
        let crate_name = names.name.replace('_', "-");
        let context = context! {
            name => &names.name,
            toolkit => &names.toolkit,
            type => type_name(&names.name),
            crate => crate_name,
            library => &names.name,
            checkout => quoted(&sources.display().to_string()),
            core => quoted(&sources.join("toolkits/core").display().to_string()),
        };
        let render = |text| render(text, &context);
        Ok(vec![
            ("Cargo.toml", render(include_str!("../../toolkits/templates/Cargo.toml.j2"))?),
            ("src/lib.rs", render(include_str!("../../toolkits/templates/lib.rs.j2"))?),
            ("src/main.rs", render(include_str!("../../toolkits/templates/main.rs.j2"))?),
        ])
    }

    /// Where the crates are that the new one depends on.
    fn sources(&self) -> Result<PathBuf, Failure> {
        let has_core = |folder: &&Path| folder.join("toolkits/core/Cargo.toml").is_file();
        if let Some(folder) = &self.sources {
            let folder = std::path::absolute(folder)?;
            if has_core(&folder.as_path()) {
                return Ok(folder);
            }
            return Err(Failure::usage(format!("`{}` does not hold Fimble's sources", folder.display()))
                .with_hint("name the folder that has `toolkits/core` in it"));
        }
        let here = std::env::current_dir()?;
        let built_from = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = here.ancestors().find(has_core).or_else(|| Some(built_from).filter(has_core));
        found.map(Path::to_owned).ok_or_else(|| {
            Failure::usage("a crate needs Fimble's sources, which are not around this folder")
                .with_hint("name their folder with `--sources DIR`, or write a manifest, which needs none")
        })
    }

    fn tell_how(&self, names: &Names, call: Option<&str>) {
        let folder = names.folder.display();
        out!("\ntry it:");
        if self.rust {
            out!("  cd {folder} && cargo test");
            out!("  cargo run --features fimble -- toolkits call {} count text=\"two words\"", names.toolkit);
            out!("keep it: `registry.register(Arc::new({}))` in a program of yours", type_name(&names.name));
            return;
        }
        out!("  fimble toolkits check {folder}");
        out!("  fimble toolkits stub {folder}");
        if let Some(call) = call {
            out!("  fimble toolkits call {folder} {call}");
        }
        out!("  fimble --toolkits {folder} run {folder}/test.py");
        out!("keep it: name the folder in `toolkits.manifests` of your configuration");
    }
}

fn manifest(names: &Names) -> Result<Vec<Text>, Failure> {
    let context = context(names, "");
    Ok(vec![
        ("toml", render(include_str!("../../toolkits/templates/manifest.toml.j2"), &context)?),
        ("test.py", render(include_str!("../../toolkits/templates/manifest_test.py.j2"), &context)?),
    ])
}

fn mcp(names: &Names, url: &str) -> Result<Vec<Text>, Failure> {
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(Failure::usage(format!("`{url}` is no http:// or https:// address of an MCP server"))
            .with_hint("for a program, give any address and write `command` and `args` in its place in the file"));
    }
    let context = context(names, url);
    Ok(vec![
        ("toml", render(include_str!("../../toolkits/templates/mcp.toml.j2"), &context)?),
        ("test.py", render(include_str!("../../toolkits/templates/service_test.py.j2"), &context)?),
    ])
}

/// The texts, and the document itself with its name where it is a file.
type Document = (Vec<Text>, Option<(String, Vec<u8>)>, Option<&'static str>);

fn openapi(names: &Names, document: &str) -> Result<Document, Failure> {
    let mut source = document.to_owned();
    let mut copied = None;
    if !document.contains("://") {
        let bytes = std::fs::read(document).map_err(|error| {
            Failure::usage(format!("cannot read `{document}`: {error}"))
                .with_hint("name an OpenAPI document: a file of JSON or YAML, or its address")
        })?;
        let extension = Path::new(document).extension().and_then(|extension| extension.to_str()).unwrap_or("json");
        source = format!("openapi.{extension}");
        copied = Some((source.clone(), bytes));
    }
    let context = context(names, &source);
    let texts = vec![
        ("toml", render(include_str!("../../toolkits/templates/openapi.toml.j2"), &context)?),
        ("test.py", render(include_str!("../../toolkits/templates/service_test.py.j2"), &context)?),
    ];
    Ok((texts, copied, None))
}

fn context(names: &Names, source: &str) -> minijinja::Value {
    let folder = names.folder.display().to_string();
    context! { name => &names.name, toolkit => &names.toolkit, folder => folder, source => quoted(source) }
}

fn render(template: &str, context: &minijinja::Value) -> Result<String, Failure> {
    Environment::new()
        .render_str(template, context)
        // The last line feed is not rendered.
        .map(|text| text + "\n")
        .map_err(|error| Failure::new(1, format!("a template of Fimble's own cannot be rendered: {error}")))
}

/// `text` as a TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// `disk_space` as `DiskSpace`.
fn type_name(name: &str) -> String {
    let upper = |word: &str| {
        let mut characters = word.chars();
        let first = characters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(characters).collect::<String>()
    };
    name.split('_').map(upper).collect()
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::usage(format!("cannot write `{}`: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(path, bytes).map_err(failed)?;
    out!("wrote {}", path.display());
    Ok(())
}

fn one_kind() -> Failure {
    Failure::usage("a toolkit is of one kind")
        .with_hint("give one of --rust, --manifest, --mcp URL, --openapi FILE|URL")
}
