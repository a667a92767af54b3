//! Anonymises an opened run.
//!
//! Times, counts, sizes, tags, ranks, and the names of MPI functions and compute functions are
//! kept. Names of programs, hosts, regions, files, modules and interpreted functions are replaced by numbers. Arguments,
//! parameters, environment, directories, names that the program gave to communicators, process ids
//! and the date are removed.

use std::path::PathBuf;
use std::sync::Arc;

use trace_format::header::{Definition, File, FileHeader, ObjectKind};
use trace_format::samples::PYTHON;

use crate::string_table::StringTable;

use super::fault::{FileFault, RunNote};
use super::opened::Run;
use super::run_json::{Params, RunJson, Sender, Termination};

/// Name of a run in place of its directory.
const DIRECTORY: &str = "run";

/// Names that MPI itself gives to communicators.
const PREDEFINED: [&str; 3] = ["MPI_COMM_WORLD", "MPI_COMM_SELF", "MPI_COMM_PARENT"];

/// Numbers for names, in the order in which they first occur.
#[derive(Default)]
struct Pseudonyms(StringTable);

impl Pseudonyms {
    fn pseudonym(&mut self, prefix: &str, name: &str) -> String {
        if name.is_empty() {
            return String::new();
        }
        format!("{prefix}{}", self.0.number(name))
    }
}

#[derive(Default)]
struct Names {
    programs: Pseudonyms,
    hosts: Pseudonyms,
    kernels: Pseudonyms,
    regions: Pseudonyms,
    files: Pseudonyms,
    inodes: Pseudonyms,
    modules: Pseudonyms,
    functions: Pseudonyms,
}

impl Names {
    fn header(&mut self, header: &mut FileHeader) {
        header.program = self.programs.pseudonym("program", &header.program);
        header.arguments = vec![header.program.clone()];
        header.build_id.clear();
        header.directory.clear();
        header.host = self.hosts.pseudonym("host", &header.host);
        header.boot_id = self.kernels.pseudonym("kernel", &header.boot_id);
        header.parameters.clear();
        // The text after the version may tell who built it, and where.
        let version = header.mpi_library.split([',', '\n']).next().unwrap_or_default().to_owned();
        header.mpi_library = version;
    }

    fn definition(&mut self, definition: &mut Definition) {
        match definition {
            Definition::Region { name, .. } => *name = self.regions.pseudonym("region", name),
            Definition::Environment(variables) => variables.clear(),
            Definition::Object { kind: ObjectKind::File, name, .. } => {
                *name = self.files.pseudonym("file", name);
            }
            Definition::File(file) => {
                let File { device, inode, born_ns, .. } = *file;
                file.inode = self.inodes.0.number(&format!("{device} {inode} {born_ns}")).into();
                (file.device, file.born_ns) = (0, 0);
                file.name = self.files.pseudonym("file", &file.name);
            }
            Definition::Module(module) => {
                module.path = self.modules.pseudonym("module", &module.path);
                module.identity.clear();
            }
            Definition::Code(code) => {
                code.path = self.modules.pseudonym("module", &code.path);
                code.identity =
                    PYTHON.to_owned() + &self.functions.pseudonym("function", &code.identity);
            }
            Definition::Stopped { reason, .. } => *reason = without_paths(reason),
            _ => {}
        }
    }
}

/// A sentence with every path in it replaced.
fn without_paths(sentence: &str) -> String {
    let is_path = |word: &str| {
        let word = word.trim_start_matches(['`', '"', '\'', '(', '[', '$']);
        word.starts_with('/') || word.starts_with("./") || word.starts_with("../")
    };
    let words = sentence.split(' ').map(|word| match is_path(word) {
        true => format!("PATH{}", if word.ends_with(':') { ":" } else { "" }),
        false => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn anonymised(description: &RunJson) -> RunJson {
    RunJson {
        argv: Vec::new(),
        program: None,
        directory: String::new(),
        host: String::new(),
        library: String::new(),
        params: Params::default(),
        environment: Default::default(),
        termination: description.termination.clone().map(|termination| Termination {
            sender: termination.sender.map(|sender| Sender { name: None, ..sender }),
            ..termination
        }),
        ..description.clone()
    }
}

impl Run {
    /// Removes names, arguments, environment and date. Must be called before anything is derived
    /// from them.
    pub fn anonymise(&mut self) {
        let mut names = Names::default();
        let directory = self.directory.display().to_string();
        for rank in &mut self.ranks {
            names.header(&mut rank.file.header);
            rank.file.fixed.pid = rank.rank + 1;
            rank.file.path = PathBuf::from(DIRECTORY).join(&rank.name);
            rank.file.definitions.retain(|definition| match definition {
                Definition::CommunicatorName { name, .. } => PREDEFINED.contains(&name.as_str()),
                _ => true,
            });
            rank.file.definitions.iter_mut().for_each(|one| names.definition(one));
            for name in rank.facts.regions.values_mut() {
                *name = names.regions.pseudonym("region", name);
            }
            rank.facts.environment.clear();
            if let Some((_, reason)) = &mut rank.facts.stopped {
                *reason = without_paths(reason);
            }
        }
        self.description = self.description.as_ref().map(anonymised);
        let scrub = |text: &str| without_paths(&text.replace(&directory, DIRECTORY));
        for diagnosis in &mut self.diagnoses {
            let sentence = diagnosis.what.to_string();
            let scrubbed = scrub(&sentence);
            if scrubbed != sentence {
                diagnosis.what = FileFault::Anonymous(scrubbed);
            }
        }
        for note in &mut self.notes {
            match note {
                RunNote::UnknownMpi { library } => *library = scrub(library),
                RunNote::Snapshot { utc, .. } => *utc = None,
                RunNote::Simulated | RunNote::Spawned { .. } | RunNote::FreedInTotals { .. } => {}
            }
        }
        self.symbols = Arc::default();
        self.directory = PathBuf::from(DIRECTORY);
        self.anonymous = true;
    }
}
