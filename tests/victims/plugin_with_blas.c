/* A plug-in with its own BLAS and a user of it; reopens_plugin opens and closes it. */

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
