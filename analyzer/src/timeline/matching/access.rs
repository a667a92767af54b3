//! Reports accesses to other ranks' memory (MPI_Put and the like), with their target and the bytes
//! moved in each direction, and the calls that begin and end epochs. They have no partner.

use trace_format::meaning::EpochCall;
use trace_format::reader::StoredEvent;

use super::call::Call;
use super::findings::{Access, Epoch, MatchFinding};
use super::rank_state::RankState;
use super::state::Matching;

impl RankState<'_> {
    /// Handles an access. Those that did not return, or whose target is MPI_PROC_NULL or unknown,
    /// are ignored.
    pub(super) fn access(&self, call: Call, event: &StoredEvent<'_>, m: &mut Matching) {
        let peer = event.head.peer();
        if call.end_ticks().is_none() || peer == self.constants.proc_null {
            return;
        }
        let communicator =
            m.communicators.resolve(self.index, event.head.communicator(), event.head.begin());
        let Ok((communicator, target)) = self.peer(communicator, peer, m) else { return };
        let (bytes, received) = event.moved();
        let meaning = self.file.meaning(event.function());
        let only_receives = meaning.is_some_and(|meaning| meaning.fields.only_receives);
        let (put_bytes, got_bytes) = if only_receives { (0, bytes) } else { (bytes, received) };
        let origin = self.rank;
        let (window, begin_s) = (event.head.object(), 0.0);
        let moved =
            Access { origin, target, communicator, window, begin_s, put_bytes, got_bytes, call };
        m.emitter.access(self.index, moved);
    }

    /// Handles a call of an epoch.
    pub(super) fn epoch(
        &self,
        call: Call,
        event: &StoredEvent<'_>,
        what: EpochCall,
        m: &mut Matching,
    ) {
        let head = &event.head;
        let named = event.sent() as u32;
        let names_target = matches!(what, EpochCall::Lock | EpochCall::Unlock | EpochCall::Flush);
        let membership = || m.communicators.resolve(self.index, head.communicator(), head.begin());
        let target = || self.peer(membership(), head.peer(), m).ok().map(|(_, rank)| rank);
        let exclusive = match what {
            EpochCall::Lock if named == self.constants.lock_exclusive => Some(true),
            EpochCall::Lock if named == self.constants.lock_shared => Some(false),
            EpochCall::LockAll => Some(false),
            _ => None,
        };
        let has_group = matches!(what, EpochCall::Start | EpochCall::Post);
        let epoch = Epoch {
            rank: self.rank,
            call,
            what,
            window: head.object(),
            group: if has_group { named } else { 0 },
            target: if names_target { target() } else { None },
            exclusive,
        };
        m.emitter.add(MatchFinding::Epoch(epoch));
    }
}
