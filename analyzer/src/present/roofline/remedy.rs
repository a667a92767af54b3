//! What to measure next.

use crate::models::roofline::Bottleneck;

/// What to measure so that more is known of a point. Nothing is advised whose saving no replay gave.
pub(super) fn remedy(bottleneck: Bottleneck) -> Option<&'static str> {
    match bottleneck {
        Bottleneck::NothingSeen => Some(
            "record with --flops (or --compute blas) where the program calls BLAS, LAPACK or FFTW \
             dynamically; else declare its work with gammachi_work",
        ),
        Bottleneck::NoRoofs => {
            Some("measure the machine: gammachi calibrate -- LAUNCHER; then --machine machine.json")
        }
        Bottleneck::AboveRoof => Some(
            "measure the roofs again where the run ran, with as many ranks; look for work that is both \
             declared and interposed",
        ),
        Bottleneck::Waiting => Some("gammachi report shows who waits for whom"),
        Bottleneck::Computation
        | Bottleneck::Communication
        | Bottleneck::MessageSizes
        | Bottleneck::NoOverlap
        | Bottleneck::Memory
        | Bottleneck::SlowComputation
        | Bottleneck::Mixed => None,
    }
}
