//! Code addresses put into words: a module and an offset in it come in, function, file and line go out
//! where the module's file is here and says so.

use std::collections::HashMap;
use std::path::Path;

use addr2line::Loader;
use object::{Object, ObjectSymbol, SymbolKind};

/// Where in the program's text an address lies.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePlace {
    /// Name of the function; `None` where the module was stripped of it: a symbol that merely stands
    /// before the address is another function's.
    pub function: Option<String>,
    /// Source file as the compiler was given it.
    pub file: Option<String>,
    /// Line in it.
    pub line: Option<u32>,
}

/// Resolves addresses in the files of modules, each opened once.
#[derive(Default)]
pub struct Symbols {
    modules: HashMap<(String, String), Option<Module>>,
    /// Modules whose files are not the ones that ran: by path, why.
    pub unusable: Vec<(String, &'static str)>,
}

/// A module's file.
struct Module {
    /// Reads what debugging information there is.
    debugging: Loader,
    /// First address, size in bytes and name of each function that the symbol tables name, ascending.
    functions: Vec<(u64, u64, String)>,
}

impl Module {
    /// Name of the function that an address lies in.
    fn function_at(&self, address: u64) -> Option<&str> {
        /// Symbols looked at: one of a function's parts may stand inside another's.
        const MOST_NESTED: usize = 16;
        let behind = self.functions.partition_point(|(begin, ..)| *begin <= address);
        let before = self.functions[..behind].iter().rev().take(MOST_NESTED);
        let found = before.into_iter().find(|(begin, size, _)| address - begin < *size);
        found.map(|(.., name)| name.as_str())
    }
}

impl Symbols {
    /// Of the call that returns to an address of a module (as in its file).
    pub fn place(&mut self, path: &str, build_id: &str, address: u64) -> SourcePlace {
        let key = (path.to_owned(), build_id.to_owned());
        if !self.modules.contains_key(&key) {
            let module = match open(path, build_id) {
                Ok(module) => Some(module),
                Err(why) => {
                    self.unusable.push((path.to_owned(), why));
                    None
                }
            };
            self.modules.insert(key.clone(), module);
        }
        let Some(Some(module)) = self.modules.get(&key) else { return SourcePlace::default() };
        // The call itself lies before the address that it returns to.
        let call = address.saturating_sub(1);
        let mut place = SourcePlace::default();
        // The innermost frame that has a line: the call may have been inlined.
        if let Ok(mut frames) = module.debugging.find_frames(call)
            && let Ok(Some(frame)) = frames.next()
        {
            let name = frame.function.and_then(|name| name.demangle().ok().map(Into::into));
            place.function = name;
            place.file = frame.location.as_ref().and_then(|at| at.file).map(str::to_owned);
            place.line = frame.location.as_ref().and_then(|at| at.line);
        }
        if place.function.is_none() {
            place.function = module.function_at(call).map(demangled);
        }
        place
    }
}

fn demangled(name: &str) -> String {
    addr2line::demangle_auto(name.into(), None).into_owned()
}

/// Opens a module's file, unless it is another than the one that ran.
fn open(path: &str, build_id: &str) -> Result<Module, &'static str> {
    if !Path::new(path).is_absolute() {
        return Err("has no file");
    }
    let data = std::fs::File::open(path).map_err(|_| "is not here")?;
    // SAFETY: read only; should the file shrink meanwhile, reading it would end the process by SIGBUS,
    // which nobody does to a program or library in use.
    let data = unsafe { memmap2::Mmap::map(&data) }.map_err(|_| "cannot be read")?;
    let file = object::File::parse(&*data).map_err(|_| "is no object file")?;
    let id = file.build_id().ok().flatten().unwrap_or_default();
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    if id != build_id {
        return Err("is not the one that ran (its build id differs)");
    }
    let debugging = Loader::new(path).map_err(|_| "has no symbols that can be read")?;
    let named = file.symbols().chain(file.dynamic_symbols());
    let named = named.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
    let function = |symbol: object::Symbol| {
        Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned()))
    };
    let mut functions: Vec<_> = named.filter_map(function).collect();
    functions.sort_unstable();
    functions.dedup();
    Ok(Module { debugging, functions })
}
