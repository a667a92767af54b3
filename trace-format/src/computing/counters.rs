//! Performance counters of the processor and the kernel: the text of `--counters`, the meaning of
//! `flops` on a processor, and the requests to Linux (perf_event_open(2)).
//!
//! The text is parsed into [`CounterRequest`]s with their [`CounterEvent`]s; the attributes for the
//! kernel and explanations of its refusals follow from these. Nothing here makes a system call.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::settings::values::is_identifier;

/// Maximum number of counters in a run.
pub const MAX_COUNTERS: usize = 8;
/// Maximum number of events that one counter adds up.
pub const MAX_EVENTS: usize = 8;
/// Name of the counter that stands for floating-point operations.
pub const FLOPS: &str = "flops";
/// Name of the counter that stands for bytes to and from memory.
pub const BYTES: &str = "bytes";

/// State of a reading: an event had the hardware for part of the time only, and its count was
/// scaled up.
pub const SCALED: u32 = 1;
/// State of a reading: an event could not be read, or never had the hardware. The value is
/// meaningless.
pub const UNREADABLE: u32 = 2;

/// `PERF_TYPE_HARDWARE`, `PERF_TYPE_SOFTWARE` and `PERF_TYPE_RAW` of linux/perf_event.h.
const KINDS: [(&str, u32); 3] = [("hardware", 0), ("software", SOFTWARE), ("raw", RAW)];
const SOFTWARE: u32 = 1;
const RAW: u32 = 4;

/// An event of the processor or the kernel, and its weight in the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterEvent {
    /// `type` of perf_event_attr.
    pub kind: u32,
    /// `config` of perf_event_attr.
    pub config: u64,
    /// Its count is multiplied by this.
    pub weight: u32,
}

/// A counter requested by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterRequest {
    /// Its name.
    pub name: String,
    /// The events that it adds up; `None` for the built-in choice for this name.
    pub events: Option<Vec<CounterEvent>>,
}

/// A processor as identified by CPUID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processor {
    /// Such as `GenuineIntel`.
    pub vendor: String,
    /// Family, including the extended family.
    pub family: u32,
    /// Model, including the extended model.
    pub model: u32,
}

/// Why a text is not a list of counters.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CounterError {
    /// More than [`MAX_COUNTERS`].
    #[error("at most {MAX_COUNTERS} counters can be read, these are more")]
    TooMany,
    /// Two counters have the same name.
    #[error("the counter {0} is named twice")]
    Twice(String),
    /// A name without events other than [`FLOPS`].
    #[error(
        "{0:?} has no built-in choice (only {FLOPS} has); write NAME=TYPE:CONFIG, such as faults=software:2"
    )]
    NoChoice(String),
    /// A name that is not a C identifier.
    #[error(
        "the name {0:?} must consist of letters, digits and '_' and must not begin with a digit"
    )]
    Name(String),
    /// A counter adds up more than [`MAX_EVENTS`].
    #[error("{0} adds up more than {MAX_EVENTS} events")]
    TooManyEvents(String),
    /// A term of the sum is not an event.
    #[error(
        "{0:?} is not an event; write TYPE:CONFIG or TYPE:CONFIG*WEIGHT, where TYPE is raw, hardware, software or \
         a number, CONFIG a number, WEIGHT a whole number of at least 1, such as raw:0x1c7*2"
    )]
    Event(String),
}

/// Parses `flops`, or `NAME=TYPE:CONFIG[*WEIGHT][+TYPE:CONFIG…]`, or several of these separated by
/// commas.
///
/// # Errors
/// What is wrong, and what to write.
pub fn parse(text: &str) -> Result<Vec<CounterRequest>, CounterError> {
    let requests: Vec<CounterRequest> = text.split(',').map(request).collect::<Result<_, _>>()?;
    if requests.len() > MAX_COUNTERS {
        return Err(CounterError::TooMany);
    }
    for (index, request) in requests.iter().enumerate() {
        if requests[..index].iter().any(|other| other.name == request.name) {
            return Err(CounterError::Twice(request.name.clone()));
        }
    }
    Ok(requests)
}

/// The text that [`parse`] reads.
pub fn join(requests: &[CounterRequest]) -> String {
    let event = |event: &CounterEvent| {
        let named = KINDS.iter().find(|(_, number)| *number == event.kind);
        let kind = named.map_or_else(|| event.kind.to_string(), |(name, _)| (*name).to_owned());
        format!("{kind}:{:#x}*{}", event.config, event.weight)
    };
    let request = |request: &CounterRequest| match &request.events {
        None => request.name.clone(),
        Some(events) => {
            let events: Vec<String> = events.iter().map(event).collect();
            format!("{}={}", request.name, events.join("+"))
        }
    };
    requests.iter().map(request).collect::<Vec<_>>().join(",")
}

