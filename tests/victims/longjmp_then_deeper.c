/* An error handler leaves a call made near the base of the stack; all later calls but the last are made
 * by functions deeper in the stack. */
#include "longjmp.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (setjmp(back) == 0)
        send_to_nobody();
    deeper(50);
    MPI_Finalize();
    return 0;
}
