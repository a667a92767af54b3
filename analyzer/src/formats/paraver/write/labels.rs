//! Writes the files beside the `.prv`: names of its numbers, and of the ranks.

use std::collections::BTreeMap;

use crate::formats::paraver::names::{
    CLOCK_BOUND, COLLECTIVE, COMMUNICATOR, FILES, IS_ROOT, MARK, ONE_SIDED, OTHER, POINT_TO_POINT,
    POLLS, RECEIVED_BYTES, RECORDER, ROOT, SENT_BYTES, STATES, USER,
};
use crate::plain_text::printable;

use super::writer::ParaverWriter;

impl ParaverWriter<'_> {
    /// The `.pcf`: names of states, event types and values.
    pub(super) fn names(&self) -> String {
        let mut text = String::from(
            "DEFAULT_OPTIONS\n\nLEVEL               THREAD\nUNITS               NANOSEC\n\
             LOOK_BACK           100\nSPEED               1\nFLAG_ICONS          ENABLED\n\
             NUM_OF_STATE_COLORS 1000\nYMAX_SCALE          37\n\n\nDEFAULT_SEMANTIC\n\n\
             THREAD_FUNC         State As Is\n\n\nSTATES\n",
        );
        for (number, name, _) in STATES {
            text += &format!("{number:<5}{name}\n");
        }
        text += "\n\nSTATES_COLOR\n";
        for (number, _, colour) in STATES {
            text += &format!("{number:<5}{{{colour}}}\n");
        }
        let groups = [
            (POINT_TO_POINT, "MPI Point-to-point"),
            (COLLECTIVE, "MPI Collective Comm"),
            (OTHER, "MPI Other"),
            (ONE_SIDED, "MPI One-sided"),
            (FILES, "MPI I/O"),
            (USER, "User function"),
            (RECORDER, "gammachi recorder"),
        ];
        for (kind, title) in groups {
            let values = self.values.range((kind, 0)..=(kind, u32::MAX));
            let values: Vec<String> =
                values.map(|((_, number), name)| format!("{number}   {name}\n")).collect();
            if !values.is_empty() {
                text += &format!("\n\nEVENT_TYPE\n9    {kind}    {title}\nVALUES\n");
                text += &values.concat();
                text += if kind == RECORDER { "" } else { "0   Outside MPI\n" };
            }
        }
        text += "\n\nEVENT_TYPE\n";
        for (kind, title) in [
            (SENT_BYTES, "Send Size in MPI Global OP"),
            (RECEIVED_BYTES, "Recv Size in MPI Global OP"),
            (IS_ROOT, "Root in MPI Global OP"),
            (COMMUNICATOR, "Communicator in MPI Global OP"),
            (MARK, "gammachi: version of these types"),
            (ROOT, "gammachi: root of the operation (rank in the communicator, plus 1)"),
            (POLLS, "gammachi: calls in a run of polls"),
            (CLOCK_BOUND, "gammachi: bound of the rank's clock, ns"),
        ] {
            text += &format!("1    {kind}    {title}\n");
        }
        text
    }

    /// The `.row`: names of nodes, tasks and threads.
    pub(super) fn rows(&self) -> String {
        let head = &self.content.head;
        let mut hosts: BTreeMap<usize, &str> = BTreeMap::new();
        let (mut tasks, mut threads) = (String::new(), String::new());
        let mut count = 0;
        for (place, rank) in head.ranks.iter().enumerate() {
            hosts.insert(self.nodes[place], &rank.host);
            tasks += &format!("RANK {}\n", rank.rank);
            for thread in &rank.threads {
                threads += &format!("THREAD 1.{}.{}\n", rank.rank + 1, thread + 1);
                count += 1;
            }
        }
        let nodes: String = hosts.values().map(|host| format!("{}\n", printable(host))).collect();
        format!(
            "LEVEL NODE SIZE {}\n{nodes}\nLEVEL TASK SIZE {}\n{tasks}\nLEVEL THREAD SIZE {count}\n\
             {threads}",
            hosts.len(),
            head.ranks.len()
        )
    }
}
