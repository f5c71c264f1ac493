/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream.c - each submission signals the next value of its stream's semaphore; when the value has
 * passed, the record and the staging memory of the submission are reused. Creation and destruction,
 * points and order, copies and fills. See stream.h.
 */
#include "backends/vulkan/stream.h"

#include "backends/vulkan/copy.h"
#include "backends/vulkan/deferred_destroy.h"
#include "backends/vulkan/device.h"
#include "backends/vulkan/functions.h"
#include "backends/vulkan/object.h"
#include "backends/vulkan/page.h"
#include "backends/vulkan/queues.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- references and the counter ----------------------------------------------------------- */

/* Releases a reference. The last one destroys the record, and the semaphore if it is quire's. */
static void release_reference(qi_vulkan *vulkan, qi_vulkan_stream *stream)
{
    if (qi_atomic_drop_u64(&stream->references) != 1)
        return;
    if (stream->is_own)
        vulkan->f.DestroySemaphore(vulkan->device, stream->semaphore, vulkan->callbacks);
    pthread_mutex_destroy(&stream->mutex);
    qi_host_release(&vulkan->host, stream, 1, sizeof *stream);
}

quire_result qi_vulkan_stream_counter(const qi_vulkan *vulkan, const qi_vulkan_stream *stream,
                                      uint64_t *value)
{
    VkResult code = vulkan->f.GetSemaphoreCounterValue(vulkan->device, stream->semaphore, value);
    return code ? qi_vulkan_fail(code, "vkGetSemaphoreCounterValue") : QUIRE_SUCCESS;
}

/* ---- records ------------------------------------------------------------------------------ */

/*
 * A record is in one of three states: acquired by a call, in the list of submissions whose value
 * has not passed (`first` to `last`), or spare. Spare records keep their command pool.
 * The functions of this section and the next two require the stream's mutex, except those that
 * destroy.
 */

/* Returns a record that was acquired and not submitted. */
static void return_record(qi_vulkan_stream *stream, qi_vulkan_submission *submission)
{
    submission->next = stream->spare;
    stream->spare = submission;
}

/* Releases the stream that a submission waits for. */
static void release_earlier(qi_vulkan *vulkan, qi_vulkan_submission *submission)
{
    qi_vulkan_stream *earlier = submission->earlier;
    submission->earlier = NULL;
    if (earlier)
        release_reference(vulkan, earlier);
}

/* Moves the records whose value has passed to the list of spare ones. Requires the mutex. */
static void recycle_submissions(qi_vulkan *vulkan, qi_vulkan_stream *stream, uint64_t passed)
{
    while (stream->first && stream->first->value <= passed) {
        qi_vulkan_submission *done = stream->first;
        stream->first = done->next;
        stream->last = stream->first ? stream->last : NULL;
        if (done->staged_to)
            stream->tail = done->staged_to;
        release_earlier(vulkan, done);
        return_record(stream, done);
    }
}

/* Reads the counter, and takes the records and the staging memory of passed values back. */
static quire_result recycle_records(qi_vulkan *vulkan, qi_vulkan_stream *stream)
{
    uint64_t passed = 0;
    quire_result result = qi_vulkan_stream_counter(vulkan, stream, &passed);
    if (!result)
        recycle_submissions(vulkan, stream, passed);
    return result;
}

/* Returns a record without commands: a reused one if its value has passed, otherwise a new one.
   Reads the counter only if no record is spare and some are in the list. */
static quire_result acquire_record(qi_vulkan *vulkan, qi_vulkan_stream *stream,
                                   qi_vulkan_submission **out)
{
    quire_result result = QUIRE_SUCCESS;
    if (!stream->spare && stream->first)
        result = recycle_records(vulkan, stream);
    if (result)
        return result;
    *out = stream->spare;
    if (*out) {
        stream->spare = (*out)->next;
        (*out)->next = NULL;
        (*out)->staged_to = 0;
        return QUIRE_SUCCESS;
    }
    *out = qi_host_allocate(&vulkan->host, 1, sizeof **out);
    return *out ? QUIRE_SUCCESS
                : quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                     "no host memory for a submission to a stream");
}

static void destroy_list(qi_vulkan *vulkan, qi_vulkan_submission **list)
{
    while (*list) {
        qi_vulkan_submission *submission = *list;
        *list = submission->next;
        release_earlier(vulkan, submission);
        if (submission->pool)
            vulkan->f.DestroyCommandPool(vulkan->device, submission->pool, vulkan->callbacks);
        qi_host_release(&vulkan->host, submission, 1, sizeof *submission);
    }
}

