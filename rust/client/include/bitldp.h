/* Local differential privacy on the client: a mechanism is a document, which a server publishes.
 *
 * A client is opened from a document, whose epsilon is computed from its integers and whose own test is repeated. It
 * may be used by several threads at once. Reports are written to memory of the caller's, which is zeros where anything
 * is refused. No function keeps a pointer that it is given, and none shows a value in its answer.
 */
#ifndef BITLDP_H
#define BITLDP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bitldp_client bitldp_client;

/* kind: 0 where it is done, otherwise one of enum bitldp_kind. place: a byte of the document, or the index of a value;
 * UINT64_MAX where there is none. */
typedef struct {
    int32_t kind;
    uint64_t place;
} bitldp_status;

enum bitldp_kind {
    BITLDP_DONE = 0,
    BITLDP_SYNTAX = 1,    /* no canonical JSON */
    BITLDP_SIZE = 2,      /* larger or deeper than is allowed */
    BITLDP_VERSION = 3,   /* a version that this build does not know */
    BITLDP_FIELD = 4,     /* a field is missing, unknown or of the wrong type */
    BITLDP_CHECKSUM = 5,  /* the sha256 is another */
    BITLDP_LAW = 6,       /* the integers make no law */
    BITLDP_EPSILON = 7,   /* epsilon or delta does not follow from the integers */
    BITLDP_LIMIT = 8,     /* epsilon or delta is above the limit */
    BITLDP_GOLDEN = 9,    /* the document's own test gave other bytes */
    BITLDP_SHAPE = 10,    /* no whole records */
    BITLDP_VALUE = 11,    /* a value is outside what is allowed */
    BITLDP_OUTPUT = 12,   /* out is not as long as the reports */
    BITLDP_ENTROPY = 13,  /* the operating system gave no random bytes */
    BITLDP_BUDGET = 14,   /* the budget is spent, or the document states one and no ledger was given */
    BITLDP_LEDGER = 15,   /* the ledger could not be read or written */
    BITLDP_MEMORY = 16,   /* no memory is left */
    BITLDP_KEYED = 17,    /* no keyed release, another kind of id, or no secret */
    BITLDP_POINTER = 18,  /* a pointer is null */
    BITLDP_UNKNOWN = 19   /* a kind of mechanism that this build does not know */
};

/* A sentence for a kind, which stays as long as the program. */
const char *bitldp_reason(int32_t kind);

/* Open a document, whatever its epsilon is; or one whose epsilon and delta are at most these. *client is null where it
 * is refused. */
bitldp_status bitldp_open(const char *json, size_t len, bitldp_client **client);
bitldp_status bitldp_open_with(const char *json, size_t len, double epsilon, double delta, bitldp_client **client);
void bitldp_close(bitldp_client *client);

/* Of one report, between any two records. */
double bitldp_epsilon(const bitldp_client *client);
double bitldp_delta(const bitldp_client *client);
/* The server's name of the mechanism, 16 bytes. */
void bitldp_fingerprint(const bitldp_client *client, uint8_t out[16]);
/* What one report reveals, for a person, cut to len bytes with a zero at the end; gives the length of the whole. */
size_t bitldp_sentence(const bitldp_client *client, char *out, size_t len);

/* Bytes of a record, and of the reports of so many records in one call. */
size_t bitldp_record_bytes(const bitldp_client *client);
size_t bitldp_report_bytes(const bitldp_client *client, size_t records);

/* Randomize records with fresh keys of the operating system. x holds the values of record after record, little-endian,
 * of the types that the document says (of several parts: those of the first part for all records, then the next); it may
 * begin at any byte. out_bytes is what bitldp_report_bytes says. Refused where the document states a budget. */
bitldp_status bitldp_randomize(const bitldp_client *client, const void *x, size_t x_bytes, uint8_t *out,
                               size_t out_bytes);

/* The same, once charge has answered 0: it is asked for each record before anything is drawn, with the name that the
 * document counts under (no zero at its end), the reports that it allows at most (UINT64_MAX: any), and what one costs.
 * It has to write the charge down before it answers, and to refuse it (any other answer) where the budget is spent. */
typedef int32_t (*bitldp_charge)(void *context, const char *name, size_t name_len, uint64_t most, double epsilon,
                                 double delta);
bitldp_status bitldp_randomize_charged(const bitldp_client *client, bitldp_charge charge, void *context, const void *x,
                                       size_t x_bytes, uint8_t *out, size_t out_bytes);

/* The same with a ledger in a file, locked meanwhile; epsilon is the limit of the sum of all reports in the file. */
bitldp_status bitldp_randomize_from_file(const bitldp_client *client, const char *path, size_t path_len, double epsilon,
                                         const void *x, size_t x_bytes, uint8_t *out, size_t out_bytes);

/* Randomize one record as a function of a secret that stays here, of the record's id and of its values: repeating it
 * tells nothing more. The id is 8 bytes of a number, little-endian, 32 bytes of a digest, or a text, as the document
 * says. */
bitldp_status bitldp_randomize_keyed(const bitldp_client *client, const uint8_t secret[32], const uint8_t *id,
                                     size_t id_len, const void *x, size_t x_bytes, uint8_t *out, size_t out_bytes);

#ifdef BITLDP_GOLDEN
/* For tests alone, in a library that was built with the feature golden: keys are 32 bytes for each stream. */
bitldp_status bitldp_randomize_with_key(const bitldp_client *client, const uint8_t *keys, size_t keys_len,
                                        const void *x, size_t x_bytes, uint8_t *out, size_t out_bytes);
#endif

#ifdef __cplusplus
}
#endif

#endif
