//! Tells the binary where the CPython that it was linked with keeps its standard library, and adds the library's folder to the
//! run path when it is not the system's own.

/// Prints one fact a line: version, prefix, standard library, extension modules.
const FACTS: &str = "\
import sys, sysconfig
print('%d.%d' % sys.version_info[:2])
print(sys.base_prefix)
print(sysconfig.get_path('stdlib', vars={'base': sys.base_prefix, 'installed_base': sys.base_prefix}))
print(sysconfig.get_config_var('DESTSHARED'))
";

const NAMES: [&str; 4] =
    ["EMBEDDED_PYTHON_VERSION", "EMBEDDED_PYTHON_PREFIX", "EMBEDDED_PYTHON_STDLIB", "EMBEDDED_PYTHON_DYNLOAD"];

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-env-changed=PYO3_PYTHON");
    println!("cargo::rerun-if-changed=build.rs");
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
    pyo3_build_config::add_libpython_rpath_link_args();
    Ok(())
}
