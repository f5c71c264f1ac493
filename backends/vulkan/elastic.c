/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * elastic.c - an elastic page is one sparse buffer with residency over all addresses. Each chunk
 * with memory has a VkDeviceMemory of its own, so that it can be freed alone.
 *
 * Every change is submitted to the sparse queue and waited for: binds are not ordered with the
 * submissions of other queues. Binding a place again to the same memory changes nothing, and
 * neither does unbinding it twice. A chunk whose state the driver left open is therefore a leftover
 * that is bound or unbound again.
 */
#include "backends/vulkan/elastic.h"

#include "backends/vulkan/device.h"
#include "backends/vulkan/functions.h"
#include "backends/vulkan/object.h"
#include "backends/vulkan/page.h"
#include "backends/vulkan/queues.h"
#include "backends/vulkan/staging.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- lists of binds ----------------------------------------------------------------------- */

/* Binds of one submission. On the stack, so that taking memory needs no host memory. */
enum { MAX_BINDS = 64 };

typedef struct bind_list {
    VkSparseMemoryBind binds[MAX_BINDS];
    uint32_t count;
} bind_list;

/* Waits for binds that an earlier call could not wait for. */
static quire_result await(const qi_vulkan *vulkan, qi_vulkan_elastic *elastic)
{
    if (!elastic->fence)
        return QUIRE_SUCCESS;
    VkResult code = qi_vulkan_wait_fence(vulkan, elastic->fence);
    if (code && code != VK_ERROR_DEVICE_LOST)
        return qi_vulkan_fail(code, "vkWaitForFences for earlier binds of an elastic page");
    vulkan->f.DestroyFence(vulkan->device, elastic->fence, vulkan->callbacks);
    elastic->fence = VK_NULL_HANDLE;
    return QUIRE_SUCCESS;
}

/* Submits a list and waits for it. No earlier bind of the page is running. */
static quire_result submit(const qi_vulkan *vulkan, qi_vulkan_page *page, const bind_list *list)
{
    const VkSparseBufferMemoryBindInfo of_buffer = {
        QI_VULKAN_HANDLE(VkBuffer, qi_atomic_load_acquire_u64(&page->buffer)), list->count,
        list->binds};
    const VkBindSparseInfo info = {
        .sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO,
        .bufferBindCount = 1,
        .pBufferBinds = &of_buffer,
    };
    return qi_vulkan_run_binds(vulkan, &info, &page->elastic->fence);
}

/* A run is a stretch of chunks side by side. */
typedef struct run {
    uint64_t first, end; /* numbers of chunks */
} run;

static run run_of(const qi_vulkan_elastic *elastic, uint64_t offset, uint64_t size)
{
    const uint64_t first = offset / elastic->chunk.size;
    return (run){first, first + size / elastic->chunk.size};
}

/* ---- taking memory ------------------------------------------------------------------------ */

/* Takes the memory of a chunk that is not bound: to move it, or to free it. */
static void release_chunk(qi_vulkan *vulkan, qi_vulkan_elastic *elastic, uint64_t chunk, bool moves)
{
    if (moves && elastic->moving_count < QI_VULKAN_MAX_MOVING)
        elastic->moving[elastic->moving_count++] = elastic->memories[chunk];
    else
        qi_vulkan_memory_free(vulkan, elastic->memories[chunk]);
    elastic->leftovers -= elastic->phases[chunk] == QI_VULKAN_LEFTOVER;
    elastic->memories[chunk] = VK_NULL_HANDLE;
    elastic->phases[chunk] = QI_VULKAN_EMPTY;
}

static void release_moving(qi_vulkan *vulkan, qi_vulkan_elastic *elastic)
{
    while (elastic->moving_count)
        qi_vulkan_memory_free(vulkan, elastic->moving[--elastic->moving_count]);
}

/*
 * Submits a list that unbinds leftovers, takes their memory and empties the list. If the driver
 * refuses, they stay. On a lost device nothing runs that could use the memory.
 */
