! The small program of program.c in Fortran with `use mpi_f08`: handles are types, ierror is omitted
! except once, and the buffers of the blocking calls are assumed-shape arrays.
program little
  use mpi_f08
  implicit none
  integer :: rank, size, other, ierror, way
  integer :: values(6), in(6)
  integer, asynchronous :: got(2)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call must(ierror == MPI_SUCCESS .and. size == 2)
  other = 1 - rank
  values = [1, 2, 3, 4, 5, 6]
  call blocking(values)
  call non_blocking()
  call collective()
  call communicators()
  values = [1, 2, 3, 4, 5, 6]
  call the_rest(values, in)
  call MPI_Finalize()

contains

  subroutine must(condition)
    logical, intent(in) :: condition
    if (.not. condition) then
      write (0, *) 'a condition of the program does not hold'
      stop 70
    end if
  end subroutine must

  subroutine blocking(values)
    integer, intent(inout) :: values(:)
    type(MPI_Status) :: status
    double precision :: out(2), back(2)
    integer :: n
    if (rank == 0) then
      call MPI_Send(values, 3, MPI_INTEGER, 1, 1, MPI_COMM_WORLD)
      call MPI_Send(values, 0, MPI_INTEGER, 1, 2, MPI_COMM_WORLD)
    else
      call MPI_Probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, status)
      call MPI_Recv(values, 4, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status)
      call MPI_Get_count(status, MPI_INTEGER, n)
      call must(status%MPI_SOURCE == 0 .and. status%MPI_TAG == 1 .and. n == 3 .and. values(3) == 3)
      call MPI_Recv(values, 4, MPI_INTEGER, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    end if
    call MPI_Send(values, 1, MPI_INTEGER, MPI_PROC_NULL, 3, MPI_COMM_WORLD)
    out = [1.5d0, 2.5d0]
    call MPI_Sendrecv(out, 2, MPI_DOUBLE_PRECISION, other, 4, &
                      back, 2, MPI_DOUBLE_PRECISION, other, 4, MPI_COMM_WORLD, status)
    call must(back(2) == 2.5d0 .and. status%MPI_SOURCE == other)
  end subroutine blocking

  subroutine non_blocking()
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: statuses(2)
    do way = 1, 2
      call MPI_Irecv(got(way), 1, MPI_INTEGER, other, 5, MPI_COMM_WORLD, requests(1))
      call MPI_Isend(rank, 1, MPI_INTEGER, other, 5, MPI_COMM_WORLD, requests(2))
      if (way == 1) then
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      else
        call MPI_Waitall(2, requests, statuses)
      end if
      call must(got(way) == other .and. requests(1) == MPI_REQUEST_NULL)
    end do
    call must(statuses(1)%MPI_SOURCE == other)
    call MPI_Irecv(got(1), 1, MPI_INTEGER, other, 6, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(rank, 1, MPI_INTEGER, other, 6, MPI_COMM_WORLD, requests(2))
    call MPI_Wait(requests(1), statuses(1))
    call MPI_Wait(requests(2), MPI_STATUS_IGNORE)
  end subroutine non_blocking

  subroutine collective()
    integer :: values(4), both(2), mine, total
    double precision :: part(2), whole(2)
    values = [rank, 1, 2, 3]
    call MPI_Bcast(values, 4, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call must(values(1) == 0)
    part = [1, 2]
    call MPI_Reduce(part, whole, 2, MPI_DOUBLE_PRECISION, MPI_SUM, 1, MPI_COMM_WORLD)
    if (rank == 1) call must(whole(2) == 4)
    mine = 10 + rank
    call MPI_Allgather(mine, 1, MPI_INTEGER, both, 1, MPI_INTEGER, MPI_COMM_WORLD)
    call must(both(2) == 11)
    call MPI_Alltoall(both, 1, MPI_INTEGER, values, 1, MPI_INTEGER, MPI_COMM_WORLD)
    call MPI_Barrier(MPI_COMM_WORLD)
    total = 1
    call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call must(total == 2)
  end subroutine collective

  subroutine communicators()
    type(MPI_Comm) :: twin, half
    call MPI_Comm_dup(MPI_COMM_WORLD, twin)
    call MPI_Barrier(twin)
    call MPI_Comm_split(twin, rank, 0, half)
    call MPI_Barrier(half)
    call MPI_Comm_free(half)
    call MPI_Comm_free(twin)
    call must(twin == MPI_COMM_NULL)
  end subroutine communicators

  subroutine the_rest(values, in)
    integer, intent(inout), asynchronous :: values(:), in(:)
    type(MPI_Datatype) :: three
    type(MPI_Request) :: requests(2)
    type(MPI_Win) :: window
    integer, asynchronous, save :: memory(16)
    call MPI_Type_contiguous(3, MPI_INTEGER, three)
    call MPI_Type_commit(three)
    if (rank == 0) then
      call MPI_Send(values, 2, three, 1, 7, MPI_COMM_WORLD)
    else
      call MPI_Recv(in, 2, three, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call must(in(6) == 6)
    end if
    call MPI_Type_free(three)

    call MPI_Recv_init(in, 1, MPI_INTEGER, other, 8, MPI_COMM_WORLD, requests(1))
    call MPI_Send_init(values, 1, MPI_INTEGER, other, 8, MPI_COMM_WORLD, requests(2))
    call MPI_Startall(2, requests)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))

    memory = -1
    call MPI_Win_create(memory, 64_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window)
    call MPI_Win_fence(0, window)
    call MPI_Put(rank, 1, MPI_INTEGER, other, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, window)
    call MPI_Win_fence(0, window)
    call MPI_Win_free(window)
    call must(memory(1) == other)
  end subroutine the_rest
end program little
