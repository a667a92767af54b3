//! The details of a call for an HTML page.

use serde_json::json;

use super::lines::EventLine;

impl EventLine {
    /// The details of a call beyond its name and times, with communicators by number; `null` if there are none.
    pub(super) fn for_page(&self, mut communicator: impl FnMut(&str) -> u32) -> serde_json::Value {
        let mut details = serde_json::Map::new();
        let mut add = |key: &str, value: Option<serde_json::Value>| {
            if let Some(value) = value {
                details.insert(key.into(), value);
            }
        };
        add("comm", self.communicator.as_deref().map(|name| communicator(name).into()));
        add("peer", self.peer.as_ref().map(|peer| json!(peer)));
        add("tag", self.tag.as_ref().map(|tag| json!(tag)));
        add("bytes", self.bytes.map(Into::into));
        add("received", self.received_bytes.map(Into::into));
        add("error", self.error.as_deref().map(Into::into));
        if let Some(polls) = &self.polls {
            add("polls", Some(polls.count.into()));
            add("inside", Some(polls.time_s.into()));
        }
        if details.is_empty() { serde_json::Value::Null } else { details.into() }
    }
}
