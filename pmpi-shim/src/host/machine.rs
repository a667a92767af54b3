//! What the operating system knows about the process and the host.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use trace_format::environment::is_kept;
use trace_format::header::{
    Phase, ProcessLife, ProcessUsage, ThreadCores, ThreadUsage, UsageReading,
};

use crate::host::counter;
use crate::host::loader::for_each_object;
use crate::host::settings;

/// Maximum length of the argument list in a header, in bytes.
const MAX_ARGUMENT_BYTES: usize = 8 * 1024;
/// Maximum stored length of a variable's value, in bytes.
const MAX_VALUE_BYTES: usize = 1024;

fn first_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

/// Host name, or the one set by a test.
pub fn host() -> String {
    settings::test_host().unwrap_or_else(|| {
        let mut name = [0u8; 256];
        // SAFETY: the buffer is ours and its last byte stays zero.
        unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
        CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy().into_owned()
    })
}

/// Boot id of the running kernel.
pub fn boot_id() -> String {
    first_line("/proc/sys/kernel/random/boot_id")
}

/// A number that two ranks share only if they have the same host name and kernel.
pub fn host_number(host: &str, boot_id: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in host.bytes().chain([0]).chain(boot_id.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

/// Model of the processor; empty if nothing tells it. On x86 it is what the processor answers to
/// CPUID (Intel SDM, volume 2, "Processor Brand String"), because /proc/cpuinfo takes milliseconds on
/// hosts of many cores.
#[cfg(target_arch = "x86_64")]
pub fn processor() -> String {
    use crate::host::counter::cpuid;
    const FIRST: u32 = 0x8000_0002;
    const LAST: u32 = 0x8000_0004;
    if cpuid(0x8000_0000).eax < LAST {
        return String::new();
    }
    let words = (FIRST..=LAST).flat_map(|leaf| {
        let of = cpuid(leaf);
        [of.eax, of.ebx, of.ecx, of.edx]
    });
    let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).take_while(|byte| *byte != 0).collect();
    let text = String::from_utf8_lossy(&bytes);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Model of the processor: implementer, part and revision from the register MIDR_EL1; empty if the
/// kernel does not tell it.
#[cfg(not(target_arch = "x86_64"))]
pub fn processor() -> String {
    match first_line("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1") {
        none if none.is_empty() => none,
        midr => format!("MIDR {midr}"),
    }
}

/// Absolute path of the program.
pub fn program() -> String {
    fs::read_link("/proc/self/exe").map(|p| p.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The program's arguments, beginning with its name; at most [`MAX_ARGUMENT_BYTES`].
pub fn arguments() -> Vec<String> {
    let bytes = fs::read("/proc/self/cmdline").unwrap_or_default();
    let mut left = MAX_ARGUMENT_BYTES;
    bytes
        .split(|byte| *byte == 0)
        .map(|argument| String::from_utf8_lossy(argument).into_owned())
        .take_while(|argument| {
            let fits = argument.len() < left;
            left = left.saturating_sub(argument.len() + 1);
            fits
        })
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .skip_while(String::is_empty)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect()
}

/// The environment variables worth recording, sorted by name.
pub fn environment() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            let bytes = value.as_bytes();
            let value = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_VALUE_BYTES)]);
            is_kept(&name).then(|| (name, value.into_owned()))
        })
        .collect();
    found.sort();
    found
}

/// Cores that the calling thread may run on.
pub fn affinity() -> Vec<u32> {
    affinity_of(0)
}

/// Cores that a thread may run on; empty if that is not known. 0 is the calling thread.
fn affinity_of(os_id: u32) -> Vec<u32> {
    // SAFETY: a zeroed set is valid; the call writes at most the set's size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(os_id as i32, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize)
            .filter(|c| libc::CPU_ISSET(*c, &set))
            .map(|c| c as u32)
            .collect()
    }
}

/// Core and NUMA node that the thread is running on.
pub fn core_and_node() -> (u32, i32) {
    let (mut core, mut node) = (0u32, 0u32);
    // SAFETY: both are ours to write.
    let known = unsafe {
        libc::syscall(
            libc::SYS_getcpu,
            &raw mut core,
            &raw mut node,
            std::ptr::null_mut::<c_void>(),
        )
    } == 0;
    if known { (core, node as i32) } else { (u32::MAX, -1) }
}

/// Build id of the program in hexadecimal; empty if it has none.
pub fn build_id() -> String {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
        // SAFETY: the loader passes the program itself first, with valid headers, and its notes are
        // mapped. `out` is the string below.
        unsafe {
            let headers = std::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum.into());
            if let Some(id) = build_id_of(headers, (*info).dlpi_addr) {
                *out.cast::<String>() = id;
            }
        }
        1
    }
    let mut id = String::new();
    // SAFETY: callback and argument match.
    unsafe { for_each_object(first, (&raw mut id).cast()) };
    id
}

