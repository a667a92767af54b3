//! What is shown of an event and of a message.

use serde::Serialize;

use crate::timeline::calls::{PeerArgument, Received, Tag};

/// A number such as a rank or tag, or the word for a special value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum NumberOrWord {
    Number(i32),
    Word(&'static str),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ReceiveHalf {
    pub(super) peer: NumberOrWord,
    pub(super) tag: NumberOrWord,
    pub(super) bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct RequestLine {
    pub(super) request: u32,
    pub(super) completed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) cancelled: bool,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<ReceiveHalf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct PollsLine {
    pub(super) count: u64,
    pub(super) time_s: f64,
}

/// A printed event.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EventLine {
    pub(super) begin_s: f64,
    /// `None` if the call did not return or was abandoned.
    pub(super) duration_s: Option<f64>,
    pub(super) rank: u32,
    pub(super) thread: u32,
    pub(super) function: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) abandoned: bool,
    /// Name of the error that the call returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) communicator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peer: Option<NumberOrWord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tag: Option<NumberOrWord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) received_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) receive: Option<ReceiveHalf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) completed: Option<bool>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) cancelled: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) requests: Vec<RequestLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) polls: Option<PollsLine>,
    /// Number of a window or file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) object: Option<u32>,
    /// What the call created: a communicator's name, a window's or file's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) made: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) flops: Option<f64>,
    /// A region's name, or the purpose of the recorder's own time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) what: Option<String>,
}

impl From<PeerArgument> for NumberOrWord {
    fn from(named: PeerArgument) -> Self {
        match named {
            PeerArgument::Rank(rank) => Self::Number(rank),
            PeerArgument::AnySource => Self::Word("ANY_SOURCE"),
            PeerArgument::ProcNull => Self::Word("PROC_NULL"),
            PeerArgument::Root => Self::Word("ROOT"),
        }
    }
}

impl From<Tag> for NumberOrWord {
    fn from(tag: Tag) -> Self {
        match tag {
            Tag::Is(tag) => Self::Number(tag),
            Tag::Any => Self::Word("ANY_TAG"),
        }
    }
}

impl From<Received> for ReceiveHalf {
    fn from(Received { peer, tag, bytes }: Received) -> Self {
        Self { peer: peer.into(), tag: tag.into(), bytes }
    }
}

/// A printed message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MessageLine {
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) communicator: String,
    pub(super) tag: i32,
    pub(super) bytes: u64,
    pub(super) send_begin_s: f64,
    pub(super) send_end_s: Option<f64>,
    pub(super) send_thread: u32,
    pub(super) receive_begin_s: f64,
    pub(super) receive_end_s: Option<f64>,
    pub(super) receive_thread: u32,
    pub(super) wildcard: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) truncated: bool,
}

/// A printed send or receive without a partner.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnmatchedLine {
    pub(super) unmatched: &'static str,
    pub(super) reason: &'static str,
    pub(super) rank: u32,
    pub(super) begin_s: f64,
    pub(super) partner: Option<u32>,
    pub(super) communicator: Option<String>,
    pub(super) bytes: Option<u64>,
}