fn request(text: &str) -> Result<CounterRequest, CounterError> {
    let Some((name, sum)) = text.split_once('=') else {
        return match text {
            FLOPS => Ok(CounterRequest { name: FLOPS.into(), events: None }),
            _ => Err(CounterError::NoChoice(text.to_owned())),
        };
    };
    if !is_identifier(name) {
        return Err(CounterError::Name(name.to_owned()));
    }
    let events: Vec<CounterEvent> = sum.split('+').map(event).collect::<Result<_, _>>()?;
    if events.len() > MAX_EVENTS {
        return Err(CounterError::TooManyEvents(name.to_owned()));
    }
    Ok(CounterRequest { name: name.to_owned(), events: Some(events) })
}

fn event(text: &str) -> Result<CounterEvent, CounterError> {
    let wrong = || CounterError::Event(text.to_owned());
    let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
    let (config, weight) = rest.split_once('*').unwrap_or((rest, "1"));
    let named = KINDS.iter().find(|(name, _)| *name == kind).map(|(_, number)| *number);
    let kind = named.or_else(|| number(kind)?.try_into().ok()).ok_or_else(wrong)?;
    let config = number(config).ok_or_else(wrong)?;
    let weight = weight.parse::<u32>().ok().filter(|weight| *weight > 0).ok_or_else(wrong)?;
    Ok(CounterEvent { kind, config, weight })
}

/// A decimal number, or a hexadecimal one after `0x`.
fn number(text: &str) -> Option<u64> {
    let digits = |text: &str, radix| {
        let plain = text.chars().all(|c| c.is_digit(radix));
        u64::from_str_radix(text, radix).ok().filter(|_| plain)
    };
    match text.strip_prefix("0x") {
        Some(hexadecimal) => digits(hexadecimal, 16),
        None => digits(text, 10),
    }
}

/// Events as text: `raw 0xff03`, `raw 0x3c7 + 2 x raw 0x4c7`.
pub fn description(events: &[CounterEvent]) -> String {
    let one = |event: &CounterEvent| {
        let name = KINDS.iter().find(|(_, number)| *number == event.kind);
        let kind = name.map_or_else(|| format!("type {}", event.kind), |(name, _)| (*name).into());
        match event.weight {
            1 => format!("{kind} {:#x}", event.config),
            weight => format!("{weight} x {kind} {:#x}", event.config),
        }
    };
    events.iter().map(one).collect::<Vec<_>>().join(" + ")
}

/// The events that count floating-point operations of SSE and AVX on a processor.
///
/// AMD from Zen on: retired SSE/AVX operations (PMCx003), where a multiply-add counts as two. It
/// may count more than 15 per cycle, for which Linux 5.6 and later merges two counters. Intel from
/// Broadwell on: FP_ARITH_INST_RETIRED by width, where the hardware counts a multiply-add as two.
/// The codes are those of the event tables in Linux (tools/perf/pmu-events). None of them includes
/// x87.
///
/// # Errors
/// Why there is no built-in choice.
pub fn flops_of(processor: Option<&Processor>) -> Result<Vec<CounterEvent>, String> {
    let raw = |config, weight| CounterEvent { kind: RAW, config, weight };
    let Some(Processor { vendor, family, model }) = processor else {
        return Err(
            "there is no built-in choice for this processor: it is not an x86-64, whose events count \
                    operations; name an event"
                .into(),
        );
    };
    match (vendor.as_str(), family, model) {
        ("AuthenticAMD", 0x17, _) => Ok(vec![raw(0xff03, 1)]),
        ("AuthenticAMD", 0x19, 0x00..=0x0f | 0x20..=0x2f | 0x40..=0x5f) => Ok(vec![raw(0xff03, 1)]),
        ("AuthenticAMD", 0x19, _) => Ok(vec![raw(0x1f03, 1)]),
        ("AuthenticAMD", 0x1a, 0x00..=0x2f | 0x40..=0x4f | 0x60..=0x7f) => Ok(vec![raw(0x0f03, 1)]),
        // Masks with the same weight form one event: processors have only four or eight counters
        // for them.
        ("GenuineIntel", 6, model) if INTEL_256.contains(model) => {
            Ok(vec![raw(0x03c7, 1), raw(0x04c7, 2), raw(0x18c7, 4), raw(0x20c7, 8)])
        }
        ("GenuineIntel", 6, model) if INTEL_512.contains(model) => Ok(vec![
            raw(0x03c7, 1),
            raw(0x04c7, 2),
            raw(0x18c7, 4),
            raw(0x60c7, 8),
            raw(0x80c7, 16),
        ]),
        _ => Err(format!(
            "there is no built-in choice for this processor ({vendor}, family {family:#x}, model \
             {model:#x}); name an event"
        )),
    }
}

