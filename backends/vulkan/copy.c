/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy.c - a copy is a sequence of spans of bytes. Spans gather as regions of one command; a
 * barrier comes before a span that may share bytes with what was written. Copies, and fills, are
 * complete on return.
 *
 * A submission from or to the host copies at most one half of the staging ring, so that host and
 * device work on different halves. A copy from page to page uses only the command buffers of the
 * ring.
 */
#include "backends/vulkan/copy.h"

#include <string.h>

#include "backends/vulkan/page.h"
#include "backends/vulkan/queues.h"
#include "backends/vulkan/staging.h"
#include "src/base/bits.h"

/* ---- spans: positions --------------------------------------------------------------------- */

/* A run of bytes without a gap at either end. */
typedef struct span {
    VkBuffer buffer;
    uint64_t offset; /* bytes from the start of the buffer */
    char *host;      /* not changed by a write */
    uint64_t size;
} span;

qi_vulkan_spans qi_vulkan_spans_of_job(const quire_copy_job *job)
{
    return (qi_vulkan_spans){.is_write = !job->from, .job = job};
}

qi_vulkan_spans qi_vulkan_spans_of_list(const quire_page_copy *list, uint64_t count, bool is_write)
{
    return (qi_vulkan_spans){.is_write = is_write, .list = list, .count = count};
}

static const quire_native_page *page_of_job(const quire_copy_job *job)
{
    return job->to ? job->to : job->from;
}

/* The usage that the buffers over the pages need. */
static VkBufferUsageFlags usage_of(const qi_vulkan_spans *spans)
{
    return spans->is_write ? VK_BUFFER_USAGE_TRANSFER_DST_BIT : VK_BUFFER_USAGE_TRANSFER_SRC_BIT;
}

quire_result qi_vulkan_spans_prepare(qi_vulkan *vulkan, const qi_vulkan_spans *spans)
{
    VkBuffer buffer = VK_NULL_HANDLE;
    if (spans->job)
        return qi_vulkan_copy_buffer(vulkan, page_of_job(spans->job), usage_of(spans), &buffer);
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t i = 0; i < spans->count && !result; i++)
        if (!i || spans->list[i].page != spans->list[i - 1].page)
            result = qi_vulkan_copy_buffer(vulkan, spans->list[i].page, usage_of(spans), &buffer);
    return result;
}

static uint64_t left_in_job(const qi_vulkan_spans *spans)
{
    const quire_copy_job *job = spans->job;
    uint64_t rows = (job->slices - spans->slice) * job->rows - spans->row;
    return rows * job->size - spans->byte;
}

uint64_t qi_vulkan_spans_left(const qi_vulkan_spans *spans, uint64_t most)
{
    uint64_t left = 0;
    if (spans->job)
        left = left_in_job(spans);
    for (uint64_t i = spans->item; i < spans->count && left < most; i++) {
        uint64_t size = spans->list[i].size - (i == spans->item ? spans->byte : 0);
        left = size < most - left ? left + size : most;
    }
    return left < most ? left : most;
}

/* Moves the position on by `bytes`, which are within a row or an item of `size` bytes. */
static void advance(qi_vulkan_spans *spans, uint64_t bytes, uint64_t size)
{
    spans->byte += bytes;
    if (spans->byte < size)
        return;
    spans->byte = 0;
    if (!spans->job) {
        spans->item++;
        return;
    }
    if (++spans->row < spans->job->rows)
        return;
    spans->row = 0;
    spans->slice++;
}

/* The row of a job at the position, without the page's buffer. */
static span span_of_job(const qi_vulkan_spans *spans)
{
    const quire_copy_job *job = spans->job;
    uint64_t to = spans->slice * job->to_slice + spans->row * job->to_row + spans->byte;
    uint64_t from = spans->slice * job->from_slice + spans->row * job->from_row + spans->byte;
    return (span){
        .offset = spans->is_write ? job->to_offset + to : job->from_offset + from,
        .host =
            spans->is_write ? (char *)(uintptr_t)job->host_from + from : (char *)job->host_to + to,
        .size = job->size,
    };
}

