//! Reads lanes of parallel regions and of calls on files back from a trace for Perfetto.

use std::collections::HashMap;

use crate::export::beside::test_run::directory;
use crate::export::content::Export;
use crate::export::samples::test_run::exported_of;

use super::encoded::{INTERNED_DATA, TIMESTAMP, TRACK_EVENT};
use super::lanes::SEQUENCE;
use super::sample_tests::{fields, number};
use super::tracks::lane_of;
use super::write::write;

#[test]
fn lanes_have_slices_that_do_not_overlap() {
    let trace = exported_of(&directory(), |content, path, progress| {
        let scratch = path.parent().expect("a folder");
        write(Export { content, scratch, progress }, path)
    });
    let mut names: HashMap<u64, String> = HashMap::new();
    let mut slices: Vec<(u64, String, u64)> = Vec::new();
    let mut ends: Vec<(u64, u64)> = Vec::new();
    for (_, _, packet) in fields(&trace) {
        let packet = fields(packet);
        if number(&packet, 10) != Some(SEQUENCE) {
            continue;
        }
        let of = |field: u32| packet.iter().filter(move |(number, ..)| *number == field);
        for (kind, _, entry) in of(INTERNED_DATA).flat_map(|(.., data)| fields(data)) {
            let entry = fields(entry);
            if kind == 2 {
                let name = String::from_utf8_lossy(entry[1].2).into_owned();
                names.insert(number(&entry, 1).expect("a number"), name);
            }
        }
        let at = number(&packet, TIMESTAMP).unwrap_or(0);
        for (.., event) in of(TRACK_EVENT) {
            let event = fields(event);
            let track = number(&event, 11).expect("a track");
            match number(&event, 9) {
                Some(1) => {
                    slices.push((track, names[&number(&event, 10).expect("a name")].clone(), at))
                }
                _ => ends.push((track, at)),
            }
        }
    }
    let lanes: Vec<(u64, &str)> =
        slices.iter().map(|(track, name, _)| (*track, name.as_str())).collect();
    let [teams, first, second] = [0, 1, 2].map(|lane| lane_of(0, 0, lane));
    assert_eq!(
        lanes,
        [
            (teams, "OMP parallel"),
            (first, "read x5"),
            (second, "write"),
            (first, "write x2 in MPI")
        ]
    );
    let lengths: Vec<u64> = slices
        .iter()
        .zip(&ends)
        .map(|((track, _, begin), (ended, end))| {
            assert_eq!(track, ended);
            (end - begin) / 1_000_000
        })
        .collect();
    assert_eq!(lengths, [20, 10, 15, 10]);
}
