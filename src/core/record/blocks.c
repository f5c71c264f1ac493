/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * blocks.c - appends records to the current block, begins the next one, and writes blocks.
 *
 * The clock costs more than the rest of a record. A record therefore reads the counter of the
 * processor; the clock is read at the ends of a block, and when so many ticks have passed that the
 * block may be old.
 */
#include "src/core/record/blocks.h"

#include <string.h>

#include "quire/allocation.h"
#include "src/base/bits.h"
#include "src/base/process.h"
#include "src/base/system.h"

/* A block is written that long after its first record at the latest, as soon as another record
   comes: a crash loses no more, and readers of a file that grows see it soon. */
static const uint64_t MAX_AGE_NS = 200000000;

/* FIRST_PATIENCE: in ticks. MAX_RECORDS: the bytes of a name and an allocation. */
enum { UNIT = QI_RECORDING_UNIT, FIRST_PATIENCE = 1 << 16 };
enum { MAX_NAME_UNITS = 1 + (QUIRE_MAX_NAME + UNIT - 1) / UNIT };
enum { MAX_RECORDS = (MAX_NAME_UNITS + 2) * UNIT };

/* ---- host memory -------------------------------------------------------------------------- */

bool qi_blocks_make(qi_blocks *blocks, qi_host *host, uint32_t count)
{
    blocks->bytes = qi_host_allocate(host, count, QI_RECORDING_BLOCK);
    blocks->count = count;
    return blocks->bytes != NULL;
}

void qi_blocks_release(qi_blocks *blocks, qi_host *host)
{
    qi_host_release(host, blocks->bytes, blocks->count, QI_RECORDING_BLOCK);
    blocks->bytes = NULL;
}

/* ---- blocks ------------------------------------------------------------------------------- */

static unsigned char *block_at(const qi_blocks *b, uint32_t place)
{
    return b->bytes + (size_t)place * QI_RECORDING_BLOCK;
}

static qi_block_header *header_at(const qi_blocks *b, uint32_t place)
{
    return (qi_block_header *)(void *)block_at(b, place);
}

static void put_out(qi_blocks *b, uint32_t place)
{
    const char *bytes = (const char *)block_at(b, place);
    const uint32_t size = header_at(b, place)->size;
    b->is_empty = false;
    if (b->failed)
        return;
    if (b->output.file != QI_NO_FILE) {
        b->error = qi_output_write(b->output.file, bytes, size);
        b->failed = b->error != 0;
    } else {
        b->failed = !b->output.sink(b->output.user, bytes, size);
    }
}

/* Begins the block at b->current, which is empty: its header is written at its end. */
static void begin_block(qi_blocks *b)
{
    b->used = sizeof(qi_block_header);
    b->number++;
    b->last_ticks = 0;
    b->patience_ticks = FIRST_PATIENCE;
    b->begin_ns = qi_clock();
    b->begin_ticks = qi_ticks();
}

/* Ticks since the begin of the block, not below those of the last record. */
static uint64_t ticks_now(const qi_blocks *b)
{
    int64_t ticks = (int64_t)(qi_ticks() - b->begin_ticks);
    return ticks > (int64_t)b->last_ticks ? (uint64_t)ticks : b->last_ticks;
}

/* Writes the header of the current block. */
static void end_block(qi_blocks *b)
{
    qi_block_header header = {.order = QI_RECORDING_ORDER,
                              .size = b->used,
                              .begin_ns = b->begin_ns,
                              .end_ns = qi_clock(),
                              .ticks = ticks_now(b)};
    memcpy(header.magic, QI_RECORDING_MAGIC, sizeof header.magic);
    memcpy(block_at(b, b->current), &header, sizeof header);
}

static void next_block(qi_blocks *b)
{
    end_block(b);
    if (b->count == 1)
        put_out(b, 0);
    else
        b->current = (b->current + 1) % b->count;
    begin_block(b);
}

/* Whether the current block must end: ticks have 32 bits, and a ring has no need of young blocks.
   The next look at the clock is after as many ticks again. */
static bool is_old(qi_blocks *b, uint64_t ticks)
{
    b->patience_ticks = ticks * 2 + FIRST_PATIENCE;
    return ticks > INT32_MAX || (b->count == 1 && qi_clock() - b->begin_ns >= MAX_AGE_NS);
}

