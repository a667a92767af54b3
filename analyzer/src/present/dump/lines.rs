//! What is shown of an event and of a message.

use serde::Serialize;

use crate::timeline::calls::{PeerArgument, Received, Tag};

/// A number such as a rank or tag, or the word for a special value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum NumberOrWord {
    Number(i32),
    Word(&'static str),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ReceiveHalf {
    pub(super) peer: NumberOrWord,
    pub(super) tag: NumberOrWord,
    pub(super) bytes: u64,
}

/// A request of a call on several. If it completed, the keys of its status.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RequestLine {
    /// As of the call; 0: null.
    pub(super) request: u32,
    pub(super) completed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) cancelled: bool,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<ReceiveHalf>,
    /// Class of its error, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// Polls that found nothing, recorded as one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PollsLine {
    pub(super) count: u64,
    /// Time inside them.
    pub(super) time_s: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EventLine {
    /// When it begins; a run of polls goes from the first begin to the last end.
    pub(super) begin_s: f64,
    /// Null (`open` or `left` in text): it did not return.
    pub(super) duration_s: Option<f64>,
    pub(super) rank: u32,
    /// Threads are numbered by their first calls.
    pub(super) thread: u32,
    /// As in C; `tool`: time of the recorder; `region begin`, `region end`.
    pub(super) function: String,
    /// Left by longjmp or an exception.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) abandoned: bool,
    /// Class of the error that the call returned (`MPI_ERR_TRUNCATE`), or its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// Its name, or how it was made and its number in the run (`Comm_split#3`); `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) communicator: Option<String>,
    /// Destination, source (of a completed receive the true one), root or target, in the communicator; or `ANY_SOURCE`,
    /// `PROC_NULL`, `ROOT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peer: Option<NumberOrWord>,
    /// Tag, or `ANY_TAG`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tag: Option<NumberOrWord>,
    /// Bytes sent, or received by a receive or completion (when posted: of the buffer); of a compute call, of its
    /// arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    /// Bytes received by collective operations and fetching calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) received_bytes: Option<u64>,
    /// Receiving half of a call that sends and receives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) receive: Option<ReceiveHalf>,
    /// Short form of the request (hexadecimal in text), or of a matched probe's message handle; reused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<u32>,
    /// A wait or test on one request completed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) completed: Option<bool>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) cancelled: bool,
    /// Those of a call on several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) requests: Vec<RequestLine>,
    /// Of a run of polls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) polls: Option<PollsLine>,
    /// Number of a window or file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) object: Option<u32>,
    /// Communicator, window or file that the call made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) made: Option<String>,
    /// Operations of a compute call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) flops: Option<f64>,
    /// Name of the region; what the recorder did.
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

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MessageLine {
    /// Rank in MPI_COMM_WORLD, as `destination`.
    pub(super) source: u32,
    pub(super) destination: u32,
    /// As of an event.
    pub(super) communicator: String,
    pub(super) tag: i32,
    pub(super) bytes: u64,
    /// Begin of the call that sends.
    pub(super) send_begin_s: f64,
    /// Its end; null: it did not return.
    pub(super) send_end_s: Option<f64>,
    pub(super) send_thread: u32,
    /// Begin of the call that posts the receive.
    pub(super) receive_begin_s: f64,
    /// End of the call that completes it; null: it did not return.
    pub(super) receive_end_s: Option<f64>,
    /// Thread of the call that posts.
    pub(super) receive_thread: u32,
    /// Posted with a wildcard, if recorded.
    pub(super) wildcard: bool,
    /// Longer than the buffer of the receive.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) truncated: bool,
}

/// A send or receive without a partner.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnmatchedLine {
    /// `send` or `receive`.
    pub(super) unmatched: &'static str,
    /// As in a [report](report-json.md#messages).
    pub(super) reason: &'static str,
    pub(super) rank: u32,
    /// Begin of the call.
    pub(super) begin_s: f64,
    /// The other rank; null: unknown.
    pub(super) partner: Option<u32>,
    /// As of an event.
    pub(super) communicator: Option<String>,
    /// Bytes of a send.
    pub(super) bytes: Option<u64>,
}
