//! Sentences on what was lost: short, and without a promise that no replay gave.

use super::sentence;
use crate::causes::{CallSite, Context, PARALLEL_REGION};
use crate::diagnosis::Finding;
use crate::diagnosis::finding::{
    Blocked, Delay, Does, LongerFunction, NoOverlap, Placement, Saves, SerialIo, SlowHost,
};
use crate::metrics::{Competitor, CoreUse, Oversubscription};
use crate::trace::symbols::SourceLocation;

fn site(function: &str, line: u32) -> CallSite {
    let place = SourceLocation {
        function: Some("exchange".into()),
        file: Some("/home/ada/stencil.c".into()),
        line: Some(line),
    };
    let module = "/home/ada/stencil".into();
    CallSite { function: function.into(), module, place, ..CallSite::default() }
}

fn words(finding: &Finding) -> String {
    sentence(finding, None).expect("a sentence")
}

fn saves(seconds: f64, lo_s: f64, hi_s: f64) -> Saves {
    Saves { seconds, lo_s, hi_s, share: seconds }
}

/// The first sentence is one line that a reader takes in at once.
#[track_caller]
fn assert_short(text: &str) {
    let first = text.split_inclusive(". ").next().unwrap_or_default();
    assert!(first.split_whitespace().count() <= 35, "{first}");
}

#[test]
fn transfers_that_are_not_hidden_have_place_and_cost() {
    let place = Context::Between(Some(site("MPI_Isend", 9)), Some(site("MPI_Waitall", 11)));
    let text = words(&Finding::NoOverlap(NoOverlap {
        calls: 198,
        of: 200,
        seconds: 0.8,
        share: 0.25,
        mean_wait_s: 5e-3,
        mean_computed_s: 4e-3,
        mean_bytes: 8e6,
        place: (place, 1.0),
    }));
    assert_short(&text);
    assert_eq!(
        text,
        "Computation between MPI_Isend at exchange (stencil.c:9) and MPI_Waitall at exchange (stencil.c:11) probably \
         hides no transfers: 198 of 200 calls after it take 5.00 ms on average. It could hide 800 ms of that, 25 % of \
         the ranks' time."
    );
}

#[test]
fn one_rank_has_its_file_accesses_or_its_sleep() {
    let text = words(&Finding::SerialIo(SerialIo {
        rank: 0,
        thread: 0,
        seconds: 0.263,
        part: 1.0,
        at: site("MPI_File_write", 16),
        cost_s: 0.7,
        share: 0.9,
        ranks: 4,
    }));
    assert_short(&text);
    assert_eq!(
        text,
        "Rank 0 alone accesses files while the others wait: 263 ms, most of it in MPI_File_write at exchange \
         (stencil.c:16). This accounts for 90 % of the wait time (700 ms)."
    );
    let text = words(&Finding::Blocked(Blocked {
        rank: 0,
        place: Context::Region("checkpoint".into()),
        seconds: 0.484,
        asleep_s: 0.292,
        cost_s: 0.5,
    }));
    // What it does there is not recorded.
    assert!(!text.contains("file") && !text.contains("I/O"), "{text}");
    assert_eq!(text, "There, rank 0 is asleep or blocked for at least 292 ms of 484 ms.");
}

#[test]
fn small_messages_are_a_sentence_that_fits_beside_the_efficiency() {
    let text = words(&Finding::SmallMessages {
        calls: 80_000,
        mean_bytes: 8.0,
        seconds: 0.058,
        share: 0.56,
        at: Some((site("MPI_Sendrecv", 153), 1.0)),
        dominates: false,
    });
    assert_short(&format!("8.0 % efficient, {text}"));
}

#[test]
fn slow_host_has_its_ranks_place_and_cost() {
    let place = Context::Between(Some(site("MPI_Isend", 9)), Some(site("MPI_Waitall", 11)));
    let found = SlowHost {
        host: "n0412".into(),
        ranks: (2208..2240).collect(),
        times: Some(1.19),
        does: Does::Computes,
        place: Some(place),
        seconds: 9.0,
        share: 0.47,
    };
    let text = words(&Finding::SlowHost(found.clone()));
    assert_short(&text);
    assert_eq!(
        text,
        "Host n0412 delays the others: each of its ranks (2208-2239) computes longer than any elsewhere (1.2 times as \
         long). This accounts for 47 % of the wait time, mostly between MPI_Isend at exchange (stencil.c:9) and \
         MPI_Waitall at exchange (stencil.c:11)."
    );
    let text = words(&Finding::SlowHost(SlowHost { times: None, place: None, ..found }));
    assert_eq!(
        text,
        "The ranks of host n0412 (2208-2239) together account for 47 % of the wait time."
    );
}

