//! Examines how the host affects a measurement: cores, their speed, other load, the kernel, limits.

use std::fs;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;

use trace_format::counters::{self, CounterEvent};

use super::finding::{Finding, Mark};

pub(super) fn findings() -> Vec<Finding> {
    let mut findings = vec![kernel()];
    findings.extend([cores(), virtualised()]);
    findings.extend([governor(), cpu_quota(), load()].into_iter().flatten());
    findings.extend([run_queue(), hardware_counters(), counted_operations(), limits()]);
    findings
}

/// The contents of a small file, trimmed; `None` if it is empty.
fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The value of a line `key: value` in a file such as `/proc/self/status`.
fn line_of(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}

fn kernel() -> Finding {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into());
    let (mark, meaning) = match version(&release) {
        Some(version) if version >= (5, 14) => {
            (Mark::Ok, "It populates a mapping for writing at once (since 5.14).")
        }
        _ => (
            Mark::Note,
            "Before 5.14 a mapping cannot be populated for writing at once; the recorder touches \
             each page, which costs a little more.",
        ),
    };
    Finding::new("kernel", mark, format!("Linux {release}"), meaning).with("release", release)
}

/// Major and minor of a release such as `6.1.0-13-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn cores() -> Finding {
    let online = read("/sys/devices/system/cpu/online").unwrap_or_default();
    let allowed = line_of("/proc/self/status", "Cpus_allowed_list").unwrap_or_default();
    let (online_count, allowed_count) = (count_list(&online), count_list(&allowed));
    let threads = read("/sys/devices/system/cpu/smt/active").is_some_and(|active| active == "1");
    let nodes = read("/sys/devices/system/node/online").map_or(1, |nodes| count_list(&nodes));
    let model = line_of("/proc/cpuinfo", "model name");
    let mut value = format!("{online_count} online");
    if allowed_count < online_count {
        value += &format!(", {allowed_count} of them allowed here ({allowed})");
    }
    value += &format!(", {nodes} NUMA node{}", if nodes == 1 { "" } else { "s" });
    if threads {
        value += ", two or more are threads of one core";
    }
    if let Some(model) = &model {
        value += &format!("; {model}");
    }
    let (mark, meaning) = if allowed_count < online_count {
        (
            Mark::Note,
            format!(
                "More than {allowed_count} ranks started from here share cores; a rank that waits \
                 for a core looks like one that computes."
            ),
        )
    } else {
        (
            Mark::Ok,
            format!(
                "More than {online_count} busy ranks on this host share cores, and their times are unreliable."
            ),
        )
    };
    Finding::new("cores", mark, value, meaning)
        .with("online", online_count)
        .with("allowed", allowed_count)
        .with("allowed_list", allowed)
        .with("numa_nodes", nodes)
        .with("smt", threads)
        .with("model", model)
}

/// How many numbers are in a list such as `0-3,8`.
fn count_list(list: &str) -> u64 {
    let count = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (from.trim().parse::<u64>().ok()?, to.trim().parse::<u64>().ok()?);
        Some(to.checked_sub(from)? + 1)
    };
    list.split(',').filter_map(count).sum()
}

#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "safe to call in newer releases of Rust")]
pub(super) fn cpuid(leaf: u32) -> std::arch::x86_64::CpuidResult {
    // SAFETY: every x86-64 processor has the instruction, and it touches no memory.
    unsafe { std::arch::x86_64::__cpuid(leaf) }
}

