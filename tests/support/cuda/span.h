/*
 * span.h - every range of addresses at which the fake CUDA driver has bytes: mappings, allocations
 * of all kinds, and host memory that it knows of.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_SPAN_H
#define QUIRE_TESTS_SUPPORT_CUDA_SPAN_H

#include "tests/support/cuda/memory.h"

/* What may be done in one granule of a mapping; bits are devices. */
typedef struct fc_access {
    uint8_t read, write;
    bool host_reads, host_writes;
} fc_access;

typedef struct fc_span {
    uint64_t base, size;
    fc_kind kind;      /* MAPPING, ALLOCATION, POOLED, PINNED, REGISTERED, MANAGED, BUFFER */
    int device;        /* where it lies or from where it was made; FC_HOST */
    uint64_t context;  /* it ends with this one; 0: with none */
    fc_bytes *bytes;   /* NULL: at the addresses themselves, where the processor reaches them too */
    uint64_t offset;   /* in the bytes */
    uint64_t front;    /* bytes of addresses before it that are given back with it */
    fc_memory *memory; /* of a mapping */
    fc_bytes owned;    /* of others */
    fc_access *access; /* of a mapping, a granule each */
    uint64_t granule;
    uint64_t external; /* of a buffer */
    unsigned flags;    /* of host memory */
    uint64_t number;   /* never used twice */
} fc_span;

/* Zeroed but for base, size and kind; counted as alive. Ends the program without memory. */
fc_span *fc_span_add(fc_kind kind, uint64_t base, uint64_t size);

/* Takes it out and frees the record; what lies there is the caller's to end first. */
void fc_span_remove(fc_span *span);

/* Ends it with all that it has, whatever its kind. */
void fc_span_end(fc_span *span);

/* The one in which an address lies; NULL: none. */
fc_span *fc_span_at(uint64_t address);

/* Number of the first that ends behind the address: fc.spans[number], where there are so many. */
uint32_t fc_span_search(uint64_t address);

/* Any lies in the range. */
bool fc_span_in(uint64_t base, uint64_t size);

/*
 * Where the bytes of an address are, and in *run how many lie there in one piece; NULL: the device
 * may not read (or write) there. For `device` FC_HOST: the processor.
 */
unsigned char *fc_reach(uint64_t address, int device, bool writes, uint64_t *run);

/* The device may read (or write) all of it. */
bool fc_may_reach(uint64_t address, uint64_t size, int device, bool writes);

/* The same for the processor, which may also reach memory that the driver knows nothing of. */
bool fc_host_may(const void *pointer, uint64_t size, bool writes);

/* A mapping's granules hold nothing for anybody. */
void fc_access_clear(fc_span *span);

#endif