#[test]
fn ranks_beyond_the_cores_are_named_before_other_programs() {
    let lack = |cores: usize, behind: Competitor| {
        let host = "n0".into();
        let shared = Oversubscription::FewCores { host, ranks: 6, cores };
        let waited = Oversubscription::Waited { rank: 0, share: 0.7, competitor: behind };
        words(&Finding::LackOfCores {
            decisive: true,
            share: Some(0.7),
            held_up: Some(0.6),
            shown_by: if cores < 6 { vec![shared, waited] } else { vec![waited] },
            while_computing_s: Some((1.0, 2.0)),
            ranks_missing: true,
        })
    };
    let others = || Competitor::OtherPrograms(CoreUse { used: 0.5, cores: 2, threads: 6 });
    let text = lack(2, others());
    assert_short(&text);
    assert_eq!(
        text,
        "Oversubscribed: at least 6 ranks share 2 cores of n0; they wait for a core for 70 % of their time, mostly \
         behind other programs: this job used 0.50 of 2 cores on average. The other figures are unreliable."
    );
    let text = lack(2, Competitor::Ranks);
    assert!(text.contains("cores of n0, so they wait") && !text.contains("programs"), "{text}");
    let text = lack(6, others());
    assert_short(&text);
    assert!(
        text.starts_with("Rank 0 waited for a core for 70 % of the run, because other"),
        "{text}"
    );
    assert!(text.contains("average. 1.00 s to 2.00 s of that counted as computation. "), "{text}");
}

#[test]
fn promises_have_the_interval_of_a_replay() {
    let apart = |saves| {
        let hosts = vec![vec![(0, 1)], vec![(2, 3)]];
        let found = Placement { bytes: 1e6, between: 8e5, between_then: 1e5, hosts, saves };
        words(&Finding::Placement(found))
    };
    let text = apart(saves(0.12, 0.05, 0.2));
    assert_short(&text);
    assert_eq!(
        text,
        "80 % of the message bytes go between hosts, 10 % if ranks 0,1 | 2,3 shared a host each: replayed, that saves \
         120 ms (12 %; 90 % interval 50.0 ms to 200 ms)."
    );
    let text = apart(saves(0.12, -0.1, 0.3));
    assert!(text.contains("perhaps nothing, in nine of ten cases at most 300 ms"), "{text}");
    let overlap = |of| words(&Finding::Overlap(of));
    assert!(overlap(saves(0.03, 0.02, 0.03)).contains("3.0 %; 90 % interval 20.0 ms to 30.0 ms"));
    let text = overlap(saves(0.03, 0.03, 0.03));
    assert!(text.ends_with("at most 30.0 ms (3.0 %): no more can be overlapped."), "{text}");
}

#[test]
fn delay_names_the_parallel_region_and_its_slowest_thread() {
    let site = CallSite { function: PARALLEL_REGION.into(), ..CallSite::default() };
    let place = Context::InCall(site, Box::new(Context::Region("solve".into())));
    let (does, function, slowest_thread) = (Does::Computes, None, Some(5));
    let (rank, thread, seconds, share, ranks, mutual) = (2, 0, 4.5, 0.97, 8, false);
    let text = words(&Finding::Delay(Delay {
        rank,
        thread,
        does,
        place,
        seconds,
        share,
        ranks,
        mutual,
        function,
        slowest_thread,
    }));
    assert_short(&text);
    assert_eq!(
        text.split_once(". ").expect("two sentences").0,
        "Rank 2 delays the other ranks: its computation in the parallel region in region solve takes longer; thread 5 \
         of its team works longest there"
    );
}

#[test]
fn delay_names_the_function_that_takes_longer() {
    let longer = |part, file: Option<&str>| LongerFunction {
        function: "residual_norm".into(),
        module: "/home/ada/jacobi".into(),
        file: file.map(str::to_owned),
        line: file.map(|_| 36),
        longer_s: 1.5,
        error_s: 0.1,
        part,
    };
    let of = |mutual, ranks, function| {
        let (does, place) = (Does::Computes, Context::Region("solve".into()));
        let (rank, thread, seconds, share) = (2, 0, 4.5, 0.97);
        let function = Some(function);
        let text = words(&Finding::Delay(Delay {
            rank,
            thread,
            does,
            place,
            seconds,
            share,
            ranks,
            mutual,
            function,
            slowest_thread: None,
        }));
        assert_short(&text);
        text.split_once(". ").expect("two sentences").0.to_owned()
    };
    assert_eq!(
        of(false, 8, longer(0.95, Some("src/jacobi.c"))),
        "Rank 2 computes longer in residual_norm (jacobi.c:36) and delays the other ranks"
    );
    assert_eq!(
        of(false, 2, longer(0.61, None)),
        "Rank 2 computes longer in residual_norm (jacobi) (61 % of its delay) and delays the other rank"
    );
    assert_eq!(
        of(true, 8, longer(1.0, Some("jacobi.c"))),
        "The ranks delay each other, rank 2 most: it computes longer in residual_norm (jacobi.c:36)"
    );
}