/// The name that the hypervisor reports, if there is one.
#[cfg(target_arch = "x86_64")]
fn hypervisor() -> Option<String> {
    // CPUID 1, ECX bit 31 is set by hypervisors; leaf 0x40000000 then holds a name.
    if cpuid(1).ecx & 1 << 31 == 0 {
        return None;
    }
    let leaf = cpuid(0x4000_0000);
    let bytes: Vec<u8> =
        [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|word| word.to_le_bytes()).collect();
    let name: String =
        bytes.iter().filter(|b| b.is_ascii_graphic()).map(|b| char::from(*b)).collect();
    Some(if name.is_empty() { "unnamed".into() } else { name })
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor() -> Option<String> {
    read("/sys/hypervisor/type")
}

fn virtualised() -> Finding {
    match hypervisor() {
        None => Finding::new(
            "virtualised",
            Mark::Ok,
            "no hypervisor",
            "The processor is this system's own.",
        )
        .with("hypervisor", serde_json::Value::Null),
        Some(name) => Finding::new(
            "virtualised",
            Mark::Note,
            format!("yes, by {name}"),
            "The host may take cores away unnoticed; that time appears as computation. Compare \
             repeated runs, not single ones.",
        )
        .with("hypervisor", name),
    }
}

fn governor() -> Option<Finding> {
    let name = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let Some(name) = name else {
        return Some(
            Finding::new(
                "governor",
                Mark::Note,
                "not readable",
                "Whether the cores change their speed is not known; the counter does not.",
            )
            .with("governor", serde_json::Value::Null),
        );
    };
    let (mark, meaning) = match name.as_str() {
        "performance" => (Mark::Ok, "Cores run at full speed."),
        _ => (
            Mark::Note,
            "Cores change their speed with load: short runs and first runs look slower.",
        ),
    };
    Some(Finding::new("governor", mark, name.clone(), meaning).with("governor", name))
}

/// The CPU quota of a container, which limits CPU time without showing fewer cores.
fn cpu_quota() -> Option<Finding> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let allowance = root.join(group).ancestors().take_while(|path| path.starts_with(root)).fold(
        None,
        |least: Option<f64>, path| {
            let cores = read(path.join("cpu.max")).and_then(|text| parse_quota(&text));
            match (least, cores) {
                (Some(least), Some(cores)) => Some(least.min(cores)),
                (least, cores) => least.or(cores),
            }
        },
    )?;
    Some(
        Finding::new(
            "CPU quota",
            Mark::Limit,
            format!("{allowance:.2} cores' worth of time"),
            "A container's quota stops all ranks for milliseconds whenever it is used up; that \
             time appears as computation and as waiting.",
        )
        .with("cores", allowance),
    )
}

/// The quota in cores, from `cpu.max` (`quota period` in microseconds); `None` for `max`.
fn parse_quota(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.trim().parse::<f64>().ok()?)
}

fn load() -> Option<Finding> {
    let text = read("/proc/loadavg")?;
    let average: f64 = text.split_whitespace().next()?.parse().ok()?;
    let cores = count_list(&read("/sys/devices/system/cpu/online")?).max(1);
    let (mark, meaning) = if average < 0.1 * cores as f64 {
        (Mark::Ok, "No other program computes here.")
    } else {
        (
            Mark::Note,
            "Noisy: other programs have been using the cores in the last minute; times of a run \
             started now include waiting for them.",
        )
    };
    Some(
        Finding::new(
            "load",
            mark,
            format!("{average:.2} over the last minute, on {cores} cores"),
            meaning,
        )
        .with("load_1min", average),
    )
}

/// Whether the kernel counts how long a thread waits for a core.
fn run_queue() -> Finding {
    let counted = read("/proc/self/schedstat").is_some();
    let (mark, value, meaning) = if counted {
        (Mark::Ok, "counted", "Reports say how long each rank was ready but had no core.")
    } else {
        (
            Mark::Limit,
            "not counted",
            "The kernel has no /proc/self/schedstat; reports cannot tell waiting for a core from \
             computing.",
        )
    };
    Finding::new("run queue", mark, value, meaning).with("schedstat", counted)
}

fn hardware_counters() -> Finding {
    let paranoid: Option<i64> =
        read("/proc/sys/kernel/perf_event_paranoid").and_then(|text| text.parse().ok());
    let units = fs::read_dir("/sys/bus/event_source/devices").into_iter().flatten().flatten();
    let present = units
        .map(|unit| unit.file_name().to_string_lossy().into_owned())
        .any(|name| name == "cpu" || name == "cpu_core" || name.starts_with("armv8"));
    let setting =
        paranoid.map_or("no perf_event_paranoid".into(), |p| format!("perf_event_paranoid {p}"));
    let (mark, value, meaning) = match (present, paranoid) {
        (true, Some(level)) if level <= 2 => (
            Mark::Ok,
            format!("available, {setting}"),
            "Programs may count their own instructions and cycles. gammachi does not need it.",
        ),
        (true, _) => (
            Mark::Note,
            format!("forbidden, {setting}"),
            "Instructions and cycles cannot be counted without privileges; times are unaffected.",
        ),
        (false, _) => (
            Mark::Note,
            format!("none visible, {setting}"),
            "Instructions and cycles cannot be counted on this machine; times are unaffected.",
        ),
    };
    Finding::new("counters", mark, value, meaning)
        .with("present", present)
        .with("perf_event_paranoid", paranoid)
}

