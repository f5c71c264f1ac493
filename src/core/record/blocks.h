/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * blocks.h - the blocks of a recording (src/base/recording.h) that a recorder fills: one, which is
 * written when it is full or old, or a ring, which keeps the last ones until a flush.
 *
 * Nothing here takes host memory after the start. Every function requires the recorder's lock.
 */
#ifndef QUIRE_SRC_CORE_RECORD_BLOCKS_H
#define QUIRE_SRC_CORE_RECORD_BLOCKS_H

#include "src/base/host_memory.h"
#include "src/base/recording.h"

enum { QI_NO_FILE = -1, QI_BLOCK_NAMES = 512 };

/* Where blocks go: to a file, or to a sink. */
typedef struct qi_blocks_output {
    int file; /* QI_NO_FILE: the sink */
    quire_sink sink;
    void *user;
} qi_blocks_output;

/* A name of the block, found by its hash; a later name with the same place replaces it. */
typedef struct qi_block_name {
    uint32_t block;  /* the number of the block that has it */
    uint32_t record; /* its offset in the block */
    uint64_t hash;
} qi_block_name;

typedef struct qi_blocks {
    unsigned char *bytes; /* `count` blocks; NULL: none */
    uint32_t count;       /* 1: blocks are written as they end; more: a ring */
    uint32_t current;     /* its place in `bytes` */
    uint32_t used;        /* bytes of the current block */
    uint32_t number;      /* of the current block, from 1 */
    uint64_t begin_ns, begin_ticks;
    uint32_t last_ticks;     /* of the last record */
    uint64_t patience_ticks; /* after which the next record reads the clock */
    bool is_empty;           /* nothing was written */
    qi_blocks_output output;
    bool failed; /* the file or the sink: nothing is written after it */
    int error;   /* errno of the file */
    qi_block_name names[QI_BLOCK_NAMES];
} qi_blocks;

/* Takes host memory for `count` blocks, and gives it back. Not for blocks that have some. */
QUIRE_MUST_USE bool qi_blocks_make(qi_blocks *blocks, qi_host *host, uint32_t count);
void qi_blocks_release(qi_blocks *blocks, qi_host *host);

/* Begins a recording. */
void qi_blocks_begin(qi_blocks *blocks, qi_blocks_output output);

/* Add a record. `name` may be NULL. `stream` is a number. */
void qi_blocks_alloc(qi_blocks *blocks, uint64_t id, uint64_t size, uint64_t alignment,
                     uint16_t stream, const char *name);
void qi_blocks_free(qi_blocks *blocks, uint64_t id, uint16_t stream);
void qi_blocks_frame(qi_blocks *blocks);

/* Writes all that is not written yet; an empty block if there is nothing else. */
void qi_blocks_flush(qi_blocks *blocks);

#endif
