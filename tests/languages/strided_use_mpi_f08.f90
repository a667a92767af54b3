! Every other element of an array, passed without a copy: the mpi_f08 of MPICH makes a datatype for the section
! (subarrays are supported); that of Open MPI 4 receives a contiguous copy.
program strided
  use mpi_f08
  implicit none
  integer :: rank
  integer :: values(8)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  values = -1
  if (rank == 0) then
    values = [1, 2, 3, 4, 5, 6, 7, 8]
    call MPI_Send(values(1:8:2), 4, MPI_INTEGER, 1, 1, MPI_COMM_WORLD)
  else
    call MPI_Recv(values(1:8:2), 4, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    if (any(values /= [1, -1, 3, -1, 5, -1, 7, -1])) stop 70
  end if
  call MPI_Finalize()
end program strided
