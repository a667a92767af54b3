//! Sections that only some runs have: what did not finish, waits, call sites, the roofline, as values for
//! `panels.html`.

use std::collections::HashMap;

use minijinja::context;
use minijinja::value::Value;

use super::safe;
use crate::causes::State;
use crate::diagnosis::Why;
use crate::metrics::{SiteMetrics, Unfinished};
use crate::models::roofline::Findings;
use crate::plain_text::printable;
use crate::present::causes::{longest_waits, wait_rows};
use crate::present::report::sites;
use crate::present::{roofline, unfinished};

/// Rows of the table of ranks that did not finish.
const MAX_POSITIONS: usize = 200;
/// Rows of the table of causes.
const MAX_WAITS: usize = 50;
/// Rows of the table of the longest waits.
const MAX_LONGEST: usize = 20;
/// Rows of the table of call sites.
const MAX_SITES: usize = 200;

/// Where each rank stopped and what it waits for.
pub(super) fn unfinished(unfinished: &Unfinished) -> Value {
    let (positions, left_out) = unfinished::positions(unfinished, MAX_POSITIONS);
    let rows = positions.iter().map(|row| {
        context! {
            ranks => row.ranks,
            stands => row.location,
            since_s => row.since_s,
            lasted => row.lasted,
            waits_for => row.waits_for,
            process => row.process,
        }
    });
    context! {
        positions => rows.collect::<Vec<Value>>(),
        processes => positions.iter().any(|row| !row.process.is_empty()),
        left_out => left_out,
        sentences => unfinished::sentences(unfinished),
        last => unfinished::last_call_lines(unfinished),
    }
}

/// Groups of waits with the same cause, those with most time first, and how many groups are left out; then the longest
/// single waits. `unfinished` tells whom a rank waits for in a call that never returned.
pub(super) fn waits(why: &Why, unfinished: Option<&Unfinished>) -> Value {
    let (rows, left_out) = wait_rows(why, MAX_WAITS);
    let all_s: f64 =
        why.causes.groups.iter().map(|group| why.causes.clock.seconds(group.ticks)).sum();
    let rows = rows.into_iter().map(|row| {
        context! {
            state => row.state,
            waiters => row.waiters,
            delayed_by => row.delayed_by,
            delayed_by_rank => row.delayed_by_rank,
            ranks => rank_ranges(&row.ranks),
            group => row.group,
            count => row.count,
            time_s => row.seconds,
            share => (all_s > 0.0).then(|| row.seconds / all_s),
            place => printable(&row.place),
            late_by => printable(&row.late_by),
        }
    });
    let open = unfinished.map(open_waits).unwrap_or_default();
    let longest = longest_waits(why, MAX_LONGEST).into_iter().map(|wait| {
        let never_returned =
            wait.delayed_by_rank.is_none() && wait.state == State::OpenAtEnd.name();
        let stands = open.get(&wait.rank).filter(|_| never_returned);
        let delayed_by = stands.cloned().unwrap_or(wait.delayed_by);
        context! {
            rank => wait.rank,
            state => wait.state,
            place => printable(&wait.place),
            begin_s => wait.begin_s,
            end_s => wait.begin_s + wait.seconds,
            time_s => wait.seconds,
            delayed_by => printable(&delayed_by),
            delayed_by_rank => wait.delayed_by_rank,
            late_by => printable(&wait.late_by),
        }
    });
    context! {
        rows => rows.collect::<Vec<Value>>(),
        left_out,
        longest => longest.collect::<Vec<Value>>(),
    }
}

/// Whom each rank that did not finish waits for.
fn open_waits(unfinished: &Unfinished) -> HashMap<u32, String> {
    let (positions, _) = unfinished::positions(unfinished, MAX_POSITIONS);
    let waits =
        positions.into_iter().filter(|row| !row.waits_for.is_empty() && row.waits_for != "-");
    let each = waits.flat_map(|row| {
        let delayed_by = match row.waits_for.parse::<u32>() {
            Ok(rank) => format!("rank {rank}"),
            Err(_) => row.waits_for.clone(),
        };
        let ranges = row.ranks.split(',').filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
        });
        ranges.flatten().map(move |rank| (rank, delayed_by.clone())).collect::<Vec<_>>()
    });
    each.collect()
}

/// Ascending ranks as the script reads them: `0-3,8`.
fn rank_ranges(ranks: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(rank) => *last = rank,
            _ => ranges.push((rank, rank)),
        }
    }
    let text = |(first, last): (u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.into_iter().map(text).collect::<Vec<_>>().join(",")
}

/// Call sites, those with most time first, and how many are left out; `total_s` is the time of
/// all threads that call MPI.
pub(super) fn sites(metrics: &SiteMetrics, total_s: f64) -> (Vec<Value>, usize) {
    let rows = metrics.rows.iter().take(MAX_SITES).map(|row| {
        context! {
            function => row.function,
            place => printable(&sites::place(row)),
            count => row.count,
            time_s => row.time_s,
            share => (total_s > 0.0).then(|| row.time_s / total_s),
            max_s => row.max_s,
            ranks => row.ranks,
        }
    });
    (rows.collect(), metrics.rows.len().saturating_sub(MAX_SITES))
}

/// The run under the roofline of a machine.
pub(super) fn roofline(findings: &Findings) -> Value {
    let document = roofline::value(findings);
    let placed: Vec<_> = findings.runs.iter().flat_map(|run| &run.assessed).collect();
    let documents = document["runs"].as_array().into_iter().flatten();
    let documents = documents.flat_map(|run| run["points"].as_array().into_iter().flatten());
    let total_bytes = |bytes: &serde_json::Value| {
        bytes["sent"].as_f64().zip(bytes["received"].as_f64()).map(|(out, into)| out + into)
    };
    let points = placed.iter().zip(documents).map(|(placed, point)| {
        context! {
            label => roofline::label(&placed.point),
            ranks => point["ranks"].as_u64(),
            elapsed_s => point["elapsed_s"].as_f64(),
            flops => point["flops"].as_f64(),
            between => total_bytes(&point["bytes_between_hosts"]),
            inside => total_bytes(&point["bytes_inside_hosts"]),
            flops_per_byte => point["flops_per_byte"].as_f64(),
            attained => point["attained_flops_per_s"].as_f64(),
            of_roof => point["of_roof"].as_f64(),
            computing => point["share_computing"].as_f64(),
            while_computing => point["rate_while_computing_flops_per_s"].as_f64(),
        }
    });
    let figures = roofline::drawings(findings).into_iter();
    let figures = figures.map(|(_, figure)| safe(figure.svg_for_page()));
    let notes = findings.runs.iter().flat_map(|run| &run.notes).chain(&findings.notes);
    context! {
        points => points.collect::<Vec<Value>>(),
        sentences => placed.iter().map(|placed| roofline::sentence(placed)).collect::<Vec<_>>(),
        figures => figures.collect::<Vec<Value>>(),
        notes => notes.collect::<Vec<_>>(),
        source => findings.source.as_deref().unwrap_or("none"),
    }
}
