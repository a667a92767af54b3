! Calls MPI three procedures deep; rank 1 is late.
module deep
  use mpi
  implicit none
  integer :: calls = 0
contains
  subroutine inner(rank)
    integer, intent(in) :: rank
    integer :: ierror, from, now, rate
    if (rank == 1) then
      call system_clock(from, rate)
      do
        call system_clock(now)
        if (now - from > rate / 500) exit
      end do
    end if
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    calls = calls + 1
  end subroutine
  subroutine middle(rank)
    integer, intent(in) :: rank
    integer :: i
    do i = 1, 20
      call inner(rank)
    end do
    calls = calls + 1
  end subroutine
end module
program three_deep
  use deep
  integer :: rank, ierror
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call middle(rank)
  call MPI_Finalize(ierror)
end program