/* The item of a list at the position, likewise. */
static span span_of_item(const qi_vulkan_spans *spans)
{
    const quire_page_copy *item = &spans->list[spans->item];
    return (span){
        .offset = item->offset + spans->byte,
        .host = (char *)item->host + spans->byte,
        .size = item->size,
    };
}

/* Returns the next span, cut to `room` bytes, and moves the position on. */
static quire_result next(qi_vulkan *vulkan, qi_vulkan_spans *spans, uint64_t room, span *s)
{
    const quire_native_page *page =
        spans->job ? page_of_job(spans->job) : spans->list[spans->item].page;
    if (page != spans->last_page) {
        quire_result result =
            qi_vulkan_copy_buffer(vulkan, page, usage_of(spans), &spans->last_buffer);
        if (result)
            return result;
        spans->last_page = page;
    }
    *s = spans->job ? span_of_job(spans) : span_of_item(spans);
    uint64_t whole = s->size, left = whole - spans->byte;
    s->buffer = spans->last_buffer;
    s->size = left < room ? left : room;
    advance(spans, s->size, whole);
    return QUIRE_SUCCESS;
}

/* ---- spans: commands ---------------------------------------------------------------------- */

/* Maximum number of spans of one submission, which bounds the memory of its command buffer. */
enum { MAX_SPANS = 4096 };

/* Maximum number of regions of one command. They are on the stack. */
enum { MAX_REGIONS = 128 };

/* Buffers whose written extents are remembered until the next barrier. */
enum { MAX_EXTENTS = 8 };

/* The bytes from the first to the last that commands wrote to a buffer. */
typedef struct extent {
    VkBuffer buffer;
    uint64_t begin, end;
} extent;

/* The commands of one part. Vulkan does not order copies without a barrier between them. */
typedef struct recorder {
    qi_vulkan *vulkan;
    VkCommandBuffer commands;
    VkBuffer staging;
    bool is_write;
    extent current;    /* of the regions that no command has yet */
    uint32_t count;    /* of these regions */
    uint32_t recorded; /* number of extents of the commands since the last barrier */
    extent extents[MAX_EXTENTS];
    VkBufferCopy regions[MAX_REGIONS];
} recorder;

static void order(recorder *r)
{
    qi_vulkan_record_barrier(r->vulkan, r->commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                             VK_PIPELINE_STAGE_TRANSFER_BIT);
    r->recorded = 0;
}

static void widen(extent *e, uint64_t begin, uint64_t end)
{
    e->begin = begin < e->begin ? begin : e->begin;
    e->end = end > e->end ? end : e->end;
}

/* Remembers what a command writes. Without room for another buffer a barrier forgets the others. */
static void note_written(recorder *r)
{
    for (uint32_t i = 0; i < r->recorded; i++)
        if (r->extents[i].buffer == r->current.buffer) {
            widen(&r->extents[i], r->current.begin, r->current.end);
            return;
        }
    if (r->recorded == MAX_EXTENTS)
        order(r);
    else
        r->extents[r->recorded++] = r->current;
}

/* Records the command for the regions so far. */
static void emit(recorder *r)
{
    if (!r->count)
        return;
    VkBuffer page = r->current.buffer;
    r->vulkan->f.CmdCopyBuffer(r->commands, r->is_write ? r->staging : page,
                               r->is_write ? page : r->staging, r->count, r->regions);
    r->count = 0;
    if (r->is_write)
        note_written(r);
}

static bool touches(const extent *e, const span *s)
{
    return e->buffer == s->buffer && s->offset < e->end && e->begin < s->offset + s->size;
}

/* Whether the span may share bytes with what was written since the last barrier. It is exact for
   the regions of the current command, and compares extents for those before. */
