//! Simulates one-sided communication.

use super::{Blocking, Role, Simulator, State, last_of};
use crate::synthetic_windows::{EXCLUSIVE, SHARED, for_group, for_target, on_window};

impl Simulator {
    /// A window that all ranks have made.
    fn window(&mut self) -> u32 {
        self.windows += 1;
        for rank in &mut self.ranks {
            rank.window(self.windows);
        }
        self.windows
    }

    pub fn exposure(&mut self, roles: &[Role], blocking: Blocking, works: &[u64]) {
        let of = |role| (0..roles.len()).filter(|rank| roles[*rank] == role).collect::<Vec<_>>();
        let (origins, targets) = (of(Role::Origin), of(Role::Target));
        if origins.is_empty() || targets.is_empty() {
            return;
        }
        let window = self.window();
        let group = |ranks: &[usize]| ranks.iter().map(|rank| *rank as u32).collect::<Vec<_>>();
        let mut posts = Vec::new();
        for target in &targets {
            let entered = self.now[*target] + works[*target];
            self.ranks[*target].group(window, &group(&origins));
            self.call_until(*target, "MPI_Win_post", (entered, None), for_group(window, window));
            posts.push((*target, entered));
        }
        let last_post = last_of(posts.iter().copied()).map(|(_, at)| at);
        let mut completes = Vec::new();
        for origin in origins {
            self.ranks[origin].group(window, &group(&targets));
            let to = for_target(window, targets[0] as u32, 8);
            let calls = [
                ("MPI_Win_start", Blocking::Start, for_group(window, window), last_post),
                ("MPI_Put", Blocking::Put, to, Some(posts[0].1)),
                ("MPI_Win_complete", Blocking::Complete, on_window(window), last_post),
            ];
            for (name, blocks, attributes, needs) in calls {
                let entered = self.now[origin] + works[origin] / 3;
                let until = needs.filter(|_| blocks == blocking);
                let left = self.call_until(origin, name, (entered, until), attributes);
                // A call that is short may by chance still last until a post.
                let is_put = blocks == Blocking::Put;
                let state = if is_put { State::EarlyTransfer } else { State::LatePost };
                let relevant = if is_put { &posts[..1] } else { &posts[..] };
                let before = relevant.iter().copied().filter(|(_, at)| *at <= left);
                if let Some((target, at)) = last_of(before) {
                    self.note(state, origin, target, (entered, at));
                }
                if blocks == Blocking::Complete {
                    completes.push((origin, entered));
                }
            }
        }
        let Some((origin, at)) = last_of(completes.into_iter()) else { return };
        for target in targets {
            let entered = self.now[target] + works[target] / 2;
            let until = (entered, Some(at));
            self.call_until(target, "MPI_Win_wait", until, on_window(window));
            self.note(State::EarlyWait, target, origin, (entered, at));
        }
    }

    pub fn locks(&mut self, locks: &[Option<bool>], target: u32, works: &[u64]) {
        let window = self.window();
        let asks = locks.iter().enumerate().filter_map(|(rank, lock)| Some((rank, (*lock)?)));
        let mut asks: Vec<(u64, usize, bool)> =
            asks.map(|(rank, lock)| (self.now[rank] + works[rank], rank, lock)).collect();
        // Locks are granted in the order in which they are asked for.
        asks.sort_unstable();
        let mut unlocks: Vec<(usize, u64, bool)> = Vec::new();
        for (entered, rank, exclusive) in asks {
            let conflicts = unlocks.iter().filter(|(.., other)| exclusive || *other);
            let granted = last_of(conflicts.map(|(rank, at, _)| (*rank, *at)));
            let kind = if exclusive { EXCLUSIVE } else { SHARED };
            let lock = for_target(window, target, kind);
            let until = granted.map(|(_, at)| at);
            let left = self.call_until(rank, "MPI_Win_lock", (entered, until), lock);
            if let Some((holder, at)) = granted {
                self.note(State::Lock, rank, holder, (entered, at));
            }
            let unlocked = left + works[rank] / 4;
            let unlock = for_target(window, target, 0);
            self.call_until(rank, "MPI_Win_unlock", (unlocked, None), unlock);
            unlocks.push((rank, unlocked, exclusive));
        }
    }
}
