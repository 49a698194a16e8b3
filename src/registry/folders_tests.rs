//! Folders of toolkits at their door: files come, change, break, are renamed and go.

use async_trait::async_trait;
use fimble_manifest::Manifest;

use super::*;

/// Reads manifests.
struct Manifests;

#[async_trait]
impl ReadToolkit for Manifests {
    async fn read(&self, source: &Source) -> Result<Read, Unread> {
        let Source::File(file) = source else { unreachable!("no settings are named") };
        let manifest =
            Manifest::read(file).map_err(|problem| Unread { problem: problem.to_string(), passes: false })?;
        Ok(Read { toolkit: Arc::new(manifest), warnings: Vec::new(), also: vec![file.with_extension("extra")] })
    }
}

/// A folder and a registry that has it.
struct World {
    folder: tempfile::TempDir,
    registry: Registry,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::new();
        let limits = Limits { files: 3, bytes: 4_096, ..Limits::default() };
        registry.set_sources(vec![folder.path().to_owned()], Vec::new(), Arc::new(Manifests), limits);
        Self { folder, registry }
    }

    /// Writes a manifest with one operation.
    fn write(&self, file: &str, toolkit: &str, operation: &str) {
        let text = format!(
            "name = \"{toolkit}\"\ndescription = \"A.\"\n[[operation]]\nname = \"{operation}\"\ndescription = \"B.\"\n\
             command = [\"true\"]\nrisk = \"read\"\n"
        );
        std::fs::write(self.folder.path().join(file), text).unwrap();
    }

    fn remove(&self, file: &str) {
        std::fs::remove_file(self.folder.path().join(file)).unwrap();
    }

    /// Looks, and says in words what was different; a problem by its last words.
    async fn look(&self) -> Vec<String> {
        let Changes { added, changed, removed, problems } = self.registry.look().await;
        let lines = [("+", added), ("~", changed), ("-", removed)];
        let lines =
            lines.into_iter().flat_map(|(mark, names)| names.into_iter().map(move |name| format!("{mark}{name}")));
        let folder = format!("{}/", self.folder.path().display());
        lines.chain(problems.iter().map(|problem| format!("! {}", problem.replace(&folder, "")))).collect()
    }

    /// All that programs see, as `toolkit.operation`.
    fn there(&self) -> Vec<String> {
        let declarations = self.registry.declarations();
        declarations
            .iter()
            .map(|declaration| format!("{}.{}", declaration.name, declaration.operations[0].name))
            .collect()
    }
}

#[tokio::test]
async fn files_come_change_and_go() {
    let world = World::new();
    assert_eq!(world.look().await, [""; 0]);
    world.write("a.toml", "one", "first");
    world.write("b.toml", "two", "first");
    assert_eq!(world.look().await, ["+one", "+two"]);
    assert_eq!(world.look().await, [""; 0]);
    world.write("a.toml", "one", "second");
    assert_eq!(world.look().await, ["~one"]);
    assert_eq!(world.there(), ["one.second", "two.first"]);
    world.remove("b.toml");
    assert_eq!(world.look().await, ["-two"]);
    std::fs::rename(world.folder.path().join("a.toml"), world.folder.path().join("c.toml")).unwrap();
    assert_eq!(world.look().await, ["~one"]);
    world.write("c.toml", "other", "second");
    assert_eq!(world.look().await, ["+other", "-one"]);
    assert_eq!(world.there(), ["other.second"]);
}

#[tokio::test]
async fn a_change_of_the_same_size_and_time_is_seen_and_one_beside_the_file() {
    let world = World::new();
    world.write("a.toml", "one", "first");
    world.look().await;
    let file = world.folder.path().join("a.toml");
    let at = std::fs::metadata(&file).unwrap().modified().unwrap();
    world.write("a.toml", "one", "third");
    std::fs::File::options().write(true).open(&file).unwrap().set_modified(at).unwrap();
    assert_eq!((world.look().await, world.there()), (vec!["~one".to_owned()], vec!["one.third".to_owned()]));
    std::fs::write(world.folder.path().join("a.extra"), "x").unwrap();
    assert_eq!(world.look().await, ["~one"]);
}

#[tokio::test]
async fn a_broken_file_is_told_once_and_the_last_good_one_stays() {
    let world = World::new();
    world.write("a.toml", "one", "first");
    world.look().await;
    std::fs::write(world.folder.path().join("a.toml"), "name = ").unwrap();
    let told = world.look().await;
    assert!(told.len() == 1 && told[0].starts_with("! a.toml:1: "), "{told:?}");
    assert!(told[0].ends_with("\n`one` stays as it was before"), "{told:?}");
    assert_eq!((world.look().await, world.there()), (Vec::<String>::new(), vec!["one.first".to_owned()]));
    world.write("a.toml", "one", "second");
    assert_eq!((world.look().await, world.there()), (vec!["~one".to_owned()], vec!["one.second".to_owned()]));
    std::fs::write(world.folder.path().join("a.toml"), "name = ").unwrap();
    world.look().await;
    world.remove("a.toml");
    assert_eq!((world.look().await, world.there()), (vec!["-one".to_owned()], Vec::<String>::new()));
}

