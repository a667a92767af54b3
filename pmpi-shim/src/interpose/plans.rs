//! FFTW's plans and their operations: 5·N·log2 N for a complex transform of N points, half of it if
//! one side is real, and a rank's share of a transform that ranks share.
//!
//! (`fftw_flops` is no help: it counts instructions that work on several numbers at once.) Plans
//! are found by their address in a fixed table without locks. A plan that does not fit in the table
//! has 0 operations. The entry of a destroyed plan stays until another plan gets its address.

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

pub use trace_format::compute::Lengths;

use crate::host::loader::find;
use crate::host::own_work::OwnWork;

/// Number of arguments of the longest planner, rounded up.
pub const MAX_ARGUMENTS: usize = 14;
/// Number of plans in the table.
const ENTRIES: usize = 4096;
/// Maximum number of entries examined for one plan.
const MAX_PROBES: usize = 64;
/// A planner call with more dimensions than this is invalid.
const MAX_DIMENSIONS: usize = 64;

/// The arguments of a planner, as in `trace_format::compute`.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    pub lengths: Lengths,
    /// Operations of a transform of N points divided by N·log2 N.
    pub factor: f64,
    /// Index of the communicator whose ranks share the transform. If there is one, lengths have 64
    /// bits.
    pub communicator: Option<usize>,
    /// Whether the first argument is the address to write the plan to, and the others are passed by
    /// reference.
    pub by_reference: bool,
}

/// The plan, passed by value or by reference.
///
/// # Safety
/// If passed by reference, it is a pointer to the 64 bits in which Fortran programs keep a plan.
pub unsafe fn plan_at(argument: usize, by_reference: bool) -> usize {
    // SAFETY: 64 bits of the program, which may be unaligned in Fortran.
    if by_reference { unsafe { (argument as *const usize).read_unaligned() } } else { argument }
}

static PLANS: [(AtomicUsize, AtomicU64); ENTRIES] =
    [const { (AtomicUsize::new(0), AtomicU64::new(0)) }; ENTRIES];

fn candidates(plan: usize) -> impl Iterator<Item = &'static (AtomicUsize, AtomicU64)> {
    let first = (plan >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    (0..MAX_PROBES).map(move |step| &PLANS[(first + step) % ENTRIES])
}

/// Stores a plan's operations.
pub fn remember(plan: usize, flops: f64) {
    for (key, value) in candidates(plan) {
        let taken = key.compare_exchange(0, plan, Ordering::AcqRel, Ordering::Acquire);
        if taken.is_ok() || taken == Err(plan) {
            value.store(flops.to_bits(), Ordering::Release);
            return;
        }
    }
}

/// A plan's operations; 0 if unknown.
pub fn flops_of(plan: usize) -> f64 {
    for (key, value) in candidates(plan) {
        match key.load(Ordering::Acquire) {
            0 => break,
            there if there == plan => return f64::from_bits(value.load(Ordering::Acquire)),
            _ => {}
        }
    }
    0.0
}

/// Operations of the transform requested from a planner.
///
/// # Safety
/// The arguments are those of a planner with this form.
pub unsafe fn flops(form: Form, arguments: &[usize; MAX_ARGUMENTS]) -> f64 {
    let Form { lengths, factor, communicator, by_reference } = form;
    let wide = communicator.is_some();
    let arguments = if by_reference { &arguments[1..] } else { &arguments[..] };
    // SAFETY: `form` describes the planner's C or Fortran prototype, so where an array is expected,
    // the program has passed one of that many integers, and Fortran's arguments point to integers.
    unsafe {
        let integer = |at: usize| match (by_reference, wide) {
            (true, _) => i64::from((arguments[at] as *const c_int).read_unaligned()),
            (false, true) => arguments[at] as i64,
            (false, false) => i64::from(arguments[at] as c_int),
        };
        let rank = |at: usize| usize::try_from(integer(at) as c_int).unwrap_or(0);
        let (points, times) = match lengths {
            Lengths::Each(count) => ((0..count).map(|at| integer(at) as f64).product(), 1.0),
            Lengths::Array => (product(rank(0), arguments[1], wide, 1), 1.0),
            Lengths::Many => (product(rank(0), arguments[1], wide, 1), integer(2) as f64),
            Lengths::SplitGuru => {
                (product(rank(0), arguments[1], false, 1), product(rank(4), arguments[5], false, 1))
            }
            Lengths::Guru | Lengths::Guru64 => {
                let wide = matches!(lengths, Lengths::Guru64);
                (product(rank(0), arguments[1], wide, 3), product(rank(2), arguments[3], wide, 3))
            }
        };
        let sharers = communicator.map_or(1.0, |at| size_of_communicator(arguments[at]));
        let flops = factor * points * points.log2() * times / sharers;
        if flops.is_finite() { flops.max(0.0) } else { 0.0 }
    }
}

/// Product of every `stride`-th integer of an array.
unsafe fn product(rank: usize, array: usize, wide: bool, stride: usize) -> f64 {
    if array == 0 || rank > MAX_DIMENSIONS {
        return 1.0;
    }
    // SAFETY: the program's array has `rank` integers at this stride.
    let length = |at: usize| unsafe {
        match wide {
            true => *(array as *const i64).add(at * stride) as f64,
            false => f64::from(*(array as *const c_int).add(at * stride)),
        }
    };
    (0..rank).map(length).product()
}

unsafe fn size_of_communicator(communicator: usize) -> f64 {
    type CommSize = unsafe extern "C" fn(usize, *mut c_int) -> c_int;
    let _own = OwnWork::begin();
    let Some(entry) = find(c"PMPI_Comm_size") else { return 1.0 };
    let mut size = 1;
    // SAFETY: the MPI library's own entry, with the communicator that the program passed.
    unsafe { transmute::<*const c_void, CommSize>(entry)(communicator, &mut size) };
    f64::from(size.max(1))
}
