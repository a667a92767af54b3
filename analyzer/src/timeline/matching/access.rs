//! Reports accesses to other ranks' memory (MPI_Put and the like), with their target and the bytes
//! moved in each direction. They have no partner.

use trace_format::reader::StoredEvent;

use super::Matching;
use super::call::Call;
use super::findings::Access;
use super::rank_state::RankState;

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
        let begin_s = 0.0;
        let access = Access { origin, target, communicator, begin_s, put_bytes, got_bytes, call };
        m.emitter.access(self.index, access);
    }
}
