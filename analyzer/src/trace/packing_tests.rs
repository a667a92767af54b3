use super::*;
use crate::metrics::{Metrics, Selection};
use crate::present::Report;
use crate::present::report::json;
use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;
use trace_format::files::rank_file_path;

const B: u64 = 1_000_000;

fn ranks() -> Vec<SyntheticRank> {
    let rank = |number: u32| {
        let mut rank = SyntheticRank::level_1(number, 2, B + 90_000_000);
        // With these a chunk of the synthetic file ends with a step.
        rank.call(0, "MPI_Comm_rank", B + 10, B + 20);
        rank.call(0, "MPI_Comm_size", B + 30, B + 40);
        for step in 0..6000u64 {
            let at = B + 1000 + step * 14_000;
            let other = 1 - number as i32;
            let bytes = 64 << (step % 5);
            let on_world = crate::synthetic_messages::on_world(other, 7, bytes);
            match number {
                0 => rank.says("MPI_Isend", at, at + 300, on_world.request(3)),
                _ => rank.says("MPI_Irecv", at, at + 200, on_world.request(3)),
            };
            let done = crate::synthetic_messages::completed(3, other, 7, bytes);
            rank.several("MPI_Waitall", at + 1000, at + 2000 + step % 700, &[done]);
        }
        rank.finalize(B + 90_000_000, B + 90_001_000);
        rank
    };
    vec![rank(0), rank(1)]
}

fn packing(run: &Path, direction: Direction) -> Packing<'_> {
    Packing { direction, run, out: None, ended: false }
}

/// The report as JSON, without what names the place.
fn report(path: &Path) -> String {
    let run = Run::open(path).unwrap();
    let timeline = GlobalTimeline::new(&run);
    let metrics = Metrics::new(&run, &timeline, &Selection::Whole).unwrap();
    json(&Report { run: &run, timeline: &timeline, metrics: &metrics }).unwrap()
}

#[test]
fn a_packed_run_is_reported_alike_and_comes_back_bit_for_bit() {
    let directory = RunDirectory::of(&ranks());
    let read = |rank| fs::read(directory.file(rank)).unwrap();
    let (before, files) = (report(directory.path()), [read(0), read(1)]);
    assert!(before.contains("\"matched\": 6000"), "{before}");
    let packed = packing(directory.path(), Direction::Pack).run(|_| {}).unwrap();
    assert_eq!(
        (packed.files, packed.original_bytes),
        (2, (files[0].len() + files[1].len()) as u64)
    );
    assert_eq!(packed.events, 2 * (6000 * 2 + 4));
    assert!(packed.packed_bytes < packed.events * 8, "{packed:?}");
    assert_eq!(report(directory.path()), before);
    let again = packing(directory.path(), Direction::Pack).run(|_| {}).unwrap();
    assert_eq!((again.files, again.already), (0, 2));
    packing(directory.path(), Direction::Unpack).run(|_| {}).unwrap();
    assert_eq!([read(0), read(1)], files);
    let left = fs::read_dir(directory.file(0).parent().unwrap()).unwrap().count();
    assert_eq!(left, 2, "no half file stays");
}

#[test]
fn a_copy_leaves_the_run_as_it_is() {
    let directory = RunDirectory::of(&ranks());
    fs::write(directory.path().join(RUN_JSON), "{}").unwrap();
    let out = RunDirectory::new();
    let before = fs::read(directory.file(0)).unwrap();
    let to = Packing { out: Some(out.path()), ..packing(directory.path(), Direction::Pack) };
    to.run(|_| {}).unwrap();
    assert_eq!(fs::read(directory.file(0)).unwrap(), before);
    assert!(fs::read(out.path().join(rank_file_path(0, 1))).unwrap().starts_with(b"GAMMPACK"));
    assert_eq!(fs::read(out.path().join(RUN_JSON)).unwrap(), b"{}");
    let same =
        Packing { out: Some(directory.path()), ..packing(directory.path(), Direction::Pack) };
    assert!(same.run(|_| {}).unwrap_err().to_string().contains("leave --out away"));
}

