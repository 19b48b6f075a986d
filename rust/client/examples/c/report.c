/* Reads a document and a value, and writes the report of it: report DOCUMENT VALUE > REPORT */
#include <stdio.h>
#include <stdlib.h>

#include "bitldp.h"

static int refused(bitldp_status status)
{
    if (status.kind != BITLDP_DONE)
        fprintf(stderr, "%s\n", bitldp_reason(status.kind));
    return status.kind != BITLDP_DONE;
}

int main(int count, char **arguments)
{
    static char document[1 << 20];
    char sentence[512];
    bitldp_client *client = NULL;
    FILE *file = count == 3 ? fopen(arguments[1], "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: report DOCUMENT CATEGORY > REPORT\n");
        return 2;
    }
    size_t length = fread(document, 1, sizeof document, file);
    fclose(file);
    if (refused(bitldp_open_with(document, length, 8.0, 0.0, &client)))
        return 1;
    bitldp_sentence(client, sentence, sizeof sentence);
    fprintf(stderr, "%s\n", sentence);
    uint8_t category = (uint8_t)atoi(arguments[2]);
    size_t size = bitldp_report_bytes(client, 1);
    uint8_t *report = malloc(size);
    int failed = report == NULL || refused(bitldp_randomize_from_file(client, "report.ledger", 13, 30.0, &category,
                                                                      sizeof category, report, size));
    if (!failed)
        failed = fwrite(report, 1, size, stdout) != size;
    free(report);
    bitldp_close(client);
    return failed;
}
