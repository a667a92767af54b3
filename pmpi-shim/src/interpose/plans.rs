//! Plans of FFTW and their operations: 5·N·log2 N of a complex transform of N points, half of it where one
//! side is real; of a transform that ranks share, a rank's part.
//!
//! (`fftw_flops` is no help: it counts instructions that work on several numbers at once.) Plans are found
//! by their address in a fixed table without locks; a plan that finds no place has 0 operations. A plan
//! that is destroyed stays until another one gets its address.

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::host::loader::find;
use crate::host::own_work::OwnWork;

/// Arguments of the longest planner, rounded up.
pub const MOST_ARGUMENTS: usize = 14;
/// Plans that are remembered.
const PLACES: usize = 4096;
/// Places looked at for one plan.
const STEPS: usize = 64;
/// More dimensions than this are no plan.
const MOST_DIMENSIONS: usize = 64;

/// Where a planner's lengths stand; as in `trace_format::compute`.
#[derive(Debug, Clone, Copy)]
pub enum Lengths {
    /// The first so many arguments.
    Each(usize),
    /// (rank, lengths).
    Array,
    /// (rank, lengths, how many).
    Many,
    /// (rank, dimensions, rank, dimensions of how many).
    Guru,
    /// The same with 64 bits.
    Guru64,
    /// Fortran: (rank, lengths, strides, strides, rank of how many, their lengths).
    SplitGuru,
}

/// What a planner's arguments are; as in `trace_format::compute`.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    pub lengths: Lengths,
    /// Operations of a transform of N points over N·log2 N.
    pub factor: f64,
    /// Which argument is the communicator whose ranks share the transform; lengths are then of 64 bits.
    pub communicator: Option<usize>,
    /// Whether the first argument says where the plan is to be written, and the others are passed by reference.
    pub by_reference: bool,
}

/// A plan: what is passed, or what stands there.
///
/// # Safety
/// Passed by reference, it is a pointer to the 64 bits that Fortran programs keep a plan in.
pub unsafe fn plan_at(argument: usize, by_reference: bool) -> usize {
    // SAFETY: the caller's promise; a Fortran program may keep it at any address.
    if by_reference { unsafe { (argument as *const usize).read_unaligned() } } else { argument }
}

static PLANS: [(AtomicUsize, AtomicU64); PLACES] =
    [const { (AtomicUsize::new(0), AtomicU64::new(0)) }; PLACES];

fn places(plan: usize) -> impl Iterator<Item = &'static (AtomicUsize, AtomicU64)> {
    let first = (plan >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    (0..STEPS).map(move |step| &PLANS[(first + step) % PLACES])
}

/// Keeps a plan's operations.
pub fn remember(plan: usize, flops: f64) {
    for (key, value) in places(plan) {
        let taken = key.compare_exchange(0, plan, Ordering::AcqRel, Ordering::Acquire);
        if taken.is_ok() || taken == Err(plan) {
            value.store(flops.to_bits(), Ordering::Release);
            return;
        }
    }
}

/// A plan's operations; 0 where they are not known.
pub fn flops_of(plan: usize) -> f64 {
    for (key, value) in places(plan) {
        match key.load(Ordering::Acquire) {
            0 => break,
            there if there == plan => return f64::from_bits(value.load(Ordering::Acquire)),
            _ => {}
        }
    }
    0.0
}

/// Operations of what a planner was asked for.
///
/// # Safety
/// The arguments are those of a planner of this form.
pub unsafe fn flops(form: Form, arguments: &[usize; MOST_ARGUMENTS]) -> f64 {
    let Form { lengths, factor, communicator, by_reference } = form;
    let wide = communicator.is_some();
    let arguments = if by_reference { &arguments[1..] } else { &arguments[..] };
    // SAFETY: the caller's promise: where an array is expected, one of that many integers stands, and
    // Fortran's integers stand where the argument says.
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
    if array == 0 || rank > MOST_DIMENSIONS {
        return 1.0;
    }
    // SAFETY: the caller's promise.
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
    // SAFETY: the MPI library's own entry; the program has passed the communicator.
    unsafe { transmute::<*const c_void, CommSize>(entry)(communicator, &mut size) };
    f64::from(size.max(1))
}
