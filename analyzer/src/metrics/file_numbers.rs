//! Which files of the ranks are the same, and their numbers in the run.

use std::collections::{BTreeMap, HashMap};

use trace_format::header::{Definition, File};

use crate::trace::Run;

/// File systems whose files several hosts share: NFS, Lustre, GPFS, BeeGFS, Ceph, PanFS, OrangeFS, AFS, SMB.
const SHARED: [u64; 11] = [
    0x6969,
    0x0bd0_0bd0,
    0x4750_4653,
    0x1983_0326,
    0x00c3_6400,
    0xaad7_aaea,
    0x2003_0528,
    0x5346_414f,
    0xff53_4d42,
    0xfe53_4d42,
    0x6b41_4653,
];

/// What makes files of several ranks one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identity {
    Named { host: Option<String>, name: String },
    Numbered { host: Option<String>, device: u64, inode: u64, born_ns: u64 },
}

impl Identity {
    fn of(file: &File, host: &str) -> Self {
        let is_shared = SHARED.contains(&file.file_system);
        let host = (!is_shared).then(|| host.to_owned());
        let File { inode, born_ns, .. } = *file;
        // Hosts number devices as they like.
        let device = if is_shared { file.file_system } else { file.device };
        match file.name.is_empty() {
            false => Self::Named { host, name: file.name.clone() },
            true => Self::Numbered { host, device, inode, born_ns },
        }
    }
}

/// The files of a run, in the order in which the ranks define them. The last one stands for all files beyond those
/// that a rank numbers.
#[derive(Debug, Clone)]
pub(crate) struct FileNumbers {
    /// By position of the rank, the file's index by its number on the rank.
    of_ranks: Vec<HashMap<u32, usize>>,
    /// Path, if names were kept.
    names: Vec<Option<String>>,
}

impl FileNumbers {
    pub fn new(run: &Run) -> Self {
        let mut known: BTreeMap<Identity, usize> = BTreeMap::new();
        let mut names = Vec::new();
        let mut of_ranks = Vec::new();
        for rank in &run.ranks {
            let host = &rank.file.header.host;
            let mut of_rank = HashMap::new();
            for definition in &rank.file.definitions {
                let Definition::File(file) = definition else { continue };
                let index = *known.entry(Identity::of(file, host)).or_insert(names.len());
                if index == names.len() {
                    names.push(Some(file.name.clone()).filter(|name| !name.is_empty()));
                }
                of_rank.insert(file.number, index);
            }
            of_ranks.push(of_rank);
        }
        names.push(None);
        Self { of_ranks, names }
    }

    /// Index of the file with a number on the rank at a position of the run.
    pub fn index(&self, rank: usize, number: u32) -> usize {
        let of_rank = self.of_ranks.get(rank);
        of_rank.and_then(|of| of.get(&number)).copied().unwrap_or(self.names.len() - 1)
    }

    /// Path of a file, if names were kept.
    pub fn name(&self, index: usize) -> Option<&str> {
        self.names.get(index)?.as_deref()
    }

    /// How a file is called where it has to have a name.
    pub fn title(&self, index: usize) -> String {
        match self.name(index) {
            Some(name) => name.to_owned(),
            None if index + 1 == self.names.len() => "further files".to_owned(),
            None => format!("file {}", index + 1),
        }
    }

    pub fn count(&self) -> usize {
        self.names.len()
    }
}