#[tokio::test]
async fn a_taken_name_is_refused_until_it_is_free() {
    let world = World::new();
    world.write("a.toml", "one", "first");
    world.write("b.toml", "one", "second");
    let clash =
        "! b.toml: there is already a toolkit `one`\nhint: give one of them another name, or remove the other first";
    assert_eq!(world.look().await, ["+one", clash]);
    assert_eq!((world.look().await, world.there()), (Vec::<String>::new(), vec!["one.first".to_owned()]));
    world.remove("a.toml");
    assert_eq!((world.look().await, world.there()), (vec!["~one".to_owned()], vec!["one.second".to_owned()]));
    // A stranger's name is not to be had either, and the own one stays.
    world.registry.register(Arc::new(Manifest::of_text("x", "name = \"shipped\"\ndescription = \"C.\"\n[[operation]]\nname = \"x\"\ndescription = \"D.\"\ncommand = [\"true\"]\nrisk = \"read\"\n").unwrap())).unwrap();
    world.write("b.toml", "shipped", "third");
    let told = world.look().await;
    assert!(told.len() == 1 && told[0].ends_with("\n`one` stays as it was before"), "{told:?}");
    assert_eq!(
        (world.look().await, world.there()),
        (Vec::<String>::new(), vec!["one.second".to_owned(), "shipped.x".to_owned()])
    );
}

#[tokio::test]
async fn two_files_can_swap_their_names() {
    let world = World::new();
    world.write("a.toml", "one", "a");
    world.write("b.toml", "two", "b");
    world.look().await;
    world.write("a.toml", "two", "a");
    world.write("b.toml", "one", "b");
    assert_eq!(world.look().await, ["~two", "~one"]);
    assert_eq!(world.there(), ["two.a", "one.b"]);
}

#[tokio::test]
async fn too_many_files_and_a_folder_that_is_gone_are_told_once() {
    let world = World::new();
    for name in ["a", "b", "c", "d"] {
        world.write(&format!("{name}.toml"), name, "x");
    }
    let told = world.look().await;
    assert_eq!(told[..3], ["+a", "+b", "+c"]);
    assert!(told.len() == 4 && told[3].ends_with("there are 4 files, and only the first 3 are read"), "{told:?}");
    assert_eq!(world.look().await, [""; 0]);
    std::fs::remove_dir_all(world.folder.path()).unwrap();
    let told = world.look().await;
    assert!(
        told.len() == 4 && told[..3] == ["-a", "-b", "-c"] && told[3].contains("the folder cannot be read"),
        "{told:?}"
    );
    assert_eq!(world.look().await, [""; 0]);
}

/// Services: `down` fails until the switch is on, `hangs` answers when the switch is on, `up` is there.
struct Services {
    on: tokio::sync::watch::Receiver<bool>,
}

fn service(number: usize, name: &str) -> Source {
    Source::Setting { number, name: name.to_owned() }
}

#[async_trait]
impl ReadToolkit for Services {
    async fn read(&self, source: &Source) -> Result<Read, Unread> {
        let name = source.to_string();
        let mut on = self.on.clone();
        if name == "hangs" {
            on.wait_for(|on| *on).await.unwrap();
        }
        if name == "down" && !*on.borrow() {
            return Err(Unread { problem: "nobody is there\nhint: start it".to_owned(), passes: true });
        }
        let text = format!(
            "name = \"{name}_toolkit\"\ndescription = \"A.\"\n[[operation]]\nname = \"x\"\ndescription = \"B.\"\n\
             command = [\"true\"]\nrisk = \"read\"\n"
        );
        Ok(Read { toolkit: Arc::new(Manifest::of_text("x", &text).unwrap()), warnings: Vec::new(), also: Vec::new() })
    }

    fn expected(&self, source: &Source) -> Option<String> {
        Some(format!("{source}_toolkit"))
    }
}

#[tokio::test]
async fn what_was_down_or_hung_comes_back_and_keeps_nobody_waiting() {
    let (switch, on) = tokio::sync::watch::channel(false);
    let registry = Registry::new();
    let (patience, rest) = (std::time::Duration::from_millis(50), std::time::Duration::ZERO);
    let settings = vec![service(0, "down"), service(1, "hangs"), service(2, "up")];
    registry.set_sources(
        Vec::new(),
        settings,
        Arc::new(Services { on }),
        Limits { patience, rest, ..Limits::default() },
    );
    let Changes { added, problems, .. } = registry.look().await;
    assert_eq!(added, ["up_toolkit"]);
    assert_eq!(
        problems,
        ["nobody is there\nhint: start it", "hangs did not answer within 50ms; it is there when it has"]
    );
    // Programs and models are told the same.
    let described: Vec<String> = registry.declarations().into_iter().map(|declared| declared.description).collect();
    let expected = [
        "It cannot be used now: nobody is there\n\nhint: start it",
        "It cannot be used now: hangs did not answer within 50ms; it is there when it has",
        "A.",
    ];
    assert_eq!(described, expected);
    let error = registry.find("down_toolkit", "x").err().unwrap();
    assert_eq!(error.kind, fimble_toolkit::ErrorKind::Unavailable);
    let expected = "down_toolkit has no operations now: It cannot be used now: nobody is there; hint: start it";
    assert_eq!(error.message, expected);
    // It is told once.
    assert_eq!(registry.look().await, Changes::default());

    switch.send(true).unwrap();
    let mut added = Vec::new();
    // What hung ends behind the looks.
    while added.len() < 2 {
        added.extend(registry.look().await.added);
        tokio::task::yield_now().await;
    }
    added.sort();
    assert_eq!(added, ["down_toolkit", "hangs_toolkit"]);
    assert!(registry.find("down_toolkit", "x").is_ok() && registry.find("hangs_toolkit", "x").is_ok());
    assert_eq!(registry.look().await, Changes::default());
}
