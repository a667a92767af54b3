use super::*;

fn table(text: &str) -> Observations {
    Observations::from_csv("t.csv", text.as_bytes()).unwrap()
}

fn error_of(text: &[u8]) -> String {
    Observations::from_csv("t.csv", text).unwrap_err().to_string()
}

/// A table whose last point contradicts the others: its ranks shared cores.
pub(crate) fn contradicted() -> Observations {
    let run = |p: u32, tau_s: f64, lack: Option<LackOfCores>| {
        let gamma_s = 0.2 / f64::from(p);
        let rank = |rank| RankTimes { rank, gamma_s, chi_s: tau_s - gamma_s };
        let ranks = (0..p).map(rank).collect();
        let (name, params) = (format!("p{p}"), Vec::new());
        RunFigures { name, p, tau_s, ranks, flops: None, params, rep: None, lack }
    };
    let lack = LackOfCores { shared: Some((4, 2)), waited_share: Some(0.48) };
    let runs = [run(1, 0.25, None), run(2, 0.13, None), run(4, 3.98, Some(lack))];
    Observations::from_runs("study", &runs).unwrap()
}

#[test]
fn finds_columns_by_name_and_counts_lines() {
    let t =
        table("# measured on Monday\np, tau_s ,N,note\n1,2.5,1e3,first\n\n# again\n2,1.5,1000,\n");
    assert_eq!(t.counts(P).unwrap(), [1, 2]);
    assert_eq!(t.positive_numbers(TAU_S).unwrap(), [2.5, 1.5]);
    assert_eq!(t.texts("note").unwrap(), ["first", ""]);
    assert_eq!(t.parameters(), ["N", "note"]);
    let origins: Vec<_> = t.rows().iter().map(|row| row.origin.clone()).collect();
    assert_eq!(origins, [Origin::Line(3), Origin::Line(6)]);
    assert_eq!(t.groups(&["N"]).unwrap().len(), 1, "1e3 and 1000 are one number");
}

#[test]
fn byte_order_mark_and_carriage_returns_do_no_harm() {
    let plain = table("p,tau_s\n1,2\n2,1\n");
    let windows = table("\u{feff}p,tau_s\r\n1,2\r\n2,1\r\n");
    assert_eq!(plain.names(), windows.names());
    assert_eq!(plain.rows(), windows.rows());
    let late = table("\u{feff}# a comment behind the mark\r\np,tau_s\r\n1,2\r\n");
    assert_eq!(late.names(), plain.names());
    assert_eq!(late.rows()[0].origin, Origin::Line(3));
}

#[test]
fn quoted_cells_keep_commas_and_line_ends() {
    let t = table("p,run\n1,\"a,b\"\n2,\"c\nd\"\n3,e\n");
    assert_eq!(t.texts(RUN).unwrap(), ["a,b", "c\nd", "e"]);
    assert_eq!(t.rows()[2].origin, Origin::Line(5));
}

#[test]
fn reports_what_is_wrong_with_a_table() {
    for (text, message) in [
        (&b""[..], "t.csv: is empty; a table begins with"),
        (b"\xef\xbb\xbf", "t.csv: is empty; a table begins with"),
        (b"# only a comment\n\n", "t.csv: is empty; a table begins with"),
        (b"p,tau_s\n", "t.csv: has column names but no rows"),
        (b"p,p\n1,2\n", "t.csv: two columns are named p"),
        (b"p,,q\n1,2,3\n", "t.csv: column 2 has no name"),
        (b"p,q\n1,2\n1\n", "t.csv, line 3: has 1 cells, but there are 2 columns"),
        (b"p,q\n1,2,3\n", "t.csv, line 2: has 3 cells, but there are 2 columns"),
        (b"p;tau_s\n1;2,5\n", "t.csv, line 1: columns are separated by ';'"),
        (b"p\ttau_s\n1\t2.5\n", "t.csv, line 1: columns are separated by '\\t'"),
        (b"p,N\n1,\xff\n", "t.csv, line 2: is not UTF-8 text"),
    ] {
        let error = error_of(text);
        assert!(error.starts_with(message), "{error}\nexpected {message}");
    }
    let absent = Observations::read(std::path::Path::new("/nowhere/t.csv")).unwrap_err();
    assert!(absent.to_string().starts_with("/nowhere/t.csv: cannot be read"), "{absent}");
}

