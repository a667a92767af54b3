//! The systems of table 1 of Yasuda et al., as built-in examples.
//!
//! The printed ridge points take B as twice the one-way bandwidth. Misprints: 38.2 in the text for
//! the Nehalem EX cluster is 36.2; 6.4 for the SX-9 belongs to a peak of 1638.4 Gflop/s; 8.1 for
//! the SR16000 between drawers should be 8.5 (460/8 = 57.5 GB/s one way).

use serde::Serialize;

use super::attainable::ridge;

/// A published system: peak of a node and bandwidth between nodes, from data sheets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct System {
    /// Name on the command line.
    pub key: &'static str,
    /// Name for display.
    pub name: &'static str,
    /// Peak of a node, flop/s.
    pub peak_flops_per_s: f64,
    /// Bandwidth of a node one way, bytes per second.
    pub one_way_bytes_per_s: f64,
    /// Network topology.
    #[serde(skip)]
    pub topology: &'static str,
    /// Ridge point as printed.
    pub printed: f64,
    /// Number of nodes that Yasuda et al. used.
    #[serde(skip)]
    pub nodes: u32,
    /// A remark on the figures.
    pub remark: &'static str,
}

impl System {
    /// Ridge point with B counted one way.
    pub fn ridge_one_way(&self) -> f64 {
        ridge(self.peak_flops_per_s, self.one_way_bytes_per_s)
    }

    /// Ridge point with B counted both ways, as Yasuda et al. have it.
    pub fn ridge_both_ways(&self) -> f64 {
        ridge(self.peak_flops_per_s, 2.0 * self.one_way_bytes_per_s)
    }
}

const fn system(
    (key, name): (&'static str, &'static str),
    gflops: f64,
    gbytes: f64,
    topology: &'static str,
    printed: f64,
    nodes: u32,
    remark: &'static str,
) -> System {
    System {
        key,
        name,
        peak_flops_per_s: gflops * 1e9,
        one_way_bytes_per_s: gbytes * 1e9,
        topology,
        printed,
        nodes,
        remark,
    }
}

/// All systems; one with several kinds of links has an entry for each.
pub const SYSTEMS: [System; 8] = [
    system(
        ("sx-9", "NEC SX-9"),
        1676.8,
        128.0,
        "full crossbar",
        6.4,
        16,
        "printed for a peak of 1638.4 Gflop/s",
    ),
    system(
        ("nehalem-ex", "Intel Nehalem EX cluster"),
        289.92,
        4.0,
        "star",
        36.2,
        4,
        "38.2 in the text of Yasuda et al. is a misprint",
    ),
    system(("fx1", "Fujitsu FX1"), 40.0, 2.0, "fat tree", 10.0, 128, ""),
    system(("fx10-1", "Fujitsu FX10, 1 partner"), 236.0, 5.0, "6-D mesh/torus", 23.6, 12, ""),
    system(("fx10-10", "Fujitsu FX10, 10 partners"), 236.0, 50.0, "6-D mesh/torus", 2.36, 12, ""),
    system(
        ("sr16000-hub", "Hitachi SR16000, hub"),
        980.48,
        96.0,
        "multi-level fully connected",
        5.1,
        64,
        "",
    ),
    system(
        ("sr16000-drawer", "Hitachi SR16000, in drawer"),
        980.48,
        24.0,
        "multi-level fully connected",
        20.41,
        64,
        "",
    ),
    system(
        ("sr16000-between", "Hitachi SR16000, between drawers"),
        980.48,
        57.5,
        "multi-level fully connected",
        8.1,
        64,
        "460 GB/s of a drawer of 8 nodes: 8.5, not 8.1",
    ),
];
