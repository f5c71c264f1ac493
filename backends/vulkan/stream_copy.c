/*
 * stream_copy.c - entries of the backend table: copies and fills on streams. See stream.h.
 *
 * The staging memory of a stream is used as a ring. `head` and `tail` count bytes since its
 * creation: the bytes from `tail` to `head` belong to submissions that may be running. They return
 * in the order of the stream, because a record whose value has passed moves `tail` to its end.
 */
#include "backends/vulkan/device.h"
#include "backends/vulkan/functions.h"
#include "backends/vulkan/page.h"
#include "backends/vulkan/queues.h"
#include "backends/vulkan/spans.h"
#include "backends/vulkan/stream.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* Maximum number of regions of one copy command. They are on the stack. */
enum { MAX_REGIONS = 128 };

/* vkCmdFillBuffer needs offsets and sizes that are multiples of 4. */
enum { FILL_WORD = 4 };

/* ---- from page to page, and fills ------------------------------------------------------------ */

/* The work of one submission: a copy between two buffers, or a fill. */
typedef struct work {
    VkBuffer to, from;         /* VK_NULL_HANDLE: a fill */
    const quire_copy_job *job; /* of a copy */
    uint64_t offset, size;     /* of a fill */
    uint32_t word;
} work;

/* Records one region for each row, in commands of at most MAX_REGIONS regions. */
static void record_copies(const qi_vulkan *vulkan, VkCommandBuffer commands, const work *w)
{
    const quire_copy_job *job = w->job;
    VkBufferCopy regions[MAX_REGIONS];
    uint32_t count = 0;
    for (uint64_t slice = 0; slice < job->slices; slice++)
        for (uint64_t row = 0; row < job->rows; row++) {
            regions[count++] = (VkBufferCopy){
                .srcOffset = job->from_offset + slice * job->from_slice + row * job->from_row,
                .dstOffset = job->to_offset + slice * job->to_slice + row * job->to_row,
                .size = job->size,
            };
            bool is_last = slice + 1 == job->slices && row + 1 == job->rows;
            if (count < MAX_REGIONS && !is_last)
                continue;
            vulkan->f.CmdCopyBuffer(commands, w->from, w->to, count, regions);
            count = 0;
        }
}

static quire_result record(qi_vulkan *vulkan, const qi_vulkan_stream *stream,
                           qi_vulkan_submission *submission, const work *w)
{
    quire_result result = qi_vulkan_submission_begin(vulkan, stream, submission);
    if (result)
        return result;
    if (w->from)
        record_copies(vulkan, submission->commands, w);
    else
        vulkan->f.CmdFillBuffer(submission->commands, w->to, w->offset, w->size, w->word);
    return qi_vulkan_submission_end(vulkan, submission);
}

/* Records the work and submits it. */
static quire_result run(qi_vulkan *vulkan, qi_vulkan_stream *stream, const work *w)
{
    qi_vulkan_submission *submission = NULL;
    pthread_mutex_lock(&stream->mutex);
    quire_result result = qi_vulkan_submission_acquire(vulkan, stream, &submission);
    if (!result) {
        result = record(vulkan, stream, submission, w);
        if (result)
            qi_vulkan_submission_release(stream, submission);
        else
            result = qi_vulkan_stream_submit(vulkan, stream, submission);
    }
    pthread_mutex_unlock(&stream->mutex);
    return result;
}

/* ---- the ring -------------------------------------------------------------------------------- */

/* A part of the ring that a submission will use. */
typedef struct place {
    uint64_t offset; /* bytes from the start of the staging memory */
    uint64_t end;    /* `head` after the submission */
} place;

/* Creates the staging memory of a stream. UNSUPPORTED if that fails: the core then waits, and
   copies through the staging ring of the device. */
static quire_result make_ring(qi_vulkan *vulkan, qi_vulkan_stream *stream)
{
    uint64_t size = qi_align_down(vulkan->settings.staging_size, 2 * QI_VULKAN_STAGING_ALIGNMENT);
    if (stream->staging.buffer)
        return QUIRE_SUCCESS;
    if (qi_vulkan_count_memory(vulkan))
        return QUIRE_ERROR_UNSUPPORTED;
    if (!qi_vulkan_staging_memory_make(vulkan, size, false, &stream->staging))
        return QUIRE_SUCCESS;
    qi_vulkan_uncount_memory(vulkan);
    return QUIRE_ERROR_UNSUPPORTED;
}

/* Finds `size` consecutive bytes, at most half of the ring. Bytes before its end stay unused if
   they are too few. */
static bool find_place(const qi_vulkan_stream *stream, uint64_t size, place *found)
{
    const uint64_t all = stream->staging.size;
    uint64_t begin = stream->head, offset = begin % all;
    if (offset + size > all) {
        begin += all - offset;
        offset = 0;
    }
    *found = (place){.offset = offset,
                     .end = begin + size + qi_padding(size, QI_VULKAN_STAGING_ALIGNMENT)};
    return found->end - stream->tail <= all;
}

/* Returns the value after which the place is free. */
static uint64_t value_of(const qi_vulkan_stream *stream, const place *needed)
{
    const qi_vulkan_submission *s = stream->first;
    while (s && s != stream->last &&
           (!s->staged_to || needed->end - s->staged_to > stream->staging.size))
        s = s->next;
    return s ? s->value : stream->marked;
}

/*
 * Finds room in the ring. While there is none it waits for the oldest submissions, without the
 * mutex, so that other threads can use the stream.
 */
