/* Forwards Ethernet frames between two interfaces, in order, with a delay and a rate for each direction, like
 * netem in kernels that have it.
 *
 * Usage: delay_line IF_A IF_B DELAY_AB JITTER_AB DELAY_BA JITTER_BA [RATE]     (microseconds; Mbit/s)
 * A frame is delayed by DELAY plus an exponentially distributed time of mean JITTER. With a RATE, a frame first
 * waits until those before it are on the line, and takes its own length on it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <math.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

enum { FRAMES = 4096, FRAME_BYTES = 9216 };

struct direction {
    int in, out;
    double delay_us, jitter_us;
    double ns_per_byte; /* 0: no limit */
    uint64_t random;
};

struct frame {
    int64_t due_ns;
    size_t length;
    char bytes[FRAME_BYTES];
};

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Between 0 and 1, exclusive (xorshift). */
static double uniform(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static int open_interface(const char *name)
{
    int one = 1, buffer = 8 << 20;
    int raw = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    address.sll_ifindex = (int)if_nametoindex(name);
    if (raw < 0 || address.sll_ifindex == 0 || bind(raw, (void *)&address, sizeof address) != 0) {
        perror(name);
        exit(1);
    }
    setsockopt(raw, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
    setsockopt(raw, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
    return raw;
}

static void *forward(void *argument)
{
    struct direction *way = argument;
    struct frame *ring = malloc(FRAMES * sizeof *ring);
    unsigned first = 0, next = 0; /* frames first … next − 1 are waiting */
    int64_t last_due = 0, on_line = 0; /* when the last frame was wholly on the line */
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    while (ring != NULL) {
        int64_t now = now_ns();
        for (; first != next && ring[first % FRAMES].due_ns <= now; first++) {
            struct frame *frame = &ring[first % FRAMES];
            if (send(way->out, frame->bytes, frame->length, 0) < 0 && errno != ENOBUFS)
                perror("send");
            now = now_ns();
        }
        struct timespec wait = {0}, *limit = NULL;
        if (first != next) {
            int64_t left = ring[first % FRAMES].due_ns - now;
            left = left < 0 ? 0 : left;
            wait = (struct timespec){.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
            limit = &wait;
        }
        if (next - first == FRAMES) {
            nanosleep(limit, NULL);
            continue;
        }
        struct pollfd readable = {.fd = way->in, .events = POLLIN};
        if (ppoll(&readable, 1, limit, NULL) <= 0)
            continue;
        while (next - first < FRAMES) {
            struct frame *frame = &ring[next % FRAMES];
            ssize_t length = recv(way->in, frame->bytes, FRAME_BYTES, MSG_DONTWAIT | MSG_TRUNC);
            if (length <= 0)
                break;
            if (length > FRAME_BYTES) {
                fprintf(stderr, "delay_line: a frame of %zd bytes is lost: switch off tso and gso\n", length);
                continue;
            }
            double jitter = -log(uniform(&way->random)) * way->jitter_us;
            now = now_ns();
            on_line = (on_line > now ? on_line : now) + (int64_t)((double)length * way->ns_per_byte);
            int64_t due = on_line + (int64_t)((way->delay_us + jitter) * 1e3);
            last_due = due > last_due ? due : last_due;
            frame->due_ns = last_due;
            frame->length = (size_t)length;
            next++;
        }
    }
    return NULL;
}

int main(int count, char **words)
{
    if (count != 7 && count != 8) {
        fprintf(stderr, "usage: delay_line IF_A IF_B DELAY_AB JITTER_AB DELAY_BA JITTER_BA [RATE]\n");
        return 2;
    }
    double rate = count == 8 ? atof(words[7]) : 0, ns_per_byte = rate > 0 ? 8e3 / rate : 0;
    int a = open_interface(words[1]), b = open_interface(words[2]);
    struct direction there = {a, b, atof(words[3]), atof(words[4]), ns_per_byte, UINT64_C(88172645463325253)};
    struct direction back = {b, a, atof(words[5]), atof(words[6]), ns_per_byte, UINT64_C(2685821657736338717)};
    pthread_t other;
    if (pthread_create(&other, NULL, forward, &back) != 0)
        return 1;
    forward(&there);
    return 1;
}
