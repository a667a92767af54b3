//! Places in the program. Addresses and lines move when a program is built anew, so that places of two runs are
//! matched by function and order: "the second MPI_Allreduce in solve".

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::causes::{CallSite, Context};

/// Where in a program something is; sites by their position in the record's table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Nowhere in particular: start and end, the recorder.
    None,
    /// Places too small for a figure of their own.
    Elsewhere,
    /// The program's own code in a region that it marked.
    Region(String),
    /// The program's own code between two calls; `None`: begin or end of the run.
    Between(Option<u32>, Option<u32>),
    /// Inside a call.
    Inside(u32),
}

impl Place {
    /// The sites that it names.
    pub fn sites(&self) -> impl Iterator<Item = u32> + use<> {
        let sites = match self {
            Self::Between(from, to) => [*from, *to],
            Self::Inside(site) => [Some(*site), None],
            _ => [None, None],
        };
        sites.into_iter().flatten()
    }
}

/// Where MPI is called from.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Site {
    /// The MPI function.
    pub function: String,
    /// The program's function that calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// Source file, without folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Program or library, without folders; empty: not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// Which of the calls of this function from there, from 0, in the order of lines or addresses.
    pub number: u32,
}

impl Site {
    /// What tells it from others, but for its number and line.
    fn home(&self) -> (&str, Option<&str>, Option<&str>, &str) {
        (&self.function, self.within.as_deref(), self.file.as_deref(), &self.module)
    }

    /// Alike in two builds of a program.
    fn key(&self) -> Self {
        // A program that is built under another name is the same.
        let module = match (&self.within, &self.file) {
            (None, None) => self.module.clone(),
            _ => String::new(),
        };
        Self { line: None, module, ..self.clone() }
    }
}

/// A place with its sites, the same in all records of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Spot {
    /// As [`Place::None`].
    None,
    /// As [`Place::Elsewhere`].
    Elsewhere,
    /// As [`Place::Region`].
    Region(String),
    /// As [`Place::Between`].
    Between(Option<Site>, Option<Site>),
    /// As [`Place::Inside`].
    Inside(Site),
}

impl Spot {
    fn with(place: &Place, site: impl Fn(u32) -> Site) -> Self {
        match place {
            Place::None => Self::None,
            Place::Elsewhere => Self::Elsewhere,
            Place::Region(name) => Self::Region(name.clone()),
            Place::Between(from, to) => Self::Between(from.map(&site), to.map(&site)),
            Place::Inside(at) => Self::Inside(site(*at)),
        }
    }

    /// As people see it, with lines.
    pub fn of(place: &Place, sites: &[Site]) -> Self {
        Self::with(place, |at| sites[at as usize].clone())
    }

    /// As it is matched with places of other runs, without lines.
    pub fn key(place: &Place, sites: &[Site]) -> Self {
        Self::with(place, |at| sites[at as usize].key())
    }
}

/// Numbers the call sites of a run.
#[derive(Debug, Default)]
pub struct SiteTable {
    /// By function, module and address.
    numbers: BTreeMap<(String, String, u64), usize>,
    sites: Vec<(u64, Site)>,
}

impl SiteTable {
    /// The position of a site.
    pub fn site(&mut self, site: &CallSite) -> u32 {
        let key = (site.function.clone(), site.module.clone(), site.address);
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let next = self.sites.len();
        let sites = &mut self.sites;
        let number = *self.numbers.entry(key).or_insert_with(|| {
            let place = &site.place;
            let new = Site {
                function: site.function.clone(),
                within: place.function.clone(),
                file: place.file.as_deref().map(name),
                line: place.line,
                module: name(&site.module),
                number: 0,
            };
            sites.push((site.address, new));
            next
        });
        number as u32
    }

    /// The place of a context.
    pub fn place(&mut self, context: &Context) -> Place {
        let mut of = |site: &Option<CallSite>| site.as_ref().map(|site| self.site(site));
        match context {
            Context::Region(name) => Place::Region(name.clone()),
            Context::Between(from, to) => {
                let from = of(from);
                Place::Between(from, of(to))
            }
            Context::Transfer(site) => Place::Inside(self.site(site)),
            Context::Waiting | Context::WaitingForUnknown | Context::Recorder | Context::Totals => {
                Place::None
            }
        }
    }

    /// The table; those alike but for their lines are numbered.
    pub fn finish(self) -> Vec<Site> {
        let mut order: Vec<usize> = (0..self.sites.len()).collect();
        order.sort_by_key(|at| (self.sites[*at].1.line, self.sites[*at].0));
        let mut sites: Vec<Site> = self.sites.into_iter().map(|(_, site)| site).collect();
        let mut counts = BTreeMap::new();
        for at in order {
            let home = sites[at].home();
            let home = (home.0.to_owned(), home.1.map(str::to_owned), home.2.map(str::to_owned));
            let count = counts.entry((home, sites[at].module.clone())).or_insert(0);
            sites[at].number = *count;
            *count += 1;
        }
        sites
    }
}
