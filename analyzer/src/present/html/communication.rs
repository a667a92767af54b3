//! Messages and collective operations as the scripts read them.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::string_table::StringTable;
use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::matching::{CollectiveInstance, Message};

pub(super) struct Writer<'a> {
    /// Rows by rank and thread.
    pub row_of: &'a HashMap<(u32, u32), usize>,
    pub table: &'a CommunicatorTable,
    /// Seconds in the unit that the script expects.
    pub time: fn(f64) -> Value,
}

impl Writer<'_> {
    /// The row of a thread, or that of its rank's first thread.
    fn row(&self, rank: u32, thread: u32) -> Option<usize> {
        self.row_of.get(&(rank, thread)).or_else(|| self.row_of.get(&(rank, 0))).copied()
    }

    /// Rows, begins and ends of send and receive, bytes, tag, communicator; `None` if one of them has no row.
    pub fn message(&self, message: &Message, communicators: &mut StringTable) -> Option<Value> {
        let (send, receive) = (&message.send, &message.receive);
        let from = self.row(send.rank, send.thread)?;
        let to = self.row(receive.rank, receive.thread)?;
        let comm = communicators.number(&self.table.label(message.communicator));
        let [begin, posted] = [send.begin_s, receive.begin_s].map(self.time);
        let [end, ended] = [send.end_s, receive.end_s].map(|end| end.map(self.time));
        Some(json!([from, to, begin, end, posted, ended, message.bytes, message.tag, comm]))
    }

    /// Number of the function, communicator, number of the operation, and its members: row, begin and end.
    pub fn collective(
        &self,
        instance: &CollectiveInstance,
        function: u32,
        communicators: &mut StringTable,
    ) -> Value {
        let members = instance.members.iter().filter_map(|member| {
            let row = self.row(member.rank, member.thread)?;
            Some(json!([row, (self.time)(member.begin_s), member.end_s.map(self.time)]))
        });
        let members: Vec<Value> = members.collect();
        let comm = communicators.number(&self.table.label(instance.communicator));
        json!([function, comm, instance.number, members])
    }
}
