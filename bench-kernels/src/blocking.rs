//! `kernels blocking`: MPI_Send and MPI_Recv with one of the two late (cases A and B of Masuguchi
//! et al.).
//!
//! Rank 0 sends to rank 1. In case A the receive is posted late, in case B the send is issued late.
//! Tags distinguish the messages in a recording: 1000 + the index of the size in case A, 2000 + the
//! index in case B, with sizes numbered from 0 in the order in which they are printed. Then follows
//! a loop of calls with nothing in between (tag 3000): from the end of one call to the begin of the
//! next, only a recorder's own work takes time.

use clap::Args;
use serde::Serialize;

use crate::conditions::{Conditions, Watch};
use crate::failure::Failure;
use crate::output::OutputOptions;
use crate::sample::{Figure, Sample};
use crate::world::{World, library_name};

/// One word, 1 KB, 4 KB, 1 MB, 4 MB.
const SIZES: [u64; 5] = [8, 1 << 10, 4 << 10, 1 << 20, 4 << 20];
/// Tag of the first size in case A and in case B.
const FIRST_TAGS: [i32; 2] = [1000, 2000];
/// Tag of the loop of calls with nothing in between.
const LOOP_TAG: i32 = 3000;
/// Number of its messages, of one word each.
const LOOP_MESSAGES: usize = 1000;

/// Send between two ranks with the receive (A) or the send (B) late
///
/// Record it and run `gammachi calibrate kernels RUN` to print the tables: durations of send and receive, and
/// the time from the end of the send to the end of the receive, which requires one clock for both
/// ranks.
#[derive(Args)]
#[command(after_help = "Examples:
  mpirun -n 2 kernels blocking
  gammachi run --out blocking.gammachi -- mpirun -n 2 kernels blocking --delay 0.1
  mpirun -n 2 kernels blocking --sizes 8,1048576 --repetitions 3 --json")]
pub struct Arguments {
    /// Delay of the late rank, seconds
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = delay)]
    delay: f64,
    /// Message sizes, bytes [default: 8,1024,4096,1048576,4194304]
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    sizes: Vec<u64>,
    /// Messages of each case and size
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    repetitions: u64,
    #[command(flatten)]
    output: OutputOptions,
}

/// Parses a delay of 0 to 60 seconds.
pub fn delay(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=60.0).contains(&value) => Ok(value),
        _ => Err("a delay must be a number of seconds from 0 to 60".into()),
    }
}

/// Checks the given sizes, or returns the default ones.
pub fn sizes(given: &[u64], default: &[u64]) -> Result<Vec<u64>, Failure> {
    if let Some(bytes) =
        given.iter().find(|bytes| **bytes == 0 || **bytes % 8 != 0 || **bytes > 1 << 28)
    {
        return Err(Failure::Usage(format!(
            "--sizes {bytes}: sizes must be whole words of 8 bytes, from 8 to {} bytes",
            1 << 28
        )));
    }
    Ok(if given.is_empty() { default.to_vec() } else { given.to_vec() })
}

#[derive(Serialize)]
struct Report {
    kernel: &'static str,
    version: u32,
    mpi: String,
    delay_s: f64,
    rows: Vec<Row>,
    conditions: Conditions,
}

#[derive(Serialize)]
struct Row {
    case: char,
    tag: i32,
    bytes: u64,
    send_s: Figure,
    receive_s: Figure,
}

/// Stays outside MPI for `seconds`: asleep, then awake for the last millisecond.
pub fn be_late(world: &World, seconds: f64) {
    let begin = world.ticks();
    let length = (seconds / world.seconds_per_tick()) as u64;
    if seconds > 2e-3 {
        std::thread::sleep(std::time::Duration::from_secs_f64(seconds - 1e-3));
    }
    while world.ticks().wrapping_sub(begin) < length {
        std::hint::spin_loop();
    }
}

/// Runs the kernel on all ranks; rank 0 prints.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let sizes = sizes(&arguments.sizes, &SIZES)?;
    let world = World::start()?;
    world.need(2, "blocking")?;
    let watch = Watch::start();
    let progress =
        arguments.output.progress("blocking", 2 * sizes.len() * arguments.repetitions as usize);
    let mut rows = Vec::new();
    let mut wrong = 0;
    for (case, first_tag) in ['A', 'B'].into_iter().zip(FIRST_TAGS) {
        for (number, &bytes) in sizes.iter().enumerate() {
            let tag = first_tag + number as i32;
            let (mut sends, mut receives) = (Sample::default(), Sample::default());
            let payload: Vec<u8> = (0..bytes).map(|at| (at * 7 + bytes) as u8).collect();
            for _ in 0..arguments.repetitions {
                let (send, receive) =
                    once(&world, case, tag, arguments.delay, &payload, &mut wrong);
                sends.add(send);
                receives.add(receive);
                progress.step(&format!("case {case}, {bytes} bytes"));
            }
            if let (Some(send_s), Some(receive_s)) = (sends.figure(), receives.figure()) {
                rows.push(Row { case, tag, bytes, send_s, receive_s });
            }
        }
    }
    drop(progress);
    loop_of_calls(&world);
    let conditions = watch.end(&world, &[]);
    let wrong: f64 = world.share(wrong as f64).into_iter().sum();
    if world.rank == 0 {
        arguments.output.print(&Report {
            kernel: "blocking",
            version: 1,
            mpi: library_name(),
            delay_s: arguments.delay,
            rows,
            conditions,
        })?;
    }
    if wrong == 0.0 { Ok(()) } else { Err(Failure::WrongResults(wrong as u64)) }
}

/// Sends one message. Returns the durations of send and receive in seconds, on all ranks.
fn once(
    world: &World,
    case: char,
    tag: i32,
    delay_s: f64,
    payload: &[u8],
    wrong: &mut u64,
) -> (f64, f64) {
    let mut received = vec![0; payload.len()];
    world.barrier();
    let late = match case {
        'A' => 1,
        _ => 0,
    };
    if world.rank == late {
        be_late(world, delay_s);
    }
    let begin = world.ticks();
    match world.rank {
        0 => world.send(payload, 1, tag),
        1 => world.receive(&mut received, 0, tag),
        _ => {}
    }
    let seconds = world.ticks().wrapping_sub(begin) as f64 * world.seconds_per_tick();
    *wrong += u64::from(world.rank == 1 && received != payload);
    let all = world.share(seconds);
    (all[0], all[1])
}

/// Sends one-word messages from rank 0 to rank 1, one call right after the other.
fn loop_of_calls(world: &World) {
    let mut word = [0_u8; 8];
    world.barrier();
    for _ in 0..LOOP_MESSAGES {
        match world.rank {
            0 => world.send(&word, 1, LOOP_TAG),
            1 => world.receive(&mut word, 0, LOOP_TAG),
            _ => {}
        }
    }
    world.barrier();
}
