/*
 * copy.c - copies between pages, and between the host and pages that it cannot reach, piece by
 * piece through the staging ring; fills.
 */
#include <string.h>

#include "backends/vulkan/staging.h"
#include "src/base/bits.h"

/* vkCmdFillBuffer works on whole words. */
enum { FILL_WORD = 4 };

/* Regions of one submission at most; on the stack. */
enum { MAX_REGIONS = 256 };

/* ---- pieces ------------------------------------------------------------------------------- */

/* A job and how far it is. */
typedef struct copy {
    const quire_copy_job *job;
    VkBuffer to, from;         /* of pages; VK_NULL_HANDLE: host memory */
    uint64_t slice, row, byte; /* from where on there is something left */
} copy;

/* What is submitted at once: rows, or parts of them. */
typedef struct piece {
    uint32_t count;
    VkBufferCopy regions[MAX_REGIONS];
    char *hosts[MAX_REGIONS]; /* where the bytes come from or go to, of copies through the ring */
} piece;

static bool is_done(const copy *c)
{
    return c->slice == c->job->slices;
}

static void go_on(copy *c, uint64_t bytes)
{
    c->byte += bytes;
    if (c->byte < c->job->size)
        return;
    c->byte = 0;
    if (++c->row < c->job->rows)
        return;
    c->row = 0;
    c->slice++;
}

/* The next rows: as many as fit into `room` bytes of the ring from `begin` on. */
static void gather(copy *c, uint64_t begin, uint64_t room, piece *p)
{
    const quire_copy_job *job = c->job;
    uint64_t used = 0;
    for (p->count = 0; p->count < MAX_REGIONS && used < room && !is_done(c); p->count++) {
        uint64_t left = job->size - c->byte, size = left < room - used ? left : room - used;
        uint64_t to = c->slice * job->to_slice + c->row * job->to_row + c->byte;
        uint64_t from = c->slice * job->from_slice + c->row * job->from_row + c->byte;
        p->regions[p->count] = (VkBufferCopy){
            .srcOffset = c->from ? job->from_offset + from : begin + used,
            .dstOffset = c->to ? job->to_offset + to : begin + used,
            .size = size,
        };
        p->hosts[p->count] = NULL;
        if (!c->from)
            p->hosts[p->count] = (char *)(uintptr_t)job->host_from + from;
        if (!c->to)
            p->hosts[p->count] = (char *)job->host_to + to;
        used += size;
        go_on(c, size);
    }
}

static quire_result submit_piece(qi_vulkan *vulkan, const copy *c, const piece *p, int half)
{
    qi_vulkan_staging *s = vulkan->staging;
    quire_result result = qi_vulkan_staging_begin(vulkan, half);
    if (result)
        return result;
    vulkan->f.CmdCopyBuffer(s->commands[half], c->from ? c->from : s->buffer,
                            c->to ? c->to : s->buffer, p->count, p->regions);
    return qi_vulkan_staging_submit(vulkan, half);
}

/* ---- copies ------------------------------------------------------------------------------- */

static void gather_half(const qi_vulkan *vulkan, copy *c, int half, piece *p)
{
    const qi_vulkan_staging *s = vulkan->staging;
    gather(c, s->half * (uint64_t)half, s->half, p);
}

static quire_result write_pieces(qi_vulkan *vulkan, copy *c)
{
    qi_vulkan_staging *s = vulkan->staging;
    piece p;
    for (int half = 0; !is_done(c); half = !half) {
        quire_result result = qi_vulkan_staging_await(vulkan, half);
        if (result)
            return result;
        gather_half(vulkan, c, half, &p);
        for (uint32_t i = 0; i < p.count; i++)
            memcpy(s->bytes + p.regions[i].srcOffset, p.hosts[i], p.regions[i].size);
        result = qi_vulkan_staging_flush(vulkan, half);
        if (!result)
            result = submit_piece(vulkan, c, &p, half);
        if (result)
            return result;
    }
    return QUIRE_SUCCESS;
}

static quire_result request_piece(qi_vulkan *vulkan, copy *c, int half, piece *p)
{
    quire_result result = qi_vulkan_staging_await(vulkan, half);
    if (result)
        return result;
    gather_half(vulkan, c, half, p);
    return submit_piece(vulkan, c, p, half);
}

static void empty_half(const qi_vulkan *vulkan, const piece *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        memcpy(p->hosts[i], vulkan->staging->bytes + p->regions[i].dstOffset, p->regions[i].size);
}

