! The small program of program.c in Fortran with `use mpi`.
program little
use mpi
implicit none
integer size, other, ierr, i, way, n
integer both(2), status(MPI_STATUS_SIZE)
! MPI changes these after the calls that name them have returned.
integer, asynchronous :: values(6), in(6), memory(16), rank
integer statuses(MPI_STATUS_SIZE, 2), requests(2)
integer twin, half, three, window, mine, total
integer(kind=MPI_ADDRESS_KIND) bytes, place
double precision out(2), back(2), part(2), whole(2)

call MPI_INIT(ierr)
call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierr)
call must(ierr .eq. MPI_SUCCESS .and. size .eq. 2)
other = 1 - rank
do i = 1, 6
   values(i) = i
end do

if (rank .eq. 0) then
   call MPI_SEND(values, 3, MPI_INTEGER, 1, 1, &
    & MPI_COMM_WORLD, ierr)
   call MPI_SEND(values, 0, MPI_INTEGER, 1, 2, &
    & MPI_COMM_WORLD, ierr)
else
   call MPI_PROBE(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &
    & status, ierr)
   call MPI_RECV(values, 4, MPI_INTEGER, MPI_ANY_SOURCE, &
    & MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
   call MPI_GET_COUNT(status, MPI_INTEGER, n, ierr)
   call must(status(MPI_SOURCE) .eq. 0 .and. &
    & status(MPI_TAG) .eq. 1 .and. n .eq. 3)
   call MPI_RECV(values, 4, MPI_INTEGER, 0, 2, &
    & MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
end if
call MPI_SEND(values, 1, MPI_INTEGER, MPI_PROC_NULL, 3, &
    & MPI_COMM_WORLD, ierr)
out(1) = 1.5d0
out(2) = 2.5d0
call MPI_SENDRECV(out, 2, MPI_DOUBLE_PRECISION, other, 4, &
    & back, 2, MPI_DOUBLE_PRECISION, other, 4, &
    & MPI_COMM_WORLD, status, ierr)
call must(back(2) .eq. 2.5d0 .and. &
    & status(MPI_SOURCE) .eq. other)

do way = 1, 2
   call MPI_IRECV(in(way), 1, MPI_INTEGER, other, 5, &
    & MPI_COMM_WORLD, requests(1), ierr)
   call MPI_ISEND(rank, 1, MPI_INTEGER, other, 5, &
    & MPI_COMM_WORLD, requests(2), ierr)
   if (way .eq. 1) then
      call MPI_WAITALL(2, requests, MPI_STATUSES_IGNORE, ierr)
   else
      call MPI_WAITALL(2, requests, statuses, ierr)
   end if
   call must(in(way) .eq. other .and. &
    & requests(1) .eq. MPI_REQUEST_NULL)
end do
call must(statuses(MPI_SOURCE, 1) .eq. other)
call MPI_IRECV(in(1), 1, MPI_INTEGER, other, 6, &
    & MPI_COMM_WORLD, requests(1), ierr)
call MPI_ISEND(rank, 1, MPI_INTEGER, other, 6, &
    & MPI_COMM_WORLD, requests(2), ierr)
call MPI_WAIT(requests(1), status, ierr)
call MPI_WAIT(requests(2), MPI_STATUS_IGNORE, ierr)

values(1) = rank
call MPI_BCAST(values, 4, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
call must(values(1) .eq. 0)
part(1) = 1
part(2) = 2
call MPI_REDUCE(part, whole, 2, MPI_DOUBLE_PRECISION, MPI_SUM, &
    & 1, MPI_COMM_WORLD, ierr)
call must(rank .eq. 0 .or. whole(2) .eq. 4)
mine = 10 + rank
call MPI_ALLGATHER(mine, 1, MPI_INTEGER, both, 1, MPI_INTEGER, &
    & MPI_COMM_WORLD, ierr)
call must(both(2) .eq. 11)
call MPI_ALLTOALL(both, 1, MPI_INTEGER, values, 1, MPI_INTEGER, &
    & MPI_COMM_WORLD, ierr)
call MPI_BARRIER(MPI_COMM_WORLD, ierr)
total = 1
call MPI_ALLREDUCE(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, &
    & MPI_COMM_WORLD, ierr)
call must(total .eq. 2)

call MPI_COMM_DUP(MPI_COMM_WORLD, twin, ierr)
call MPI_BARRIER(twin, ierr)
call MPI_COMM_SPLIT(twin, rank, 0, half, ierr)
call MPI_BARRIER(half, ierr)
call MPI_COMM_FREE(half, ierr)
call MPI_COMM_FREE(twin, ierr)
call must(twin .eq. MPI_COMM_NULL)

do i = 1, 6
   values(i) = i
end do
call MPI_TYPE_CONTIGUOUS(3, MPI_INTEGER, three, ierr)
call MPI_TYPE_COMMIT(three, ierr)
if (rank .eq. 0) then
   call MPI_SEND(values, 2, three, 1, 7, MPI_COMM_WORLD, ierr)
else
   call MPI_RECV(in, 2, three, 0, 7, MPI_COMM_WORLD, &
    & MPI_STATUS_IGNORE, ierr)
   call must(in(6) .eq. 6)
end if
call MPI_TYPE_FREE(three, ierr)

call MPI_RECV_INIT(in, 1, MPI_INTEGER, other, 8, &
    & MPI_COMM_WORLD, requests(1), ierr)
call MPI_SEND_INIT(values, 1, MPI_INTEGER, other, 8, &
    & MPI_COMM_WORLD, requests(2), ierr)
call MPI_STARTALL(2, requests, ierr)
call MPI_WAITALL(2, requests, MPI_STATUSES_IGNORE, ierr)
call MPI_REQUEST_FREE(requests(1), ierr)
call MPI_REQUEST_FREE(requests(2), ierr)

memory = -1
bytes = 64
place = 0
call MPI_WIN_CREATE(memory, bytes, 4, MPI_INFO_NULL, &
    & MPI_COMM_WORLD, window, ierr)
call MPI_WIN_FENCE(0, window, ierr)
call MPI_PUT(rank, 1, MPI_INTEGER, other, place, 1, MPI_INTEGER, &
    & window, ierr)
call MPI_WIN_FENCE(0, window, ierr)
call MPI_WIN_FREE(window, ierr)
call must(memory(1) .eq. other)
call MPI_FINALIZE(ierr)
end

subroutine must(condition)
logical condition
if (.not. condition) then
   write (0, *) 'a condition of the program does not hold'
   stop 70
end if
end
