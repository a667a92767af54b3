//! Names that a run directory carries along.

use std::fs;
use std::path::Path;
use std::process::Command;

use object::{Object, ObjectSymbol};

use super::CodeMetrics;
use crate::analysis::Analysis;
use crate::synthetic_code::{FUNCTIONS, Library, sampled};
use crate::synthetic_trace::RunDirectory;
use crate::timeline::GlobalTimeline;
use crate::trace::{Run, SYMBOLS_JSON};

const SOURCE: &str = "
int first(int x) { for (int i = 0; i < x; i++) x += i; return x; }
int second(int x) { return first(x) + first(x + 1); }
int third(int x) { return second(x) + second(x + 2); }
int fourth(int x) { return third(x) + third(x + 3) + OTHER; }
";
const NAMES: [&str; FUNCTIONS] = ["first", "second", "third", "fourth"];

/// Compiles a library to `path`; `other` makes another build of it.
fn built(path: &Path, other: &str) -> Library {
    let source = path.with_extension("c");
    fs::write(&source, SOURCE).unwrap();
    let compiler = Command::new("gcc")
        .args([
            "-g",
            "-O0",
            "-shared",
            "-fPIC",
            "-Wl,--build-id",
            &format!("-DOTHER={other}"),
            "-o",
        ])
        .args([path, &source])
        .status();
    assert!(compiler.expect("gcc starts").success());
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let id = file.build_id().unwrap().expect("a build id");
    let address =
        |name| file.symbols().find(|symbol| symbol.name() == Ok(name)).expect(name).address();
    Library {
        path: path.to_str().unwrap().to_owned(),
        build_id: id.iter().map(|byte| format!("{byte:02x}")).collect(),
        functions: NAMES.map(address),
    }
}

/// The names with own time, most first, and why others are missing.
fn names(directory: &Path) -> (Vec<String>, Vec<&'static str>) {
    let run = Run::open(directory).unwrap();
    assert!(run.diagnoses.is_empty(), "{:?}", run.diagnoses);
    let timeline = GlobalTimeline::new(&run);
    let whole = vec![Some(vec![(0, u64::MAX)])];
    let code = CodeMetrics::new(&Analysis::new(&run, &timeline), &whole, true).unwrap();
    let own = code.by_line.iter().map(|row| {
        let function = &code.functions[row.function as usize];
        let file = function.file.as_deref().and_then(|file| file.rsplit('/').next());
        let name = function.name.as_deref().unwrap_or("?");
        format!("{name} {}:{}", file.unwrap_or("?"), row.line.unwrap_or(0))
    });
    (own.collect(), code.unusable.into_iter().map(|(_, why)| why).collect())
}

#[test]
fn names_stay_when_the_program_is_gone_or_built_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libwork.so");
    let library = built(&path, "1");
    let work = vec![vec![[30_000_000, 0, 20_000_000, 0]; 40]];
    let directory = RunDirectory::with_ranks(&sampled(&library, 1, &work));
    let known = names(directory.path());
    assert_eq!(known, (vec!["first libwork.c:2".into(), "third libwork.c:4".into()], vec![]));

    let gathered = Run::open(directory.path()).unwrap().keep_symbols().unwrap();
    assert!(gathered.addresses > 2 && gathered.named == gathered.addresses, "{gathered:?}");
    fs::remove_file(&path).unwrap();
    assert_eq!(names(directory.path()), known, "as if the library were here");
    built(&path, "2");
    assert_eq!(names(directory.path()), known, "of the build that ran");

    fs::remove_file(directory.path().join(SYMBOLS_JSON)).unwrap();
    let (unknown, why) = names(directory.path());
    assert_eq!(unknown, ["? ?:0"]);
    assert!(matches!(why[..], [why] if why.contains("build id differs")), "{why:?}");
    let gathered = Run::open(directory.path()).unwrap().keep_symbols().unwrap();
    assert_eq!((gathered.named, gathered.unusable.len()), (0, 1), "no wrong names are kept");
}

#[test]
fn damaged_names_are_told_and_left_out() {
    let functions = [1, 2, 3, 4].map(|number| number << 12);
    let library = Library { path: "/x/code".into(), build_id: String::new(), functions };
    let directory =
        RunDirectory::with_ranks(&sampled(&library, 1, &[vec![[30_000_000, 0, 0, 0]; 9]]));
    for text in
        ["{", r#"{"format":"gammachi-symbols","format_version":9,"functions":[],"modules":[]}"#]
    {
        fs::write(directory.path().join(SYMBOLS_JSON), text).unwrap();
        let run = Run::open(directory.path()).unwrap();
        let [found] = &run.diagnoses[..] else { panic!("{:?}", run.diagnoses) };
        assert_eq!(found.file, Path::new(SYMBOLS_JSON));
        assert!(found.what.to_string().contains("collect RUN --symbols"), "{found:?}");
    }
}
