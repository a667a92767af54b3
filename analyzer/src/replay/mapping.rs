//! The assignment of ranks to hosts in a question.

/// An assignment of ranks to hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// How it was requested.
    pub layout: Layout,
    /// Number of hosts with ranks.
    pub hosts: u32,
    /// Host number of each rank, by its position in the run.
    of_ranks: Vec<u32>,
}

/// A way of distributing ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// Neighbours together: the first ranks on the first host. If ranks do not divide evenly, some
    /// hosts have one more.
    Block,
    /// In turn: rank r on host r mod the number of hosts.
    Cyclic,
    /// As given by a file.
    File(String),
    /// With ranks that exchange much on one host.
    Traffic,
}

impl Mapping {
    /// Distributes neighbouring ranks together over a number of hosts.
    pub fn block(ranks: u32, hosts: u32) -> Self {
        let host =
            |rank: u32| (u64::from(rank) * u64::from(hosts) / u64::from(ranks.max(1))) as u32;
        Self { layout: Layout::Block, hosts, of_ranks: (0..ranks).map(host).collect() }
    }

    /// Distributes ranks over a number of hosts in turn.
    pub fn cyclic(ranks: u32, hosts: u32) -> Self {
        let host = |rank: u32| rank % hosts.max(1);
        Self { layout: Layout::Cyclic, hosts, of_ranks: (0..ranks).map(host).collect() }
    }

    /// Assigns ranks to hosts by the hosts' names.
    pub fn named(file: String, names: &[&str]) -> Self {
        let mut known: Vec<&str> = Vec::new();
        let mut of_ranks = Vec::with_capacity(names.len());
        for name in names {
            let at = known.iter().position(|other| other == name).unwrap_or(known.len());
            if at == known.len() {
                known.push(name);
            }
            of_ranks.push(at as u32);
        }
        Self { layout: Layout::File(file), hosts: known.len() as u32, of_ranks }
    }

    /// Assigns ranks to the numbered hosts that keep much of their traffic inside.
    pub(super) fn by_traffic(of_ranks: Vec<u32>) -> Self {
        let hosts = of_ranks.iter().max().map_or(0, |host| host + 1);
        Self { layout: Layout::Traffic, hosts, of_ranks }
    }

    /// The host of a rank.
    pub fn host(&self, position: usize) -> u32 {
        self.of_ranks[position]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributes_ranks_evenly() {
        assert_eq!(Mapping::block(4, 2).of_ranks, [0, 0, 1, 1]);
        assert_eq!(Mapping::block(5, 4).of_ranks, [0, 0, 1, 2, 3]);
        assert_eq!(Mapping::cyclic(5, 2).of_ranks, [0, 1, 0, 1, 0]);
        let named = Mapping::named("hosts".into(), &["b", "a", "b"]);
        assert_eq!((named.hosts, named.of_ranks.as_slice()), (2, &[0, 1, 0][..]));
    }
}