static void destroy_submissions(qi_vulkan *vulkan, qi_vulkan_stream *stream)
{
    destroy_list(vulkan, &stream->first);
    destroy_list(vulkan, &stream->spare);
    stream->last = NULL;
}

/* Other streams may still wait for the semaphore: it exists until its last reference is gone. */
void qi_vulkan_stream_destroy_now(qi_vulkan *vulkan, qi_vulkan_stream *stream)
{
    destroy_submissions(vulkan, stream);
    if (stream->staging.buffer) {
        qi_vulkan_staging_memory_destroy(vulkan, &stream->staging);
        qi_vulkan_uncount_memory(vulkan);
    }
    release_reference(vulkan, stream);
}

/* ---- commands ----------------------------------------------------------------------------- */

/* Creates the command pool of a record, which stays until the stream is destroyed. */
static quire_result make_commands(const qi_vulkan *vulkan, const qi_vulkan_stream *stream,
                                  qi_vulkan_submission *submission)
{
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
        .queueFamilyIndex = stream->queue.family,
    };
    VkCommandPool created = VK_NULL_HANDLE;
    VkResult code = vulkan->f.CreateCommandPool(vulkan->device, &pool, vulkan->callbacks, &created);
    if (code)
        return qi_vulkan_fail(code, "vkCreateCommandPool");
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = created,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    code = vulkan->f.AllocateCommandBuffers(vulkan->device, &commands, &submission->commands);
    if (code) {
        submission->commands = NULL;
        vulkan->f.DestroyCommandPool(vulkan->device, created, vulkan->callbacks);
        return qi_vulkan_fail(code, "vkAllocateCommandBuffers");
    }
    submission->pool = created;
    return QUIRE_SUCCESS;
}

/* Begin and end the commands of a record, each with a barrier. */
static quire_result begin_commands(qi_vulkan *vulkan, const qi_vulkan_stream *stream,
                                   qi_vulkan_submission *submission)
{
    VkResult code = VK_SUCCESS;
    if (submission->pool) {
        code = vulkan->f.ResetCommandPool(vulkan->device, submission->pool, 0);
        if (code)
            return qi_vulkan_fail(code, "vkResetCommandPool");
    } else {
        quire_result result = make_commands(vulkan, stream, submission);
        if (result)
            return result;
    }
    const VkCommandBufferBeginInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    code = vulkan->f.BeginCommandBuffer(submission->commands, &info);
    if (code)
        return qi_vulkan_fail(code, "vkBeginCommandBuffer");
    qi_vulkan_record_barrier(vulkan, submission->commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                             VK_PIPELINE_STAGE_TRANSFER_BIT);
    return QUIRE_SUCCESS;
}

static quire_result end_commands(qi_vulkan *vulkan, const qi_vulkan_submission *submission)
{
    qi_vulkan_record_barrier(vulkan, submission->commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                             VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT);
    VkResult code = vulkan->f.EndCommandBuffer(submission->commands);
    return code ? qi_vulkan_fail(code, "vkEndCommandBuffer") : QUIRE_SUCCESS;
}

/* ---- submission --------------------------------------------------------------------------- */

/* Submits the commands of a record, or a wait for another stream, or nothing, and signals the next
   value. */
static VkResult submit(const qi_vulkan *vulkan, const qi_vulkan_stream *stream,
                       const qi_vulkan_submission *s)
{
    const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    const uint64_t next = stream->marked + 1;
    const VkSemaphore awaited = s && s->earlier ? s->earlier->semaphore : VK_NULL_HANDLE;
    const VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = awaited ? 1 : 0,
        .pWaitSemaphoreValues = awaited ? &s->until : NULL,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &next,
    };
    const bool has_commands = s && !s->earlier;
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .waitSemaphoreCount = values.waitSemaphoreValueCount,
        .pWaitSemaphores = awaited ? &awaited : NULL,
        .pWaitDstStageMask = awaited ? &all : NULL,
        .commandBufferCount = has_commands ? 1 : 0,
        .pCommandBuffers = has_commands ? &s->commands : NULL,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &stream->semaphore,
    };
    qi_vulkan_any_queue_lock(vulkan, &stream->queue);
    VkResult code = vulkan->f.QueueSubmit(stream->queue.queue, 1, &info, VK_NULL_HANDLE);
    qi_vulkan_any_queue_unlock(vulkan, &stream->queue);
    return code;
}

