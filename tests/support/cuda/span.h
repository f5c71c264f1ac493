/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * span.h - every address range in which the fake CUDA driver has bytes: mappings, allocations of
 * all kinds, and registered host memory.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_SPAN_H
#define QUIRE_TESTS_SUPPORT_CUDA_SPAN_H

#include "tests/support/cuda/memory.h"

/* Access rights to a mapping; bits are devices. */
typedef struct fc_access {
    uint8_t read, write;
    bool host_reads, host_writes;
} fc_access;

typedef struct fc_span {
    uint64_t base, size;
    fc_kind kind;      /* MAPPING, ALLOCATION, POOLED, PINNED, REGISTERED, MANAGED, BUFFER,
                        OPENED */
    int device;        /* the device of its memory, or from which it was created; FC_HOST */
    uint64_t context;  /* destroyed with this context; 0: with none */
    fc_bytes *bytes;   /* NULL: stored at the addresses, where the processor reaches them */
    uint64_t offset;   /* in the bytes */
    uint64_t front;    /* bytes of addresses before it that are freed with it */
    fc_memory *memory; /* of a mapping */
    fc_bytes owned;    /* bytes of a span that is not a mapping */
    fc_access access;  /* of a mapping */
    uint64_t external; /* of a buffer */
    uint64_t pool;     /* of memory of a pool */
    uint64_t ready;    /* of memory of a pool: when its allocation is done */
    int process;       /* of a block of another process: that process */
    uint64_t origin;   /* of the same: its place there */
    unsigned flags;    /* of host memory; of memory of a pool 1: freed; references to an OPENED */
    uint64_t number;   /* never reused */
} fc_span;

/* Zeroed except base, size and kind; counted as alive. Ends the program without memory. */
fc_span *fc_span_add(fc_kind kind, uint64_t base, uint64_t size);

/* Removes the record. The caller destroys its contents first. */
void fc_span_remove(fc_span *span);

/* Destroys a span of any kind with everything it has. */
void fc_span_end(fc_span *span);

/* The span that contains an address; NULL if there is none. */
fc_span *fc_span_at(uint64_t address);

/* The number of the first span that ends after the address; fc.span_count if there is none. */
uint32_t fc_span_search(uint64_t address);

/* Returns true if a span overlaps the range. */
bool fc_span_in(uint64_t base, uint64_t size);

/* Returns where the bytes of an address are stored, and in *run how many follow in one piece; NULL
   if the device must not read (or write) there. `device` FC_HOST means the processor. */
unsigned char *fc_reach(uint64_t address, int device, bool writes, uint64_t *run);

/* Returns true if the device may read (or write) the whole range. */
bool fc_may_reach(uint64_t address, uint64_t size, int device, bool writes);

/* The same for the processor, which may also use memory that the driver does not know. */
bool fc_host_may(const void *pointer, uint64_t size, bool writes);

/* Returns true if this call is one of those that fc_busy lets fail. */
bool fc_is_busy(void);

/* Removes all access rights of a mapping. */
void fc_access_clear(fc_span *span);

#endif