/// Whether `--counters flops` works here.
fn counted_operations() -> Finding {
    let events = counters::flops_of(counters::processor().as_ref());
    let description = events.as_ref().ok().map(|events| counters::description(events));
    let opened = events.and_then(|events| {
        let paranoid = read("/proc/sys/kernel/perf_event_paranoid");
        let open = |event| open_and_close(event);
        let refusal = |error| counters::refusal(error, paranoid.as_deref());
        events.iter().try_for_each(open).map_err(refusal)
    });
    let of = description.as_ref().map_or(String::new(), |events| format!(" ({events})"));
    let (mark, value, meaning) = match &opened {
        Ok(()) => (
            Mark::Ok,
            format!("can be opened{of}"),
            "gammachi run --counters flops counts operations here.",
        ),
        Err(why) => (
            Mark::Note,
            format!("cannot be opened{of}: {why}"),
            "gammachi run --flops counts those of BLAS, LAPACK and FFTW calls; nothing needs the counter.",
        ),
    };
    Finding::new("flops counter", mark, value, meaning)
        .with("openable", opened.is_ok())
        .with("events", description)
        .with("why_not", opened.err())
}

/// Opens an event for this thread, as the recorder does, and closes it; the error is errno.
fn open_and_close(event: &CounterEvent) -> Result<(), i32> {
    let (this_thread, any_core, no_group, no_flags) = (0, -1, -1, 0u64);
    let error = || std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    let open = |threads_only| {
        let attribute = counters::attribute(event, threads_only);
        // SAFETY: the attribute contains its own size, and the kernel only reads it. The new
        // descriptor has no other owner.
        unsafe {
            let opened = libc::syscall(
                libc::SYS_perf_event_open,
                attribute.as_ptr(),
                this_thread,
                any_core,
                no_group,
                no_flags,
            );
            if opened < 0 { Err(error()) } else { Ok(OwnedFd::from_raw_fd(opened as i32)) }
        }
    };
    match open(true) {
        Err(libc::EINVAL) => open(false),
        opened => opened,
    }
    .map(drop)
}

/// Limits of open files and file size. The recorder needs one file per rank, and a file that is too
/// long must not raise a signal.
fn limits() -> Finding {
    let text = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = soft_limit(&text, "Max open files");
    let size = soft_limit(&text, "Max file size");
    let shown = |limit: Option<u64>| limit.map_or("unlimited".into(), |limit| limit.to_string());
    let few = files.is_some_and(|files| files < 256);
    let (mark, meaning) = match (few, size) {
        (_, Some(_)) => {
            (Mark::Limit, "A file may not grow beyond that size (ulimit -f); recording ends there.")
        }
        (true, None) => (
            Mark::Limit,
            "Few (ulimit -n): MPI libraries open many for their connections, and the recorder one per rank.",
        ),
        (false, None) => (Mark::Ok, "The recorder opens one file per rank."),
    };
    let value = format!("{} open files, file size {}", shown(files), shown(size));
    Finding::new("limits", mark, value, meaning).with("open_files", files).with("file_bytes", size)
}

/// The soft limit in a line of `/proc/self/limits`; `None` if unlimited.
fn soft_limit(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lists_of_cores() {
        assert_eq!(count_list("0-3,8"), 5);
        assert_eq!(count_list("0"), 1);
        assert_eq!(count_list(""), 0);
        assert_eq!(count_list("3-1"), 0);
    }

    #[test]
    fn compares_kernel_versions_by_number() {
        assert_eq!(version("6.1.0-13-amd64"), Some((6, 1)));
        assert!(version("5.9.1") < Some((5, 14)));
        assert_eq!(version("unknown"), None);
    }

    #[test]
    fn reads_quotas_and_limits() {
        assert_eq!(parse_quota("150000 100000"), Some(1.5));
        assert_eq!(parse_quota("max 100000"), None);
        let text = "Limit    Soft Limit  Hard Limit  Units\n\
                    Max file size             unlimited            unlimited            bytes\n\
                    Max open files            1024                 4096                 files\n";
        assert_eq!(soft_limit(text, "Max open files"), Some(1024));
        assert_eq!(soft_limit(text, "Max file size"), None);
    }
}
