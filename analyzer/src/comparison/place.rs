//! Places in the program. Addresses and lines change when a program is rebuilt, so a call site is
//! known by function and order: "the second MPI_Allreduce in solve". Those of several builds are
//! matched by `alignment`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::causes::{CallSite, Context};

/// A place in a program; call sites by their position in the record's table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// No place in the program: start and end, the recorder.
    None,
    /// All places too small to be listed.
    Elsewhere,
    /// The program's own code in a region that it marked.
    Region(String),
    /// The program's own code between two calls; `None` is the begin or end of the run.
    Between(Option<u32>, Option<u32>),
    /// Inside a call.
    Inside(u32),
    /// The program's own code around a call, where the sides of a comparison divide it differently.
    #[serde(skip)]
    Around(u32),
}

impl Place {
    /// The call sites that it refers to.
    pub fn sites(&self) -> impl Iterator<Item = u32> + use<> {
        let sites = match self {
            Self::Between(from, to) => [*from, *to],
            Self::Inside(site) | Self::Around(site) => [Some(*site), None],
            _ => [None, None],
        };
        sites.into_iter().flatten()
    }
}

/// A call site of MPI.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Site {
    /// The MPI function.
    pub function: String,
    /// The program's function that contains the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// Source file, without its path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in the source file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Program or library, without its path; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// Index, from 0, among the calls of this function from there, in the order of lines or
    /// addresses.
    pub number: u32,
}

impl Site {
    /// What identifies it, except for its number and line.
    fn identity(&self) -> (&str, Option<&str>, Option<&str>, &str) {
        (&self.function, self.within.as_deref(), self.file.as_deref(), &self.module)
    }

    /// The same in all records of a comparison, once their sites are aligned.
    pub(super) fn key(&self) -> Self {
        // A program that was built under another name is the same program.
        let module = match (&self.within, &self.file) {
            (None, None) => self.module.clone(),
            _ => String::new(),
        };
        Self { line: None, module, ..self.clone() }
    }
}

/// A place including its call sites, the same in all records of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodeLocation {
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
    /// As [`Place::Around`].
    Around(Site),
}

impl CodeLocation {
    fn with(place: &Place, site: impl Fn(u32) -> Site) -> Self {
        match place {
            Place::None => Self::None,
            Place::Elsewhere => Self::Elsewhere,
            Place::Region(name) => Self::Region(name.clone()),
            Place::Between(from, to) => Self::Between(from.map(&site), to.map(&site)),
            Place::Inside(at) => Self::Inside(site(*at)),
            Place::Around(at) => Self::Around(site(*at)),
        }
    }

    /// For display, with lines.
    pub fn for_display(place: &Place, sites: &[Site]) -> Self {
        Self::with(place, |at| sites[at as usize].clone())
    }

    /// For matching with places of other runs, without lines.
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
    /// The position of a call site in the table; adds it if necessary.
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

    pub fn place(&mut self, context: &Context) -> Place {
        let mut of = |site: &Option<CallSite>| site.as_ref().map(|site| self.site(site));
        match context.outer() {
            Context::Region(name) => Place::Region(name.clone()),
            Context::Between(from, to) => {
                let from = of(from);
                Place::Between(from, of(to))
            }
            Context::Transfer(site) => Place::Inside(self.site(site)),
            Context::InCall(..)
            | Context::Waiting
            | Context::WaitingForUnknown
            | Context::Recorder
            | Context::Totals => Place::None,
        }
    }

    /// The table. Call sites that differ only in their lines are numbered.
    pub fn finish(self) -> Vec<Site> {
        let mut order: Vec<usize> = (0..self.sites.len()).collect();
        order.sort_by_key(|at| (self.sites[*at].1.line, self.sites[*at].0));
        let mut sites: Vec<Site> = self.sites.into_iter().map(|(_, site)| site).collect();
        let mut counts = BTreeMap::new();
        for at in order {
            let identity = sites[at].identity();
            let identity = (
                identity.0.to_owned(),
                identity.1.map(str::to_owned),
                identity.2.map(str::to_owned),
            );
            let count = counts.entry((identity, sites[at].module.clone())).or_insert(0);
            sites[at].number = *count;
            *count += 1;
        }
        sites
    }
}