/* ---- records ------------------------------------------------------------------------------ */

/* Begins the next block if this one has no room for a name and an allocation, or is old. */
static uint32_t prepare(qi_blocks *b)
{
    uint64_t ticks = ticks_now(b);
    if (b->used <= QI_RECORDING_BLOCK - MAX_RECORDS && ticks < b->patience_ticks)
        return b->last_ticks = (uint32_t)ticks;
    if (b->used > QI_RECORDING_BLOCK - MAX_RECORDS || is_old(b, ticks))
        next_block(b);
    return b->last_ticks = (uint32_t)ticks_now(b);
}

static void *append(qi_blocks *b, uint32_t units)
{
    void *record = block_at(b, b->current) + b->used;
    b->used += units * UNIT;
    return record;
}

static uint64_t hash_of(const char *name, size_t *length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    size_t i = 0;
    for (; name[i]; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    *length = i;
    return hash;
}

static bool is_name(const qi_blocks *b, const qi_block_name *known, const char *name, size_t length)
{
    if (known->block != b->number)
        return false;
    const unsigned char *bytes = block_at(b, b->current) + known->record;
    const qi_record *record = (const qi_record *)(const void *)bytes;
    return record->id == length && !memcmp(bytes + UNIT, name, length);
}

/* Returns the offset of the record of a name in the current block; 0: it is empty. */
static uint32_t name_at(qi_blocks *b, const char *name, uint32_t ticks)
{
    size_t length = 0;
    if (!name || !*name)
        return 0;
    uint64_t hash = hash_of(name, &length);
    qi_block_name *known = &b->names[hash % QI_BLOCK_NAMES];
    if (known->hash == hash && is_name(b, known, name, length))
        return known->record;
    *known = (qi_block_name){.block = b->number, .record = b->used, .hash = hash};
    uint32_t units = 1 + (uint32_t)(length + UNIT - 1) / UNIT;
    qi_record *record = append(b, units);
    record[units - 1] = (qi_record){.id = 0}; /* of which the name may fill a part */
    record[0] = (qi_record){.id = length, .ticks = ticks, .kind = QI_RECORD_NAME};
    memcpy(&record[1], name, length);
    return known->record;
}

void qi_blocks_alloc(qi_blocks *b, uint64_t id, uint64_t size, uint64_t alignment, uint16_t stream,
                     const char *name)
{
    uint32_t ticks = prepare(b), name_record = name_at(b, name, ticks);
    qi_record *record = append(b, 2);
    record[0] = (qi_record){.id = id,
                            .ticks = ticks,
                            .stream = stream,
                            .alignment = (uint8_t)qi_highest_bit(alignment),
                            .kind = QI_RECORD_ALLOC};
    qi_record_size *more = (qi_record_size *)(void *)&record[1];
    *more = (qi_record_size){.size = size, .name = name_record};
}

void qi_blocks_free(qi_blocks *b, uint64_t id, uint16_t stream)
{
    uint32_t ticks = prepare(b);
    *(qi_record *)append(b, 1) =
        (qi_record){.id = id, .ticks = ticks, .stream = stream, .kind = QI_RECORD_FREE};
}

void qi_blocks_frame(qi_blocks *b)
{
    uint32_t ticks = prepare(b);
    *(qi_record *)append(b, 1) = (qi_record){.ticks = ticks, .kind = QI_RECORD_FRAME};
}

/* ---- the begin and the flush -------------------------------------------------------------- */

void qi_blocks_begin(qi_blocks *b, qi_blocks_output output)
{
    for (uint32_t i = 0; i < b->count; i++)
        header_at(b, i)->size = 0;
    b->output = output;
    b->current = 0;
    b->is_empty = true;
    b->failed = false;
    b->error = 0;
    begin_block(b);
}

/* The oldest block of a ring follows the current one. */
void qi_blocks_flush(qi_blocks *b)
{
    bool has_records = b->used > sizeof(qi_block_header);
    if (has_records || b->is_empty)
        end_block(b);
    else
        header_at(b, b->current)->size = 0;
    for (uint32_t i = 1; i <= b->count; i++) {
        uint32_t place = (b->current + i) % b->count;
        if (header_at(b, place)->size)
            put_out(b, place);
        header_at(b, place)->size = 0;
    }
    begin_block(b);
}