static bool may_overlap(const recorder *r, const span *s)
{
    for (uint32_t i = 0; i < r->recorded; i++)
        if (touches(&r->extents[i], s))
            return true;
    if (!r->count || !touches(&r->current, s))
        return false;
    for (uint32_t i = 0; i < r->count; i++) {
        const VkBufferCopy *region = &r->regions[i];
        if (s->offset < region->dstOffset + region->size && region->dstOffset < s->offset + s->size)
            return true;
    }
    return false;
}

/* Adds the copy between a span and byte `at` of the staging memory. */
static void add(recorder *r, const span *s, uint64_t at)
{
    if (r->count && (r->count == MAX_REGIONS || r->current.buffer != s->buffer))
        emit(r);
    if (r->is_write && may_overlap(r, s)) {
        emit(r);
        order(r);
    }
    if (!r->count)
        r->current = (extent){s->buffer, s->offset, s->offset + s->size};
    widen(&r->current, s->offset, s->offset + s->size);
    r->regions[r->count++] = (VkBufferCopy){
        .srcOffset = r->is_write ? at : s->offset,
        .dstOffset = r->is_write ? s->offset : at,
        .size = s->size,
    };
}

quire_result qi_vulkan_spans_record(qi_vulkan *vulkan, VkCommandBuffer commands,
                                    const qi_vulkan_part *part, qi_vulkan_spans *spans)
{
    recorder r = {.vulkan = vulkan,
                  .commands = commands,
                  .staging = part->memory->buffer,
                  .is_write = spans->is_write};
    uint64_t used = 0;
    for (int i = 0; i < MAX_SPANS && used < part->room && !qi_vulkan_spans_are_done(spans); i++) {
        span s;
        quire_result result = next(vulkan, spans, part->room - used, &s);
        if (result)
            return result;
        if (spans->is_write)
            memcpy(part->memory->bytes + part->begin + used, s.host, s.size);
        add(&r, &s, part->begin + used);
        used += s.size;
    }
    emit(&r);
    return QUIRE_SUCCESS;
}

/* Copies the bytes of a read out of the part. `spans` is the position before the record call. */
static quire_result spans_receive(qi_vulkan *vulkan, const qi_vulkan_part *part,
                                  qi_vulkan_spans spans)
{
    uint64_t used = 0;
    for (int i = 0; i < MAX_SPANS && used < part->room && !qi_vulkan_spans_are_done(&spans); i++) {
        span s;
        quire_result result = next(vulkan, &spans, part->room - used, &s);
        if (result)
            return result;
        memcpy(s.host, part->memory->bytes + part->begin + used, s.size);
        used += s.size;
    }
    return QUIRE_SUCCESS;
}

/* ---- from page to page -------------------------------------------------------------------- */

/* Maximum number of rows of one submission from page to page. They are on the stack. */
enum { MAX_ROWS = 256 };

/* A copy between the buffers over two pages, and its progress in rows. */
typedef struct copy {
    const quire_copy_job *job;
    VkBuffer to, from;
    uint64_t slice, row; /* the first row that is left to copy */
} copy;

/* Takes the next rows from the job and returns their number. */
static uint32_t gather(copy *c, VkBufferCopy *regions)
{
    const quire_copy_job *job = c->job;
    uint32_t count = 0;
    while (count < MAX_ROWS && c->slice < job->slices) {
        regions[count++] = (VkBufferCopy){
            .srcOffset = job->from_offset + c->slice * job->from_slice + c->row * job->from_row,
            .dstOffset = job->to_offset + c->slice * job->to_slice + c->row * job->to_row,
            .size = job->size,
        };
        if (++c->row < job->rows)
            continue;
        c->row = 0;
        c->slice++;
    }
    return count;
}

