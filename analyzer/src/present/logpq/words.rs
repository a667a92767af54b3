//! Writes the notes of the network models as sentences.

use crate::models::logpq::ParameterNote;
use crate::models::logpq::study::{ProductSource, StudyNote};
use crate::present::machine::doubt_sentence;

pub(super) fn parameter_note(note: &ParameterNote) -> String {
    match note {
        ParameterNote::NoLatency { words, latency, half_rtt_s } => {
            let what = if *words == 1 { "one word".to_owned() } else { format!("{words} words") };
            format!(
                "L of {what} cannot be identified: RTT/2 − o_s − o_r = {:.3} ± {:.3} µs reaches 0 \
                 (sender's and receiver's work overlap, as on shared memory); RTT/2 is {:.3} µs, and the \
                 models take L = {:.3} µs",
                latency.value * 1e6,
                latency.half_width * 1e6,
                half_rtt_s * 1e6,
                latency.value.max(0.0) * 1e6
            )
        }
        ParameterNote::FixedPart { words, fixed_s, overhead_s } => format!(
            "the fixed part n of the overhead ({:.3} µs by the straight pieces) is not less than o* at \
             {words} words ({:.3} µs): n = o*, and o of a word cannot be told from 0",
            fixed_s * 1e6,
            overhead_s * 1e6
        ),
        ParameterNote::NoGap => {
            "a gap is not positive: the measurement is too noisy; calibrate on a quiet machine"
                .into()
        }
        ParameterNote::NoOneWord { bytes } => {
            format!(
                "the smallest measured message has {bytes} bytes: one word is assumed to cost as much"
            )
        }
    }
}

/// A note on Cannon's product.
pub(super) fn study_note(note: &StudyNote) -> String {
    match note {
        StudyNote::Noisy { noisy, of, n, reasons } => format!(
            "{noisy} of {of} measurements of Cannon's product were made on a noisy machine (N = {n}: {}): \
             do not rely on the times",
            reasons.join("; ")
        ),
        StudyNote::Doubt(doubt) => doubt_sentence(doubt),
    }
}

/// The origin of t_f and t_s.
pub(super) fn product_from(source: ProductSource) -> &'static str {
    match source {
        ProductSource::Given => "as given",
        ProductSource::Fitted => "fitted to the measured block products",
        ProductSource::Dgemm => "2 operations at the rate of dgemm in machine.json",
        ProductSource::Paper => "as measured by Touyama and Horiguchi",
    }
}
