//! How Open MPI 4.1 carries out collective operations where nothing else was asked of it: the sizes and numbers of
//! members at which its component `tuned` goes over to another algorithm, by the numbers of its parameters
//! `coll_tuned_*_algorithm`. Its values were measured on several clusters, so that they follow no pattern.

use super::labels::Pattern;
use super::shape::Shape;
use super::work::{ALL, Work};

/// Rows for communicators with fewer members; in each, what is done below so many bytes.
type Table = &'static [(u32, &'static [(u32, u8)])];

const MOST: u32 = u32::MAX;

const ALLREDUCE: Table = &[
    (4, &[(8, 4), (4_096, 3), (8_192, 4), (16_384, 3), (65_536, 4), (262_144, 5), (MOST, 6)]),
    (8, &[(16, 4), (8_192, 3), (MOST, 6)]),
    (16, &[(8_192, 3), (MOST, 6)]),
    (32, &[(64, 5), (4_096, 3), (MOST, 6)]),
    (64, &[(128, 5), (MOST, 6)]),
    (128, &[(262_144, 3), (MOST, 6)]),
    (256, &[(131_072, 2), (262_144, 3), (MOST, 6)]),
    (512, &[(4_096, 2), (MOST, 6)]),
    (2_048, &[(2_048, 2), (16_384, 3), (MOST, 6)]),
    (4_096, &[(2_048, 2), (4_096, 5), (16_384, 3), (MOST, 6)]),
    (MOST, &[(2_048, 2), (16_384, 5), (32_768, 3), (MOST, 6)]),
];

/// Bytes for one other member.
const ALLTOALL: Table = &[
    (
        3,
        &[
            (2, 2),
            (4, 5),
            (16, 2),
            (64, 5),
            (256, 2),
            (4_096, 5),
            (32_768, 2),
            (262_144, 4),
            (1_048_576, 5),
            (MOST, 2),
        ],
    ),
    (8, &[(8_192, 4), (16_384, 1), (65_536, 4), (524_288, 1), (1_048_576, 2), (MOST, 1)]),
    (16, &[(262_144, 4), (MOST, 1)]),
    (32, &[(4, 4), (512, 3), (8_192, 4), (32_768, 1), (262_144, 4), (524_288, 1), (MOST, 4)]),
    (64, &[(512, 3), (524_288, 1), (MOST, 4)]),
    (128, &[(1_024, 3), (2_048, 1), (4_096, 4), (262_144, 1), (MOST, 2)]),
    (256, &[(1_024, 3), (2_048, 4), (262_144, 1), (MOST, 2)]),
    (512, &[(1_024, 3), (8_192, 4), (32_768, 1), (MOST, 2)]),
    (1_024, &[(512, 3), (8_192, 4), (16_384, 1), (131_072, 4), (262_144, 1), (MOST, 2)]),
    (2_048, &[(512, 3), (1_024, 4), (2_048, 1), (16_384, 4), (262_144, 1), (MOST, 4)]),
    (4_096, &[(1_024, 3), (4_096, 4), (8_192, 1), (131_072, 4), (MOST, 1)]),
    (MOST, &[(2_048, 3), (8_192, 4), (16_384, 1), (32_768, 4), (65_536, 1), (MOST, 4)]),
];

const ALLTOALLV: Table = &[
    (4, &[(MOST, 2)]),
    (64, &[(MOST, 1)]),
    (128, &[(MOST, 2)]),
    (256, &[(MOST, 1)]),
    (1_024, &[(MOST, 2)]),
    (MOST, &[(MOST, 1)]),
];

const BARRIER: Table = &[
    (4, &[(MOST, 3)]),
    (8, &[(MOST, 1)]),
    (64, &[(MOST, 3)]),
    (256, &[(MOST, 4)]),
    (512, &[(MOST, 6)]),
    (1_024, &[(MOST, 4)]),
    (4_096, &[(MOST, 6)]),
    (MOST, &[(MOST, 4)]),
];

