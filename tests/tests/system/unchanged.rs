//! At each level, a program gets exactly what the bare MPI returns: statuses, arrays and the bytes
//! around them, error codes, errno, results.

use system_tests::{Job, under_both, victim};

under_both! {
    fn statuses_arrays_and_error_codes(mpi) {
        for speaker in ["0", "1"] {
            let job = Job::new(mpi, &victim(mpi, "statuses")).ranks(2).argument(speaker);
            let bare = job.bare();
            bare.expect_code(0);
            assert!(bare.stdout.lines().count() > 100, "{bare}");
            for level in ["0", "1"] {
                let recorded = job.clone().environment("GAMMACHI_LEVEL", level).record();
                let (bare, own) = (bare.stdout.lines(), recorded.output.stdout.lines());
                let differing: Vec<String> = bare
                    .zip(own)
                    .filter(|(bare, own)| bare != own)
                    .map(|(bare, own)| format!("- {bare}\n+ {own}"))
                    .collect();
                assert!(
                    differing.is_empty(),
                    "rank {speaker} at level {level} (- bare, + recorded):\n{}\n{}",
                    differing.join("\n"),
                    recorded.output.stderr
                );
                recorded.expect_code(0).output.expect_same(&job.bare());
                assert_eq!(recorded.trace().rank(0).file.fixed.level.to_string(), level);
            }
        }
    }
}
