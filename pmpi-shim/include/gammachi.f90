! gammachi.f90: names regions of a program's time for gammachi's reports, and declares work.
!
!     use gammachi
!     call gammachi_region_begin("solve")
!     ...
!     call gammachi_work(2d0 * n * n, 8d0 * n * n)
!     call gammachi_region_end("solve")
!
! Compile this file with the program; nothing is linked. gammachi.h explains the calls.
! The recorder's functions are looked up once, with dlsym. Without the recorder (a preloaded
! libgammachi.so) a call is one test.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
module gammachi
    use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_double, c_f_procpointer, c_funptr, &
        c_intptr_t, c_null_char
    implicit none
    private
    public :: gammachi_region_begin, gammachi_region_end, gammachi_work

    abstract interface
        subroutine mark_function(name) bind(c)
            import :: c_char
            character(kind=c_char), intent(in) :: name(*)
        end subroutine
        subroutine work_function(flops, bytes) bind(c)
            import :: c_double
            real(c_double), value :: flops, bytes
        end subroutine
    end interface

    interface
        function dlsym(handle, name) bind(c, name="dlsym")
            import :: c_char, c_funptr, c_intptr_t
            integer(c_intptr_t), value :: handle
            character(kind=c_char), intent(in) :: name(*)
            type(c_funptr) :: dlsym
        end function
    end interface

    procedure(mark_function), pointer, save :: begins => null(), ends => null()
    procedure(work_function), pointer, save :: works => null()
    logical, save :: looked_up = .false.

contains

    subroutine gammachi_region_begin(name)
        character(*), intent(in) :: name
        if (.not. looked_up) call look_up()
        if (associated(begins)) call begins(trim(name)//c_null_char)
    end subroutine

    subroutine gammachi_region_end(name)
        character(*), intent(in) :: name
        if (.not. looked_up) call look_up()
        if (associated(ends)) call ends(trim(name)//c_null_char)
    end subroutine

    ! Declares the floating-point operations done since the last call, and the bytes they moved.
    subroutine gammachi_work(flops, bytes)
        real(c_double), intent(in) :: flops, bytes
        if (.not. looked_up) call look_up()
        if (associated(works)) call works(flops, bytes)
    end subroutine

    ! Threads that run this at the same time get the same result.
    subroutine look_up()
        integer(c_intptr_t), parameter :: default = 0
        type(c_funptr) :: found
        found = dlsym(default, "gammachi_recorder_region_begin"//c_null_char)
        if (c_associated(found)) call c_f_procpointer(found, begins)
        found = dlsym(default, "gammachi_recorder_region_end"//c_null_char)
        if (c_associated(found)) call c_f_procpointer(found, ends)
        found = dlsym(default, "gammachi_recorder_work"//c_null_char)
        if (c_associated(found)) call c_f_procpointer(found, works)
        looked_up = .true.
    end subroutine

end module