static bool unbind_listed(qi_vulkan *vulkan, qi_vulkan_page *page, bind_list *list, bool moves)
{
    if (!list->count)
        return true;
    quire_result result = submit(vulkan, page, list);
    if (result && result != QUIRE_ERROR_DEVICE_LOST)
        return false;
    for (uint32_t i = 0; i < list->count; i++) {
        const run r = run_of(page->elastic, list->binds[i].resourceOffset, list->binds[i].size);
        for (uint64_t chunk = r.first; chunk < r.end; chunk++)
            release_chunk(vulkan, page->elastic, chunk, moves);
    }
    list->count = 0;
    return true;
}

/* Lists the leftovers of a run. A full list is submitted first. */
static bool list_leftovers(qi_vulkan *vulkan, qi_vulkan_page *page, run within, bind_list *list,
                           bool moves)
{
    const qi_vulkan_elastic *elastic = page->elastic;
    const uint64_t size = elastic->chunk.size;
    for (uint64_t first = within.first, end; first < within.end; first = end) {
        end = first;
        while (end < within.end && elastic->phases[end] == QI_VULKAN_LEFTOVER)
            end++;
        if (end == first) {
            end++;
            continue;
        }
        if (list->count == MAX_BINDS && !unbind_listed(vulkan, page, list, moves))
            return false;
        list->binds[list->count++] =
            (VkSparseMemoryBind){.resourceOffset = first * size, .size = (end - first) * size};
    }
    return true;
}

/* Whether the page's chunks can lose memory now. Staged work that its call could not wait for may
   name any of them. */
static bool can_take(qi_vulkan *vulkan, qi_vulkan_elastic *elastic)
{
    return !qi_vulkan_check_queue(vulkan) && qi_vulkan_staging_retire(vulkan) &&
           !await(vulkan, elastic);
}

/* Unbinds the leftovers of spans and takes their memory, as far as the driver does. The thread's
   last error stays. */
static void take_leftovers(qi_vulkan *vulkan, qi_vulkan_page *page, const quire_span *spans,
                           uint32_t count, bool moves)
{
    bind_list list = {.count = 0};
    qi_error before;
    qi_error_save(&before);
    bool is_able = can_take(vulkan, page->elastic);
    for (uint32_t i = 0; i < count && is_able; i++)
        is_able = list_leftovers(
            vulkan, page, run_of(page->elastic, spans[i].offset, spans[i].size), &list, moves);
    if (is_able)
        (void)unbind_listed(vulkan, page, &list, moves);
    qi_error_restore(&before);
}

/* Retries the leftovers of earlier calls, wherever they are. */
static void retry_leftovers(qi_vulkan *vulkan, qi_vulkan_page *page)
{
    const quire_span whole = {0, page->size};
    if (page->elastic->leftovers)
        take_leftovers(vulkan, page, &whole, 1, false);
}

/* What cannot be taken now stays a leftover, which the next call for the page retries. */
void qi_vulkan_page_unback(void *state, const quire_native_page *native, const quire_span *spans,
                           uint32_t count, bool moves)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_page *page = qi_vulkan_page_of(native);
    qi_vulkan_elastic *elastic = page->elastic;
    retry_leftovers(vulkan, page);
    for (uint32_t i = 0; i < count; i++) {
        const run r = run_of(elastic, spans[i].offset, spans[i].size);
        for (uint64_t chunk = r.first; chunk < r.end; chunk++)
            elastic->phases[chunk] = QI_VULKAN_LEFTOVER;
        elastic->leftovers += r.end - r.first;
    }
    if (count)
        take_leftovers(vulkan, page, spans, count, moves);
    if (!moves)
        release_moving(vulkan, elastic);
}

/* ---- giving memory ------------------------------------------------------------------------ */

/* Gives a chunk memory: that which moves, or new. A leftover has some already. */
static quire_result provide(qi_vulkan *vulkan, qi_vulkan_elastic *elastic, uint64_t chunk)
{
    if (elastic->memories[chunk])
        return QUIRE_SUCCESS;
    quire_result result = QUIRE_SUCCESS;
    if (elastic->moving_count)
        elastic->memories[chunk] = elastic->moving[--elastic->moving_count];
    else
        result = qi_vulkan_memory_make(vulkan, &elastic->chunk, &elastic->memories[chunk]);
    if (!result)
        elastic->phases[chunk] = QI_VULKAN_MADE;
    return result;
}

