//! The C library's streams.
//!
//! The library reads and writes for them by calls of its own, so how much and when is seen from the stream's buffer:
//! a call that finds enough there, or room enough, is only forwarded. What `fprintf` and others put into the buffer
//! counts where `fwrite`, `fflush`, `fseek` or `fclose` makes the library write it. What the library writes inside
//! the others is not seen. Where several threads use one stream at once, their bytes are not exact.

use std::ffi::{c_int, c_long};

use trace_format::file_calls::FileCallKind;

use crate::calls::{Caller, begin, entries, opened};
use crate::descriptors::{file_of, forget, known_file_of};
use crate::real::{Arguments, Real};
use crate::recorder::{is_recorders, recorder};

/// Streams have no system calls of their own.
const NONE: c_long = -1;

/// The head of glibc's `FILE`, which its macros for single characters are compiled into programs with.
#[repr(C)]
struct Stream {
    flags: c_int,
    read_from: usize,
    read_end: usize,
    _read_base: usize,
    write_base: usize,
    write_to: usize,
    write_end: usize,
}

/// In [`Stream::flags`]: the end of the file was found, so that nothing more is read.
const AT_END: c_int = 0x10;

impl Stream {
    /// Bytes that were read and not asked for yet.
    fn left(&self) -> usize {
        self.read_end.saturating_sub(self.read_from)
    }

    /// Bytes that are kept to be written.
    fn kept(&self) -> usize {
        self.write_to.saturating_sub(self.write_base)
    }

    /// Bytes that may be put behind them.
    fn room(&self) -> usize {
        self.write_end.saturating_sub(self.write_to)
    }
}

/// Bytes now kept to be written, and left to be read.
///
/// # Safety
/// An open stream of the C library.
unsafe fn kept_and_left(stream: usize) -> (usize, usize) {
    // SAFETY: the caller vouches for the stream. Another thread may change it meanwhile, as the documentation says.
    unsafe {
        let stream = (stream as *const Stream).read_volatile();
        (stream.kept(), stream.left())
    }
}

unsafe fn descriptor_of(stream: usize) -> c_int {
    // SAFETY: the caller vouches for the stream. The function takes no lock, and a stream without a descriptor gives
    // −1.
    unsafe {
        let errno = *libc::__errno_location();
        let descriptor = libc::fileno(stream as *mut libc::FILE);
        *libc::__errno_location() = errno;
        descriptor
    }
}

/// The file of a stream that is recorded, and the counter now.
unsafe fn recorded(stream: usize, caller: Caller) -> Option<(u32, u64)> {
    let recorder = recorder().filter(|_| stream != 0 && !is_recorders(caller.site))?;
    // SAFETY: the caller vouches for the stream.
    let file = file_of(recorder, unsafe { descriptor_of(stream) })?;
    let begin = (recorder.begin)();
    (begin != 0).then_some((file, begin))
}

fn record(file: u32, kind: FileCallKind, bytes: usize, begin: u64, caller: Caller) {
    let field = kind as u16 | FileCallKind::OF_STREAM;
    if let Some(recorder) = recorder() {
        // SAFETY: the function that was entered there returns only after this one.
        unsafe {
            (recorder.record)(file, field, bytes as u64, begin, caller.here, caller.site);
        }
    }
}

unsafe fn writes(real: &Real, caller: Caller, arguments: Arguments) -> usize {
    let [_, size, count, stream, _] = arguments;
    // SAFETY: the caller vouches for the arguments.
    unsafe {
        let fits = size.checked_mul(count).is_some_and(|bytes| {
            let stream = (stream as *const Stream).read_volatile();
            stream.room() > bytes
        });
        let of = if fits { None } else { recorded(stream, caller) };
        let Some((file, begin)) = of else { return real.call(arguments) };
        let (before, _) = kept_and_left(stream);
        let result = real.call(arguments);
        let (after, _) = kept_and_left(stream);
        let written = (before + result * size).saturating_sub(after);
        if written > 0 {
            record(file, FileCallKind::Write, written, begin, caller);
        }
        result
    }
}

unsafe fn reads(real: &Real, caller: Caller, arguments: Arguments) -> usize {
    let [_, size, count, stream, _] = arguments;
    // SAFETY: the caller vouches for the arguments.
    unsafe { reads_from(real, caller, arguments, (size, count, stream)) }
}

