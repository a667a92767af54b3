! Like declares_work.c, with gammachi.f90.
include "../../pmpi-shim/include/gammachi.f90"

program declares_work
    use gammachi
    implicit none
    include "mpif.h"
    integer :: code
    call mpi_init(code)
    call gammachi_region_begin("solve")
    call gammachi_work(3d9, 16d9)
    call gammachi_region_end("solve")
    call gammachi_region_begin("other")
    call gammachi_work(1d9, 0d0)
    call gammachi_region_end("other")
    call mpi_finalize(code)
end program