/* Each piece is fetched while the host empties the one before. */
static quire_result read_pieces(qi_vulkan *vulkan, copy *c)
{
    piece pieces[QI_VULKAN_HALVES];
    quire_result result = request_piece(vulkan, c, 0, &pieces[0]);
    bool more = true;
    for (int half = 0; more && !result; half = !half) {
        more = !is_done(c);
        if (more)
            result = request_piece(vulkan, c, !half, &pieces[!half]);
        quire_result awaited = qi_vulkan_staging_await(vulkan, half);
        result = result ? result : awaited;
        if (!result)
            result = qi_vulkan_staging_invalidate(vulkan, half);
        if (!result)
            empty_half(vulkan, &pieces[half]);
    }
    return result;
}

/* From page to page: the ring's bytes are not used, its commands are. */
static quire_result copy_pieces(qi_vulkan *vulkan, copy *c)
{
    quire_result result = QUIRE_SUCCESS;
    piece p;
    for (int half = 0; !is_done(c) && !result; half = !half) {
        result = qi_vulkan_staging_await(vulkan, half);
        gather(c, 0, UINT64_MAX, &p);
        if (!result)
            result = submit_piece(vulkan, c, &p, half);
    }
    return result;
}

static quire_result find_buffers(qi_vulkan *vulkan, copy *c)
{
    quire_result result = QUIRE_SUCCESS;
    if (c->job->to)
        result = qi_vulkan_page_buffer(vulkan, c->job->to, &c->to);
    if (c->job->from && !result)
        result = qi_vulkan_page_buffer(vulkan, c->job->from, &c->from);
    return result;
}

quire_result qi_vulkan_copy_pages(void *state, const quire_copy_job *job)
{
    copy c = {.job = job};
    quire_result result = find_buffers(state, &c);
    if (!result)
        result = qi_vulkan_staging_enter(state);
    if (result)
        return result;
    if (!c.from)
        result = write_pieces(state, &c);
    else
        result = c.to ? copy_pieces(state, &c) : read_pieces(state, &c);
    return qi_vulkan_staging_leave(state, result);
}

quire_result qi_vulkan_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                    const void *data, uint64_t size)
{
    return qi_vulkan_copy_pages(state, &(quire_copy_job){.to = page,
                                                         .to_offset = offset,
                                                         .host_from = data,
                                                         .size = size,
                                                         .rows = 1,
                                                         .slices = 1});
}

quire_result qi_vulkan_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                      void *data, uint64_t size)
{
    return qi_vulkan_copy_pages(state, &(quire_copy_job){.from = page,
                                                         .from_offset = offset,
                                                         .host_to = data,
                                                         .size = size,
                                                         .rows = 1,
                                                         .slices = 1});
}

/* ---- fills -------------------------------------------------------------------------------- */

static quire_result fill_words(qi_vulkan *vulkan, VkBuffer buffer, uint64_t offset, uint64_t size,
                               uint8_t value)
{
    quire_result result = qi_vulkan_staging_enter(vulkan);
    if (result)
        return result;
    result = qi_vulkan_staging_await(vulkan, 0);
    if (!result)
        result = qi_vulkan_staging_begin(vulkan, 0);
    if (!result) {
        vulkan->f.CmdFillBuffer(vulkan->staging->commands[0], buffer, offset, size,
                                value * UINT32_C(0x01010101));
        result = qi_vulkan_staging_submit(vulkan, 0);
    }
    return qi_vulkan_staging_leave(vulkan, result);
}

/* What is no whole word at either end is copied. */
quire_result qi_vulkan_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                                 uint64_t size, uint8_t value)
{
    const uint8_t bytes[FILL_WORD] = {value, value, value, value};
    VkBuffer buffer = VK_NULL_HANDLE;
    uint64_t end = offset + size, begin = offset + qi_padding(offset, FILL_WORD);
    uint64_t stop = qi_align_down(end, FILL_WORD);
    quire_result result = qi_vulkan_page_buffer(state, page, &buffer);
    if (begin >= stop)
        begin = stop = end; /* a few bytes within two words */
    for (uint64_t at = offset; at < begin && !result; at += FILL_WORD)
        result = qi_vulkan_copy_to_page(state, page, at, bytes,
                                        begin - at < FILL_WORD ? begin - at : FILL_WORD);
    if (!result && begin < stop)
        result = fill_words(state, buffer, begin, stop - begin, value);
    if (!result && stop < end)
        result = qi_vulkan_copy_to_page(state, page, stop, bytes, end - stop);
    return result;
}
