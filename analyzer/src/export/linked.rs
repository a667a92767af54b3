//! Walks over a run in order of time: combines the nested beginnings and ends of [`Steps`] with the
//! messages and collective operations of [`Traffic`].

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use super::content::{Call, Content, Export};
use super::error::ExportError;
use super::progress::Written;
use super::steps::{Kind, Link, Links, Step, Steps};
use super::traffic::Traffic;

/// A beginning or end with the messages that leave and arrive at it.
#[derive(Debug)]
pub struct LinkedStep {
    pub step: Step,
    /// Messages that leave at a beginning.
    pub sent: Vec<Link>,
    /// Messages that arrive at an end.
    pub received: Vec<Link>,
    /// The collective operation that begins for the rank.
    pub operation: Option<Link>,
}

/// Walks over a run and passes the steps to `sink`.
///
/// # Errors
/// Errors of `sink`; no space for sorting.
pub fn walk(
    export: Export,
    traffic: &Traffic,
    sink: &mut dyn FnMut(&LinkedStep) -> Result<(), ExportError>,
) -> Result<Written, ExportError> {
    let Export { content, scratch, progress } = export;
    let aside = ExportError::io(scratch);
    let received = traffic.received(scratch).map_err(&aside)?;
    let entered = traffic.entered(scratch).map_err(&aside)?;
    let (mut sent, mut received) = (Links::new(traffic.sent()), Links::new(received.iter()));
    let mut entered = Links::new(entered.iter());
    progress.stage("calls", Some(content.most_events()));
    let passed = |call: &Call| progress.advance(1 + call.event.continuations as u64);
    let mut calls = 0;
    for step in Steps::new(content, content.calls(), &passed) {
        let Call { rank, begin_ns, end_ns, event, .. } = step.call;
        let mut linked =
            LinkedStep { step, sent: Vec::new(), received: Vec::new(), operation: None };
        match (step.kind, step.begins) {
            (Kind::Call, true) => {
                calls += u64::from(content.function(&step.call).is_some());
                linked.sent = sent.take(rank, begin_ns, event.begin).map_err(&aside)?;
                let entered = entered.take(rank, begin_ns, event.begin).map_err(&aside)?;
                linked.operation = entered.first().copied();
            }
            (Kind::Call, false) if end_ns == Some(step.at_ns) => {
                let end = event.end.unwrap_or(event.begin);
                linked.received = received.take(rank, step.at_ns, end).map_err(&aside)?;
            }
            _ => {}
        }
        sink(&linked)?;
    }
    let collectives = traffic.operations().map_err(&aside)?;
    Ok(Written { calls, messages: traffic.messages.count(), collectives })
}

/// Writes a format that has the beginnings and ends of all threads in order of time.
pub trait StepWriter {
    /// Writes everything before the first step.
    fn preamble(&mut self) -> io::Result<()>;
    /// Writes the beginning of a call, of recorder time or of a region.
    fn begin(&mut self, step: &Step, sent: &[Link], operation: Option<&Link>) -> io::Result<()>;
    /// Writes its end.
    fn end(&mut self, step: &Step, received: &[Link]) -> io::Result<()>;
    /// Writes everything after the last step, and flushes the file.
    fn close(self) -> io::Result<()>;
}

/// Writes a run into a new file.
pub fn write_steps<'a, W: StepWriter>(
    export: Export<'a>,
    path: &Path,
    writer: impl FnOnce(&'a Content<'a>, BufWriter<File>) -> W,
) -> Result<Written, ExportError> {
    let traffic = Traffic::gather(export)?;
    let failed = ExportError::io(path);
    let file = File::create_new(path).map_err(&failed)?;
    let mut out = writer(export.content, BufWriter::with_capacity(1 << 20, file));
    out.preamble().map_err(&failed)?;
    let written = walk(export, &traffic, &mut |linked| {
        let LinkedStep { step, sent, received, operation } = linked;
        match step.begins {
            true => out.begin(step, sent, operation.as_ref()).map_err(&failed),
            false => out.end(step, received).map_err(&failed),
        }
    })?;
    out.close().map_err(&failed)?;
    Ok(written)
}