static quire_result find_room(qi_vulkan *vulkan, qi_vulkan_stream *stream, uint64_t size,
                              place *found)
{
    while (!find_place(stream, size, found)) {
        quire_result result = qi_vulkan_submissions_recycle(vulkan, stream);
        if (result || find_place(stream, size, found))
            return result;
        uint64_t value = value_of(stream, found);
        pthread_mutex_unlock(&stream->mutex);
        VkResult code = qi_vulkan_stream_wait(vulkan, stream, value, UINT64_MAX);
        pthread_mutex_lock(&stream->mutex);
        if (code)
            return qi_vulkan_fail(code, "vkWaitSemaphores for staging memory of a stream");
    }
    return QUIRE_SUCCESS;
}

/* ---- from host memory ------------------------------------------------------------------------ */

static quire_result record_spans(qi_vulkan *vulkan, const qi_vulkan_stream *stream,
                                 qi_vulkan_submission *submission, const qi_vulkan_part *part,
                                 qi_vulkan_spans *spans)
{
    quire_result result = qi_vulkan_submission_begin(vulkan, stream, submission);
    if (!result)
        result = qi_vulkan_spans_record(vulkan, submission->commands, part, spans);
    if (!result)
        result = qi_vulkan_staging_memory_flush(vulkan, part->memory, part->begin, part->room);
    return result ? result : qi_vulkan_submission_end(vulkan, submission);
}

/* Submits the next spans: at most half of the ring, so that the host fills one part while the
   device copies from the other. Requires the mutex. */
static quire_result submit_spans(qi_vulkan *vulkan, qi_vulkan_stream *stream,
                                 qi_vulkan_spans *spans)
{
    qi_vulkan_submission *submission = NULL;
    uint64_t size = qi_vulkan_spans_left(spans, stream->staging.size / 2);
    place found;
    quire_result result = find_room(vulkan, stream, size, &found);
    if (!result)
        result = qi_vulkan_submission_acquire(vulkan, stream, &submission);
    if (result)
        return result;
    const qi_vulkan_part part = {&stream->staging, found.offset, size};
    result = record_spans(vulkan, stream, submission, &part, spans);
    if (result) {
        qi_vulkan_submission_release(stream, submission);
        return result;
    }
    submission->staged_to = found.end;
    result = qi_vulkan_stream_submit(vulkan, stream, submission);
    if (!result)
        stream->head = found.end;
    return result;
}

/* Waits for what a failing copy has submitted: the caller may free the pages when it sees the
   failure. The thread's last error is that of the copy. */
static void settle(const qi_vulkan *vulkan, const qi_vulkan_stream *stream, uint64_t value)
{
    VkResult code = VK_ERROR_UNKNOWN;
    for (int i = 0; i < QI_VULKAN_MAX_WAITS && code && code != VK_ERROR_DEVICE_LOST; i++)
        code = qi_vulkan_stream_wait(vulkan, stream, value, UINT64_MAX);
}

static quire_result write_spans(qi_vulkan *vulkan, qi_vulkan_stream *stream, qi_vulkan_spans spans)
{
    quire_result result = qi_vulkan_stream_check_own(vulkan, stream);
    uint64_t submitted = 0;
    if (!result)
        result = qi_vulkan_spans_prepare(vulkan, &spans);
    if (result)
        return result;
    pthread_mutex_lock(&stream->mutex);
    result = make_ring(vulkan, stream);
    while (!qi_vulkan_spans_are_done(&spans) && !result) {
        result = submit_spans(vulkan, stream, &spans);
        submitted = result ? submitted : stream->marked;
    }
    pthread_mutex_unlock(&stream->mutex);
    if (result && submitted)
        settle(vulkan, stream, submitted);
    return result;
}

quire_result qi_vulkan_stream_write_many(void *state, uint64_t number,
                                         const quire_page_copy *copies, uint64_t count)
{
    return write_spans(state, qi_vulkan_stream_of(number),
                       qi_vulkan_spans_of_list(copies, count, true));
}

/* ---- copies and fills ------------------------------------------------------------------------ */

/* Whether a page of a copy job belongs to another device. NULL means this one. */
static bool is_of_another(const qi_vulkan *vulkan, const void *named)
{
    return named && named != vulkan;
}

quire_result qi_vulkan_stream_copy(void *state, uint64_t number, const quire_copy_job *job)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_stream *stream = qi_vulkan_stream_of(number);
    work w = {.job = job};
    if (!job->to)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the Vulkan backend copies to pages on a stream, not to host "
                                  "memory");
    if (is_of_another(vulkan, job->to_state) || is_of_another(vulkan, job->from_state))
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the Vulkan backend does not copy between devices");
    if (!job->from)
        return write_spans(vulkan, stream, qi_vulkan_spans_of_job(job));
    quire_result result = qi_vulkan_stream_check_own(vulkan, stream);
    if (!result)
        result = qi_vulkan_copy_buffer(vulkan, job->to, VK_BUFFER_USAGE_TRANSFER_DST_BIT, &w.to);
    if (!result)
        result =
            qi_vulkan_copy_buffer(vulkan, job->from, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, &w.from);
    return result ? result : run(vulkan, stream, &w);
}

quire_result qi_vulkan_stream_fill(void *state, uint64_t number, const quire_native_page *page,
                                   uint64_t offset, uint64_t size, uint8_t value)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_stream *stream = qi_vulkan_stream_of(number);
    work w = {.offset = offset, .size = size, .word = value * UINT32_C(0x01010101)};
    if (offset % FILL_WORD || size % FILL_WORD)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "on a stream Vulkan fills only whole words of 4 bytes");
    quire_result result = qi_vulkan_stream_check_own(vulkan, stream);
    if (!result)
        result = qi_vulkan_copy_buffer(vulkan, page, VK_BUFFER_USAGE_TRANSFER_DST_BIT, &w.to);
    return result ? result : run(vulkan, stream, &w);
}
