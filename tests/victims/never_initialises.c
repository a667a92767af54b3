/* Linked to MPI; makes only calls that are allowed before MPI_Init, and ends. */
#include "victim.h"

int main(void)
{
    int flag = -1, major = 0, minor = 0;
    MPI_Initialized(&flag);
    MPI_Get_version(&major, &minor);
    printf("initialized %d version %d.%d\n", flag, major, minor);
    return 4;
}
