/* Times a client of the C library: client DOCUMENT RECORDS BATCH writes the nanoseconds of opening, of one record, and of one
   record of a call with BATCH of them. */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bitldp.h"

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return 1e9 * (double)at.tv_sec + (double)at.tv_nsec;
}

/* A ledger that allows everything: what is timed is the report. */
static int32_t charge(void *context, const char *name, size_t name_len, uint64_t most, double epsilon, double delta)
{
    (void)context, (void)name, (void)name_len, (void)most, (void)epsilon, (void)delta;
    return 0;
}

int main(int count, char **arguments)
{
    static char document[1 << 20];
    FILE *file = count == 4 ? fopen(arguments[1], "rb") : NULL;
    if (file == NULL)
        return 2;
    size_t length = fread(document, 1, sizeof document, file);
    fclose(file);
    bitldp_client *client = NULL;
    double opening = 1e300, record = 1e300, together = 1e300;
    for (int round = 0; round < 50; round++) {
        bitldp_close(client);
        double begun = now();
        if (bitldp_open(document, length, &client).kind != BITLDP_DONE)
            return 1;
        double taken = now() - begun;
        opening = taken < opening ? taken : opening;
    }
    long records = atol(arguments[2]);
    size_t batch = (size_t)atol(arguments[3]);
    size_t in = bitldp_record_bytes(client), out = bitldp_report_bytes(client, 1);
    size_t out_together = bitldp_report_bytes(client, batch);
    /* A message is about one record. */
    if (out_together == SIZE_MAX) {
        batch = 1;
        out_together = out;
    }
    void *x = calloc(batch, in);
    uint8_t *report = malloc(out_together);
    /* The fastest of a thousand rounds: what else the machine does is no part of it. */
    for (int round = 0; round < 1000; round++) {
        double begun = now();
        for (long i = 0; i < records; i++)
            if (bitldp_randomize_charged(client, charge, NULL, x, in, report, out).kind != BITLDP_DONE)
                return 1;
        double taken = (now() - begun) / (double)records;
        record = taken < record ? taken : record;
    }
    for (int round = 0; round < 200; round++) {
        double begun = now();
        if (bitldp_randomize_charged(client, charge, NULL, x, batch * in, report, out_together).kind != BITLDP_DONE)
            return 1;
        double taken = (now() - begun) / (double)batch;
        together = taken < together ? taken : together;
    }
    printf("{\"open_ns\": %.0f, \"record_ns\": %.1f, \"together_ns\": %.2f, \"bytes\": %zu}\n", opening, record, together,
           length);
    free(x);
    free(report);
    bitldp_close(client);
    return 0;
}
