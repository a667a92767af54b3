//! Sentences on calls on files.

use crate::diagnosis::finding::{FileOfAll, ReadAgain, SlowFiles, SmallFileCalls, UnalignedReads};
use crate::present::quantity::{count, in_unit, percent, seconds, significant};

/// A file by its name, or by its number in the table FILES.
fn file(number: u64, name: Option<&String>) -> String {
    name.map_or_else(|| format!("file {number}"), String::clone)
}

pub(super) fn small_calls(found: &SmallFileCalls) -> String {
    format!(
        "Many small {}: {} calls averaging {} B on {} take {} of the ranks' time.",
        if found.writes { "writes" } else { "reads" },
        count(found.calls),
        significant(found.mean_bytes, 2),
        file(found.file, found.name.as_ref()),
        percent(found.share)
    )
}

pub(super) fn read_again(found: &ReadAgain) -> String {
    let bytes = |number: u64| in_unit(number as f64, 3, "B");
    format!(
        "Of {} read from {}, at least {} had been read before by the same rank: that takes {} of the ranks' time.",
        bytes(found.bytes),
        file(found.file, found.name.as_ref()),
        bytes(found.again_bytes),
        percent(found.share)
    )
}

pub(super) fn unaligned_reads(found: &UnalignedReads) -> String {
    format!(
        "Unaligned reads: {} of {} reads of {} begin inside a page of 4 KiB; reading it takes {} of the ranks' time.",
        count(found.unaligned),
        count(found.reads),
        file(found.file, found.name.as_ref()),
        percent(found.share)
    )
}

pub(super) fn file_of_all(found: &FileOfAll) -> String {
    format!(
        "All {} ranks open {}, {} times in all: that takes {} of their time.",
        count(found.ranks),
        file(found.file, found.name.as_ref()),
        count(found.opens),
        percent(found.share)
    )
}

pub(super) fn slow_files(found: &SlowFiles) -> String {
    let others = match found.ranks {
        2 => "the other rank".to_owned(),
        _ => "the others (median)".to_owned(),
    };
    let bytes = |number: u64| in_unit(number as f64, 3, "B");
    let what = match found.written_bytes >= found.read_bytes {
        true => format!("writes {}", bytes(found.written_bytes)),
        false => format!("reads {}", bytes(found.read_bytes)),
    };
    let wait = found.others_wait_s.map_or(String::new(), |waited_s| {
        let who = if found.ranks == 2 { "it waits" } else { "they wait" };
        format!("; {who} {}", seconds(waited_s))
    });
    format!(
        "Rank {} {what} and spends {} in calls on files (most on {}), {others} {}{wait}.",
        found.rank,
        seconds(found.seconds),
        file(found.file, found.name.as_ref()),
        seconds(found.others_s)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_short(text: &str) {
        assert!(text.split_whitespace().count() <= 35, "{text}");
    }

    #[test]
    fn sentences_are_short_and_name_the_file() {
        let small = SmallFileCalls {
            file: 3,
            name: None,
            writes: true,
            calls: 20_000,
            mean_bytes: 16.0,
            seconds: 1.0,
            share: 0.25,
        };
        let text = small_calls(&small);
        assert_short(&text);
        assert_eq!(
            text,
            "Many small writes: 20,000 calls averaging 16 B on file 3 take 25 % of the ranks' time."
        );
        let again = ReadAgain {
            file: 3,
            name: None,
            bytes: 4 << 30,
            again_bytes: 3 << 30,
            seconds: 1.0,
            share: 0.25,
        };
        let text = read_again(&again);
        assert_short(&text);
        assert_eq!(
            text,
            "Of 4.29 GB read from file 3, at least 3.22 GB had been read before by the same rank: that takes 25 % of \
             the ranks' time."
        );
        let unaligned = UnalignedReads {
            file: 3,
            name: None,
            reads: 2000,
            unaligned: 1999,
            seconds: 1.0,
            share: 0.25,
        };
        let text = unaligned_reads(&unaligned);
        assert_short(&text);
        assert_eq!(
            text,
            "Unaligned reads: 1,999 of 2,000 reads of file 3 begin inside a page of 4 KiB; reading it takes 25 % of \
             the ranks' time."
        );
        let all = FileOfAll {
            file: 1,
            name: Some("/data/mesh".into()),
            ranks: 64,
            opens: 128,
            seconds: 1.0,
            share: 0.1,
        };
        let text = file_of_all(&all);
        assert_short(&text);
        assert_eq!(
            text,
            "All 64 ranks open /data/mesh, 128 times in all: that takes 10 % of their time."
        );
        let slow = SlowFiles {
            rank: 0,
            ranks: 4,
            seconds: 2.0,
            others_s: 0.001,
            others_wait_s: Some(1.9),
            read_bytes: 10,
            written_bytes: 2_000_000_000,
            file: 2,
            name: None,
        };
        let text = slow_files(&slow);
        assert_short(&text);
        assert_eq!(
            text,
            "Rank 0 writes 2.00 GB and spends 2.00 s in calls on files (most on file 2), the others \
             (median) 1.00 ms; they wait 1.90 s."
        );
    }
}