/// Build id of a loaded object.
///
/// # Safety
/// The headers are those of an object that is mapped at `base`.
pub unsafe fn build_id_of(headers: &[libc::Elf64_Phdr], base: u64) -> Option<String> {
    headers.iter().filter(|header| header.p_type == libc::PT_NOTE).find_map(|header| {
        let start = (base as usize + header.p_vaddr as usize) as *const u8;
        // SAFETY: the loader maps a note segment as a whole, at its address relative to `base`.
        build_id_of_notes(unsafe { std::slice::from_raw_parts(start, header.p_memsz as usize) })
    })
}

fn build_id_of_notes(mut notes: &[u8]) -> Option<String> {
    const NT_GNU_BUILD_ID: u32 = 3;
    loop {
        let word = |at: usize| Some(u32::from_le_bytes(notes.get(at..at + 4)?.try_into().ok()?));
        let (name_bytes, id_bytes, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let id_at = 12 + name_bytes.next_multiple_of(4);
        let id = notes.get(id_at..id_at.checked_add(id_bytes)?)?;
        if kind == NT_GNU_BUILD_ID && notes.get(12..12 + name_bytes)? == b"GNU\0" {
            return Some(id.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = notes.get(id_at + id_bytes.next_multiple_of(4)..)?;
    }
}

/// Age of the process according to the kernel. Its end is not known yet.
pub fn process_life() -> Option<ProcessLife> {
    let (ticks, now_ns) = (counter::now(), counter::clock_ns(libc::CLOCK_BOOTTIME));
    let stat = first_line("/proc/self/stat");
    // SAFETY: queries a system constant.
    let steps_per_s = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok()?;
    let began_ns = began_ns(&stat, steps_per_s)?;
    Some(ProcessLife { ticks, age_ns: now_ns.checked_sub(began_ns)?, end_ticks: 0 })
}

/// Start of a process in nanoseconds since boot: field 22 of its `stat`, the 20th behind the
/// command's closing parenthesis.
fn began_ns(stat: &str, steps_per_s: u64) -> Option<u64> {
    let steps: u64 = stat.rsplit(')').next()?.split_whitespace().nth(19)?.parse().ok()?;
    steps.checked_mul(1_000_000_000)?.checked_div(steps_per_s)
}

/// Resource usage of every thread of the process so far. `recorded` are the ids of the recorded
/// threads, indexed by thread number.
pub fn thread_usages(recorded: &[u32], phase: Phase) -> Vec<ThreadUsage> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    tasks
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|os_id| {
            let number = recorded.iter().position(|id| *id == os_id);
            thread_usage(os_id, number.map_or(u32::MAX, |n| n as u32), phase)
        })
        .collect()
}

/// Cores on which threads may run now: those that may run on the same ones together.
pub fn thread_cores(os_ids: impl Iterator<Item = u32>) -> Vec<ThreadCores> {
    let mut by_cores: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
    for os_id in os_ids {
        by_cores.entry(affinity_of(os_id)).or_default().push(os_id);
    }
    by_cores.remove(&Vec::new());
    let of = by_cores.into_iter();
    of.map(|(cores, thread_os_ids)| ThreadCores { cores, thread_os_ids }).collect()
}

/// CPU time of recorded threads that have ended, in nanoseconds.
static ENDED_THREADS_NS: AtomicU64 = AtomicU64::new(0);

/// Adds the calling thread's CPU time. Called once, when a recorded thread ends.
pub fn thread_ends() {
    ENDED_THREADS_NS.fetch_add(counter::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID), Relaxed);
}

/// CPU time of the whole process so far.
pub fn process_usage(phase: Phase) -> ProcessUsage {
    ProcessUsage {
        phase,
        ticks: counter::now(),
        on_cpu_ns: counter::clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID),
        ended_threads_ns: ENDED_THREADS_NS.load(Relaxed),
    }
}

/// CPU time of a thread, and how long it was ready to run but had no core, in nanoseconds.
fn schedule(os_id: u32) -> Option<(u64, u64)> {
    let schedule = first_line(&format!("/proc/self/task/{os_id}/schedstat"));
    let mut times = schedule.split_whitespace().map(|word| word.parse::<u64>().ok());
    Some((times.next()??, times.next()??))
}