const BCAST: Table = &[
    (
        4,
        &[
            (32, 3),
            (256, 5),
            (512, 3),
            (1_024, 7),
            (32_768, 1),
            (131_072, 5),
            (262_144, 2),
            (524_288, 1),
            (1_048_576, 6),
            (MOST, 5),
        ],
    ),
    (8, &[(64, 5), (128, 6), (2_048, 5), (8_192, 6), (1_048_576, 1), (MOST, 2)]),
    (16, &[(8, 7), (64, 5), (4_096, 7), (16_384, 5), (32_768, 6), (MOST, 1)]),
    (32, &[(4_096, 7), (1_048_576, 6), (MOST, 8)]),
    (64, &[(2_048, 6), (MOST, 7)]),
    (128, &[(MOST, 7)]),
    (256, &[(2, 6), (16_384, 5), (32_768, 1), (65_536, 5), (MOST, 7)]),
    (1_024, &[(16_384, 7), (32_768, 4), (MOST, 7)]),
    (2_048, &[(524_288, 7), (MOST, 8)]),
    (4_096, &[(262_144, 7), (MOST, 8)]),
    (MOST, &[(8_192, 7), (16_384, 5), (262_144, 7), (MOST, 8)]),
];

const REDUCE: Table = &[
    (4, &[(8, 7), (16, 4), (32, 3), (262_144, 1), (524_288, 3), (1_048_576, 2), (MOST, 3)]),
    (8, &[(4_096, 4), (65_536, 2), (262_144, 5), (524_288, 1), (1_048_576, 5), (MOST, 1)]),
    (16, &[(8_192, 4), (MOST, 5)]),
    (32, &[(4_096, 4), (MOST, 5)]),
    (MOST, &[(MOST, 5)]),
];

const REDUCE_SCATTER: Table = &[
    (4, &[(65_536, 3), (131_072, 4), (MOST, 3)]),
    (8, &[(8, 1), (262_144, 2), (MOST, 3)]),
    (32, &[(262_144, 2), (MOST, 3)]),
    (64, &[(64, 1), (2_048, 2), (524_288, 4), (MOST, 3)]),
    (128, &[(256, 1), (512, 2), (2_048, 4), (4_096, 2), (MOST, 4)]),
    (256, &[(256, 1), (512, 2), (MOST, 4)]),
    (512, &[(256, 1), (1_024, 2), (MOST, 4)]),
    (1_024, &[(512, 1), (2_048, 2), (8_192, 4), (16_384, 2), (MOST, 4)]),
    (2_048, &[(512, 1), (4_096, 2), (16_384, 4), (32_768, 2), (MOST, 4)]),
    (4_096, &[(512, 1), (4_096, 2), (MOST, 4)]),
    (MOST, &[(1_024, 1), (8_192, 2), (MOST, 4)]),
];

/// Bytes of one member.
const ALLGATHER: Table = &[
    (3, &[(MOST, 6)]),
    (32, &[(MOST, 3)]),
    (64, &[(1_024, 3), (65_536, 5), (MOST, 4)]),
    (128, &[(512, 3), (65_536, 5), (MOST, 4)]),
    (256, &[(512, 3), (131_072, 5), (524_288, 4), (1_048_576, 5), (MOST, 4)]),
    (512, &[(32, 3), (128, 2), (1_024, 3), (131_072, 5), (524_288, 4), (1_048_576, 5), (MOST, 4)]),
    (1_024, &[(64, 3), (256, 2), (2_048, 3), (MOST, 5)]),
    (2_048, &[(4, 3), (8, 2), (16, 3), (32, 2), (256, 3), (512, 2), (4_096, 3), (MOST, 5)]),
    (4_096, &[(32, 2), (128, 3), (512, 2), (4_096, 3), (MOST, 5)]),
    (MOST, &[(2, 3), (8, 2), (16, 3), (512, 2), (4_096, 3), (MOST, 5)]),
];

/// Bytes of one member on average.
const ALLGATHERV: Table = &[
    (3, &[(2_048, 3), (4_096, 5), (8_192, 3), (MOST, 5)]),
    (8, &[(256, 1), (4_096, 4), (8_192, 3), (16_384, 4), (262_144, 2), (MOST, 4)]),
    (16, &[(1_024, 1), (MOST, 2)]),
    (32, &[(128, 1), (262_144, 2), (MOST, 3)]),
    (64, &[(256, 1), (8_192, 2), (MOST, 3)]),
    (128, &[(256, 1), (4_096, 2), (MOST, 3)]),
    (256, &[(1_024, 2), (65_536, 4), (MOST, 3)]),
    (512, &[(1_024, 2), (MOST, 3)]),
    (1_024, &[(512, 2), (1_024, 1), (4_096, 2), (1_048_576, 4), (MOST, 3)]),
    (MOST, &[(4_096, 2), (MOST, 4)]),
];

fn chosen(table: Table, members: f64, bytes: f64) -> u8 {
    let row = table.iter().find(|(below, _)| members < f64::from(*below));
    let columns = row.map_or(&[][..], |(_, columns)| *columns);
    columns.iter().find(|(below, _)| bytes < f64::from(*below)).map_or(0, |(_, of)| *of)
}