/* Only the command buffers of the ring are used. */
static quire_result copy_rows(qi_vulkan *vulkan, copy *c)
{
    VkBufferCopy regions[MAX_ROWS];
    quire_result result = QUIRE_SUCCESS;
    for (int half = 0; c->slice < c->job->slices && !result; half = !half) {
        result = qi_vulkan_staging_wait(vulkan, half);
        if (!result)
            result = qi_vulkan_staging_begin(vulkan, half);
        if (result)
            break;
        uint32_t count = gather(c, regions);
        vulkan->f.CmdCopyBuffer(vulkan->staging->commands[half], c->from, c->to, count, regions);
        result = qi_vulkan_staging_submit(vulkan, half);
    }
    return result;
}

static quire_result copy_between(qi_vulkan *vulkan, const quire_copy_job *job)
{
    copy c = {.job = job};
    quire_result result =
        qi_vulkan_copy_buffer(vulkan, job->to, VK_BUFFER_USAGE_TRANSFER_DST_BIT, &c.to);
    if (!result)
        result =
            qi_vulkan_copy_buffer(vulkan, job->from, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, &c.from);
    if (!result)
        result = qi_vulkan_staging_acquire(vulkan);
    return result ? result : qi_vulkan_staging_release(vulkan, copy_rows(vulkan, &c));
}

/* ---- between pages and host memory -------------------------------------------------------- */

static qi_vulkan_part part_of(const qi_vulkan *vulkan, int half)
{
    const qi_vulkan_staging *s = vulkan->staging;
    return (qi_vulkan_part){
        .memory = &s->memory, .begin = s->half * (uint64_t)half, .room = s->half};
}

/* Records the next spans into a half. */
static quire_result record(qi_vulkan *vulkan, qi_vulkan_spans *spans, int half)
{
    const qi_vulkan_part part = part_of(vulkan, half);
    quire_result result = qi_vulkan_staging_wait(vulkan, half);
    if (!result)
        result = qi_vulkan_staging_begin(vulkan, half);
    return result ? result
                  : qi_vulkan_spans_record(vulkan, vulkan->staging->commands[half], &part, spans);
}

/* The host fills a half while the device copies from the other one. */
static quire_result write_spans(qi_vulkan *vulkan, qi_vulkan_spans spans)
{
    quire_result result = QUIRE_SUCCESS;
    for (int half = 0; !qi_vulkan_spans_are_done(&spans) && !result; half = !half) {
        result = record(vulkan, &spans, half);
        if (!result)
            result = qi_vulkan_staging_flush(vulkan, half);
        if (!result)
            result = qi_vulkan_staging_submit(vulkan, half);
    }
    return result;
}

/* Submits the copy of the next spans into a half. */
static quire_result request(qi_vulkan *vulkan, qi_vulkan_spans *spans, int half)
{
    quire_result result = record(vulkan, spans, half);
    return result ? result : qi_vulkan_staging_submit(vulkan, half);
}

/* Waits for a half and copies its spans, which begin at the position, out of the ring. */
static quire_result receive(qi_vulkan *vulkan, const qi_vulkan_spans *begin, int half)
{
    const qi_vulkan_part part = part_of(vulkan, half);
    quire_result result = qi_vulkan_staging_wait(vulkan, half);
    if (!result)
        result = qi_vulkan_staging_invalidate(vulkan, half);
    return result ? result : spans_receive(vulkan, &part, *begin);
}

/* The device fetches the next spans while the host copies the previous ones out of the ring. */
static quire_result read_spans(qi_vulkan *vulkan, qi_vulkan_spans spans)
{
    qi_vulkan_spans begins[QI_VULKAN_HALVES] = {spans};
    quire_result result = request(vulkan, &spans, 0);
    bool more = true;
    for (int half = 0; more && !result; half = !half) {
        more = !qi_vulkan_spans_are_done(&spans);
        begins[!half] = spans;
        if (more)
            result = request(vulkan, &spans, !half);
        if (!result)
            result = receive(vulkan, &begins[half], half);
    }
    return result;
}