/// The bytes that a line of /proc/self/status states, in kB.
fn status_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// What the process has used so far; `first_os_id` is the thread that called MPI_Init. Takes some
/// 20 µs.
pub fn usage_reading(first_os_id: u32, phase: Phase) -> UsageReading {
    let ticks = counter::now();
    let (first_thread_on_cpu_ns, first_thread_run_queue_ns) =
        schedule(first_os_id).unwrap_or_default();
    // VmHWM and not getrusage: the latter's peak includes the launcher, before it became the program.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    UsageReading {
        phase,
        ticks,
        on_cpu_ns: counter::clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID),
        ended_threads_ns: ENDED_THREADS_NS.load(Relaxed),
        first_thread_on_cpu_ns,
        first_thread_run_queue_ns,
        resident_bytes: status_bytes(&status, "VmRSS").unwrap_or(0),
        peak_resident_bytes: status_bytes(&status, "VmHWM").unwrap_or(0),
    }
}

/// Bytes that the process has read and written so far, by all its system calls that read and write.
pub fn moved_bytes() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().parse::<u64>().ok()
    };
    Some((bytes("rchar")?, bytes("wchar")?))
}

/// Resource usage of one thread of the process so far.
pub fn thread_usage(os_id: u32, thread: u32, phase: Phase) -> Option<ThreadUsage> {
    let folder = format!("/proc/self/task/{os_id}");
    let ticks = counter::now();
    let (on_cpu_ns, run_queue_ns) = schedule(os_id)?;
    let status = fs::read_to_string(format!("{folder}/status")).ok()?;
    let switches = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().parse::<u64>().ok()
    };
    // Fields behind the command's closing parenthesis: state is field 3, minflt 10, processor 39.
    let stat = first_line(&format!("{folder}/stat"));
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    Some(ThreadUsage {
        thread,
        thread_os_id: os_id,
        phase,
        ticks,
        on_cpu_ns,
        run_queue_ns,
        voluntary_switches: switches("voluntary_ctxt_switches")?,
        involuntary_switches: switches("nonvoluntary_ctxt_switches")?,
        minor_faults: fields.get(7)?.parse().ok()?,
        core: fields.get(36)?.parse().ok()?,
    })
}

/// Local date and time for a directory's name: `20091231-235959`.
pub fn date_for_name() -> String {
    let now = (counter::clock_ns(libc::CLOCK_REALTIME) / 1_000_000_000) as libc::time_t;
    // SAFETY: a zeroed tm may be written over.
    let time = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        libc::localtime_r(&now, &mut time);
        time
    };
    format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}",
        time.tm_year + 1900,
        time.tm_mon + 1,
        time.tm_mday,
        time.tm_hour,
        time.tm_min,
        time.tm_sec
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_process_start_from_stat() {
        let rest: Vec<String> = (3..30).map(|field| field.to_string()).collect();
        // The command may contain blanks and parentheses.
        let stat = format!("17 (a (b) c) {}", rest.join(" "));
        assert_eq!(began_ns(&stat, 100), Some(220_000_000));
        assert_eq!(began_ns("17 (a) S 1", 100), None);
        assert_eq!(began_ns(&stat, 0), None);
    }

    #[test]
    fn reads_memory_from_status() {
        let status = "Name:\tVmRSS\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(status_bytes(status, "VmRSS"), Some(1 << 20));
        assert_eq!(status_bytes(status, "VmHWM"), Some(2 << 20));
        assert_eq!(status_bytes(status, "VmSwap"), None);
    }

    #[test]
    fn finds_build_id_among_other_notes_but_not_beyond_them() {
        let note = |kind: u32, name: &[u8], id: &[u8]| {
            let mut note: Vec<u8> = [name.len() as u32, id.len() as u32, kind]
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect();
            for part in [name, id] {
                note.extend(part);
                note.resize(note.len().next_multiple_of(4), 0);
            }
            note
        };
        let mut notes = note(3, b"Xen\0", b"not ours");
        notes.extend(note(1, b"GNU\0", &[9; 16]));
        assert_eq!(build_id_of_notes(&notes), None);
        notes.extend(note(3, b"GNU\0", &[0xab, 0xcd, 0x01]));
        assert_eq!(build_id_of_notes(&notes).as_deref(), Some("abcd01"));
        for length in 0..notes.len() - 4 {
            assert_eq!(build_id_of_notes(&notes[..length]), None, "cut off at {length}");
        }
        let mut endless = u32::MAX.to_le_bytes().repeat(2);
        endless.extend(3u32.to_le_bytes());
        assert_eq!(build_id_of_notes(&endless), None);
    }

    #[test]
    fn distinguishes_hosts_by_name_and_kernel() {
        assert_eq!(host_number("n1", "b"), host_number("n1", "b"));
        assert_ne!(host_number("n1", "b"), host_number("n2", "b"));
        assert_ne!(host_number("n1", "2b"), host_number("n12", "b"));
    }
}
