! Calls MPI through both of its modules; in Open MPI the functions of mpi_f08 call those of mpi.
subroutine with_mpi()
  use mpi
  implicit none
  integer :: ierror
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
end subroutine

subroutine with_mpi_f08()
  use mpi_f08
  implicit none
  call MPI_Barrier(MPI_COMM_WORLD)
end subroutine

program mixes
  use mpi_f08
  implicit none
  integer :: round, rank
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  do round = 1, 3
    call with_mpi()
    call with_mpi_f08()
  end do
  ! In the other order.
  do round = 1, 3
    call with_mpi_f08()
    call with_mpi()
  end do
  call MPI_Finalize()
end program
