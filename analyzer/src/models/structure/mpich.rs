//! How MPICH 4 carries out collective operations where nothing else was asked of it (its CVARs `MPIR_CVAR_*_MSG_SIZE`).

use super::labels::Pattern;
use super::shape::Shape;
use super::work::Work;

/// Messages of an exchange that are under way at once (`MPIR_CVAR_ALLTOALL_THROTTLE`).
const AT_ONCE: f64 = 32.0;

/// `None` where its rule is not known. `bytes` are those of [`super::labels::Label::bytes_of_operation`].
pub(super) fn way(pattern: Pattern, shape: Shape, bytes: f64) -> Option<Work> {
    let q = shape.members;
    // Elements of eight bytes.
    let is_long = bytes > 2_048.0 && bytes / 8.0 >= q;
    Some(match pattern {
        Pattern::Synchronise => shape.dissemination(),
        Pattern::FromRoot if bytes < 12_288.0 || q < 8.0 => shape.binomial(bytes),
        Pattern::FromRoot if bytes < 524_288.0 && shape.is_power() => {
            shape.scattered_and_doubled(bytes)
        }
        Pattern::FromRoot => shape.scattered_around(bytes),
        Pattern::Combine | Pattern::CombineAtRoot if is_long => shape.rabenseifner(bytes),
        Pattern::Combine => shape.doubled(bytes),
        Pattern::CombineAtRoot => shape.binomial(bytes),
        Pattern::CombineParts if bytes < 524_288.0 => shape.halved(bytes),
        Pattern::CombineParts => shape.pairwise(bytes / q),
        Pattern::Collect | Pattern::CollectUneven => {
            let doubled = if shape.is_power() { 524_288.0 } else { 81_920.0 };
            match bytes * q < doubled {
                true => shape.blocks_doubled(bytes),
                false => shape.ring(bytes),
            }
        }
        Pattern::Exchange => match bytes / q {
            block if block <= 256.0 && q >= 8.0 => shape.bruck(block),
            block if block <= 32_768.0 => shape.posted(block, AT_ONCE),
            block => shape.pairwise(block),
        },
        Pattern::ExchangeUneven => shape.posted(bytes / q, AT_ONCE),
        Pattern::ToRoot => return None,
    })
}
