//! The operations per second that a machine can attain.

/// min(F, B·I): operations per second where communication and computation overlap fully.
pub fn with_overlap(flops_per_s: f64, bytes_per_s: f64, intensity: f64) -> f64 {
    flops_per_s.min(bytes_per_s * intensity)
}

/// 1/(1/F + 1/(B·I)): operations per second where they never overlap.
pub fn without_overlap(flops_per_s: f64, bytes_per_s: f64, intensity: f64) -> f64 {
    1.0 / (1.0 / flops_per_s + 1.0 / (bytes_per_s * intensity))
}

/// I* = F/B: the intensity at which the two roofs meet.
pub fn ridge(flops_per_s: f64, bytes_per_s: f64) -> f64 {
    flops_per_s / bytes_per_s
}
