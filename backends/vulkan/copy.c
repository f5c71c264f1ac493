/*
 * copy.c - copies between the host and pages that it cannot reach, piece by piece through the
 * staging ring, and fills with zeros.
 */
#include <string.h>

#include "backends/vulkan/staging.h"
#include "src/base/bits.h"

/* vkCmdFillBuffer works on whole words. */
enum { FILL_WORD = 4 };

/* ---- copies ------------------------------------------------------------------------------- */

/* A copy between the host and a buffer, piece by piece. */
typedef struct copy {
    VkBuffer buffer;
    uint64_t offset; /* in the buffer */
    uint64_t size;
    const char *from; /* to the page, or NULL */
    char *to;         /* from the page, or NULL */
} copy;

static uint64_t piece_size(const qi_vulkan *vulkan, const copy *c, uint64_t done)
{
    uint64_t left = c->size - done;
    return left < vulkan->staging->half ? left : vulkan->staging->half;
}

static quire_result submit_piece(qi_vulkan *vulkan, const copy *c, uint64_t done, int half)
{
    qi_vulkan_staging *s = vulkan->staging;
    uint64_t in_ring = s->half * (uint64_t)half, in_buffer = c->offset + done;
    const VkBufferCopy region = {
        .srcOffset = c->from ? in_ring : in_buffer,
        .dstOffset = c->from ? in_buffer : in_ring,
        .size = piece_size(vulkan, c, done),
    };
    quire_result result = qi_vulkan_staging_begin(vulkan, half);
    if (result)
        return result;
    vulkan->f.CmdCopyBuffer(s->commands[half], c->from ? s->buffer : c->buffer,
                            c->from ? c->buffer : s->buffer, 1, &region);
    return qi_vulkan_staging_submit(vulkan, half);
}

static quire_result write_pieces(qi_vulkan *vulkan, const copy *c)
{
    qi_vulkan_staging *s = vulkan->staging;
    int half = 0;
    for (uint64_t done = 0; done < c->size; done += s->half, half = !half) {
        quire_result result = qi_vulkan_staging_await(vulkan, half);
        if (result)
            return result;
        memcpy(s->bytes + s->half * (uint64_t)half, c->from + done, piece_size(vulkan, c, done));
        result = qi_vulkan_staging_flush(vulkan, half);
        if (!result)
            result = submit_piece(vulkan, c, done, half);
        if (result)
            return result;
    }
    return QUIRE_SUCCESS;
}

static bool is_more(const qi_vulkan *vulkan, const copy *c, uint64_t done)
{
    return c->size - done > vulkan->staging->half;
}

/* Each piece is fetched while the host empties the one before. */
static quire_result read_pieces(qi_vulkan *vulkan, const copy *c)
{
    qi_vulkan_staging *s = vulkan->staging;
    int half = 0;
    quire_result result = qi_vulkan_staging_await(vulkan, half);
    if (!result)
        result = submit_piece(vulkan, c, 0, half);
    for (uint64_t done = 0; done < c->size && !result; done += s->half, half = !half) {
        if (is_more(vulkan, c, done))
            result = qi_vulkan_staging_await(vulkan, !half);
        if (is_more(vulkan, c, done) && !result)
            result = submit_piece(vulkan, c, done + s->half, !half);
        quire_result awaited = qi_vulkan_staging_await(vulkan, half);
        result = result ? result : awaited;
        if (!result)
            result = qi_vulkan_staging_invalidate(vulkan, half);
        if (!result)
            memcpy(c->to + done, s->bytes + s->half * (uint64_t)half, piece_size(vulkan, c, done));
    }
    return result;
}

static quire_result run_copy(qi_vulkan *vulkan, const quire_native_page *page, copy *c)
{
    quire_result result = qi_vulkan_page_buffer(vulkan, page, &c->buffer);
    if (!result)
        result = qi_vulkan_staging_enter(vulkan);
    if (result)
        return result;
    result = c->from ? write_pieces(vulkan, c) : read_pieces(vulkan, c);
    return qi_vulkan_staging_leave(vulkan, result);
}

quire_result qi_vulkan_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                    const void *data, uint64_t size)
{
    copy c = {.offset = offset, .size = size, .from = data};
    return run_copy(state, page, &c);
}

quire_result qi_vulkan_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                      void *data, uint64_t size)
{
    copy c = {.offset = offset, .size = size, .to = data};
    return run_copy(state, page, &c);
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