static void append(qi_vulkan_stream *stream, qi_vulkan_submission *submission)
{
    submission->value = stream->marked;
    submission->next = NULL;
    if (stream->last)
        stream->last->next = submission;
    else
        stream->first = submission;
    stream->last = submission;
}

/*
 * Submits a record, or an empty submission if it is NULL, and signals the next value. Takes the
 * record back in every case, also on failure. The value advances only if the submission succeeded,
 * because the next one signals value + 1.
 */
static quire_result submit_record(qi_vulkan *vulkan, qi_vulkan_stream *stream,
                                  qi_vulkan_submission *submission)
{
    VkResult code = submit(vulkan, stream, submission);
    if (code) {
        if (submission) {
            release_earlier(vulkan, submission);
            return_record(stream, submission);
        }
        return qi_vulkan_fail(code, "vkQueueSubmit to a stream");
    }
    stream->marked++;
    if (submission)
        append(stream, submission);
    return QUIRE_SUCCESS;
}

/* ---- creation ----------------------------------------------------------------------------- */

static quire_result check_timeline(const qi_vulkan *vulkan)
{
    return vulkan->enabled.timeline
               ? QUIRE_SUCCESS
               : quire_backend_fail(
                     QUIRE_ERROR_UNSUPPORTED, 0,
                     "streams need the feature timelineSemaphore of Vulkan 1.2 or of "
                     "VK_KHR_timeline_semaphore, which is not enabled");
}

static quire_result make_semaphore(const qi_vulkan *vulkan, const char *name, VkSemaphore *out)
{
    const VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    const VkSemaphoreCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
        .pNext = &type,
    };
    VkSemaphore created = VK_NULL_HANDLE;
    VkResult code = vulkan->f.CreateSemaphore(vulkan->device, &info, vulkan->callbacks, &created);
    if (code)
        return qi_vulkan_fail(code, "vkCreateSemaphore of a stream");
    qi_vulkan_set_name(vulkan, VK_OBJECT_TYPE_SEMAPHORE, QI_VULKAN_NUMBER(created), name);
    *out = created;
    return QUIRE_SUCCESS;
}

/* Sets queue and semaphore: the caller's semaphore, or an own semaphore with a queue, which is the
   caller's or the device's. */
static quire_result set_up(const qi_vulkan *vulkan, const qi_vulkan_stream_description *given,
                           qi_vulkan_stream *stream)
{
    if (given && given->semaphore) {
        stream->semaphore = given->semaphore;
        return QUIRE_SUCCESS;
    }
    stream->queue = given && given->queue.queue ? given->queue : vulkan->queue;
    if (!stream->queue.queue)
        return quire_backend_fail(
            QUIRE_ERROR_UNSUPPORTED, 0,
            "the device was wrapped without a queue: a stream needs a queue, or "
            "a semaphore that the caller signals");
    quire_result result = make_semaphore(vulkan, given ? given->name : NULL, &stream->semaphore);
    stream->is_own = !result;
    return result;
}

quire_result qi_vulkan_stream_create(void *state, const void *description, uint64_t *out)
{
    qi_vulkan *vulkan = state;
    quire_result result = check_timeline(vulkan);
    if (result)
        return result;
    qi_vulkan_stream *stream = qi_host_allocate(&vulkan->host, 1, sizeof *stream);
    if (!stream)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0, "no host memory for a stream");
    result = set_up(vulkan, description, stream);
    if (result) {
        qi_host_release(&vulkan->host, stream, 1, sizeof *stream);
        return result;
    }
    qi_atomic_init_u64(&stream->references, 1);
    pthread_mutex_init(&stream->mutex, NULL);
    *out = (uintptr_t)stream;
    return QUIRE_SUCCESS;
}

/* ---- destruction -------------------------------------------------------------------------- */

/* How long the destruction of a stream waits for its work, in nanoseconds. */
static const uint64_t DESTROY_TIMEOUT = UINT64_C(1000000000);

/* Waits until the semaphore has a value. Takes no lock. */
static VkResult wait_for(const qi_vulkan *vulkan, const qi_vulkan_stream *stream, uint64_t value,
                         uint64_t nanoseconds)
{
    const VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &stream->semaphore,
        .pValues = &value,
    };
    return vulkan->f.WaitSemaphores(vulkan->device, &info, nanoseconds);
}

/*
 * Waits at most a second for the submissions of a stream with an own semaphore. They may wait for a
 * value that the caller never signals; after the timeout the stream is destroyed later. After a
 * device loss, or if all waits fail, it is destroyed immediately.
 */