/// Broadwell; Skylake, Kaby, Coffee and Comet Lake without AVX-512. Processors with two kinds of
/// cores are in neither list, because the event counts on one kind only.
const INTEL_256: [u32; 10] = [0x3d, 0x47, 0x4f, 0x56, 0x4e, 0x5e, 0x8e, 0x9e, 0xa5, 0xa6];
/// With AVX-512: Skylake-X to Cooper Lake, Cannon Lake, Ice Lake, Tiger Lake, Rocket Lake, Sapphire, Emerald and
/// Granite Rapids.
const INTEL_512: [u32; 13] =
    [0x55, 0x66, 0x7d, 0x7e, 0x6a, 0x6c, 0x8c, 0x8d, 0xa7, 0x8f, 0xcf, 0xad, 0xae];

/// The processor that this runs on. `None` if it is not an x86-64.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "safe to call in newer releases of Rust")]
pub fn processor() -> Option<Processor> {
    // SAFETY: every x86-64 processor has the instruction, and it touches no memory.
    let (leaf0, leaf1) = unsafe { (std::arch::x86_64::__cpuid(0), std::arch::x86_64::__cpuid(1)) };
    let vendor: Vec<u8> =
        [leaf0.ebx, leaf0.edx, leaf0.ecx].iter().flat_map(|word| word.to_le_bytes()).collect();
    let bits = |from: u32, number: u32| leaf1.eax >> from & ((1 << number) - 1);
    let (base, extended) = (bits(8, 4), bits(20, 8));
    let family = if base == 0xf { base + extended } else { base };
    let extends = base == 6 || base == 0xf;
    let model = bits(4, 4) | if extends { bits(16, 4) << 4 } else { 0 };
    Some(Processor { vendor: String::from_utf8_lossy(&vendor).into_owned(), family, model })
}

/// The processor that this runs on. `None` if it is not an x86-64.
#[cfg(not(target_arch = "x86_64"))]
pub fn processor() -> Option<Processor> {
    None
}

/// Words of a `perf_event_attr` of the first published size (64 bytes), which every kernel accepts.
pub const ATTRIBUTE_WORDS: usize = 8;
/// `inherit_thread` (Linux 5.13): threads made later count, child processes do not. Older kernels
/// reject it with EINVAL.
const INHERIT_THREAD: u64 = 1 << 35;

/// The `perf_event_attr` of an event that counts, in user mode and from the start, a thread and
/// those it makes later. A reading consists of three words: count, time enabled, time running.
pub fn attribute(event: &CounterEvent, threads_only: bool) -> [u64; ATTRIBUTE_WORDS] {
    const INHERIT: u64 = 1 << 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    const TIMES: u64 = 0b11;
    let mut flags = INHERIT;
    if !happens_in_kernel(event) {
        flags |= EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR;
    }
    if threads_only {
        flags |= INHERIT_THREAD;
    }
    let size = (ATTRIBUTE_WORDS * size_of::<u64>()) as u64;
    [u64::from(event.kind) | size << 32, event.config, 0, 0, TIMES, flags, 0, 0]
}

/// Software events that never happen in user mode: context switches, migrations, cgroup switches.
fn happens_in_kernel(event: &CounterEvent) -> bool {
    event.kind == SOFTWARE && matches!(event.config, 3 | 4 | 11)
}