#[test]
fn damage_costs_a_piece_and_is_named() {
    let directory = RunDirectory::of(&ranks());
    packing(directory.path(), Direction::Pack).run(|_| {}).unwrap();
    let path = directory.file(0);
    let whole = fs::read(&path).unwrap();
    let calls = |path: &Path| {
        let run = Run::open(path).unwrap();
        let whats: Vec<String> = run.diagnoses.iter().map(|d| d.to_string()).collect();
        let rank = run.ranks.iter().find(|rank| rank.rank == 0);
        (rank.map_or(0, |rank| rank.threads.iter().map(|t| t.calls).sum::<u64>()), whats.join("\n"))
    };
    let all = calls(directory.path()).0;
    assert_eq!(all, 12_004);
    // In the last third lie slots.
    let mut damaged = whole.clone();
    damaged[whole.len() * 2 / 3] ^= 0x10;
    fs::write(&path, &damaged).unwrap();
    let (left, whats) = calls(directory.path());
    assert!(left > 1000 && left < all, "{left}");
    assert!(whats.contains("a piece of the packed file is damaged"), "{whats}");
    let error = packing(directory.path(), Direction::Unpack).run(|_| {}).unwrap_err().to_string();
    assert!(error.contains("rank-000000.gmc") && error.contains("damaged"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), damaged, "nothing replaced it");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let (left, whats) = calls(directory.path());
    assert!(left > 1000 && left < all, "{left}");
    assert!(whats.contains("damaged or cut off"), "{whats}");
    // Wherever it is cut, nothing breaks.
    for length in (0..whole.len()).step_by(997) {
        fs::write(&path, &whole[..length]).unwrap();
        let _ = Run::open(directory.path());
    }
}

#[test]
fn a_file_that_may_still_be_written_keeps_its_place() {
    let mut rank = ranks().remove(0);
    rank.killed();
    rank.header.host = "elsewhere".into();
    let directory = RunDirectory::of(&[rank]);
    let error = packing(directory.path(), Direction::Pack).run(|_| {}).unwrap_err().to_string();
    assert!(error.contains("--ended"), "{error}");
    let ended = Packing { ended: true, ..packing(directory.path(), Direction::Pack) };
    assert_eq!(ended.run(|_| {}).unwrap().files, 1);
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.ranks[0].threads[0].calls, 12_004);
}

/// 32 bytes stand for 256 MiB of zeros: reading may not take longer for them.
#[test]
fn claimed_zeros_are_passed_over() {
    let directory = RunDirectory::of(&ranks());
    let before = report(directory.path());
    packing(directory.path(), Direction::Pack).run(|_| {}).unwrap();
    let path = directory.file(0);
    let mut bytes = fs::read(&path).unwrap();
    let checksum = trace_format::encoding::checksum;
    let original = u64::from_le_bytes(bytes[16..24].try_into().unwrap());
    // The last piece is the file's end.
    bytes.truncate(bytes.len() - 32);
    let mut piece = |kind: u32, offset: u64, length: u32| {
        let mut head = b"GPCE".to_vec();
        head.extend(kind.to_le_bytes());
        head.extend(offset.to_le_bytes());
        head.extend(length.to_le_bytes());
        head.extend([0; 8]);
        head.extend(checksum(&head).to_le_bytes());
        bytes.extend(head);
    };
    const ZEROS: u32 = 1 << 28;
    let mut at = original;
    for _ in 0..400 {
        piece(3, at, ZEROS);
        at += u64::from(ZEROS);
    }
    piece(4, at, 0);
    bytes[16..24].copy_from_slice(&at.to_le_bytes());
    let crc = checksum(&bytes[..28]);
    bytes[28..32].copy_from_slice(&crc.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    assert_eq!(report(directory.path()), before);
}
