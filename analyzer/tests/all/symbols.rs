//! Call sites in files without debugging information: what a symbol table says, and what it does not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gammachi_analyzer::trace::debug_files::DebugFolders;
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
#ifdef OTHER
int other(int x) { return x; }
#endif
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
    // The user is told once why names are missing.
    let [(module, why)] = &symbols.unusable[..] else { panic!("{:?}", symbols.unusable) };
    assert!(module == library.path().to_str().unwrap() && why.contains("-dbgsym"), "{why}");
}

/// Runs a tool of binutils.
fn binutils(tool: &str, arguments: &[&str]) {
    let done = Command::new(tool).args(arguments).status();
    assert!(done.expect("binutils are there").success(), "{tool} {arguments:?}");
}

#[test]
fn names_come_from_separate_debugging_information() {
    let root = std::env::temp_dir().join(format!("gammachi-debug-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join(".debug")).unwrap();
    let library = Library::build("separate", &["-g"]);
    let other = Library::build("another", &["-g", "-DOTHER"]);
    let (module, data) = (root.join("lib.so"), fs::read(library.path()).unwrap());
    let file = object::File::parse(&*data).unwrap();
    let id = file.build_id().unwrap().unwrap();
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let large = file.symbols().find(|symbol| symbol.name() == Ok("large")).unwrap().address();
    let words = [&module, &root.join("lib.debug")].map(|path| path.to_str().unwrap().to_owned());
    let [module_word, debug_word] = &words;
    binutils("objcopy", &["--only-keep-debug", library.path().to_str().unwrap(), debug_word]);
    binutils("objcopy", &["--strip-all", library.path().to_str().unwrap(), module_word]);
    binutils("objcopy", &[&format!("--add-gnu-debuglink={debug_word}"), module_word]);

    let folders = DebugFolders {
        installed: vec![root.join("installed")],
        downloaded: vec![root.join("downloaded")],
    };
    let location = || {
        let mut symbols = Symbols::with_debug_folders(folders.clone());
        (symbols.location(module_word, &id, large + 100), symbols.unusable)
    };
    let places = [
        root.join("lib.debug"),
        root.join(".debug/lib.debug"),
        root.join("installed").join(root.strip_prefix("/").unwrap()).join("lib.debug"),
        root.join(format!("installed/.build-id/{}/{}.debug", &id[..2], &id[2..])),
        root.join("downloaded").join(&id).join("debuginfo"),
    ];
    let mut before = places[0].clone();
    for place in places {
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::rename(&before, &place).unwrap_or_else(|_| assert_eq!(before, place));
        let (found, unusable) = location();
        assert_eq!(found.function.as_deref(), Some("large"), "{}", place.display());
        assert!(found.line.is_some() && unusable.is_empty(), "{found:?} {unusable:?}");
        before = place;
    }
    // Information about another build names nothing.
    binutils(
        "objcopy",
        &["--only-keep-debug", other.path().to_str().unwrap(), before.to_str().unwrap()],
    );
    let (found, unusable) = location();
    assert_eq!((found, unusable.len()), (SourceLocation::default(), 1));
    fs::remove_dir_all(root).unwrap();
}
