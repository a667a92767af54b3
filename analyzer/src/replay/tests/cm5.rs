//! Cannon's product on the CM-5: the published times of Touyama and Horiguchi.

use crate::models::logpq::Parameters;
use crate::models::logpq::cannon::BlockProduct;
use crate::models::logpq::tests::CM5;

use super::*;

/// Ranks on a side of the grid, and bytes of a word.
const GRID: usize = 8;
const WORD: f64 = 8.0;

/// The product of matrices with N rows. In each step the blocks of A and B are sent to the left and up,
/// the blocks of the step are multiplied, and the next ones are received: what the models call hidden.
fn product(n: f64) -> Program {
    let block = n / GRID as f64;
    let work = (BlockProduct::CM5.seconds(block) * 1e9).round() as u64;
    let bytes = (block * block * WORD) as u32;
    let steps = GRID as u64;
    let mut program =
        Program::with_end((GRID * GRID) as u32, BEGIN + steps * (work + 4 * CALL) + 100_000);
    let neighbour = |rank: usize, rows: usize, columns: usize| {
        (rank / GRID + rows) % GRID * GRID + (rank % GRID + columns) % GRID
    };
    for _ in 0..GRID {
        for rank in 0..GRID * GRID {
            program.sends(rank, neighbour(rank, 0, GRID - 1), bytes);
            program.sends(rank, neighbour(rank, GRID - 1, 0), bytes);
            program.works(rank, work);
            program.receives(neighbour(rank, 0, 1), rank, bytes);
            program.receives(neighbour(rank, 1, 0), rank, bytes);
        }
    }
    program
}

/// A network where all messages are eager; what a call takes, for a message and for a byte, and the same of the way.
fn eager([call, per_byte]: [f64; 2], [latency, way_per_byte]: [f64; 2]) -> Network {
    Network {
        overhead: call,
        overhead_per_byte: per_byte,
        latency: [latency; 2],
        per_byte: [way_per_byte; 2],
        eager_bytes: [f64::INFINITY; 2],
        ..network()
    }
}

#[test]
fn reproduces_the_published_times_of_cannons_product() {
    let cm5 = Parameters::cm5();
    let (message, word, pq) = (&cm5.message, &cm5.one_word, &cm5.logpq);
    let networks = [
        // Equation 6: a message is one message, however long.
        eager([message.overhead.value, 0.0], [message.latency.value, 0.0]),
        // Equation 7: each word is a message. Where there are several, they hide the latency.
        eager([0.0, word.overhead.value / WORD], [word.latency.value, 0.0]),
        // Equation 8: the wait is L + (2w - 1) g - 2 w o - n - t_M; the receiver's n + w o is not on the way.
        eager(
            [pq.fixed.value, pq.overhead.value / WORD],
            [pq.latency.value - pq.gap.value, (2.0 * pq.gap.value - pq.overhead.value) / WORD],
        ),
    ];
    for [n, _, one_message, one_word, logpq] in CM5 {
        let program = product(n);
        for (network, published) in networks.iter().zip([one_message, one_word, logpq]) {
            let (ns, released) = program.takes(network);
            assert_eq!(released, 0);
            assert!((ns * 1e-9 / published - 1.0).abs() < 5e-6, "N={n}: {ns} ns, {published} s");
        }
    }
}