/// `None` where its rule is not known. `bytes` are those of [`super::labels::Label::bytes_of_operation`].
pub(super) fn way(pattern: Pattern, shape: Shape, bytes: f64) -> Option<Work> {
    let q = shape.members;
    match pattern {
        Pattern::Synchronise => barrier(shape),
        Pattern::FromRoot => broadcast(shape, bytes),
        Pattern::CombineAtRoot => reduce(shape, bytes),
        Pattern::Combine => allreduce(shape, bytes),
        Pattern::CombineParts => match chosen(REDUCE_SCATTER, q, bytes) {
            2 | 4 => Some(shape.halved(bytes)),
            3 => Some(shape.ring(bytes / q)),
            _ => None,
        },
        Pattern::Collect => match chosen(ALLGATHER, q, bytes) {
            // One with fewer members than a power of two is done as Bruck does it.
            2 | 3 => Some(shape.blocks_doubled(bytes)),
            5 if q % 2.0 == 0.0 => Some(shape.neighbours(bytes)),
            6 => Some(shape.pairwise(bytes)),
            _ => Some(shape.ring(bytes)),
        },
        Pattern::CollectUneven => match chosen(ALLGATHERV, q, bytes) {
            2 => Some(shape.blocks_doubled(bytes)),
            3 => Some(shape.ring(bytes)),
            4 if q % 2.0 == 0.0 => Some(shape.neighbours(bytes)),
            4 => Some(shape.ring(bytes)),
            5 => Some(shape.pairwise(bytes)),
            _ => None,
        },
        Pattern::Exchange => match (chosen(ALLTOALL, q, bytes / q), bytes / q) {
            (2, block) => Some(shape.pairwise(block)),
            (3, block) => Some(shape.bruck(block)),
            (_, block) => Some(shape.posted(block, ALL)),
        },
        Pattern::ExchangeUneven => match (chosen(ALLTOALLV, q, 0.0), bytes / q) {
            (2, block) => Some(shape.pairwise(block)),
            (_, block) => Some(shape.posted(block, ALL)),
        },
        Pattern::ToRoot => None,
    }
}

fn barrier(shape: Shape) -> Option<Work> {
    match chosen(BARRIER, shape.members, 0.0) {
        1 => {
            let there = shape.linear(0.0).messages;
            Some(shape.named("linear", [there.clone(), there].concat()))
        }
        3 => Some(shape.doubled(0.0)),
        4 => Some(shape.dissemination()),
        6 => Some(shape.named("tree", [shape.tree(0.0), shape.tree(0.0)].concat())),
        _ => None,
    }
}

fn broadcast(shape: Shape, bytes: f64) -> Option<Work> {
    match chosen(BCAST, shape.members, bytes) {
        1 => Some(shape.linear(bytes)),
        2 => Some(shape.chains(bytes, 4.0)),
        3 => Some(shape.chains(bytes, 1.0)),
        4 => Some(shape.split_binary(bytes)),
        5 => Some(shape.binary(bytes)),
        6 => Some(shape.binomial(bytes)),
        7 => Some(shape.knomial(bytes)),
        8 => Some(shape.scattered_and_doubled(bytes)),
        _ => None,
    }
}

fn reduce(shape: Shape, bytes: f64) -> Option<Work> {
    match chosen(REDUCE, shape.members, bytes) {
        1 => Some(shape.linear(bytes)),
        2 => Some(shape.chains(bytes, 4.0)),
        3 => Some(shape.chains(bytes, 1.0)),
        4 => Some(shape.binary(bytes)),
        5 => Some(shape.binomial(bytes)),
        7 => Some(shape.rabenseifner(bytes)),
        _ => None,
    }
}

fn allreduce(shape: Shape, bytes: f64) -> Option<Work> {
    match chosen(ALLREDUCE, shape.members, bytes) {
        2 => {
            let (there, back) = (reduce(shape, bytes)?, broadcast(shape, bytes)?);
            Some(shape.named("reduce and broadcast", [there.messages, back.messages].concat()))
        }
        // Of fewer elements than members neither ring can be made.
        4 | 5 if bytes / 8.0 >= shape.members => Some(shape.rings(bytes)),
        6 if bytes / 8.0 >= shape.members => Some(shape.rabenseifner(bytes)),
        _ => Some(shape.doubled(bytes)),
    }
}