/* Submits a list that binds chunks, and empties it. They are leftovers until all spans are
   bound. */
static quire_result bind_listed(const qi_vulkan *vulkan, qi_vulkan_page *page, bind_list *list)
{
    qi_vulkan_elastic *elastic = page->elastic;
    for (uint32_t i = 0; i < list->count; i++) {
        uint8_t *phase = &elastic->phases[list->binds[i].resourceOffset / elastic->chunk.size];
        elastic->leftovers += *phase == QI_VULKAN_MADE;
        *phase = QI_VULKAN_LEFTOVER;
    }
    quire_result result = list->count ? submit(vulkan, page, list) : QUIRE_SUCCESS;
    list->count = 0;
    return result;
}

static quire_result bind_run(qi_vulkan *vulkan, qi_vulkan_page *page, run r, bind_list *list)
{
    qi_vulkan_elastic *elastic = page->elastic;
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t chunk = r.first; chunk < r.end && !result; chunk++) {
        if (list->count == MAX_BINDS)
            result = bind_listed(vulkan, page, list);
        if (!result)
            result = provide(vulkan, elastic, chunk);
        if (!result)
            list->binds[list->count++] = (VkSparseMemoryBind){
                .resourceOffset = chunk * elastic->chunk.size,
                .size = elastic->chunk.size,
                .memory = elastic->memories[chunk],
            };
    }
    return result;
}

/* All chunks of the spans are bound. */
static void set_backed(qi_vulkan_elastic *elastic, const quire_span *spans, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const run r = run_of(elastic, spans[i].offset, spans[i].size);
        for (uint64_t chunk = r.first; chunk < r.end; chunk++)
            elastic->phases[chunk] = QI_VULKAN_BACKED;
        elastic->leftovers -= r.end - r.first;
    }
}

/* Takes what the chunks of the spans got before a failure. */
static void undo(qi_vulkan *vulkan, qi_vulkan_page *page, const quire_span *spans, uint32_t count)
{
    qi_vulkan_elastic *elastic = page->elastic;
    for (uint32_t i = 0; i < count; i++) {
        const run r = run_of(elastic, spans[i].offset, spans[i].size);
        for (uint64_t chunk = r.first; chunk < r.end; chunk++)
            if (elastic->phases[chunk] == QI_VULKAN_MADE)
                release_chunk(vulkan, elastic, chunk, false);
    }
    if (elastic->leftovers)
        take_leftovers(vulkan, page, spans, count, false);
}

static quire_result back(qi_vulkan *vulkan, qi_vulkan_page *page, const quire_span *spans,
                         uint32_t count)
{
    bind_list list = {.count = 0};
    quire_result result = await(vulkan, page->elastic);
    if (result)
        return result;
    for (uint32_t i = 0; i < count && !result; i++)
        result =
            bind_run(vulkan, page, run_of(page->elastic, spans[i].offset, spans[i].size), &list);
    if (!result)
        result = bind_listed(vulkan, page, &list);
    if (result)
        undo(vulkan, page, spans, count);
    else
        set_backed(page->elastic, spans, count);
    return result;
}

quire_result qi_vulkan_page_back(void *state, const quire_native_page *native,
                                 const quire_span *spans, uint32_t count)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_page *page = qi_vulkan_page_of(native);
    quire_result result = qi_vulkan_check_queue(vulkan);
    if (!result) {
        retry_leftovers(vulkan, page);
        result = back(vulkan, page, spans, count);
    }
    release_moving(vulkan, page->elastic);
    return result;
}

/* ---- what a device offers ----------------------------------------------------------------- */

/* Returns what the device lacks, as a clause; NULL: nothing. A buffer without residency must not be
   used before all of it is bound, so that it cannot serve as a page. */
static const char *find_missing(const qi_vulkan *vulkan)
{
    if (!vulkan->enabled.sparse_binding)
        return "the device was created without the feature sparseBinding";
    if (!vulkan->enabled.sparse_buffer)
        return "the device was created without the feature sparseResidencyBuffer";
    if (!qi_vulkan_sparse_queue(vulkan)->queue)
        return "the device was wrapped without a queue, which binds sparse objects";
    if (!qi_vulkan_has_sparse_queue(vulkan))
        return "the family of the queue for sparse objects cannot bind them: "
               "quire_vulkan_wrap_options.sparse_queue takes a queue that can";
    return NULL;
}

