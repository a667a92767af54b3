//! Call sites in files without debugging information: what a symbol table says, and what it does not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gammachi_analyzer::trace::symbols::{SourceLocation, Symbols};
use object::{Object, ObjectSymbol};

/// A library whose exported functions are followed by one that its symbol table does not name, as in most
/// extension modules of Python.
const SOURCE: &str = "
int small(int x) { return x + 1; }
static int __attribute__((noinline, used)) large(int x)
{
    for (int i = 0; i < x; i++)
        __asm__ volatile(\".fill 4096, 1, 0x90\");
    return small(x);
}
int last(int x) { return large(x); }
";

struct Library(PathBuf);

impl Library {
    fn build(name: &str, options: &[&str]) -> Self {
        let path = std::env::temp_dir().join(format!("gammachi-{name}-{}.so", std::process::id()));
        let source = path.with_extension("c");
        fs::write(&source, SOURCE).unwrap();
        let built = Command::new("gcc")
            .args(["-O0", "-fno-toplevel-reorder", "-shared", "-fPIC", "-Wl,--build-id", "-o"])
            .args([&path, &source])
            .args(options)
            .status();
        assert!(built.expect("gcc starts").success());
        fs::remove_file(source).unwrap();
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_function_is_named_only_where_its_symbol_reaches() {
    let library = Library::build("symbols", &["-s"]);
    let data = fs::read(library.path()).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let id = file.build_id().unwrap().unwrap();
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let extent = |name: &str| {
        let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
        (symbol.address(), symbol.address() + symbol.size())
    };
    let ((small, small_end), (last, last_end)) = (extent("small"), extent("last"));
    assert!(small_end + 4096 < last, "the unnamed function lies between the two");
    let mut symbols = Symbols::default();
    let mut function_of = |returns_to: u64| {
        let place = symbols.location(library.path().to_str().unwrap(), &id, returns_to);
        assert_eq!(SourceLocation { function: None, ..place.clone() }, SourceLocation::default());
        place.function
    };
    // A call returns to the byte behind it: at a function's end that is the next one's begin.
    assert_eq!(function_of(small + 1).as_deref(), Some("small"));
    assert_eq!(function_of(small_end).as_deref(), Some("small"));
    assert_eq!(function_of(small_end + 1), None);
    assert_eq!(function_of(small_end + 4000), None);
    assert_eq!(function_of(last), None);
    assert_eq!(function_of(last_end).as_deref(), Some("last"));
    assert_eq!(function_of(last_end + 4096), None);
    assert!(symbols.unusable.is_empty());
}
