//! `gammachi whatif`: a program whose time is known from its sleeps, replayed with a faster rank or
//! region.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use gammachi_analyzer::models::Machine;
use system_tests::directories::TempDir;
use system_tests::{Job, Mpi, Recorded, command, kernels, under_mpich, victim};

fn ask(recorded: &Recorded, question: &[&str]) -> Output {
    let mut command = Command::new(command());
    command.arg("whatif").arg(recorded.directory()).args(question).stdin(Stdio::null());
    command.output().expect("the command starts")
}

fn document(recorded: &Recorded, question: &[&str]) -> serde_json::Value {
    let output = ask(recorded, &[question, &["--json"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{stderr}{text}");
    serde_json::from_str(&text).expect("JSON")
}

fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// Seconds of the only answer.
fn answer(recorded: &Recorded, question: &[&str]) -> f64 {
    let document = document(recorded, question);
    assert_eq!(document["answers"].as_array().map(Vec::len), Some(1), "{document:#}");
    let answer = &document["answers"][0];
    let (elapsed, low, high) =
        (number(&answer["elapsed_s"]), number(&answer["lo_s"]), number(&answer["hi_s"]));
    assert!(low < elapsed && elapsed < high, "{answer:#}");
    elapsed
}

/// Records two ranks; rank 0 sleeps in region "late" for this time.
fn record_delayed(mpi: Mpi, milliseconds: u32) -> Recorded {
    system_tests::delays::record_delayed(mpi, 2, &format!("0:7:{milliseconds}:r"))
}

under_mpich! {
    fn doubling_speed_saves_half_of_the_sleep(mpi) {
        let recorded = record_delayed(mpi, 600);
        let all = document(&recorded, &[]);
        let took = number(&all["self_replay"]["recorded_s"]);
        assert!(number(&all["self_replay"]["error"]).abs() <= 0.03, "{all:#}");
        for question in [["--region", "late"], ["--rank", "0"], ["--balance", "late"]] {
            let speed: &[&str] = if question[0] == "--balance" { &[] } else { &["--speed", "2"] };
            let would_take = answer(&recorded, &[&question, speed].concat());
            let saved = took - would_take;
            assert!((saved - 0.3).abs() < 0.05, "{question:?} saves {saved} s of {took}: {all:#}");
        }
        // Rank 1 waits for rank 0: its own speed saves next to nothing.
        assert!(answer(&recorded, &["--rank", "1", "--speed", "2"]) > took - 0.1);
    }

    fn answers_all_standard_questions_without_options(mpi) {
        let recorded = record_delayed(mpi, 300);
        let screen = ask(&recorded, &[]);
        let screen = String::from_utf8_lossy(&screen.stdout).into_owned();
        let words: Vec<&str> = screen.split_whitespace().collect();
        let words = words.join(" ");
        for part in ["WHAT IF", "region late divided evenly", "ideal network", "TOLERATES", "NETWORK"] {
            assert!(words.contains(part), "{part}: {screen}");
        }
        let document = document(&recorded, &[]);
        let took = number(&document["self_replay"]["recorded_s"]);
        let answers = document["answers"].as_array().expect("a list");
        let of = |question: &str| {
            let found = answers.iter().find(|answer| answer["question"] == question);
            number(&found.unwrap_or_else(|| panic!("no {question}: {document:#}"))["elapsed_s"])
        };
        // One sleep of 300 ms and 20 of 2 ms remain on any network.
        assert!((0.34..=took * 1.01).contains(&of("ideal_network")), "{document:#}");
        assert!(of("balance_late") < took - 0.1);
        let tolerated = document["tolerance"].as_array().expect("a list");
        let latencies: Vec<f64> = tolerated.iter().map(|row| number(&row["latency_s"])).collect();
        assert!(latencies.is_sorted() && latencies[0] > 0.0, "{latencies:?}");
        let why = Command::new(command()).arg("why").arg(recorded.directory()).arg("--json").output();
        let why = why.expect("the command starts");
        let why: serde_json::Value = serde_json::from_slice(&why.stdout).expect("JSON");
        let tree = &why["tree"];
        let product = number(&tree["serialisation"]) * number(&tree["transfer"]);
        assert!((product - number(&tree["communication"])).abs() < 1e-9, "{tree:#}");
    }

    fn measured_machine_replaces_the_network(mpi) {
        let temp = TempDir::new();
        let launcher = mpi.launcher();
        let mut calibrate = Command::new(command());
        calibrate.current_dir(temp.path()).envs(mpi.environment().iter().copied()).stdin(Stdio::null());
        calibrate.args(["calibrate", "--quick", "--max-bytes", "16384", "--kernels"]).arg(kernels(mpi));
        calibrate.arg("--").arg(launcher.get_program()).args(launcher.get_args()).args(["-n", "2"]);
        let calibrated = calibrate.output().expect("the command starts");
        assert!(calibrated.status.success(), "{}", String::from_utf8_lossy(&calibrated.stderr));
        let file = temp.join("machine.json");
        let recorded = record_delayed(mpi, 10);
        let file_name = file.to_str().expect("UTF-8");
        let elapsed = |document: &serde_json::Value| number(&document["answers"][0]["elapsed_s"]);
        let fast = elapsed(&document(&recorded, &["--machine", file_name]));
        let mut machine = Machine::read(&file).expect("a machine");
        let slow = &mut machine.network.classes[0];
        slow.sizes.iter_mut().for_each(|size| size.half_rtt_s.median += 1e-3);
        let word = slow.sizes[0].clone();
        machine.write(&file).expect("writable");
        let overheads = word.send_overhead_s.median.max(0.0) + word.receive_overhead_s.median.max(0.0);
        let latency = (word.half_rtt_s.median - overheads).max(0.0);

        let asked_for = document(&recorded, &["--machine", file_name]);
        let within = &asked_for["asked"]["within"];
        assert!((number(&within["latency_s"]) / latency - 1.0).abs() < 1e-9, "{asked_for:#}");
        assert_eq!(
            (&within["latency_from"], &asked_for["asked"]["between"]["latency_from"]),
            (&"machine".into(), &"assumed".into())
        );
        assert_eq!(asked_for["asked"]["overhead_from"], "machine");
        // Twenty times around the ring and a reduction: each needs at least a message.
        let slow = elapsed(&asked_for);
        assert!(slow > fast + 0.01 && slow < fast + 1.0, "{fast} s, {slow} s");
        // Options take precedence over the machine.
        let options = ["--machine", file_name, "--latency", "1us"];
        let given = document(&recorded, &options);
        assert_eq!(given["asked"]["within"]["latency_from"], "given");
        assert!(elapsed(&given) < slow - 0.01, "{given:#}");
        let screen = ask(&recorded, &options);
        let screen = String::from_utf8_lossy(&screen.stdout).into_owned();
        assert!(screen.contains("ASKED FOR") && screen.contains("1.00 µs (given)"), "{screen}");

        machine.network.classes[0].class = "other-host".into();
        machine.write(&file).expect("writable");
        let refused = ask(&recorded, &["--machine", file_name]);
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("no pairs of class same-host, which matter"), "{stderr}");
    }

    fn mapping_to_other_hosts_needs_a_known_network(mpi) {
        let recorded = system_tests::delays::record_delayed(mpi, 4, "0:7:10:e");
        let expect_refusal = |question: &[&str], sentence: &str| {
            let output = ask(&recorded, question);
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{question:?}: {stderr}");
            assert!(stderr.contains(sentence), "{question:?}: {stderr}");
        };
        expect_refusal(&["--map", "block"], "give the number of hosts");
        expect_refusal(&["--map", "cyclic", "--hosts", "5"], "the run has 4 ranks, fewer than hosts");
        expect_refusal(&["--map", "nowhere"], "neither block nor cyclic nor a file");
        expect_refusal(&["--hosts", "2"], "--map");
        let two = ["--map", "block", "--hosts", "2"];
        expect_refusal(&two, "no messages between hosts, so their latency and bandwidth cannot be known");
        expect_refusal(&[&two[..], &["--latency", "2ms"]].concat(), "so their bandwidth cannot be known: give --machine");

        let network = ["--latency", "2s", "--bandwidth", "1G"];
        let by = |map: &[&str]| document(&recorded, &[&["--map"], map, &network].concat());
        let block = by(&["block", "--hosts", "2"]);
        assert_eq!(block["answers"][0]["question"], "network+map_block_2");
        assert_eq!(block["asked"]["between"]["latency_from"], "given");
        // Twenty times around a ring that crosses the hosts; ranks that wait for cores hide a part of
        // it. Of a run on a busy machine no more than an interval may be known.
        let (answer, recorded_s) = (&block["answers"][0], number(&block["self_replay"]["recorded_s"]));
        assert!(number(&answer["hi_s"]) > recorded_s + 5.0, "{block:#}");
        assert!(answer["elapsed_s"].as_f64().is_none_or(|time| time > recorded_s + 5.0), "{block:#}");
        let temp = TempDir::new();
        let file = |hosts: &str| {
            std::fs::write(temp.join("hosts"), hosts).expect("writable");
            by(&[temp.join("hosts").to_str().expect("UTF-8")])
        };
        let racks = file("# racks\nn1\nn1\nn2\nn2\n");
        for time in ["elapsed_s", "lo_s", "hi_s"] {
            assert_eq!(racks["answers"][0][time], block["answers"][0][time], "{racks:#}");
        }
        expect_refusal(&["--map", temp.join("hosts").to_str().expect("UTF-8"), "--hosts", "2"], "leave out --hosts");
        // On one host no messages go between hosts: the given latency applies within the host.
        assert_eq!(file("n1\nn1\nn1\nn1\n")["asked"]["within"]["latency_from"], "given");
        let screen = ask(&recorded, &[&two[..], &network].concat());
        let screen = String::from_utf8_lossy(&screen.stdout).into_owned();
        for part in ["ranks placed in blocks on 2 hosts", "between hosts", "(given)", "on their new hosts"] {
            assert!(screen.contains(part), "{part}: {screen}");
        }
    }

    fn replay_is_a_run_marked_as_simulated(mpi) {
        let recorded = record_delayed(mpi, 600);
        let temp = TempDir::new();
        let out = temp.join("faster");
        let out = out.to_str().expect("UTF-8");
        let question = ["--region", "late", "--speed", "2", "--out", out];
        let answered = document(&recorded, &question);
        let promised = number(&answered["answers"][0]["elapsed_s"]);
        let read = |command_name: &str, run: &Path, words: &[&str]| {
            let mut gammachi = Command::new(command());
            let output = gammachi.arg(command_name).arg(run).args(words).output().expect("it starts");
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{command_name}: {stderr}");
            String::from_utf8(output.stdout).expect("UTF-8")
        };
        let json = |name: &str, run: &Path| -> serde_json::Value {
            serde_json::from_str(&read(name, run, &["--json"])).expect("JSON")
        };
        let simulated = Path::new(out);
        let (before, after) = (json("why", &recorded.directory()), json("why", simulated));
        assert!((number(&after["elapsed_s"]) / promised - 1.0).abs() < 1e-4, "{promised}: {after:#}");
        assert!(number(&after["elapsed_s"]) < number(&before["elapsed_s"]) - 0.2);
        // Rank 1 still waits for rank 0 because of the region, for half as long. Other waits may change as well.
        let waited = |why: &serde_json::Value| {
            let causes = why["causes"].as_array().expect("causes").iter();
            let late = causes.filter(|cause| cause["context"] == "region late");
            late.map(|cause| number(&cause["seconds"])).sum::<f64>()
        };
        assert!((waited(&before) - waited(&after) - 0.3).abs() < 0.1, "{before:#}{after:#}");
        // Every event is present, with the same attributes.
        let events = |run: &Path| {
            let text = read("dump", run, &["--rank", "0", "--json"]);
            let functions = text.matches("\"function\"").count();
            (text.lines().count(), functions)
        };
        assert_eq!(events(simulated), events(&recorded.directory()));
        let report = read("report", simulated, &[]);
        // Lines break inside sentences.
        let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(report.contains("(simulated)") && report.contains("its times were not measured"), "{report}");
        assert!(report.contains("region late is 2 times as fast"), "{report}");
        read("view", simulated, &["--text"]);
        let again = read("whatif", simulated, &["--rank", "0", "--speed", "1", "--json"]);
        let again: serde_json::Value = serde_json::from_str(&again).expect("JSON");
        assert!((number(&again["self_replay"]["recorded_s"]) / promised - 1.0).abs() < 1e-4, "{again:#}");

        let refused = ask(&recorded, &question);
        assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
        let standard = ask(&recorded, &["--out", temp.join("other").to_str().expect("UTF-8")]);
        assert_eq!(standard.status.code(), Some(2));
        assert!(!temp.join("other").exists());
    }

    fn rejects_questions_that_cannot_be_answered(mpi) {
        let recorded = record_delayed(mpi, 10);
        let wrong: [(&[&str], &str); 6] = [
            (&["--rank", "9", "--speed", "2"], "no file of that rank"),
            (&["--region", "none", "--speed", "2"], "no such region, but late"),
            (&["--host", "elsewhere", "--speed", "2"], "no rank there"),
            (&["--speed", "2"], "name a --rank"),
            (&["--latency", "soon"], "neither a time"),
            (&["--rank", "0"], "--speed"),
        ];
        for (question, sentence) in wrong {
            let output = ask(&recorded, question);
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{question:?}: {stderr}");
            assert!(stderr.contains(sentence), "{question:?}: {stderr}");
        }
        let job = Job::new(mpi, &victim(mpi, "comes_late")).ranks(2);
        let bare = job.environment("GAMMACHI_LEVEL", "0").record();
        bare.expect_code(0);
        let output = ask(&bare, &[]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("cannot be replayed: it was recorded at level 0"), "{stderr}");
    }
}