static VkBufferCreateInfo describe_buffer(const qi_vulkan *vulkan, uint64_t size)
{
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT | VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT,
        .size = size,
        .usage = vulkan->settings.page_usage,
    };
    qi_vulkan_share(vulkan, &info);
    return info;
}

/* The kinds of a mask that the features of the device allow. */
static uint32_t usable_kinds(const qi_vulkan *vulkan, uint32_t mask)
{
    uint32_t kinds = 0;
    qi_error before;
    qi_error_save(&before);
    for (uint32_t i = 0; i < vulkan->memory.memoryTypeCount; i++)
        if (mask >> i & 1 && !qi_vulkan_check_kind(vulkan, i, 1))
            kinds |= UINT32_C(1) << i;
    qi_error_restore(&before);
    return kinds;
}

quire_result qi_vulkan_elastic_detect(qi_vulkan *vulkan)
{
    static const uint64_t PROBE = UINT64_C(1) << 20; /* bytes of a buffer that is only described */
    qi_vulkan_elastic_limits *limits = &vulkan->elastic;
    limits->missing = find_missing(vulkan);
    if (limits->missing)
        return QUIRE_SUCCESS;
    const VkBufferCreateInfo info = describe_buffer(vulkan, PROBE);
    quire_requirements needs = {.size = 0};
    quire_result result = qi_vulkan_query_buffer(vulkan, &info, &needs);
    if (result)
        return result;
    const uint64_t space = vulkan->limits.sparseAddressSpaceSize;
    const uint64_t most = space < vulkan->max_buffer_size ? space : vulkan->max_buffer_size;
    limits->granularity = needs.alignment;
    limits->max_size = qi_align_down(most, needs.alignment);
    limits->kinds = usable_kinds(vulkan, needs.kind_mask);
    limits->missing = "the driver or the features of the device do not let a sparse buffer have "
                      "memory of this kind";
    return QUIRE_SUCCESS;
}

/* ---- creation and destruction ------------------------------------------------------------- */

static quire_result check(const qi_vulkan *vulkan, const quire_page_request *request)
{
    const qi_vulkan_elastic_limits *limits = &vulkan->elastic;
    if (!(limits->kinds >> request->kind & 1))
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "pages of memory kind %u cannot be elastic: %s", request->kind,
                                  limits->missing);
    if (request->description)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0, "an adopted page cannot be elastic");
    if (request->exportable)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "an elastic page cannot be exported: each of its chunks is a "
                                  "VkDeviceMemory of its own");
    if (request->max_size > limits->max_size)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "an elastic page of %s: a sparse buffer of the device has at "
                                  "most %s",
                                  qi_bytes(request->max_size).text,
                                  qi_bytes(limits->max_size).text);
    if (request->chunk % limits->granularity)
        return quire_backend_fail(
            QUIRE_ERROR_UNSUPPORTED, 0, "an elastic page with chunks of %s: sparse blocks have %s",
            qi_bytes(request->chunk).text, qi_bytes(limits->granularity).text);
    return QUIRE_SUCCESS;
}

static void release_record(qi_vulkan *vulkan, qi_vulkan_page *page)
{
    qi_host *host = &vulkan->host;
    qi_vulkan_elastic *elastic = page->elastic;
    qi_host_release(host, elastic->memories, elastic->count, sizeof *elastic->memories);
    qi_host_release(host, elastic->phases, elastic->count, sizeof *elastic->phases);
    qi_host_release(host, elastic, 1, sizeof *elastic);
    page->elastic = NULL;
}

bool qi_vulkan_elastic_destroy(qi_vulkan *vulkan, qi_vulkan_page *page, bool is_idle)
{
    qi_vulkan_elastic *elastic = page->elastic;
    if (!elastic)
        return true;
    qi_error before;
    qi_error_save(&before);
    quire_result result = await(vulkan, elastic);
    qi_error_restore(&before);
    if (result && !is_idle)
        return false;
    if (result)
        vulkan->f.DestroyFence(vulkan->device, elastic->fence, vulkan->callbacks);
    uint64_t buffer = qi_atomic_load_acquire_u64(&page->buffer);
    if (buffer)
        vulkan->f.DestroyBuffer(vulkan->device, QI_VULKAN_HANDLE(VkBuffer, buffer),
                                vulkan->callbacks);
    qi_atomic_store_release_u64(&page->buffer, 0);
    release_moving(vulkan, elastic);
    for (uint64_t i = 0; i < elastic->count; i++)
        if (elastic->memories[i])
            qi_vulkan_memory_free(vulkan, elastic->memories[i]);
    release_record(vulkan, page);
    return true;
}

