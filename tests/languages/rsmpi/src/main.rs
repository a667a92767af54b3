//! The small program of `program.c` with rsmpi, restricted to the calls that rsmpi has.

use mpi::collective::SystemOperation;
use mpi::datatype::{UserDatatype, View};
use mpi::point_to_point as p2p;
use mpi::request::{multiple_scope, scope};
use mpi::topology::Color;
use mpi::traits::*;

fn main() {
    let universe = mpi::initialize().expect("MPI starts once");
    let world = universe.world();
    let rank = world.rank();
    assert_eq!(world.size(), 2);
    let other = 1 - rank;
    let partner = world.process_at_rank(other);

    // Blocking.
    let mut values = [1i32, 2, 3, 0];
    if rank == 0 {
        partner.send_with_tag(&values[..3], 1);
        partner.send_with_tag(&values[..0], 2);
    } else {
        let status = world.any_process().probe_with_tag(1);
        assert_eq!(status.count(i32::equivalent_datatype()), 3);
        let status = world.any_process().receive_into(&mut values[..]);
        assert_eq!((status.source_rank(), status.tag()), (0, 1));
        partner.receive_into_with_tag(&mut values[..], 2);
    }
    let (out, mut back) = ([1.5f64, 2.5], [0f64; 2]);
    p2p::send_receive_into_with_tags(&out[..], &partner, 4, &mut back[..], &partner, 4);
    assert_eq!(back, out);

    // Non-blocking.
    let mut got = [-1i32; 2];
    for value in &mut got {
        multiple_scope(2, |scope, all| {
            all.add(partner.immediate_receive_into_with_tag(scope, value, 5));
            all.add(partner.immediate_send_with_tag(scope, &rank, 5));
            let mut results = Vec::new();
            all.wait_all(&mut results);
        });
    }
    assert_eq!(got, [other; 2]);
    let mut last = -1i32;
    scope(|scope| {
        let receive = partner.immediate_receive_into_with_tag(scope, &mut last, 6);
        let send = partner.immediate_send_with_tag(scope, &rank, 6);
        receive.wait();
        send.wait_without_status();
    });
    assert_eq!(last, other);

    // Collective.
    let mut values = [rank, 1, 2, 3];
    world.process_at_rank(0).broadcast_into(&mut values[..]);
    assert_eq!(values[0], 0);
    let (part, mut whole) = ([1f64, 2.0], [0f64; 2]);
    let root = world.process_at_rank(1);
    if rank == 1 {
        root.reduce_into_root(&part[..], &mut whole[..], SystemOperation::sum());
        assert_eq!(whole[1], 4.0);
    } else {
        root.reduce_into(&part[..], SystemOperation::sum());
    }
    let mut both = [-1i32; 2];
    world.all_gather_into(&(10 + rank), &mut both[..]);
    assert_eq!(both[1], 11);
    world.all_to_all_into(&both[..], &mut values[..2]);
    world.barrier();
    let mut total = 0i32;
    world.all_reduce_into(&1i32, &mut total, SystemOperation::sum());
    assert_eq!(total, 2);

    // Communicators: freed when they go out of scope.
    {
        let twin = world.duplicate();
        twin.barrier();
        let half = twin.split_by_color(Color::with_value(rank)).expect("a colour was given");
        half.barrier();
    }

    // A datatype of the program's own.
    let three = UserDatatype::contiguous(3, &i32::equivalent_datatype());
    let mut six = [0i32, 1, 2, 3, 4, 5];
    if rank == 0 {
        // SAFETY: two elements of three integers lie in the array.
        let view = unsafe { View::with_count_and_datatype(&six[..], 2, &three) };
        partner.send_with_tag(&view, 7);
    } else {
        six = [0; 6];
        // SAFETY: as above.
        let mut view =
            unsafe { mpi::datatype::MutView::with_count_and_datatype(&mut six[..], 2, &three) };
        partner.receive_into_with_tag(&mut view, 7);
        assert_eq!(six[5], 5);
    }
}
