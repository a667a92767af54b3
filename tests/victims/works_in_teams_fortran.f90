! A parallel region of four threads that sleep for 10 to 40 ms instead of working, three times.
program works_in_teams
  use iso_c_binding
  use mpi
  use omp_lib
  implicit none
  interface
    integer(c_int) function usleep(microseconds) bind(c)
      import c_int
      integer(c_int), value :: microseconds
    end function
  end interface
  integer :: i, ierror
  integer(c_int) :: ignored
  call MPI_Init(ierror)
  do i = 1, 3
    !$omp parallel num_threads(4) private(ignored)
    ignored = usleep(10000_c_int * (1 + omp_get_thread_num()))
    !$omp end parallel
  end do
  call MPI_Finalize(ierror)
end program
