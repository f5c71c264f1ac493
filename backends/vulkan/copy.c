/*
 * copy.c - copies between pages, copies between pages and host memory, and fills, complete on
 * return.
 *
 * A submission from or to the host copies at most one half of the staging ring. A copy from page to
 * page uses only the command buffers of the ring.
 */
#include "backends/vulkan/copy.h"

#include "backends/vulkan/page.h"
#include "backends/vulkan/spans.h"
#include "backends/vulkan/staging.h"
#include "src/base/bits.h"

/* vkCmdFillBuffer needs offsets and sizes that are multiples of 4. */
enum { FILL_WORD = 4 };

/* Maximum number of rows of one submission from page to page. They are on the stack. */
enum { MAX_REGIONS = 256 };

/* ---- from page to page ----------------------------------------------------------------------- */

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
    while (count < MAX_REGIONS && c->slice < job->slices) {
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
    VkBufferCopy regions[MAX_REGIONS];
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

/* ---- between pages and host memory ----------------------------------------------------------- */

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
    return result ? result : qi_vulkan_spans_receive(vulkan, &part, *begin);
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

/* ---- entries --------------------------------------------------------------------------------- */

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

/* ---- fills ----------------------------------------------------------------------------------- */

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
    const uint8_t bytes[FILL_WORD] = {value, value, value, value};
    VkBuffer buffer = VK_NULL_HANDLE;
    uint64_t end = offset + size, begin = offset + qi_padding(offset, FILL_WORD);
    uint64_t stop = qi_align_down(end, FILL_WORD);
    quire_result result =
        qi_vulkan_copy_buffer(state, page, VK_BUFFER_USAGE_TRANSFER_DST_BIT, &buffer);
    if (begin >= stop)
        begin = stop = end; /* fewer than two words, none of them whole: copy everything */
    for (uint64_t at = offset; at < begin && !result; at += FILL_WORD)
        result = qi_vulkan_copy_to_page(state, page, at, bytes,
                                        begin - at < FILL_WORD ? begin - at : FILL_WORD);
    if (!result && begin < stop)
        result = fill_words(state, buffer, begin, stop - begin, value);
    if (!result && stop < end)
        result = qi_vulkan_copy_to_page(state, page, stop, bytes, end - stop);
    return result;
}
