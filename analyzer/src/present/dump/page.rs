//! What a page says of a call.

use super::{EventLine, RankOrWord};

impl RankOrWord {
    fn value(&self) -> serde_json::Value {
        match self {
            Self::Rank(rank) => (*rank).into(),
            Self::Word(word) => (*word).into(),
        }
    }
}

impl EventLine {
    /// What a page says of a call beside its name and times; communicators by their numbers.
    pub(in crate::present) fn for_page(
        &self,
        mut communicator: impl FnMut(&str) -> usize,
    ) -> serde_json::Value {
        let mut more = serde_json::Map::new();
        let mut say = |key: &str, value: Option<serde_json::Value>| {
            if let Some(value) = value {
                more.insert(key.into(), value);
            }
        };
        say("comm", self.communicator.as_deref().map(|name| communicator(name).into()));
        say("peer", self.peer.as_ref().map(RankOrWord::value));
        say("tag", self.tag.as_ref().map(RankOrWord::value));
        say("bytes", self.bytes.map(Into::into));
        say("received", self.received_bytes.map(Into::into));
        say("error", self.error.as_deref().map(Into::into));
        if let Some(polls) = &self.polls {
            say("polls", Some(polls.count.into()));
            say("inside", Some(polls.time_s.into()));
        }
        if more.is_empty() { serde_json::Value::Null } else { more.into() }
    }
}
