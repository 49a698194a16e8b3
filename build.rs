//! Tells the binary where the CPython that it was linked with keeps its standard library, adds the library's folder to the
//! run path when it is not the system's own, and compiles the Python half to CPython's byte code.

/// Prints one fact a line: version, prefix, standard library, extension modules.
const FACTS: &str = "\
import sys, sysconfig
print('%d.%d' % sys.version_info[:2])
print(sys.base_prefix)
print(sysconfig.get_path('stdlib', vars={'base': sys.base_prefix, 'installed_base': sys.base_prefix}))
print(sysconfig.get_config_var('DESTSHARED'))
";

/// Writes each module's code as `NAME.code`: the magic number of the byte code, and the code as `marshal` writes it.
const COMPILE: &str = "\
import importlib.util, marshal, os
for file in sorted(os.listdir(SOURCES)):
    name, kind = os.path.splitext(file)
    if kind == '.py':
        with open(os.path.join(SOURCES, file), encoding='utf-8') as source:
            code = compile(source.read(), f'<fimble>/{file}', 'exec', dont_inherit=True)
        target = os.path.join(CODE, f'{name}.code')
        # It may be one file with that of another folder.
        if os.path.lexists(target):
            os.remove(target)
        with open(target, 'wb') as compiled:
            compiled.write(importlib.util.MAGIC_NUMBER + marshal.dumps(code))
";

const NAMES: [&str; 4] =
    ["EMBEDDED_PYTHON_VERSION", "EMBEDDED_PYTHON_PREFIX", "EMBEDDED_PYTHON_STDLIB", "EMBEDDED_PYTHON_DYNLOAD"];

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-env-changed=PYO3_PYTHON");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=python");
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if system != "linux" {
        return Err(format!(
            "fimble confines programs with Linux namespaces, Landlock and seccomp and cannot be built for {system}; \
             build it in a Linux container or virtual machine"
        ));
    }
    let python = pyo3_build_config::get();
    if !python.shared() {
        return Err("fimble needs a CPython with a shared library; name one with PYO3_PYTHON".to_owned());
    }
    let facts =
        python.run_python_script(FACTS).map_err(|error| format!("could not ask CPython for its folders: {error}"))?;
    for (name, fact) in NAMES.iter().zip(facts.lines()) {
        println!("cargo::rustc-env={name}={fact}");
    }
    let variable = |name| std::env::var(name).map_err(|error| format!("{name}: {error}"));
    let sources = format!("{}/python", variable("CARGO_MANIFEST_DIR")?);
    // A string's debug form is a string in Python, too.
    let compile = format!("SOURCES, CODE = {sources:?}, {:?}\n{COMPILE}", variable("OUT_DIR")?);
    python.run_python_script(&compile).map_err(|error| format!("could not compile the Python half: {error}"))?;
    pyo3_build_config::add_libpython_rpath_link_args();
    Ok(())
}