#[test]
fn reports_what_is_wrong_with_a_cell() {
    let t = table("p,tau_s,a,b,c,d\n1,2,x,nan,-1,1.5\n2,1,,inf,0,-3\n");
    let message = |result: Result<Vec<f64>, ObservationsError>| result.unwrap_err().to_string();
    assert_eq!(
        message(t.numbers("q")),
        "t.csv: has no column q; its columns are p, tau_s, a, b, c, d"
    );
    assert_eq!(message(t.numbers("a")), "t.csv, line 2: a \"x\" is not a number");
    assert_eq!(message(t.numbers("b")), "t.csv, line 2: b \"nan\" is not a finite number");
    assert_eq!(message(t.positive_numbers("c")), "t.csv, line 2: c \"-1\" is not above 0");
    assert_eq!(
        t.counts("d").unwrap_err().to_string(),
        "t.csv, line 2: d \"1.5\" is not a whole number from 1 to 4294967295"
    );
    let gaps = table("p,a\n1,\n2,7\n");
    assert_eq!(gaps.known_numbers("a").unwrap(), [None, Some(7.0)]);
    assert_eq!(message(gaps.numbers("a")), "t.csv, line 2: a is empty; a number is needed");
}

#[test]
fn groups_repetitions_and_refuses_duplicates() {
    let t = table("p,N,tau_s,rep\n1,5,3,1\n2,5,2,1\n1,5.0,2.5,2\n1,7,9,1\n1,5,4,3\n1,5,2.75,4\n");
    let tau = t.positive_numbers(TAU_S).unwrap();
    let groups = t.repetitions(&[P, "N"]).unwrap();
    let rows: Vec<_> = groups.iter().map(|group| group.rows.clone()).collect();
    assert_eq!(rows, [vec![0, 2, 4, 5], vec![1], vec![3]]);
    assert_eq!(groups[0].smallest(&tau), 2);
    let spread = groups[0].spread(&tau);
    assert_eq!(spread, Spread { number: 4, min: 2.5, median: 2.875, max: 4.0 });
    let error = t.repetitions(&["N"]).unwrap_err().to_string();
    assert!(error.starts_with("t.csv: line 2 and line 3 are both N=5, rep=1;"), "{error}");
    let error = table("p,tau_s\n4,1\n4,2\n").repetitions(&[P]).unwrap_err().to_string();
    assert!(error.starts_with("t.csv: line 2 and line 3 are both p=4;"), "{error}");
}

#[test]
fn written_tables_read_back_unchanged() {
    let t = table("p,tau_s,run\n1,0.1,\"a,b\"\n2,,c\n");
    let mut text = Vec::new();
    t.write_csv(&mut text).unwrap();
    let again = Observations::from_csv("t.csv", &text).unwrap();
    assert_eq!(again.names(), t.names());
    let cells = |t: &Observations| t.rows().iter().map(|row| row.cells.clone()).collect::<Vec<_>>();
    assert_eq!(cells(&again), cells(&t));
}

#[test]
fn parameters_that_vary_among_equal_rows_are_found_and_measurements_are_not() {
    let t =
        table("p,N,NB,gflops,tau_s\n1,10,64,1.5,4\n2,10,64,2.5,2\n1,20,64,3.5,9\n2,20,64,4.5,5\n");
    let by_p = t.groups(&["p"]).unwrap();
    assert_eq!(t.varying_within(&by_p, &["p"]).unwrap(), ["N"]);
    let by_n = t.groups(&["N"]).unwrap();
    assert_eq!(t.varying_within(&by_n, &["N"]).unwrap(), ["p"]);
    // Each rank count occurs once, and is still no measurement.
    let t_of_n = table("p,N,tau_s\n1,10,4\n2,10,2\n4,10,1\n8,20,5\n");
    let by_n = t_of_n.groups(&["N"]).unwrap();
    assert_eq!(t_of_n.varying_within(&by_n, &["N"]).unwrap(), ["p"]);
    let by_both = t.groups(&["p", "N"]).unwrap();
    assert!(t.varying_within(&by_both, &["p", "N"]).unwrap().is_empty());
}
