//! Gathers the names that reports of a run may show, for `symbols.json`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use trace_format::header::{Definition, Module};
use trace_format::reader::RankFile;

use super::kept_symbols::{Document, ModulePart};
use super::modules::modules;
use super::opened::Run;
use super::source_location::SourceLocation;
use super::symbols::Symbols;

/// How many addresses have names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    pub addresses: usize,
    pub named: usize,
    /// Modules without names: path and reason.
    pub unusable: Vec<(String, &'static str)>,
}

/// Addresses by path and build id.
type Needed = BTreeMap<(String, String), BTreeSet<u64>>;

/// Adds an address in memory, for each module that has been there.
fn add(needed: &mut Needed, modules: &[&Module], address: u64) {
    for module in modules.iter().filter(|of| (of.begin..of.end).contains(&address)) {
        let of_module = needed.entry((module.path.clone(), module.identity.clone())).or_default();
        of_module.insert(address.wrapping_sub(module.base));
    }
}

/// The addresses whose names reports of a rank may show.
fn add_rank(needed: &mut Needed, file: &RankFile) {
    let modules = modules(&file.definitions);
    let mut returns: BTreeSet<u64> = BTreeSet::new();
    for definition in &file.definitions {
        if let Definition::Path { addresses, .. } = definition {
            returns.extend(addresses);
        }
    }
    for thread in &file.threads {
        returns.extend(file.events(thread).filter_map(|event| event.site.map(|site| site.0)));
    }
    for thread in file.sampled_threads() {
        let instructions: BTreeSet<u64> = thread.samples.iter().map(|of| of.address).collect();
        instructions.into_iter().for_each(|address| add(needed, &modules, address));
        returns.extend(thread.paths.into_iter().flatten());
    }
    // The call itself precedes the address that it returns to.
    returns.into_iter().for_each(|address| add(needed, &modules, address.saturating_sub(1)));
}

impl Run {
    /// Writes the names of all functions that samples and calls of the run need into its directory.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep_symbols(&self) -> io::Result<Gathered> {
        let mut needed = Needed::new();
        self.ranks.iter().for_each(|rank| add_rank(&mut needed, &rank.file));
        let mut symbols = Symbols::for_run(self);
        let mut gathered = Gathered::default();
        let (mut functions, mut numbers) = (Vec::new(), HashMap::new());
        let mut modules = Vec::new();
        for ((path, build_id), addresses) in needed {
            gathered.addresses += addresses.len();
            let mut places = Vec::new();
            for address in addresses {
                let frames = symbols.frames(&path, &build_id, address);
                if frames.iter().all(|frame| *frame == SourceLocation::default()) {
                    continue;
                }
                let number = |SourceLocation { function, file, line }: SourceLocation| {
                    let key = (function, file);
                    let number = *numbers.entry(key.clone()).or_insert_with(|| {
                        functions.push(key);
                        functions.len() - 1
                    });
                    (number, line)
                };
                places.push((address, frames.into_iter().map(number).collect()));
            }
            gathered.named += places.len();
            if !places.is_empty() {
                modules.push(ModulePart { path, build_id, places });
            }
        }
        gathered.unusable = symbols.unusable;
        Document::new(functions, modules).write(&self.directory)?;
        Ok(gathered)
    }
}
