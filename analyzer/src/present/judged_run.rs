//! What the documents of commands that judge one run have in common.

use serde::Serialize;

use crate::diagnosis::Diagnosis;
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

use super::clock::ClockPart;
use super::document::Head;
use super::findings::FindingPart;

// The keys with which these documents begin. A doc comment would describe the documents in their schemas.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct JudgedRun<'a> {
    #[serde(flatten)]
    head: Head,
    /// The run directory.
    run: String,
    /// Name of the program.
    program: String,
    /// Every rank has a file and returned from MPI_Finalize.
    complete: bool,
    /// What is not known, and why.
    missing: Vec<String>,
    /// What the figures mean, the gravest first.
    findings: Vec<FindingPart<'a>>,
    /// How well times of different ranks compare.
    clock: ClockPart,
}

impl<'a> JudgedRun<'a> {
    /// Of a run, the name of its program, and what is not known of it.
    pub fn new(
        run: &Run,
        program: String,
        missing: Vec<String>,
        diagnosis: &'a Diagnosis,
        timeline: &GlobalTimeline,
    ) -> Self {
        Self {
            head: Head::default(),
            run: run.directory.display().to_string(),
            program,
            complete: run.all_finished() && run.missing.is_empty(),
            missing,
            findings: FindingPart::all(diagnosis),
            clock: ClockPart::new(timeline),
        }
    }
}
