/* No MPI at all. */
#include <stdio.h>

int main(int argc, char **argv)
{
    printf("%d arguments, the first %s\n", argc - 1, argc > 1 ? argv[1] : "missing");
    fprintf(stderr, "a line on standard error\n");
    return 6;
}
