//! The graph of waiting: which nodes can never continue by themselves, the cycles among them, and
//! the nodes that wait for a given one.
//!
//! A node is *free* if it may continue: it acts, or all (any) of what it needs is free. Every other
//! node is stuck: it waits in a cycle, or for something that will never act. This is the AND-OR
//! model of distributed deadlocks (Chandy, Misra and Haas, ACM TOCS 1(2), 1983). All steps are
//! linear in nodes and edges.

/// What a node needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// Nothing: it may act.
    Acts,
    /// It will never act again.
    Never,
    /// All of these.
    All(Vec<usize>),
    Any(Vec<usize>),
}

impl Node {
    fn needs(&self) -> &[usize] {
        match self {
            Self::Acts | Self::Never => &[],
            Self::All(needs) | Self::Any(needs) => needs,
        }
    }
}

pub(super) fn free(nodes: &[Node]) -> Vec<bool> {
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        node.needs().iter().for_each(|need| dependents[*need].push(index));
    }
    let mut open: Vec<usize> = nodes.iter().map(|node| node.needs().len()).collect();
    let mut free = vec![false; nodes.len()];
    let initially_free = |node: &Node| match node {
        Node::Acts => true,
        Node::All(needs) => needs.is_empty(),
        _ => false,
    };
    let mut queue: Vec<usize> = (0..nodes.len()).filter(|i| initially_free(&nodes[*i])).collect();
    queue.iter().for_each(|index| free[*index] = true);
    while let Some(index) = queue.pop() {
        for &dependent in &dependents[index] {
            open[dependent] = open[dependent].saturating_sub(1);
            let is_free = match nodes[dependent] {
                Node::All(_) => open[dependent] == 0,
                Node::Any(_) => true,
                _ => false,
            };
            if is_free && !free[dependent] {
                free[dependent] = true;
                queue.push(dependent);
            }
        }
    }
    free
}

/// Cycles among the nodes that are not free, each beginning at its lowest node. Every node of a
/// cycle needs the next one. A cycle that shares a node with one already found is not listed. Nodes
/// from index `ranks` on are not ranks.
pub(super) fn cycles(nodes: &[Node], free: &[bool], ranks: usize) -> Vec<Vec<usize>> {
    // Remove nodes whose chains all end; every remaining node leads into a cycle.
    let stuck_needs = |index: usize| nodes[index].needs().iter().filter(|need| !free[**need]);
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut open = vec![0usize; nodes.len()];
    for index in (0..nodes.len()).filter(|index| !free[*index]) {
        for need in stuck_needs(index) {
            dependents[*need].push(index);
            open[index] += 1;
        }
    }
    let mut ends: Vec<usize> = (0..nodes.len()).filter(|i| !free[*i] && open[*i] == 0).collect();
    let mut left: Vec<bool> = free.iter().map(|free| !free).collect();
    while let Some(index) = ends.pop() {
        left[index] = false;
        for &dependent in &dependents[index] {
            open[dependent] -= 1;
            if open[dependent] == 0 {
                ends.push(dependent);
            }
        }
    }
    let next = |index: usize| {
        let need = stuck_needs(index).copied().find(|need| left[*need])?;
        // A node for a choice may be shared by several ranks that are also its members. Then
        // continue with another of its members.
        let shared = matches!(nodes[need], Node::Any(_)) && need >= ranks && index < ranks;
        let other = || stuck_needs(need).copied().find(|need| left[*need] && *need != index);
        if shared { other().or(Some(index)) } else { Some(need) }
    };
    let mut found = Vec::new();
    // The walk in which each node was visited.
    let mut walk_of = vec![0usize; nodes.len()];
    for start in 0..nodes.len() {
        if !left[start] || walk_of[start] != 0 {
            continue;
        }
        let walk = start + 1;
        let mut at = Some(start);
        while let Some(index) = at.filter(|index| walk_of[*index] == 0) {
            walk_of[index] = walk;
            at = next(index);
        }
        let Some(met) = at.filter(|index| walk_of[*index] == walk) else { continue };
        let mut cycle = vec![met];
        let mut at = next(met);
        while let Some(index) = at.filter(|index| *index != met) {
            cycle.push(index);
            at = next(index);
        }
        let lowest =
            cycle.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(at, _)| at);
        cycle.rotate_left(lowest);
        found.push(cycle);
    }
    found
}

/// All nodes that need `end`, directly or indirectly.
pub(super) fn waiting_for(nodes: &[Node], end: usize) -> Vec<usize> {
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        node.needs().iter().for_each(|need| dependents[*need].push(index));
    }
    let mut met = vec![false; nodes.len()];
    let mut queue = vec![end];
    met[end] = true;
    let mut waiting = Vec::new();
    while let Some(index) = queue.pop() {
        for &dependent in &dependents[index] {
            if !std::mem::replace(&mut met[dependent], true) {
                waiting.push(dependent);
                queue.push(dependent);
            }
        }
    }
    waiting.sort_unstable();
    waiting
}

#[cfg(test)]
mod tests {
    use super::Node::*;
    use super::*;

    fn cycles_of(nodes: &[Node]) -> Vec<Vec<usize>> {
        cycles(nodes, &free(nodes), nodes.len().min(3))
    }

    #[test]
    fn two_nodes_that_need_each_other_are_stuck() {
        let nodes = [All(vec![1]), All(vec![0]), All(vec![0]), Acts];
        assert_eq!(free(&nodes), [false, false, false, true]);
        assert_eq!(cycles_of(&nodes), [[0, 1]]);
    }

    #[test]
    fn a_choice_is_stuck_only_if_all_its_options_are() {
        let open = [Any(vec![1, 2]), All(vec![0]), Acts];
        assert_eq!(free(&open), [true, true, true]);
        let stuck = [Any(vec![1, 2]), All(vec![0]), Never];
        assert_eq!(free(&stuck), [false, false, false]);
        assert_eq!(cycles_of(&stuck), [[0, 1]]);
        // 0 and 1 wait for any of 0, 1 and 2, through a shared choice.
        let shared = [All(vec![3]), All(vec![3]), Never, Any(vec![0, 1, 2])];
        assert_eq!(cycles_of(&shared), [[0, 1]]);
    }

    #[test]
    fn a_chain_to_a_dead_node_is_not_a_cycle() {
        let nodes = [All(vec![1]), All(vec![2]), Never, All(vec![])];
        assert_eq!(free(&nodes), [false, false, false, true]);
        assert_eq!(cycles_of(&nodes), Vec::<Vec<usize>>::new());
        assert_eq!(waiting_for(&nodes, 2), [0, 1]);
    }

    #[test]
    fn finds_a_cycle_behind_a_dead_end() {
        // 0 needs 1 (dead) and 2; 2 and 3 need each other; 4 needs itself.
        let nodes = [All(vec![1, 2]), Never, All(vec![3]), All(vec![1, 2]), All(vec![4])];
        assert_eq!(cycles_of(&nodes), [vec![2, 3], vec![4]]);
    }

    #[test]
    fn a_long_chain_does_not_overflow_the_stack() {
        let count = 200_000;
        let mut nodes: Vec<Node> = (0..count).map(|i| All(vec![(i + 1) % count])).collect();
        assert_eq!(cycles_of(&nodes)[0].len(), count);
        nodes[count - 1] = Acts;
        assert!(free(&nodes).iter().all(|free| *free));
    }
}
