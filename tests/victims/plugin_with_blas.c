/* A plug-in with a BLAS of its own and a user of it; to be opened and closed by reopens_plugin. */

double cblas_ddot(int n, const double *x, int step_x, const double *y, int step_y)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i * step_x] * y[i * step_y];
    return sum;
}

double product(void)
{
    double x[4] = {1, 2, 3, 4};
    return cblas_ddot(4, x, 1, x, 1);
}
