//! Matches a completed call with its messages, requests and root, and writes it.

use trace_format::header::COMMUNICATOR_WORLD;
use trace_format::meaning::Operation;
use trace_format::reader::{Half, RequestState};
use trace_format::writer::{Amendment, Completes};

use crate::formats::paraver::names::COLLECTIVE;
use crate::import::rank::{ANY_SOURCE, PROC_NULL};

use super::calls::{
    Failure, LATE_RECEIVES, OpenCall, Reading, Thread, UNKNOWN_COMMUNICATOR, UNKNOWN_ROOT,
    WITHOUT_MESSAGE,
};
use super::roots::RootLookup;

impl Reading<'_> {
    pub(super) fn close(&mut self, place: (usize, u32), mut open: OpenCall) -> Result<(), Failure> {
        use Operation::*;
        let begin = open.call.begin;
        let end = open.call.end.unwrap_or(begin);
        if let Some((count, _)) = open.call.polls {
            open.call.polls = Some((count, end - begin));
        }
        let mut without_message = false;
        let new_request = match open.operation {
            Isend | Ireceive | Icollective => self.request(),
            _ => 0,
        };
        let exact = self.is_ours;
        let thread = self.threads.entry(place).or_default();
        let call = &mut open.call;
        match open.operation {
            Send | Isend | SendReceive => {
                call.communicator = COMMUNICATOR_WORLD;
                match thread.sends.take((begin, end), !exact) {
                    Some(send) => {
                        (call.peer, call.tag, call.bytes) =
                            (send.peer as i32, send.tag, send.bytes);
                    }
                    None => {
                        call.peer = PROC_NULL;
                        without_message = true;
                    }
                }
                if open.operation == Isend {
                    call.request = new_request;
                    thread.silent.push_back(new_request);
                }
            }
            Icollective => {
                call.request = new_request;
                thread.silent.push_back(new_request);
            }
            _ => thread.sends.discard_before(begin),
        }
        match open.operation {
            Receive | SendReceive | Ireceive => {
                call.communicator = COMMUNICATOR_WORLD;
                let message = thread.receives.take((begin, end), !exact);
                without_message |= message.is_none();
                let (peer, tag, bytes) = match message {
                    Some(message) => (message.peer as i32, message.tag, message.bytes),
                    None => (PROC_NULL, 0, 0),
                };
                match (open.operation, message) {
                    (SendReceive, _) => call.receive = Some(Half { peer, tag, bytes }),
                    (Ireceive, Some(message)) => {
                        (call.peer, call.tag, call.request) = (peer, tag, new_request);
                        thread.waiting.insert((message.complete, new_request), message);
                    }
                    (Ireceive, None) => {
                        (call.peer, call.request) = (peer, new_request);
                        thread.silent.push_back(new_request);
                    }
                    _ => (call.peer, call.tag, call.bytes) = (peer, tag, bytes),
                }
            }
            _ => thread.receives.discard_before(begin),
        }
        if matches!(open.operation, CompleteOne | CompleteSeveral) {
            let several = open.operation == CompleteSeveral;
            let (states, late) = thread.complete((begin, end), several);
            *self.imported.missing.entry(LATE_RECEIVES).or_default() += late;
            match (several, states.first()) {
                (true, _) => call.requests = states,
                (false, Some(state)) => {
                    call.request = state.request;
                    (call.peer, call.tag, call.bytes) = (state.peer, state.tag, state.bytes);
                    call.completes = Some(Completes { cancelled: false });
                }
                (false, None) => {}
            }
        }
        if without_message {
            self.imported.miss(WITHOUT_MESSAGE);
        }
        self.write(place, open)
    }

    fn write(&mut self, place: (usize, u32), mut open: OpenCall) -> Result<(), Failure> {
        use Operation::{Collective, Icollective};
        if open.kind != COLLECTIVE || !matches!(open.operation, Collective | Icollective) {
            self.ranks[place.0].call(place.1, &open.call)?;
            return Ok(());
        }
        let call = &mut open.call;
        call.received.get_or_insert(0);
        let mut on = open.communicator;
        if open.is_lost {
            self.imported.miss(UNKNOWN_COMMUNICATOR);
        } else if call.communicator == 0 {
            call.communicator = COMMUNICATOR_WORLD;
            let ids = &self.ranks[place.0].communicators;
            on = ids.iter().find(|(_, id)| **id == COMMUNICATOR_WORLD).map(|(of, _)| *of);
        }
        if !open.is_rooted {
            self.ranks[place.0].call(place.1, call)?;
            return Ok(());
        }
        // The root by its position in the communicator, or among all tasks if the head defines
        // none.
        let members = on.and_then(|on| self.world.communicators.get(on as usize));
        let members = members.map(|of| of.members.as_slice()).filter(|members| !members.is_empty());
        let size = members.map_or(self.ranks.len(), <[u32]>::len);
        let own = match members {
            Some(members) => members.iter().position(|rank| *rank as usize == place.0),
            None => Some(place.0),
        };
        let own = own.and_then(|own| i32::try_from(own).ok());
        let own_root = open.root.or(own.filter(|_| open.is_root));
        let key = (on.unwrap_or(u32::MAX), size);
        let lookup = match open.is_lost {
            true => own_root.map(RootLookup::Known),
            false => {
                let mut found = Vec::new();
                let take = |task, at, root| found.push((task, at, root));
                let lookup = self.roots.call(key, place.0, call.function, own_root, take);
                for (task, at, root) in found {
                    self.ranks[task].amend(at, Amendment::Root(root))?;
                }
                Some(lookup)
            }
        };
        call.peer = match lookup {
            Some(RootLookup::Known(root)) => root,
            // The root is not known.
            _ => ANY_SOURCE,
        };
        let at = self.ranks[place.0].call(place.1, call)?;
        match lookup {
            Some(RootLookup::Later(ticket)) => self.roots.wait(ticket, size, place.0, at),
            Some(RootLookup::Known(_)) => {}
            None => self.imported.miss(UNKNOWN_ROOT),
        }
        Ok(())
    }
}

impl Thread {
    /// Completes the requests of a wait: receives that arrive during it, and requests whose
    /// completion the trace does not have. Also returns the number of receives that were complete
    /// before the wait began.
    fn complete(&mut self, (begin, end): (u64, u64), several: bool) -> (Vec<RequestState>, u64) {
        let mut states = Vec::new();
        let mut late = 0;
        let done = |request, peer, tag, bytes| RequestState {
            request,
            completed: true,
            cancelled: false,
            peer,
            tag,
            bytes,
            error: 0,
        };
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 <= end
            && (several || states.is_empty())
        {
            let ((complete, request), message) = first.remove_entry();
            if complete < begin {
                late += 1;
                continue;
            }
            states.push(done(request, message.peer as i32, message.tag, message.bytes));
        }
        while several || states.is_empty() {
            let Some(request) = self.silent.pop_front() else { break };
            states.push(done(request, 0, 0, 0));
        }
        (states, late)
    }
}
