//! The functions on the stacks of all ranks, each address resolved once per file and build id.

use rustc_hash::FxHashMap;
use trace_format::header::Module;

use crate::trace::modules::{call_before, in_file};
use crate::trace::samples::{NO_PATH, Replacements, Stack};
use crate::trace::symbols::SourceLocation;

/// A function of the program or of a library.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Function {
    /// Path of the file that contains its code; empty if unknown.
    pub module: String,
    /// `None`: code of that file without a name.
    pub name: Option<String>,
    /// Source file as it was passed to the compiler, if known.
    pub file: Option<String>,
}

/// A function and a line in it, if known.
pub type Place = (u32, Option<u32>);

/// The functions that contain an address of a module, as addresses are in its file, innermost first. The parameters are
/// path, build id and address.
pub(crate) type Resolve<'r> = dyn FnMut(&str, &str, u64) -> Vec<SourceLocation> + 'r;

/// The functions of a run, and where they are on stacks.
pub(super) struct Functions<'r> {
    resolve: &'r mut Resolve<'r>,
    pub all: Vec<Function>,
    /// By module, name and the file's own name: compilers were started in different folders.
    numbers: FxHashMap<(String, Option<String>, Option<String>), u32>,
    /// By path and build id.
    modules: FxHashMap<(String, String), u32>,
    /// By module and address.
    places: FxHashMap<(u32, u64), Vec<Place>>,
}

/// The functions on the stacks of a rank.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RankStacks {
    /// By number.
    pub stacks: Vec<StackPlaces>,
    /// By number.
    pub paths: Vec<PathPlaces>,
}

/// Where a stack is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StackPlaces {
    /// The innermost functions, which the compiler may have made into one, the innermost first.
    pub inner: Vec<Place>,
    /// Number of its callers' path, if they are known.
    pub path: Option<u32>,
    /// Whether these reach to the begin of the thread.
    pub is_complete: bool,
}

/// The callers of stacks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PathPlaces {
    /// The innermost first; one that calls itself occurs several times.
    pub callers: Vec<Place>,
    /// Their functions, ascending, each once.
    functions: Vec<u32>,
}

impl PathPlaces {
    fn new(callers: Vec<Place>) -> Self {
        let mut functions: Vec<u32> = callers.iter().map(|(function, _)| *function).collect();
        functions.sort_unstable();
        functions.dedup();
        Self { callers, functions }
    }

    /// The functions, each once.
    pub fn functions(&self) -> &[u32] {
        &self.functions
    }
}

impl RankStacks {
    /// The places on a stack, innermost first.
    pub fn places(&self, stack: u32) -> impl Iterator<Item = Place> {
        let StackPlaces { inner, path, .. } = &self.stacks[stack as usize];
        let outer = path.map_or(&[][..], |path| &self.paths[path as usize].callers);
        inner.iter().chain(outer).copied()
    }

    /// The innermost functions of a stack, each once, without those that also call it.
    pub fn only_inner(&self, stack: u32) -> impl Iterator<Item = u32> {
        let StackPlaces { inner, path, .. } = &self.stacks[stack as usize];
        let callers = path.map_or(&[][..], |path| &self.paths[path as usize].functions);
        let functions = inner.iter().enumerate().filter(move |(at, (function, _))| {
            inner[..*at].iter().all(|(before, _)| before != function)
                && callers.binary_search(function).is_err()
        });
        functions.map(|(_, (function, _))| *function)
    }
}

impl<'r> Functions<'r> {
    pub fn new(resolve: &'r mut Resolve<'r>) -> Self {
        let (all, numbers, modules, places) = Default::default();
        Self { resolve, all, numbers, modules, places }
    }

    /// Resolves the stacks of a rank.
    pub fn on_stacks(
        &mut self,
        modules: &[&Module],
        stacks: &[Stack],
        paths: &[Vec<u64>],
    ) -> RankStacks {
        let replacements = Replacements::new(modules);
        let mut found = RankStacks { stacks: Vec::with_capacity(stacks.len()), paths: Vec::new() };
        // A path that was known before a module was replaced may have another meaning later.
        let mut path_numbers: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        for stack in stacks {
            let module = |address| replacements.module(modules, address, stack.replaced);
            let inner = self.places(module(stack.address), stack.address);
            let path = (stack.path != NO_PATH).then(|| {
                *path_numbers.entry((stack.path, stack.replaced)).or_insert_with(|| {
                    let calls = paths[stack.path as usize].iter().copied().map(call_before);
                    let callers = calls.flat_map(|call| self.places(module(call), call));
                    found.paths.push(PathPlaces::new(callers.collect()));
                    found.paths.len() as u32 - 1
                })
            });
            found.stacks.push(StackPlaces { inner, path, is_complete: stack.is_complete });
        }
        found
    }

    fn places(&mut self, module: Option<&Module>, address: u64) -> Vec<Place> {
        let Some(module) = module else {
            return vec![(self.number(Function::default()), None)];
        };
        let (path, id, address) = in_file(Some(module), address);
        let next = self.modules.len() as u32;
        let number = *self.modules.entry((path.to_owned(), id.to_owned())).or_insert(next);
        if let Some(known) = self.places.get(&(number, address)) {
            return known.clone();
        }
        let frames = (self.resolve)(path, id, address);
        let places = frames.into_iter().map(|SourceLocation { function, file, line }| {
            let function = Function { module: path.to_owned(), name: function, file };
            (self.number(function), line)
        });
        let places: Vec<Place> = places.collect();
        self.places.insert((number, address), places.clone());
        places
    }

    fn number(&mut self, function: Function) -> u32 {
        let Function { module, name, file } = &function;
        let file = file.as_ref().and_then(|path| path.rsplit('/').next()).map(str::to_owned);
        let next = self.all.len() as u32;
        *self.numbers.entry((module.clone(), name.clone(), file)).or_insert_with(|| {
            self.all.push(function);
            next
        })
    }
}