/* Creates page->elastic. On failure the page has none. */
static quire_result make_record(qi_vulkan *vulkan, const quire_page_request *request,
                                qi_vulkan_page *page)
{
    qi_host *host = &vulkan->host;
    const uint64_t count = request->max_size / request->chunk;
    qi_vulkan_elastic *elastic = qi_host_allocate(host, 1, sizeof *elastic);
    if (elastic) {
        page->elastic = elastic;
        elastic->count = count;
        elastic->chunk = (quire_page_request){
            .kind = request->kind,
            .size = request->chunk,
            .priority = request->priority,
            .extra = request->extra,
        };
        elastic->memories = qi_host_allocate(host, count, sizeof *elastic->memories);
        elastic->phases = qi_host_allocate(host, count, sizeof *elastic->phases);
        if (elastic->memories && elastic->phases)
            return QUIRE_SUCCESS;
        release_record(vulkan, page);
    }
    return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                              "no host memory for the %llu chunks of an elastic page",
                              (unsigned long long)count);
}

static quire_result make_buffer(const qi_vulkan *vulkan, const quire_page_request *request,
                                qi_vulkan_page *page)
{
    const VkBufferCreateInfo info = describe_buffer(vulkan, request->max_size);
    VkBuffer buffer = VK_NULL_HANDLE;
    VkResult code = vulkan->f.CreateBuffer(vulkan->device, &info, vulkan->callbacks, &buffer);
    if (code)
        return qi_vulkan_fail(code, "vkCreateBuffer for an elastic page of %s",
                              qi_bytes(request->max_size).text);
    qi_vulkan_set_name(vulkan, VK_OBJECT_TYPE_BUFFER, QI_VULKAN_NUMBER(buffer), request->label);
    qi_atomic_store_release_u64(&page->buffer, QI_VULKAN_NUMBER(buffer));
    return QUIRE_SUCCESS;
}

/* The caller keeps nothing of the page. */
static void discard(qi_vulkan *vulkan, qi_vulkan_page *page)
{
    if (qi_vulkan_elastic_destroy(vulkan, page, false)) {
        qi_vulkan_page_destroy_now(vulkan, page);
        return;
    }
    pthread_mutex_lock(&vulkan->deferred.mutex);
    page->next_deferred = vulkan->deferred.pages;
    vulkan->deferred.pages = page;
    pthread_mutex_unlock(&vulkan->deferred.mutex);
}

quire_result qi_vulkan_elastic_create(qi_vulkan *vulkan, const quire_page_request *request,
                                      quire_native_page *out)
{
    quire_result result = check(vulkan, request);
    if (result)
        return result;
    qi_vulkan_page *page = qi_host_allocate(&vulkan->host, 1, sizeof *page);
    if (!page)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for a page record");
    page->size = page->allocated = request->max_size;
    page->kind = request->kind;
    result = make_record(vulkan, request, page);
    if (!result)
        result = make_buffer(vulkan, request, page);
    const quire_native_page native = {
        .handle = qi_atomic_load_acquire_u64(&page->buffer),
        .size = request->max_size,
        .data = (uintptr_t)page,
    };
    const quire_span first = {0, request->size};
    if (!result && request->size)
        result = qi_vulkan_page_back(vulkan, &native, &first, 1);
    if (result) {
        qi_error failure;
        qi_error_save(&failure);
        discard(vulkan, page);
        qi_error_restore(&failure);
        return result;
    }
    *out = native;
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_any_page_create(void *state, const quire_page_request *request,
                                       quire_native_page *page)
{
    return request->max_size ? qi_vulkan_elastic_create(state, request, page)
                             : qi_vulkan_page_create(state, request, page);
}
