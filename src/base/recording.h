/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * recording.h - the binary form of a trace, which a recorder writes and the reader of traces reads
 * (docs/formats.md).
 *
 * A recording is a sequence of blocks. A block is a header and records of one, two or more units of
 * 16 bytes. Names are records too, in front of the first allocation of the block that has them: a
 * block needs no other one. Numbers have the byte order of the machine.
 */
#ifndef QUIRE_SRC_BASE_RECORDING_H
#define QUIRE_SRC_BASE_RECORDING_H

#include <assert.h>
#include <stdint.h>

#define QI_RECORDING_MAGIC "\x89quire1\n" /* no text, and no text after a conversion of line ends */
#define QI_RECORDING_ORDER UINT32_C(0x01020304)

enum {
    QI_RECORDING_UNIT = 16,
    QI_RECORDING_BLOCK = 1 << 16, /* the most bytes of a block, with its header */
};

typedef struct qi_block_header {
    char magic[8];      /* without the terminating 0 */
    uint32_t order;     /* QI_RECORDING_ORDER; anything else: another byte order */
    uint32_t size;      /* bytes of the block with this header, a multiple of the unit */
    uint64_t begin_ns;  /* the monotonic clock at the begin and at the end of the block */
    uint64_t end_ns;    /* not below begin_ns, and not above begin_ns of the next block */
    uint64_t ticks;     /* between the two; records have their times in ticks since begin_ns */
    uint64_t unused[3]; /* 0 */
} qi_block_header;

typedef enum qi_record_kind {
    QI_RECORD_ALLOC = 1, /* a second unit follows: qi_record_size */
    QI_RECORD_FREE,      /* of a range that may be older than the recording */
    QI_RECORD_FRAME,     /* id is 0 */
    QI_RECORD_NAME       /* id is the length; the bytes follow, without a 0, up to a whole unit */
} qi_record_kind;

typedef struct qi_record {
    uint64_t id;       /* of the range: not 0, unique among those that live */
    uint32_t ticks;    /* since the begin of the block; not below those of the record before */
    uint16_t stream;   /* 0: none */
    uint8_t alignment; /* of an allocation: the power of two */
    uint8_t kind;
} qi_record;

typedef struct qi_record_size {
    uint64_t size; /* bytes, as requested; at least 1 */
    uint32_t name; /* offset of the record of the name in the block; 0: none */
    uint32_t unused;
} qi_record_size;

static_assert(sizeof(qi_block_header) == 64, "the header has no padding");
static_assert(sizeof(qi_record) == QI_RECORDING_UNIT, "a record is one unit");
static_assert(sizeof(qi_record_size) == QI_RECORDING_UNIT, "the size of an allocation is one unit");

#endif
