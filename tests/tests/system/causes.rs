//! `gammachi why` finds delays inserted into a program, with rank, place and cost.

use std::process::{Command, Stdio};

use system_tests::delays::record_until;
use system_tests::kernels::command;
use system_tests::{Job, Mpi, Recorded, under_mpich, victim};

/// Ranks of the jobs.
const RANKS: u32 = 4;

fn why(recorded: &Recorded, more: &[&str]) -> (String, serde_json::Value) {
    let run = |json: &[&str]| {
        let mut command = Command::new(command());
        command.arg("why").arg(recorded.directory()).args(more).args(json).stdin(Stdio::null());
        let output = command.output().expect("the command starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    (run(&[]), serde_json::from_str(&run(&["--json"])).expect("JSON"))
}

/// The output of `gammachi report`.
fn report(recorded: &Recorded, more: &[&str]) -> String {
    let mut command = Command::new(command());
    command.arg("report").arg(recorded.directory()).args(more).stdin(Stdio::null());
    let output = command.output().expect("the command starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn number_of(value: &serde_json::Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn ticks(value: &serde_json::Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is not a whole number"))
}

/// Records a job with delays. A busy machine takes ranks off their cores, so that not the sleeps alone
/// cause the waiting; then it is recorded again.
fn record_undisturbed(mpi: Mpi, delays: &[&str]) -> Recorded {
    let record = || {
        let job = Job::new(mpi, &victim(mpi, "comes_late")).ranks(RANKS);
        let recorded = delays.iter().fold(job, |job, delay| job.argument(delay)).record();
        recorded.expect_code(0);
        recorded
    };
    record_until(record, |recorded| {
        let (_, why) = why(recorded, &[]);
        let causes = why["causes"].as_array().expect("a list").iter();
        let inside_calls = causes.filter(|cause| cause["kind"] == "transfer");
        let inside_calls: f64 = inside_calls.map(|cause| number_of(&cause["seconds"])).sum();
        inside_calls <= 0.05 * number_of(&why["waiting"]["total_s"]) && !lacked_cores(&why)
    })
}

/// Whether ranks waited for cores so much that nobody is blamed.
fn lacked_cores(why: &serde_json::Value) -> bool {
    let mut findings = why["findings"].as_array().expect("a list").iter();
    findings.any(|one| one["kind"] == "lack_of_cores" && one["decisive"] == true)
}

/// Records a job with delays; returns screen, document and standard output, where the ranks print
/// how long they slept.
fn record_delayed(mpi: Mpi, delays: &[&str]) -> (String, serde_json::Value, String) {
    let recorded = record_undisturbed(mpi, delays);
    let (screen, why) = why(&recorded, &[]);
    (screen, why, recorded.output.stdout.clone())
}

/// Seconds that a rank slept at a place.
fn slept(stdout: &str, rank: u32, place: char) -> f64 {
    let begins = format!("rank {rank} slept ");
    let found = stdout.lines().filter_map(|line| line.strip_prefix(&begins)?.split_once(" s at "));
    let mut found = found.filter(|(_, at)| at.starts_with(place)).map(|(seconds, _)| seconds);
    let seconds = found.next().and_then(|seconds| seconds.parse().ok());
    seconds.unwrap_or_else(|| panic!("rank {rank} printed no sleep at {place}: {stdout}"))
}

/// Checks the sums that hold in every document.
fn assert_sums(why: &serde_json::Value) {
    assert_eq!(why["complete"], true, "{why}");
    let causes = why["causes"].as_array().expect("a list");
    assert_eq!(why["causes_omitted"]["count"], 0);
    let charged: i64 = causes.iter().map(|cause| ticks(&cause["ticks"])).sum();
    let waiting = &why["waiting"];
    assert_eq!(
        charged + ticks(&waiting["unattributed_ticks"]),
        ticks(&waiting["total_ticks"]),
        "every tick is charged once"
    );
    assert_eq!(ticks(&why["critical_path"]["ticks"]), ticks(&why["elapsed_ticks"]));
}

/// Seconds charged to a rank in contexts that contain a text.
fn cost(why: &serde_json::Value, rank: u32, context: &str) -> f64 {
    let causes = why["causes"].as_array().expect("a list").iter();
    let found = causes.filter(|cause| {
        cause["rank"] == rank && cause["context"].as_str().is_some_and(|c| c.contains(context))
    });
    found.map(|cause| number_of(&cause["seconds"])).sum()
}

/// Checks that the others' waiting for a rank's sleep, given in seconds, is charged to this rank.
/// More may be charged: where cores are shared, the same code takes longer in other iterations,
/// too.
fn assert_costs(why: &serde_json::Value, rank: u32, context: &str, slept: f64) {
    let expected = f64::from(RANKS - 1) * slept;
    let found = cost(why, rank, context);
    assert!(found >= 0.9 * expected - 0.01, "{found} s, not {expected}: {why:#}");
    assert!(found <= number_of(&why["waiting"]["total_s"]), "{why:#}");
}

under_mpich! {
    fn blames_sleeping_rank_and_names_the_place(mpi) {
        let (screen, why, stdout) = record_delayed(mpi, &["2:7:400:s"]);
        assert_sums(&why);
        let first = &why["causes"][0];
        assert_eq!(first["rank"], 2, "{why:#}");
        // The sleep is nearly all of what counts as its computation, or not quite, if ranks share cores.
        assert!(["computation", "asleep"].contains(&first["kind"].as_str().expect("a text")), "{why:#}");
        let context = first["context"].as_str().expect("a text");
        assert!(context.starts_with("between MPI_Sendrecv"), "{context}");
        assert_costs(&why, 2, "between MPI_Sendrecv", slept(&stdout, 2, 's'));
        // Lines break inside sentences.
        let words: Vec<&str> = screen.split_whitespace().collect();
        let said = words.join(" ").replace("it sleeps or is blocked longer", "its computation");
        let said = said.replace("it is outside MPI longer", "its computation");
        let sentence = "Rank 2 delays the other ranks: its computation between MPI_Sendrecv";
        assert_eq!(said.contains(sentence), !lacked_cores(&why), "{screen}");
        let longest = &why["waits"][0];
        assert_eq!((&longest["delayed_by"], &longest["state"]), (&2.into(), &"wait_at_nxn".into()));
        assert_eq!(longest["function"], "MPI_Allreduce");
    }

    fn charges_propagated_delay_to_its_origin(mpi) {
        let (_, why, stdout) = record_delayed(mpi, &["1:3:400:e"]);
        assert_sums(&why);
        assert_eq!(why["causes"][0]["rank"], 1, "{why:#}");
        // The next rank in the ring waits for the message; the others wait for both of them in the
        // reduction.
        assert_costs(&why, 1, "MPI_Allreduce", slept(&stdout, 1, 'e'));
    }

    fn separates_two_causes_and_names_the_region(mpi) {
        let (_, why, stdout) = record_delayed(mpi, &["0:4:300:s", "3:12:500:r"]);
        assert_sums(&why);
        let first = &why["causes"][0];
        assert_eq!((&first["rank"], &first["region"]), (&3.into(), &"late".into()), "{why:#}");
        assert_costs(&why, 3, "region late", slept(&stdout, 3, 'r'));
        assert_costs(&why, 0, "between MPI_Sendrecv", slept(&stdout, 0, 's'));
    }

    fn finds_iterations_and_regions_and_names_the_slow_ones(mpi) {
        let recorded = record_undisturbed(mpi, &["2:7:400:s", "1:12:300:r"]);
        let stdout = &recorded.output.stdout;
        let (screen, all) = why(&recorded, &[]);
        let iterations = &all["iterations"];
        assert_eq!(iterations["count"], 20, "{iterations:#}");
        let slow = iterations["slow"].as_array().expect("a list");
        // A busy machine may prolong either iteration.
        for (index, delayed_by) in [(7, 2), (12, 1)] {
            let matches = |one: &&serde_json::Value| one["index"] == index;
            let found = slow.iter().take(2).find(matches).map(|one| &one["delayed_by"]);
            assert_eq!(found, Some(&delayed_by.into()), "iteration {index}: {iterations:#}");
        }
        assert!(screen.contains("ITERATIONS  20 iterations"), "{screen}");
        assert!(all["phases"][0]["tree"]["moving_imbalance"].is_number(), "{all:#}");
        let region = &all["regions"][0];
        assert_eq!((&region["name"], &region["count"]), (&"late".into(), &80.into()));
        // The selected part of the run has its own waits and causes, which still add up.
        let (screen, seventh) = why(&recorded, &["--iteration", "7"]);
        assert_sums(&seventh);
        assert_costs(&seventh, 2, "between MPI_Sendrecv", slept(stdout, 2, 's'));
        let waits = seventh["waits"].as_array().expect("a list");
        assert!(waits.iter().all(|wait| wait["iteration"] == 7), "{seventh:#}");
        assert!(cost(&seventh, 1, "region late") < 0.01, "{screen}");
        let command = |option: &str, value: &str| {
            let mut command = Command::new(command());
            command.arg("why").arg(recorded.directory()).args([option, value]).stdin(Stdio::null());
            command.output().expect("the command starts")
        };
        for (option, value, words) in
            [("--iteration", "20", "has the iterations 0 to 19"), ("--region", "lat", "there are: late")]
        {
            let output = command(option, value);
            assert_eq!(output.status.code(), Some(2));
            assert!(String::from_utf8_lossy(&output.stderr).contains(words), "{output:?}");
        }
    }

    fn exports_waits_causes_iterations_and_critical_path(mpi) {
        let recorded = record_undisturbed(mpi, &["2:7:400:s"]);
        let (_, all) = why(&recorded, &[]);
        let out = recorded.directory().with_extension("tables");
        let mut export = Command::new(command());
        export.arg("export").arg(recorded.directory()).args(["--to", "csv", "--out"]).arg(&out);
        assert!(export.stdin(Stdio::null()).status().expect("the command starts").success());
        let rows = |table: &str| -> Vec<Vec<String>> {
            let text = std::fs::read_to_string(out.join(table).with_extension("csv"));
            let text = text.unwrap_or_else(|error| panic!("{table}: {error}"));
            let cells = |line: &str| line.split(',').map(str::to_owned).collect();
            text.lines().skip(1).map(cells).collect()
        };
        let of_document = all["waits"].as_array().map_or(0, Vec::len)
            + all["waits_omitted"]["count"].as_u64().expect("a number") as usize;
        assert_eq!(rows("waits").len(), of_document);
        assert_eq!(rows("iterations").len(), 20);
        assert_eq!(rows("causes").len(), all["causes"].as_array().map_or(0, Vec::len));
        let path: i64 = rows("critical_path")
            .iter()
            .map(|row| row[3].parse::<i64>().expect("an end") - row[2].parse::<i64>().expect("a begin"))
            .sum();
        let elapsed = number_of(&all["elapsed_s"]) * 1e9;
        assert!((path as f64 - elapsed).abs() < 1e4, "{path} ns of {elapsed}");
        let labels = all["critical_path"]["labels"].as_array().expect("a list");
        let sum = |table: &str, column: usize| -> f64 {
            rows(table).iter().map(|row| row[column].parse::<f64>().expect("a number")).sum()
        };
        let of_labels = |part: &str, key: &str| -> f64 {
            labels.iter().map(|label| number_of(&label[part][key])).sum()
        };
        assert_eq!(rows("path_labels").len(), labels.len());
        let (ns, s) = (sum("path_labels", 14), of_labels("on_path", "seconds"));
        assert!((ns - s * 1e9).abs() < 1e4, "{ns} ns of {s} s");
        let bytes = of_labels("on_ranks", "bytes");
        assert_eq!((sum("path_labels", 21), sum("path_label_sizes", 3)), (bytes, bytes));
    }

    fn finds_causes_of_waits_in_probe_fence_dup_and_wrong_order(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "waits_in_other_calls")).ranks(3).record();
        recorded.expect_code(0);
        let (_, why) = why(&recorded, &[]);
        assert_sums(&why);
        let waits = why["waits"].as_array().expect("a list");
        for (rank, delayed_by, state, function) in [
            (0, 1, "late_sender", "MPI_Probe"),
            (0, 2, "one_sided", "MPI_Win_fence"),
            (1, 2, "one_sided", "MPI_Win_fence"),
            (2, 1, "wait_at_nxn", "MPI_Comm_dup"),
            (0, 2, "late_sender_wrong_order", "MPI_Recv"),
        ] {
            let matches = |wait: &&serde_json::Value| {
                wait["rank"] == rank && wait["function"] == function && number_of(&wait["seconds"]) > 0.15
            };
            let found = waits.iter().find(matches).unwrap_or_else(|| panic!("{function}: {why:#}"));
            assert_eq!((&found["state"], &found["delayed_by"]), (&state.into(), &delayed_by.into()), "{why:#}");
        }
        let missing = why["missing"].to_string();
        assert!(!missing.contains("one-sided") && !missing.contains("probe"), "{missing}");
    }

    fn finds_causes_of_waits_for_posts_completes_locks_and_neighbours(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "waits_for_some_ranks")).ranks(4).record();
        recorded.expect_code(0);
        let (_, why) = why(&recorded, &[]);
        assert_sums(&why);
        let waits = why["waits"].as_array().expect("a list");
        let long = |wait: &&serde_json::Value| number_of(&wait["seconds"]) > 0.15;
        // Libraries block for a post and for a lock in different calls.
        for (rank, delayed_by, state) in
            [(1, 0, "one_sided"), (0, 1, "one_sided"), (1, 2, "lock"), (2, 3, "wait_at_nxn")]
        {
            let is_state = |wait: &&&serde_json::Value| wait["rank"] == rank && wait["state"] == state;
            let found = waits.iter().filter(long).find(|wait| is_state(&wait));
            let found = found.unwrap_or_else(|| panic!("{state}: {why:#}"));
            assert_eq!(found["delayed_by"], delayed_by, "{found:#}");
        }
        // Rank 1 is no neighbour of the late rank.
        let of_row = waits.iter().filter(long).filter(|wait| wait["function"] == "MPI_Neighbor_allgather");
        assert!(of_row.clone().all(|wait| wait["rank"] == 2), "{why:#}");
        let missing = why["missing"].to_string();
        assert!(!missing.contains("one-sided") && !missing.contains("neighbour"), "{missing}");
    }

    fn report_and_page_start_with_the_cause(mpi) {
        let recorded = record_undisturbed(mpi, &["2:7:400:s"]);
        let screen = report(&recorded, &[]);
        let words: Vec<&str> = screen.split_whitespace().collect();
        // Rank 2 sleeps; that is said if the kernel's times of the process show it.
        let sentence =
            |what: &str| format!("Rank 2 delays the other ranks: {what} between MPI_Sendrecv");
        let all = ["its computation", "it sleeps or is blocked longer", "it is outside MPI longer"];
        // Beside other load the report says just that, and judges nothing else.
        let lacks_cores = screen.contains("unreliable: ranks lacked cores");
        let is_named = all.iter().any(|what| words.join(" ").contains(&sentence(what)));
        assert!(is_named || lacks_cores, "{screen}");
        let first = screen.lines().skip_while(|line| !line.starts_with("WAIT STATES")).nth(1);
        let first = first.unwrap_or_else(|| panic!("no table of waits: {screen}"));
        let parts = ["wait at N x N", "MPI_Allreduce", "rank 2", " longer"];
        assert!(parts.iter().all(|part| first.contains(part)), "{first}");
        let document: serde_json::Value =
            serde_json::from_str(&report(&recorded, &["--json"])).expect("JSON");
        assert_eq!(document["causes"]["costliest"][0]["rank"], 2, "{document:#}");
        let page = recorded.directory().with_file_name("page.html");
        report(&recorded, &["--html", page.to_str().expect("UTF-8")]);
        let page = std::fs::read_to_string(page).expect("a page");
        assert!(page.contains(r#"id="wait-table""#) && page.contains(">longer "));
        // Without messages there are no causes and nothing that needs them.
        let screen = report(&recorded, &["--no-messages"]);
        assert!(!screen.contains("delays the other") && !screen.contains("WAIT STATES"), "{screen}");
    }

    fn explains_the_recorded_part_of_a_killed_job(mpi) {
        let recorded = Job::new(mpi, &victim(mpi, "dies_sigkill")).ranks(2).record();
        let (screen, why) = why(&recorded, &[]);
        assert_eq!(why["complete"], false, "{screen}");
        let charged = why["causes"].as_array().expect("a list").iter();
        let charged: i64 = charged.map(|cause| ticks(&cause["ticks"])).sum();
        let waiting = &why["waiting"];
        let total = ticks(&waiting["total_ticks"]);
        assert_eq!(charged + ticks(&waiting["unattributed_ticks"]), total, "{why:#}");
        // The killed rank waits for nobody.
        let mut states = why["states"].as_array().expect("a list").iter();
        assert!(!states.any(|state| state["state"] == "wait_at_finalize"), "{why:#}");
    }
}

#[test]
fn rejects_rank_outside_the_world() {
    let recorded = Job::new(Mpi::Mpich, &victim(Mpi::Mpich, "ring")).ranks(2).record();
    let mut command = Command::new(command());
    let output = command.arg("why").arg(recorded.directory()).args(["--rank", "2"]).output();
    let output = output.expect("the command starts");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("--rank 2") && text.contains("its world has 2 ranks"), "{text}");
}
