//! The factor of all times on the network.

use super::*;
use crate::replay::calibrate::Search;
use crate::replay::graph::Window;

/// A network on which a round of a barrier takes this many times the recorded one.
fn slower(factor: f64) -> Network {
    Network { latency: [1e-6 * factor; 2], overhead: 0.0, ..network() }
}

#[test]
fn beginning_of_a_run_needs_the_factor_of_the_whole() {
    program_of_barriers(8).with_graph(|graph| {
        let graph = graph.unwrap();
        let placement = Placement::recorded(&graph);
        for factor in [0.3, 1.0, 3.0] {
            let search = Search { graph: &graph, placement: &placement, network: slower(factor) };
            for window in [graph.beginning(0.3), graph.whole()] {
                let ([found, error], _) = search.run(&window, 1.0);
                assert!((found * factor - 1.0).abs() < 0.2, "{factor}: {found}");
                assert!(error.abs() < 1e-3, "{factor}: {error}");
            }
        }
    });
}

#[test]
fn beginning_ends_inside_the_run_and_whole_with_it() {
    program_of_barriers(4).with_graph(|graph| {
        let graph = graph.unwrap();
        let (half, whole) = (graph.beginning(0.5), graph.whole());
        assert!(!half.is_whole && whole.is_whole);
        assert!(half.ends.iter().zip(&whole.ends).all(|(half, whole)| half < whole));
        let share = half.elapsed_s / whole.elapsed_s;
        assert!(share > 0.05 && share < 0.5, "{share}");
    });
}

/// Without transfers on the critical path no factor helps; the search ends.
#[test]
fn search_ends_where_no_factor_helps() {
    let mut program = Program::new(2);
    program.works(0, 500_000);
    program.with_graph(|graph| {
        let graph = graph.unwrap();
        let placement = Placement::recorded(&graph);
        let search = Search { graph: &graph, placement: &placement, network: network() };
        let longer = Window { elapsed_s: graph.elapsed_s * 2.0, ..graph.whole() };
        let ([factor, error], _) = search.run(&longer, 1.0);
        assert!(factor.is_finite() && (error + 0.5).abs() < 0.01, "{factor} {error}");
    });
}