void qi_vulkan_stream_destroy(void *state, uint64_t number)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_stream *stream = qi_vulkan_stream_of(number);
    VkResult code = stream->is_own && stream->marked ? VK_ERROR_UNKNOWN : VK_SUCCESS;
    for (int i = 0;
         i < QI_VULKAN_MAX_WAITS && code && code != VK_TIMEOUT && code != VK_ERROR_DEVICE_LOST; i++)
        code = wait_for(vulkan, stream, stream->marked, DESTROY_TIMEOUT);
    if (code == VK_TIMEOUT)
        qi_vulkan_defer_stream(vulkan, stream);
    else
        qi_vulkan_stream_destroy_now(vulkan, stream);
}

/* ---- points ------------------------------------------------------------------------------- */

/* UNSUPPORTED if the caller signals the semaphore of the stream, NOT_PERMITTED if the thread holds
   the device's queue. */
static quire_result check_own(const qi_vulkan *vulkan, const qi_vulkan_stream *stream)
{
    return stream->is_own
               ? qi_vulkan_check_queue(vulkan)
               : quire_backend_fail(
                     QUIRE_ERROR_UNSUPPORTED, 0,
                     "the stream is a semaphore that the caller signals: quire cannot submit "
                     "to it");
}

/* An empty submission: its value is signalled after everything submitted to the queue before. */
quire_result qi_vulkan_stream_mark(void *state, uint64_t number, uint64_t *value)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_stream *stream = qi_vulkan_stream_of(number);
    quire_result result = check_own(vulkan, stream);
    if (result)
        return result;
    pthread_mutex_lock(&stream->mutex);
    result = submit_record(vulkan, stream, NULL);
    *value = stream->marked;
    pthread_mutex_unlock(&stream->mutex);
    return result;
}

quire_result qi_vulkan_stream_passed(void *state, uint64_t number, uint64_t *value)
{
    return qi_vulkan_stream_counter(state, qi_vulkan_stream_of(number), value);
}

quire_result qi_vulkan_stream_await(void *state, uint64_t number, uint64_t value,
                                    uint64_t nanoseconds, bool *has_passed)
{
    VkResult code = wait_for(state, qi_vulkan_stream_of(number), value, nanoseconds);
    *has_passed = code == VK_SUCCESS;
    return code && code != VK_TIMEOUT ? qi_vulkan_fail(code, "vkWaitSemaphores") : QUIRE_SUCCESS;
}

/* ---- order -------------------------------------------------------------------------------- */

/*
 * Submits a wait for a point of another stream. Everything submitted to the queue later, by quire
 * or by the caller, is executed after it. Nothing is submitted if the point has passed already. The
 * submission holds a reference to the other stream.
 */
quire_result qi_vulkan_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_stream *stream = qi_vulkan_stream_of(later);
    qi_vulkan_stream *awaited = qi_vulkan_stream_of(earlier);
    qi_vulkan_submission *submission = NULL;
    uint64_t passed = 0;
    quire_result result = check_own(vulkan, stream);
    if (!result)
        result = qi_vulkan_stream_counter(vulkan, awaited, &passed);
    if (result || passed >= value)
        return result;
    pthread_mutex_lock(&stream->mutex);
    result = acquire_record(vulkan, stream, &submission);
    if (!result) {
        submission->earlier = awaited;
        submission->until = value;
        qi_atomic_add_u64(&awaited->references, 1);
        result = submit_record(vulkan, stream, submission);
    }
    pthread_mutex_unlock(&stream->mutex);
    return result;
}

/* ---- copies from page to page, and fills -------------------------------------------------- */

/* Maximum number of regions of one copy command. They are on the stack. */
enum { MAX_REGIONS = 128 };

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
    quire_result result = begin_commands(vulkan, stream, submission);
    if (result)
        return result;
    if (w->from)
        record_copies(vulkan, submission->commands, w);
    else
        vulkan->f.CmdFillBuffer(submission->commands, w->to, w->offset, w->size, w->word);
    return end_commands(vulkan, submission);
}

/* Records the work and submits it. */
static quire_result run(qi_vulkan *vulkan, qi_vulkan_stream *stream, const work *w)
{
    qi_vulkan_submission *submission = NULL;
    pthread_mutex_lock(&stream->mutex);
    quire_result result = acquire_record(vulkan, stream, &submission);
    if (!result) {
        result = record(vulkan, stream, submission, w);
        if (result)
            return_record(stream, submission);
        else
            result = submit_record(vulkan, stream, submission);
    }
    pthread_mutex_unlock(&stream->mutex);
    return result;
}