unsafe fn reads_checked(real: &Real, caller: Caller, arguments: Arguments) -> usize {
    let [_, _, size, count, stream] = arguments;
    // SAFETY: the caller vouches for the arguments.
    unsafe { reads_from(real, caller, arguments, (size, count, stream)) }
}

#[inline(always)]
unsafe fn reads_from(
    real: &Real,
    caller: Caller,
    arguments: Arguments,
    (size, count, stream): (usize, usize, usize),
) -> usize {
    // SAFETY: the caller vouches for the arguments.
    unsafe {
        let Stream { flags, .. } = (stream as *const Stream).read_volatile();
        let (_, before) = kept_and_left(stream);
        let is_there =
            flags & AT_END != 0 || size.checked_mul(count).is_some_and(|bytes| bytes <= before);
        let of = if is_there { None } else { recorded(stream, caller) };
        let Some((file, begin)) = of else { return real.call(arguments) };
        let result = real.call(arguments);
        let (_, after) = kept_and_left(stream);
        record(
            file,
            FileCallKind::Read,
            (result * size + after).saturating_sub(before),
            begin,
            caller,
        );
        result
    }
}

/// A call that writes what the stream has kept.
unsafe fn flushes(real: &Real, caller: Caller, arguments: Arguments) -> usize {
    let stream = arguments[0];
    // SAFETY: the caller vouches for the arguments; null stands for all streams.
    unsafe {
        let before = if stream == 0 { 0 } else { kept_and_left(stream).0 };
        let of = if before == 0 { None } else { recorded(stream, caller) };
        let Some((file, begin)) = of else { return real.call(arguments) };
        let result = real.call(arguments);
        let written = before.saturating_sub(kept_and_left(stream).0);
        if written > 0 {
            record(file, FileCallKind::Write, written, begin, caller);
        }
        result
    }
}

unsafe fn opens(real: &Real, caller: Caller, arguments: Arguments) -> usize {
    let begin = begin();
    // SAFETY: the caller vouches for the arguments; what is returned is an open stream.
    unsafe {
        let stream = real.call(arguments);
        if stream != 0 {
            let descriptor = descriptor_of(stream);
            forget(descriptor);
            let field = FileCallKind::Open as u16 | FileCallKind::OF_STREAM;
            opened(descriptor, begin, field, caller);
        }
        stream
    }
}

unsafe fn opens_again(real: &Real, _caller: Caller, arguments: Arguments) -> usize {
    // SAFETY: the caller vouches for the arguments.
    unsafe {
        forget(descriptor_of(arguments[2]));
        let stream = real.call(arguments);
        if stream != 0 {
            forget(descriptor_of(stream));
        }
        stream
    }
}

unsafe fn closes(real: &Real, caller: Caller, arguments: Arguments) -> usize {
    let stream = arguments[0];
    // SAFETY: the caller vouches for the arguments. The stream is gone when the function returns.
    unsafe {
        let descriptor = descriptor_of(stream);
        let kept = kept_and_left(stream).0;
        let of = match known_file_of(descriptor) {
            None if kept == 0 => None,
            _ => recorded(stream, caller),
        };
        forget(descriptor);
        let result = real.call(arguments);
        if let Some((file, begin)) = of {
            let kind = if kept > 0 { FileCallKind::Write } else { FileCallKind::Close };
            record(file, kind, kept, begin, caller);
        }
        result
    }
}

entries! {
    fopen as fopen_inner, NONE => opens;
    fopen64 as fopen64_inner, NONE => opens;
    freopen as freopen_inner, NONE => opens_again;
    freopen64 as freopen64_inner, NONE => opens_again;
    tmpfile as tmpfile_inner, NONE => opens;
    tmpfile64 as tmpfile64_inner, NONE => opens;
    fclose as fclose_inner, NONE => closes;
    fread as fread_inner, NONE => reads;
    fread_unlocked as fread_unlocked_inner, NONE => reads;
    __fread_chk as fread_chk, NONE => reads_checked;
    __fread_unlocked_chk as fread_unlocked_chk, NONE => reads_checked;
    fwrite as fwrite_inner, NONE => writes;
    fwrite_unlocked as fwrite_unlocked_inner, NONE => writes;
    fflush as fflush_inner, NONE => flushes;
    fflush_unlocked as fflush_unlocked_inner, NONE => flushes;
    fseek as fseek_inner, NONE => flushes;
    fseeko as fseeko_inner, NONE => flushes;
    fseeko64 as fseeko64_inner, NONE => flushes;
}
