//! Reads the `.expected` file of a program: the calls that its trace must hold.
//!
//! `NAME.expected` has one call per line: `RANKS FUNCTION attribute=value …`.
//!
//! | written | means |
//! |---|---|
//! | `#` at the beginning, or ` # ` | a comment |
//! | `*`, `1`, `0-2`, `0,2` | ranks that make the call |
//! | `1.2` | thread 2 of rank 1 (without a dot: thread 0) |
//! | `{rank}`, `{4*rank-1}` | the rank, or an expression of it |
//! | `repeat 40 i=1` … `end` | the lines between, 40 times, with `{i}` counting from 1 |
//! | `r1..r40:0/7/4` | `r1:0/7/4` to `r40:0/7/4` |
//! | `?openmpi: `, `?mpich,abi: `, `?!mpi4py: ` | a line only where one (or, with `!`, none) of these holds:
//! |   | a family, an MPI (`openmpi4`, `mpich40`, else its short name), a language |
//!
//! The bytes of a call are `sent` if it only sends, `received` if it only receives, and `posted` if
//! it returns before the message arrives. A completed receive is `r1:SOURCE/TAG/BYTES`; other
//! requests are `r1:sent`, `r1:file/BYTES` or `r1:done`. A new communicator is
//! `c1[members]#instance` in world ranks (the instance counts earlier communicators of the same
//! parent); `|` separates the groups of an intercommunicator. `polls` is the number of merged calls
//! that found nothing.

use std::collections::BTreeMap;

use super::actual::Lines;

/// Lines of each thread in a world of that many ranks, under these `facts`.
///
/// # Panics
/// If the text cannot be parsed; the message shows the line.
pub fn lines(text: &str, facts: &[&str], ranks: usize) -> Lines {
    let mut lines = Lines::new();
    let text: Vec<&str> =
        text.lines().map(without_comment).filter(|line| !line.is_empty()).collect();
    read(&text, facts, ranks, &BTreeMap::new(), &mut lines);
    lines
}

fn without_comment(line: &str) -> &str {
    let line = line.split(" # ").next().unwrap_or_default().trim();
    if line.starts_with('#') { "" } else { line }
}

fn number(text: &str, line: &str) -> i64 {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is not a number in the expected line: {line}"))
}

fn read(
    text: &[&str],
    facts: &[&str],
    ranks: usize,
    values: &BTreeMap<String, i64>,
    lines: &mut Lines,
) {
    let mut at = 0;
    while at < text.len() {
        let line = text[at];
        at += 1;
        if let Some(rest) = line.strip_prefix("repeat ") {
            let end = at + end_of_block(&text[at..], line);
            let (times, variable) = rest.split_once(' ').unwrap_or((rest, "i=0"));
            let (name, first) = variable.split_once('=').unwrap_or((variable, "0"));
            let first = number(first, line);
            for value in first..first + number(times, line) {
                let mut inner = values.clone();
                inner.insert(name.to_owned(), value);
                read(&text[at..end], facts, ranks, &inner, lines);
            }
            at = end + 1;
            continue;
        }
        let line = match line.strip_prefix('?').and_then(|rest| rest.split_once(':')) {
            Some((condition, _)) if !holds(condition, facts) => continue,
            Some((_, rest)) => rest.trim(),
            None => line,
        };
        let (who, call) = line.split_once(' ').unwrap_or_else(|| panic!("no call in: {line}"));
        let (who, thread) = who.split_once('.').unwrap_or((who, "0"));
        for rank in ranks_of(who, ranks, line) {
            let mut values = values.clone();
            values.insert("rank".to_owned(), rank as i64);
            let call = expand_ranges(&substitute(call, &values), line);
            lines.entry((rank, number(thread, line) as u32)).or_default().push(call);
        }
    }
}

/// `a,b`: at least one of these facts holds; `!a,b`: none of them does.
fn holds(condition: &str, facts: &[&str]) -> bool {
    let (wanted, names) = match condition.strip_prefix('!') {
        Some(names) => (false, names),
        None => (true, condition),
    };
    names.split(',').any(|name| facts.contains(&name)) == wanted
}

fn end_of_block(text: &[&str], begin: &str) -> usize {
    let mut depth = 1;
    for (index, line) in text.iter().enumerate() {
        depth += i32::from(line.starts_with("repeat ")) - i32::from(*line == "end");
        if depth == 0 {
            return index;
        }
    }
    panic!("no end of: {begin}")
}

fn ranks_of(who: &str, ranks: usize, line: &str) -> Vec<usize> {
    if who == "*" {
        return (0..ranks).collect();
    }
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        number(first, line) as usize..=number(last, line) as usize
    };
    who.split(',').flat_map(part).collect()
}

/// Replaces each expression in braces by its value.
fn substitute(call: &str, values: &BTreeMap<String, i64>) -> String {
    let mut out = String::new();
    let mut rest = call;
    while let Some((before, (inside, after))) =
        rest.split_once('{').and_then(|(b, r)| Some((b, r.split_once('}')?)))
    {
        out.push_str(before);
        out.push_str(&value_of(inside, values, call).to_string());
        rest = after;
    }
    out + rest
}

/// Evaluates sums and differences of products of numbers and names: `4*i-1`.
fn value_of(text: &str, values: &BTreeMap<String, i64>, line: &str) -> i64 {
    let factor = |factor: &str| values.get(factor).copied().unwrap_or_else(|| number(factor, line));
    let product = |product: &str| product.split('*').map(factor).product::<i64>();
    let mut sum = 0;
    for added in text.split('+') {
        for (order, term) in added.split('-').enumerate() {
            let sign = if order > 0 { -1 } else { 1 };
            sum += sign * product(term);
        }
    }
    sum
}

/// Writes `r1..r3:sent` as `r1:sent r2:sent r3:sent`.
fn expand_ranges(call: &str, line: &str) -> String {
    let word = |word: &str| {
        let Some((before, after)) = word.split_once("..r") else { return word.to_owned() };
        let letters = before.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (last, mut suffix) = after.split_at(digits);
        let close = if suffix.ends_with(']') { "]" } else { "" };
        suffix = suffix.trim_end_matches(']');
        let (first, last) = (number(&before[letters.len()..], line), number(last, line));
        let one = |index: i64| match index == first {
            true => format!("{letters}{index}{suffix}"),
            false => format!("r{index}{suffix}"),
        };
        (first..=last).map(one).collect::<Vec<_>>().join(" ") + close
    };
    call.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn expands_short_forms() {
        let text = "# comment\n* MPI_Init\nrepeat 2 i=5\n1 F tag={i} peer={rank-1} # why\nend\n\
                    ?mpich: 0 G completes=[r1..r3:sent null]\n?!c,mpich: 0 J\n?c,abi: 1.2 H";
        let lines = lines(text, &["mpich", "c"], 2);
        assert_eq!(lines[&(0, 0)], ["MPI_Init", "G completes=[r1:sent r2:sent r3:sent null]"]);
        assert_eq!(lines[&(1, 0)], ["MPI_Init", "F tag=5 peer=0", "F tag=6 peer=0"]);
        assert_eq!(lines[&(1, 2)], ["H"]);
    }
}