/* ---- the ring ----------------------------------------------------------------------------- */

/*
 * The staging memory of a stream is used as a ring. `head` and `tail` count bytes since its
 * creation: the bytes from `tail` to `head` belong to submissions that may be running. They return
 * in the order of the stream, because a record whose value has passed moves `tail` to its end.
 */

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
        quire_result result = recycle_records(vulkan, stream);
        if (result || find_place(stream, size, found))
            return result;
        uint64_t value = value_of(stream, found);
        pthread_mutex_unlock(&stream->mutex);
        VkResult code = wait_for(vulkan, stream, value, UINT64_MAX);
        pthread_mutex_lock(&stream->mutex);
        if (code)
            return qi_vulkan_fail(code, "vkWaitSemaphores for staging memory of a stream");
    }
    return QUIRE_SUCCESS;
}

/* ---- copies from host memory -------------------------------------------------------------- */

static quire_result record_spans(qi_vulkan *vulkan, const qi_vulkan_stream *stream,
                                 qi_vulkan_submission *submission, const qi_vulkan_part *part,
                                 qi_vulkan_spans *spans)
{
    quire_result result = begin_commands(vulkan, stream, submission);
    if (!result)
        result = qi_vulkan_spans_record(vulkan, submission->commands, part, spans);
    if (!result)
        result = qi_vulkan_staging_memory_flush(vulkan, part->memory, part->begin, part->room);
    return result ? result : end_commands(vulkan, submission);
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
        result = acquire_record(vulkan, stream, &submission);
    if (result)
        return result;
    const qi_vulkan_part part = {&stream->staging, found.offset, size};
    result = record_spans(vulkan, stream, submission, &part, spans);
    if (result) {
        return_record(stream, submission);
        return result;
    }
    submission->staged_to = found.end;
    result = submit_record(vulkan, stream, submission);
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
        code = wait_for(vulkan, stream, value, UINT64_MAX);
}

static quire_result write_spans(qi_vulkan *vulkan, qi_vulkan_stream *stream, qi_vulkan_spans spans)
{
    quire_result result = check_own(vulkan, stream);
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

/* ---- entries of the backend table: copies and fills --------------------------------------- */

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
    quire_result result = check_own(vulkan, stream);
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
    if (offset % QI_VULKAN_FILL_WORD || size % QI_VULKAN_FILL_WORD)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "on a stream Vulkan fills only whole words of 4 bytes");
    quire_result result = check_own(vulkan, stream);
    if (!result)
        result = qi_vulkan_copy_buffer(vulkan, page, VK_BUFFER_USAGE_TRANSFER_DST_BIT, &w.to);
    return result ? result : run(vulkan, stream, &w);
}

/* ---- wrapping a semaphore or a queue ------------------------------------------------------ */

static quire_result check_wrap(const quire_vulkan_stream_options *options)
{
    quire_result result = qi_vulkan_check_locks(&options->queue);
    if (result)
        return result;
    if (options->semaphore && options->queue.queue)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "semaphore and queue are both set: quire does not submit to a stream whose "
                       "semaphore the caller signals");
    return qi_check_unused(options, "quire_vulkan_stream_options");
}

quire_result quire_vulkan_stream_wrap(quire_device *device,
                                      const quire_vulkan_stream_options *options,
                                      quire_stream **stream)
{
    if (stream)
        *stream = NULL;
    if (!options || !stream)
        return qi_fail_null("quire_vulkan_stream_wrap", !options ? "options" : "stream");
    if (!qi_vulkan_of(device))
        return quire_last_result();
    quire_result result = check_wrap(options);
    if (result)
        return result;
    const qi_vulkan_stream_description description = {
        .semaphore = options->semaphore,
        .queue = options->queue,
        .name = options->name,
    };
    return quire_stream_wrap(device, &description, options->name, stream);
}

quire_result quire_vulkan_stream_get(const quire_stream *stream, VkSemaphore *semaphore)
{
    quire_stream_info info;
    if (semaphore)
        *semaphore = VK_NULL_HANDLE;
    if (!semaphore)
        return qi_fail_null("quire_vulkan_stream_get", "semaphore");
    quire_result result = quire_stream_get_info(stream, &info);
    if (result)
        return result;
    if (!qi_vulkan_of(info.device))
        return quire_last_result();
    if (info.capture)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the stream is held: it has no semaphore");
    *semaphore = qi_vulkan_stream_of(quire_stream_native(stream))->semaphore;
    return QUIRE_SUCCESS;
}