static quire_result copy_spans(qi_vulkan *vulkan, const qi_vulkan_spans *spans)
{
    quire_result result = qi_vulkan_spans_prepare(vulkan, spans);
    if (!result)
        result = qi_vulkan_staging_acquire(vulkan);
    if (result)
        return result;
    result = spans->is_write ? write_spans(vulkan, *spans) : read_spans(vulkan, *spans);
    return qi_vulkan_staging_release(vulkan, result);
}

/* ---- entries of the backend table --------------------------------------------------------- */

quire_result qi_vulkan_copy_pages(void *state, const quire_copy_job *job)
{
    if (job->to && job->from)
        return copy_between(state, job);
    const qi_vulkan_spans spans = qi_vulkan_spans_of_job(job);
    return copy_spans(state, &spans);
}

quire_result qi_vulkan_write_many(void *state, const quire_page_copy *copies, uint64_t count)
{
    const qi_vulkan_spans spans = qi_vulkan_spans_of_list(copies, count, true);
    return copy_spans(state, &spans);
}

quire_result qi_vulkan_read_many(void *state, const quire_page_copy *copies, uint64_t count)
{
    const qi_vulkan_spans spans = qi_vulkan_spans_of_list(copies, count, false);
    return copy_spans(state, &spans);
}

quire_result qi_vulkan_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                    const void *data, uint64_t size)
{
    const quire_page_copy one = {page, offset, (void *)(uintptr_t)data, size};
    return qi_vulkan_write_many(state, &one, 1);
}

quire_result qi_vulkan_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                      void *data, uint64_t size)
{
    const quire_page_copy one = {page, offset, data, size};
    return qi_vulkan_read_many(state, &one, 1);
}

/* ---- fills -------------------------------------------------------------------------------- */

static quire_result fill_words(qi_vulkan *vulkan, VkBuffer buffer, uint64_t offset, uint64_t size,
                               uint8_t value)
{
    quire_result result = qi_vulkan_staging_acquire(vulkan);
    if (result)
        return result;
    result = qi_vulkan_staging_wait(vulkan, 0);
    if (!result)
        result = qi_vulkan_staging_begin(vulkan, 0);
    if (!result) {
        vulkan->f.CmdFillBuffer(vulkan->staging->commands[0], buffer, offset, size,
                                value * UINT32_C(0x01010101));
        result = qi_vulkan_staging_submit(vulkan, 0);
    }
    return qi_vulkan_staging_release(vulkan, result);
}

/* Fills whole words on the device. The bytes before the first and after the last whole word are
   copied from the host. */
quire_result qi_vulkan_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                                 uint64_t size, uint8_t value)
{
    const uint8_t bytes[QI_VULKAN_FILL_WORD] = {value, value, value, value};
    VkBuffer buffer = VK_NULL_HANDLE;
    uint64_t end = offset + size, begin = offset + qi_padding(offset, QI_VULKAN_FILL_WORD);
    uint64_t stop = qi_align_down(end, QI_VULKAN_FILL_WORD);
    quire_result result =
        qi_vulkan_copy_buffer(state, page, VK_BUFFER_USAGE_TRANSFER_DST_BIT, &buffer);
    if (begin >= stop)
        begin = stop = end; /* fewer than two words, none of them whole: copy everything */
    for (uint64_t at = offset; at < begin && !result; at += QI_VULKAN_FILL_WORD)
        result = qi_vulkan_copy_to_page(state, page, at, bytes,
                                        begin - at < QI_VULKAN_FILL_WORD ? begin - at
                                                                         : QI_VULKAN_FILL_WORD);
    if (!result && begin < stop)
        result = fill_words(state, buffer, begin, stop - begin, value);
    if (!result && stop < end)
        result = qi_vulkan_copy_to_page(state, page, stop, bytes, end - stop);
    return result;
}
