/* A library whose memory ends with a megabyte of data: room for something else once it is closed. */
static char data[1 << 20];

void call_back(void (*function)(double), double argument)
{
    function(argument);
    data[0]++;
}
