//! Interposed dense linear algebra: time that counts as computation, and its work.
//!
//! Only with `--compute blas`, and only outside MPI calls and other interposed compute functions;
//! otherwise the call goes straight on. Floating-point operations follow from the arguments
//! (SCIENCE A): dgemm 2mnk; dtrsm m²n with the matrix on the left, mn² on the right; dtrsv n².
//! To grow the table: a name in `trace_format::functions::COMPUTE` and an entry here.

use std::ffi::{c_char, c_double, c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use trace_format::functions::COMPUTE;
use trace_format::layout::FIRST_FUNCTION;

use crate::counter;
use crate::entries::{Invoke, LAST_PROCEDURE};
use crate::life;
use crate::path::{close, is_inside, open, take_slot};
use crate::real_entry::RealEntry;
use crate::thread_block::{entry_stub, stack_address, thread_block};

static BLAS: AtomicBool = AtomicBool::new(false);

/// Chooses what counts as computation.
pub fn set_mode(compute: &str) {
    BLAS.store(compute == "blas", Relaxed);
}

/// Number of a compute function in a trace.
const fn number_of(name: &str) -> u16 {
    let mut index = 0;
    while index < COMPUTE.len() {
        if equal(COMPUTE[index].as_bytes(), name.as_bytes()) {
            return LAST_PROCEDURE + 1 + index as u16;
        }
        index += 1;
    }
    panic!("no such name in trace_format::functions::COMPUTE")
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut index = 0;
    while index < a.len() {
        if a[index] != b[index] {
            return false;
        }
        index += 1;
    }
    true
}

const _: () = assert!(LAST_PROCEDURE > FIRST_FUNCTION);

/// Work of a call: floating-point operations, and the bytes of its matrices.
#[derive(Debug, Clone, Copy)]
struct Work {
    flops: f64,
    bytes: u64,
}

fn length(n: c_int) -> f64 {
    f64::from(n.max(0))
}

fn gemm(m: c_int, n: c_int, k: c_int) -> Work {
    let (m, n, k) = (length(m), length(n), length(k));
    Work { flops: 2.0 * m * n * k, bytes: (8.0 * (m * k + k * n + 2.0 * m * n)) as u64 }
}

fn trsm(left: bool, m: c_int, n: c_int) -> Work {
    let (m, n) = (length(m), length(n));
    let order = if left { m } else { n };
    Work { flops: m * n * order, bytes: (8.0 * (order * order / 2.0 + 2.0 * m * n)) as u64 }
}

fn trsv(n: c_int) -> Work {
    let n = length(n);
    Work { flops: n * n, bytes: (8.0 * (n * n / 2.0 + 2.0 * n)) as u64 }
}

/// Forwards a call and records it with its work when it is the outermost compute call.
///
/// # Safety
/// The arguments are those that the program passed to the entry's own name.
#[inline(always)]
unsafe fn computed<A: Invoke>(
    entry: &RealEntry,
    function: u16,
    work: impl FnOnce() -> Work,
    arguments: A,
) -> usize {
    let block = thread_block();
    // SAFETY: the thread's own block; its stub has stored where the return address stands; the
    // arguments go on unchanged.
    unsafe {
        let caller = *((*block).entered_stack as *const usize);
        let record = BLAS.load(Relaxed)
            && (*block).inside_compute == 0
            && life::is_recording()
            && !is_inside(block, stack_address());
        if !record {
            return arguments.invoke(entry.get_for(caller));
        }
        let Work { flops, bytes } = work();
        let real = entry.get_for(caller);
        (*block).inside_compute = 1;
        let slot = take_slot(block);
        let begin = counter::read(block);
        (&raw mut (*slot).peer).cast::<f64>().write_volatile(flops);
        (&raw mut (*slot).bytes).cast::<u64>().write_volatile(bytes);
        open(slot, begin, function, 0);
        let result = arguments.invoke(real);
        let duration = counter::read(block).wrapping_sub(begin);
        close(block, slot, duration, function, 0);
        (*block).inside_compute = 0;
        result
    }
}

/// Value behind a Fortran argument.
///
/// # Safety
/// The program passes pointers to integers there.
unsafe fn integer(pointer: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { *(pointer as *const c_int) }
}

/// Whether a Fortran SIDE argument says left.
///
/// # Safety
/// The program passes a pointer to a character there.
unsafe fn is_left(pointer: usize) -> bool {
    // SAFETY: the caller's promise.
    let side = unsafe { *(pointer as *const c_char) } as u8;
    side.eq_ignore_ascii_case(&b'L')
}

/// CBLAS: the matrix stands on the left.
const CBLAS_LEFT: c_int = 141;

/// The arguments of `cblas_dgemm`: doubles among machine words.
struct DgemmArguments {
    before: [usize; 6],
    alpha: c_double,
    between: [usize; 4],
    beta: c_double,
    after: [usize; 2],
}

impl Invoke for DgemmArguments {
    #[inline(always)]
    unsafe fn invoke(self, entry: *const c_void) -> usize {
        type Dgemm = unsafe extern "C-unwind" fn(
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            c_double,
            usize,
            usize,
            usize,
            usize,
            c_double,
            usize,
            usize,
        ) -> usize;
        let [a, b, c, d, e, f] = self.before;
        let [g, h, i, j] = self.between;
        let [k, l] = self.after;
        // SAFETY: the entry is a cblas_dgemm; the caller answers for the arguments.
        unsafe {
            transmute::<*const c_void, Dgemm>(entry)(
                a, b, c, d, e, f, self.alpha, g, h, i, j, self.beta, k, l,
            )
        }
    }
}

entry_stub!(cblas_dgemm, record_cblas_dgemm);

#[allow(clippy::too_many_arguments)] // CBLAS has as many.
unsafe extern "C-unwind" fn record_cblas_dgemm(
    layout: usize,
    trans_a: usize,
    trans_b: usize,
    m: usize,
    n: usize,
    k: usize,
    alpha: c_double,
    a: usize,
    lda: usize,
    b: usize,
    ldb: usize,
    beta: c_double,
    c: usize,
    ldc: usize,
) -> usize {
    static REAL: RealEntry = RealEntry::new(c"cblas_dgemm");
    const NUMBER: u16 = number_of("cblas_dgemm");
    let arguments = DgemmArguments {
        before: [layout, trans_a, trans_b, m, n, k],
        alpha,
        between: [a, lda, b, ldb],
        beta,
        after: [c, ldc],
    };
    let work = || gemm(m as c_int, n as c_int, k as c_int);
    // SAFETY: the arguments go on as they came.
    unsafe { computed(&REAL, NUMBER, work, arguments) }
}

/// The arguments of `cblas_dtrsm`.
struct DtrsmArguments {
    before: [usize; 7],
    alpha: c_double,
    after: [usize; 4],
}

impl Invoke for DtrsmArguments {
    #[inline(always)]
    unsafe fn invoke(self, entry: *const c_void) -> usize {
        type Dtrsm = unsafe extern "C-unwind" fn(
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            c_double,
            usize,
            usize,
            usize,
            usize,
        ) -> usize;
        let [a, b, c, d, e, f, g] = self.before;
        let [h, i, j, k] = self.after;
        // SAFETY: the entry is a cblas_dtrsm; the caller answers for the arguments.
        unsafe {
            transmute::<*const c_void, Dtrsm>(entry)(a, b, c, d, e, f, g, self.alpha, h, i, j, k)
        }
    }
}

entry_stub!(cblas_dtrsm, record_cblas_dtrsm);

#[allow(clippy::too_many_arguments)] // CBLAS has as many.
unsafe extern "C-unwind" fn record_cblas_dtrsm(
    layout: usize,
    side: usize,
    uplo: usize,
    trans: usize,
    diag: usize,
    m: usize,
    n: usize,
    alpha: c_double,
    a: usize,
    lda: usize,
    b: usize,
    ldb: usize,
) -> usize {
    static REAL: RealEntry = RealEntry::new(c"cblas_dtrsm");
    const NUMBER: u16 = number_of("cblas_dtrsm");
    let arguments = DtrsmArguments {
        before: [layout, side, uplo, trans, diag, m, n],
        alpha,
        after: [a, lda, b, ldb],
    };
    let work = || trsm(side as c_int == CBLAS_LEFT, m as c_int, n as c_int);
    // SAFETY: the arguments go on as they came.
    unsafe { computed(&REAL, NUMBER, work, arguments) }
}

entry_stub!(cblas_dtrsv, record_cblas_dtrsv);

#[allow(clippy::too_many_arguments)] // CBLAS has as many.
unsafe extern "C-unwind" fn record_cblas_dtrsv(
    layout: usize,
    uplo: usize,
    trans: usize,
    diag: usize,
    n: usize,
    a: usize,
    lda: usize,
    x: usize,
    incx: usize,
) -> usize {
    static REAL: RealEntry = RealEntry::new(c"cblas_dtrsv");
    const NUMBER: u16 = number_of("cblas_dtrsv");
    let work = || trsv(n as c_int);
    // SAFETY: the arguments go on as they came.
    unsafe { computed(&REAL, NUMBER, work, [layout, uplo, trans, diag, n, a, lda, x, incx]) }
}

entry_stub!(dgemm_, record_fortran_dgemm);

#[allow(clippy::too_many_arguments)] // BLAS has as many.
unsafe extern "C-unwind" fn record_fortran_dgemm(
    trans_a: usize,
    trans_b: usize,
    m: usize,
    n: usize,
    k: usize,
    alpha: usize,
    a: usize,
    lda: usize,
    b: usize,
    ldb: usize,
    beta: usize,
    c: usize,
    ldc: usize,
    length_a: usize,
    length_b: usize,
) -> usize {
    static REAL: RealEntry = RealEntry::new(c"dgemm_");
    const NUMBER: u16 = number_of("dgemm_");
    let arguments =
        [trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, length_a, length_b];
    // SAFETY: Fortran passes integers by reference.
    let work = || unsafe { gemm(integer(m), integer(n), integer(k)) };
    // SAFETY: the arguments go on as they came.
    unsafe { computed(&REAL, NUMBER, work, arguments) }
}

entry_stub!(dtrsm_, record_fortran_dtrsm);

#[allow(clippy::too_many_arguments)] // BLAS has as many.
unsafe extern "C-unwind" fn record_fortran_dtrsm(
    side: usize,
    uplo: usize,
    trans: usize,
    diag: usize,
    m: usize,
    n: usize,
    alpha: usize,
    a: usize,
    lda: usize,
    b: usize,
    ldb: usize,
    length_1: usize,
    length_2: usize,
    length_3: usize,
    length_4: usize,
) -> usize {
    static REAL: RealEntry = RealEntry::new(c"dtrsm_");
    const NUMBER: u16 = number_of("dtrsm_");
    let arguments = [
        side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, length_1, length_2, length_3,
        length_4,
    ];
    // SAFETY: Fortran passes characters and integers by reference.
    let work = || unsafe { trsm(is_left(side), integer(m), integer(n)) };
    // SAFETY: the arguments go on as they came.
    unsafe { computed(&REAL, NUMBER, work, arguments) }
}

entry_stub!(dtrsv_, record_fortran_dtrsv);

#[allow(clippy::too_many_arguments)] // BLAS has as many.
unsafe extern "C-unwind" fn record_fortran_dtrsv(
    uplo: usize,
    trans: usize,
    diag: usize,
    n: usize,
    a: usize,
    lda: usize,
    x: usize,
    incx: usize,
    length_1: usize,
    length_2: usize,
    length_3: usize,
) -> usize {
    static REAL: RealEntry = RealEntry::new(c"dtrsv_");
    const NUMBER: u16 = number_of("dtrsv_");
    let arguments = [uplo, trans, diag, n, a, lda, x, incx, length_1, length_2, length_3];
    // SAFETY: Fortran passes integers by reference.
    let work = || unsafe { trsv(integer(n)) };
    // SAFETY: the arguments go on as they came.
    unsafe { computed(&REAL, NUMBER, work, arguments) }
}
