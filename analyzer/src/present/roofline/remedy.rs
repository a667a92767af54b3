//! Advice for each bottleneck.

use crate::models::roofline::Bottleneck;

/// What to do about a bottleneck, worded to follow "Remedy:".
pub(super) fn remedy(bottleneck: Bottleneck) -> &'static str {
    match bottleneck {
        Bottleneck::NothingSeen => {
            "record with --flops (or --compute blas) where the program calls BLAS, LAPACK or FFTW \
             dynamically; else declare its work with gammachi_work"
        }
        Bottleneck::NoRoofs => {
            "measure the machine: gammachi calibrate -- LAUNCHER; then --machine machine.json"
        }
        Bottleneck::AboveRoof => {
            "measure the roofs again where the run ran, with as many ranks; look for work that is both \
             declared and interposed"
        }
        Bottleneck::Computation => {
            "only fewer operations (another algorithm), more processors or a faster library help"
        }
        Bottleneck::Communication => {
            "move fewer bytes: use another decomposition, place neighbours on one host, send nothing twice"
        }
        Bottleneck::MessageSizes => {
            "send fewer, larger messages: the same bytes then have a higher roof"
        }
        Bottleneck::NoOverlap => {
            "start communication before the work that does not need it, and finish it after \
             (non-blocking calls, with progress)"
        }
        Bottleneck::Memory => {
            "move fewer bytes between memory and processor: reuse what is in cache (blocking, fused \
             loops), smaller types"
        }
        Bottleneck::SlowComputation => {
            "speed up what a rank does by itself: memory traffic, vectorisation, small matrices; or \
             declare work that was not seen"
        }
        Bottleneck::Waiting => {
            "find who waits for whom (gammachi report): load imbalance, late partners, latency of \
             many small messages or collective calls"
        }
        Bottleneck::Mixed => "no single cause: see the shares of computation and communication",
    }
}
