//! Resolves code addresses to function, file and line, if the module's file exists here and has
//! that information.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use addr2line::Loader;
use object::{Object, ObjectSymbol, SymbolKind};
use trace_format::file_map::FileMap;
use trace_format::reader::limited;
use trace_format::samples::PYTHON;

use super::cython::python_name;
use super::debug_files::DebugFolders;
use super::kept_symbols::KeptSymbols;
use super::opened::Run;
pub use super::source_location::SourceLocation;

/// What is said of a module in which functions have no names.
const STRIPPED: &str = "is stripped: install its debugging symbols (Debian: its -dbgsym package, Fedora: \
                        debuginfo), or build it with -g and without strip";

/// Resolves addresses in the files of modules, each opened once.
#[derive(Default)]
pub struct Symbols {
    modules: HashMap<(String, String), Option<Module>>,
    debug_folders: DebugFolders,
    /// What the run directory has comes first: it is of the build that ran.
    kept: Arc<KeptSymbols>,
    /// Paths of modules whose files cannot be used or lack names, with the reason.
    pub unusable: Vec<(String, &'static str)>,
}

/// A module's file.
struct Module {
    /// Reads the debugging information.
    debugging: Loader,
    /// First address, size in bytes and name of each function in the symbol tables, ascending.
    functions: Vec<(u64, u64, String)>,
    /// Whether it has neither a full symbol table nor debugging information.
    stripped: bool,
}

impl Module {
    /// Name of the function that contains an address.
    fn function_at(&self, address: u64) -> Option<&str> {
        /// Number of symbols that are examined, since a part of one function may lie inside
        /// another.
        const MAX_NESTED: usize = 16;
        let next = self.functions.partition_point(|(begin, ..)| *begin <= address);
        let before = self.functions[..next].iter().rev().take(MAX_NESTED);
        let found = before.into_iter().find(|(begin, size, _)| address - begin < *size);
        found.map(|(.., name)| name.as_str())
    }
}

impl Symbols {
    /// Those of a run, which may carry names along.
    pub fn for_run(run: &Run) -> Self {
        Self { kept: run.symbols.clone(), ..Self::default() }
    }

    /// Symbols with debugging information from these folders.
    pub fn with_debug_folders(debug_folders: DebugFolders) -> Self {
        Self { debug_folders, ..Self::default() }
    }

    /// Location of the call that returns to an address of a module, as addresses are in its file. The innermost one:
    /// the call may have been inlined.
    pub fn location(&mut self, path: &str, identity: &str, address: u64) -> SourceLocation {
        // The call itself precedes the address that it returns to.
        let is_line = identity.starts_with(PYTHON);
        let call = if is_line { address } else { address.saturating_sub(1) };
        self.frames(path, identity, call).swap_remove(0)
    }

    /// Location of an instruction in the function that was inlined there, in the one that this one was inlined into, and
    /// so on; the innermost first. There is at least one, of which nothing may be known.
    pub fn frames(&mut self, path: &str, identity: &str, address: u64) -> Vec<SourceLocation> {
        if let Some(name) = identity.strip_prefix(PYTHON) {
            let line = u32::try_from(address).ok().filter(|line| *line > 0);
            let file = Some(path.to_owned()).filter(|path| !path.is_empty());
            return vec![SourceLocation { function: Some(name.to_owned()), file, line }];
        }
        if let Some(kept) = self.kept.frames(path, identity, address) {
            return kept.clone();
        }
        let key = (path.to_owned(), identity.to_owned());
        if !self.modules.contains_key(&key) {
            let module = match open(path, identity, &self.debug_folders) {
                Ok(module) => Some(module),
                Err(why) => {
                    self.unusable.push((path.to_owned(), why));
                    None
                }
            };
            self.modules.insert(key.clone(), module);
        }
        let Some(Some(module)) = self.modules.get_mut(&key) else {
            return vec![SourceLocation::default()];
        };
        let mut locations = Vec::new();
        if let Ok(mut frames) = module.debugging.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame.function.and_then(|name| name.demangle().ok().map(Into::into));
                let (file, line) = frame.location.map_or((None, None), |at| (at.file, at.line));
                locations.push(SourceLocation {
                    function: name.map(|name: String| python_name(&name).unwrap_or(name)),
                    file: file.map(str::to_owned),
                    line,
                });
            }
        }
        if locations.is_empty() {
            locations.push(SourceLocation::default());
        }
        // The symbol is that of the outermost.
        if let Some(compiled) = locations.last_mut().filter(|of| of.function.is_none()) {
            compiled.function = module.function_at(address).map(demangled);
            if compiled.function.is_none() && std::mem::take(&mut module.stripped) {
                self.unusable.push((path.to_owned(), STRIPPED));
            }
        }
        for location in &mut locations {
            // Names of instances of templates can become longer than any screen.
            location.function = location.function.take().map(limited);
            location.file = location.file.take().map(limited);
        }
        locations
    }
}

fn demangled(name: &str) -> String {
    if let Some(name) = python_name(name) {
        return name;
    }
    addr2line::demangle_auto(name.into(), None).into_owned()
}

/// Opens a module's file, if it is the one that ran.
fn open(path: &str, build_id: &str, debug_folders: &DebugFolders) -> Result<Module, &'static str> {
    if !Path::new(path).is_absolute() {
        return Err("has no file");
    }
    let data = std::fs::File::open(path).map_err(|_| "is not here")?;
    let data = FileMap::of_file(&data).map_err(|_| "cannot be read")?;
    let file = object::File::parse(&*data).map_err(|_| "is not an object file")?;
    let id = file.build_id().ok().flatten().unwrap_or_default();
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    if id != build_id {
        return Err(
            "is not the one that ran (its build id differs; before you build anew, `gammachi collect \
             RUN --symbols` keeps names)",
        );
    }
    let mut functions = functions(&file);
    let separate = debug_folders.find(Path::new(path), &file);
    let (debugging_path, shared) = match &separate {
        Some((separate, data)) => {
            let separate_file = object::File::parse(&**data);
            let shared = separate_file.ok().and_then(|separate_file| {
                functions.extend(self::functions(&separate_file));
                debug_folders.shared_by(separate, &separate_file)
            });
            (separate.as_path(), shared)
        }
        None => (Path::new(path), debug_folders.shared_by(Path::new(path), &file)),
    };
    let debugging = Loader::new_with_sup(debugging_path, shared)
        .or_else(|_| Loader::new(path))
        .map_err(|_| "has no symbols that can be read")?;
    functions.sort_unstable();
    functions.dedup();
    let stripped = separate.is_none() && file.symbols().next().is_none();
    Ok(Module { debugging, functions, stripped })
}

/// First address, size in bytes and name of each function in the symbol tables of a file.
fn functions(file: &object::File) -> Vec<(u64, u64, String)> {
    let named = file.symbols().chain(file.dynamic_symbols());
    let named = named.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
    let function = |symbol: object::Symbol| {
        Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned()))
    };
    named.filter_map(function).collect()
}