/// Why the kernel refused an event, from the error number and the setting perf_event_paranoid.
pub fn refusal(error: i32, paranoid: Option<&str>) -> String {
    const EPERM: i32 = 1;
    const ENOENT: i32 = 2;
    const EACCES: i32 = 13;
    const EINVAL: i32 = 22;
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOSYS: i32 = 38;
    const EOPNOTSUPP: i32 = 95;
    match error {
        ENOENT => "this machine has no such event (virtual machines often have none)".into(),
        EPERM | EACCES => format!(
            "not permitted (perf_event_paranoid {}; containers may forbid it altogether)",
            paranoid.unwrap_or("unknown")
        ),
        EINVAL | EOPNOTSUPP => {
            "the kernel does not count this event for a process (wrong type or config, or an event of \
             the whole socket)"
                .into()
        }
        ENFILE | EMFILE => "too many open files (ulimit -n)".into(),
        ENOSYS => "the kernel has no perf_event".into(),
        error => std::io::Error::from_raw_os_error(error).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str) -> Vec<CounterEvent> {
        parse(text).unwrap().remove(0).events.unwrap()
    }

    #[test]
    fn parses_names_and_sums_of_events() {
        assert_eq!(parse("flops"), Ok(vec![CounterRequest { name: FLOPS.into(), events: None }]));
        let one = |kind, config, weight| CounterEvent { kind, config, weight };
        assert_eq!(events("faults=software:2"), [one(1, 2, 1)]);
        assert_eq!(
            events("flops=raw:0x1c7+raw:0x4c7*2+hardware:1*3"),
            [one(4, 0x1c7, 1), one(4, 0x4c7, 2), one(0, 1, 3)]
        );
        assert_eq!(events("bytes=23:0xff04*64"), [one(23, 0xff04, 64)]);
        let names: Vec<String> =
            parse("flops,a=raw:1,b=raw:2").unwrap().into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["flops", "a", "b"]);
        let all = parse("flops,a=raw:0x1c7+23:4*2").unwrap();
        assert_eq!(parse(&join(&all)), Ok(all));
    }

    #[test]
    fn explains_invalid_counters() {
        for (wrong, says) in [
            ("", "no built-in choice"),
            ("bytes", "no built-in choice"),
            ("flops,", "no built-in choice"),
            ("=raw:1", "name"),
            ("1a=raw:1", "name"),
            ("a b=raw:1", "name"),
            ("a=", "not an event"),
            ("a=raw", "not an event"),
            ("a=raw:", "not an event"),
            ("a=raw:0x", "not an event"),
            ("a=raw:+1", "not an event"),
            ("a=cache:1", "not an event"),
            ("a=raw:-1", "not an event"),
            ("a=raw:1*0", "not an event"),
            ("a=raw:1*1.5", "not an event"),
            ("a=raw:1+", "not an event"),
            ("a=4294967296:1", "not an event"),
            ("a=raw:1,a=raw:2", "twice"),
            ("flops,flops=raw:2", "twice"),
            ("a=1:1+1:1+1:1+1:1+1:1+1:1+1:1+1:1+1:1", "more than 8 events"),
            ("a=1:1,b=1:1,c=1:1,d=1:1,e=1:1,f=1:1,g=1:1,h=1:1,i=1:1", "at most 8 counters"),
        ] {
            let error = parse(wrong).expect_err(wrong).to_string();
            assert!(error.contains(says), "{wrong:?}: {error}");
        }
    }

    #[test]
    fn describes_events() {
        assert_eq!(description(&events("a=raw:0xff03")), "raw 0xff03");
        assert_eq!(
            description(&events("a=raw:0x3c7+raw:0x4c7*2+23:1")),
            "raw 0x3c7 + 2 x raw 0x4c7 + type 23 0x1"
        );
    }

    #[test]
    fn chooses_events_that_count_flops() {
        let of = |vendor: &str, family, model| {
            flops_of(Some(&Processor { vendor: vendor.into(), family, model }))
                .map(|events| description(&events))
        };
        for (family, model, expected) in [
            (0x17, 0x01, "raw 0xff03"),
            (0x17, 0x31, "raw 0xff03"),
            (0x19, 0x01, "raw 0xff03"),
            (0x19, 0x11, "raw 0x1f03"),
            (0x19, 0x61, "raw 0x1f03"),
            (0x1a, 0x02, "raw 0xf03"),
        ] {
            assert_eq!(of("AuthenticAMD", family, model).as_deref(), Ok(expected));
        }
        let intel = "raw 0x3c7 + 2 x raw 0x4c7 + 4 x raw 0x18c7 + 8 x raw 0x60c7 + 16 x raw 0x80c7";
        for model in [0x55, 0x6a, 0x8f] {
            assert_eq!(of("GenuineIntel", 6, model).as_deref(), Ok(intel), "{model:#x}");
        }
        let narrow = "raw 0x3c7 + 2 x raw 0x4c7 + 4 x raw 0x18c7 + 8 x raw 0x20c7";
        for model in [0x4f, 0x9e] {
            assert_eq!(of("GenuineIntel", 6, model).as_deref(), Ok(narrow), "{model:#x}");
        }
        // Haswell, Knights Landing, Gracemont, Alder Lake; Bulldozer; a future Zen.
        for (vendor, family, model) in [
            ("GenuineIntel", 6, 0x3f),
            ("GenuineIntel", 6, 0x57),
            ("GenuineIntel", 6, 0xbe),
            ("GenuineIntel", 6, 0x97),
            ("AuthenticAMD", 0x15, 0x01),
            ("AuthenticAMD", 0x1a, 0x50),
        ] {
            let error = of(vendor, family, model).expect_err(vendor);
            assert!(error.contains("no built-in choice"), "{error}");
        }
        assert!(flops_of(None).is_err());
    }

    #[test]
    fn attribute_matches_kernel_header() {
        let [kind_and_size, config, .., flags, _, _] =
            attribute(&CounterEvent { kind: 4, config: 0x1f03, weight: 1 }, true);
        assert_eq!((kind_and_size, config), (4 | 64 << 32, 0x1f03));
        assert_eq!(flags, 1 << 1 | 1 << 5 | 1 << 6 | 1 << 35);
        let switches = attribute(&CounterEvent { kind: 1, config: 3, weight: 1 }, false);
        assert_eq!((switches[4], switches[5]), (3, 1 << 1));
    }
}
