//! The number that the files of one run have in common.

use std::ffi::OsString;

/// Bytes of a run's id.
pub const RUN_ID_BYTES: usize = 16;

/// A run's id; zeros: not known.
pub type RunId = [u8; RUN_ID_BYTES];

/// An id that no other run has: for one rank to make and tell the others.
pub fn fresh() -> RunId {
    // The kernel's own; getrandom() is younger than the oldest C library that this one runs with.
    let text = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).unwrap_or(0).to_be_bytes()
}

/// The id of ranks that cannot tell each other one: from what `gammachi run` and the launcher have told
/// all of them alike; zeros where that does not tell this job from others.
pub fn apart() -> RunId {
    let names = ["GAMMACHI_RUN_ID", "PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID"];
    from_names(&names.map(|name| std::env::var_os(name).unwrap_or_default()))
}

fn from_names(values: &[OsString; 4]) -> RunId {
    let [run, _, slurm_job, slurm_step] = values;
    // PMIX_NAMESPACE alone comes again when process numbers do.
    let is_unique = !run.is_empty() || !(slurm_job.is_empty() || slurm_step.is_empty());
    let mut id = [0u8; RUN_ID_BYTES];
    if !is_unique {
        return id;
    }
    let (low, high) = id.split_at_mut(8);
    for (half, seed) in [(low, 0xcbf2_9ce4_8422_2325u64), (high, 0x9e37_79b9_7f4a_7c15)] {
        let mut hash = seed;
        for byte in values.iter().flat_map(|v| v.as_encoded_bytes().iter().chain(&[0])) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        half.copy_from_slice(&hash.to_le_bytes());
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_told_alike_have_one_id() {
        let names = |values: [&str; 4]| from_names(&values.map(OsString::from));
        let id = names(["r1", "ns", "", ""]);
        assert_ne!(id, [0; RUN_ID_BYTES]);
        assert_eq!(id, names(["r1", "ns", "", ""]));
        assert_ne!(id, names(["r1", "ns2", "", ""]));
        assert_ne!(names(["", "", "7", "0"]), names(["", "", "7", "1"]));
        assert_eq!(names(["", "ns", "7", ""]), [0; RUN_ID_BYTES]);
        assert_ne!(fresh(), fresh());
    }

    #[test]
    fn values_do_not_run_together() {
        let id = |values: [&str; 4]| from_names(&values.map(OsString::from));
        assert_ne!(id(["r1", "2", "", ""]), id(["r", "12", "", ""]));
        let halves = id(["r1", "", "", ""]);
        assert_ne!(halves[..8], halves[8..]);
    }
}
