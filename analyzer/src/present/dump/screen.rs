//! Renders events and messages as aligned text.

use std::fmt::Write;

use crate::plain_text::printable;

use super::lines::{EventLine, MessageLine, NumberOrWord, ReceiveHalf, UnmatchedLine};

impl std::fmt::Display for NumberOrWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

pub fn event_titles() -> String {
    format!("{:>15} {:>14} {:>6}  {:<22} attributes", "begin/s", "duration/s", "rank", "function")
}

pub fn message_titles() -> String {
    format!(
        "{:>15} {:>15} {:>6} {:>6} {:>8} {:>12}  communicator",
        "sent/s", "received/s", "from", "to", "tag", "bytes"
    )
}

impl EventLine {
    pub fn text(&self) -> String {
        let duration = match self.duration_s {
            Some(duration_s) => format!("{duration_s:.9}"),
            None if self.abandoned => "left".into(),
            None => "open".into(),
        };
        let rank = match self.thread {
            0 => self.rank.to_string(),
            thread => format!("{}.{thread}", self.rank),
        };
        let begin_s = self.begin_s;
        let mut text = format!("{begin_s:>15.9} {duration:>14} {rank:>6}  {:<22}", self.function);
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                // Writing to a String does not fail.
                let _ = write!(text, " {name}{value}");
            }
        };
        add("returned ", self.error.as_deref().map(ToOwned::to_owned));
        add("", self.what.as_deref().map(printable));
        add("", self.communicator.as_deref().map(printable));
        add("peer ", self.peer.as_ref().map(ToString::to_string));
        add("tag ", self.tag.as_ref().map(ToString::to_string));
        add("bytes ", self.bytes.map(|bytes| bytes.to_string()));
        add("received ", self.received_bytes.map(|bytes| bytes.to_string()));
        add("receive ", self.receive.as_ref().map(half_text));
        add("object ", self.object.map(|object| object.to_string()));
        add("made ", self.made.as_deref().map(printable));
        add("flops ", self.flops.map(|flops| format!("{flops:e}")));
        add("request ", self.request.map(|request| format!("{request:x}")));
        add("", self.completed.map(|completed| state(completed, self.cancelled).into()));
        add("polls ", self.polls.as_ref().map(|p| format!("{} inside {:.9}", p.count, p.time_s)));
        for request in &self.requests {
            let status = match &request.status {
                Some(status) => format!(" {}", half_text(status)),
                None => String::new(),
            };
            let state = match &request.error {
                Some(error) => error.as_str(),
                None => state(request.completed, request.cancelled),
            };
            add("", Some(format!("[{:x} {state}{status}]", request.request)));
        }
        text.truncate(text.trim_end().len());
        text
    }
}

fn state(completed: bool, cancelled: bool) -> &'static str {
    match (completed, cancelled) {
        (_, true) => "cancelled",
        (true, false) => "completed",
        (false, false) => "not completed",
    }
}

fn half_text(half: &ReceiveHalf) -> String {
    format!("peer {} tag {} bytes {}", half.peer, half.tag, half.bytes)
}

impl MessageLine {
    pub fn text(&self) -> String {
        let received = self.receive_end_s.map_or("open".into(), |end_s| format!("{end_s:.9}"));
        let Self { send_begin_s, source, destination, tag, bytes, .. } = self;
        let wildcard = if self.wildcard { " (wildcard)" } else { "" };
        let truncated = if self.truncated { " (truncated)" } else { "" };
        let communicator = printable(&self.communicator);
        format!(
            "{send_begin_s:>15.9} {received:>15} {source:>6} {destination:>6} {tag:>8} {bytes:>12}  \
             {communicator}{wildcard}{truncated}"
        )
    }
}

impl UnmatchedLine {
    pub fn text(&self) -> String {
        let partner = match self.partner {
            Some(partner) => format!(", partner {partner}"),
            None => String::new(),
        };
        format!(
            "{:>15.9} unmatched {} of rank {}: {}{partner}",
            self.begin_s, self.unmatched, self.rank, self.reason
        )
    }
}
