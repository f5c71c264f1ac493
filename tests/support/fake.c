/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake.c - a page is plain memory behind an invented address. Each call is counted first, and fails
 * there if a test has planned it. See fake.h.
 */
#include "tests/support/fake.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GIB (UINT64_C(1) << 30)

typedef struct fake_page {
    unsigned char *bytes;
    _Atomic uint64_t size; /* usable now: up to the last byte that has memory, of */
    uint64_t max_size;
    uint64_t bytes_backed;
    bool *backed; /* one for each chunk of an elastic page, otherwise NULL */
    uint64_t chunk;
    uint32_t heap;
    bool mapped;
} fake_page;

static fake_page *page_of(const quire_native_page *page)
{
    return (fake_page *)(uintptr_t)page->handle;
}

uint64_t fake_usable(const quire_native_page *page)
{
    return page_of(page)->size;
}

unsigned char *fake_bytes(const quire_native_page *page)
{
    return page_of(page)->bytes;
}

quire_result fake_enter(fake_backend *fake, fake_call call)
{
    pthread_mutex_lock(&fake->lock);
    fake->calls[call]++;
    uint64_t number = ++fake->fallible_calls;
    bool fails = fake->fail_at &&
                 (number == fake->fail_at || (fake->fail_from_then && number > fake->fail_at));
    quire_result result = fails ? fake->fail_with : QUIRE_SUCCESS;
    fake->failed_call = fails ? call : fake->failed_call;
    pthread_mutex_unlock(&fake->lock);
    if (fails)
        return quire_backend_fail(result, fake->fail_native, "fake failure %d", (int)call);
    if (call != FAKE_DESCRIBE && call == fake->unsupported)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0, "the fake cannot do this");
    return QUIRE_SUCCESS;
}

static void take_time(uint32_t ms)
{
    if (ms)
        nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

static void add(fake_backend *fake, uint64_t *counter, uint64_t value)
{
    pthread_mutex_lock(&fake->lock);
    *counter += value;
    pthread_mutex_unlock(&fake->lock);
}

static quire_result fake_describe(void *state, quire_device_info *info)
{
    fake_backend *fake = state;
    quire_result result = fake_enter(fake, FAKE_DESCRIBE);
    if (!result)
        *info = fake->info;
    return result;
}

static void raise_to(uint64_t *peak, uint64_t value)
{
    *peak = value > *peak ? value : *peak;
}

/* Requires the lock. Counts a page; returns false if the heap has no memory for it. */
static bool count_page(fake_backend *fake, uint32_t heap, uint64_t size, uint64_t *address)
{
    if (fake->page_budget && fake->page_bytes + size > fake->page_budget)
        return false;
    fake->pages++;
    fake->page_bytes += size;
    fake->heap_bytes[heap] += size;
    raise_to(&fake->peak_pages, fake->pages);
    raise_to(&fake->peak_heap_bytes[heap], fake->heap_bytes[heap]);
    *address = fake->next_address + fake->address_step;
    fake->next_address += 4 * GIB;
    return true;
}

static void make_chunks(const fake_backend *fake, const quire_page_request *request,
                        fake_page *page)
{
    const uint64_t chunk = request->chunk, most = QUIRE_MAX_CHUNKS;
    if (!chunk || chunk & (chunk - 1) || chunk % fake->info.limits.page_granularity ||
        request->size % chunk || request->max_size % chunk || request->max_size / chunk > most)
        abort(); /* the rules of quire/backend.h are broken */
    page->chunk = chunk;
    page->backed = calloc(request->max_size / chunk, sizeof *page->backed);
    if (!page->backed)
        abort();
    memset(page->backed, true, request->size / chunk);
}

static quire_result fake_page_create(void *state, const quire_page_request *request,
                                     quire_native_page *out)
{
    fake_backend *fake = state;
    take_time(fake->slow_ms + (request->dedicated ? fake->slow_dedicated_ms : 0));
    quire_result result = fake_enter(fake, FAKE_PAGE_CREATE);
    if (result)
        return result;
    uint32_t heap = fake->info.kinds[request->kind].heap;
    uint64_t address = 0, size = request->size, rounding = fake->page_rounding;
    if (rounding && !request->max_size && size <= UINT64_MAX - rounding)
        size = (size + rounding - 1) / rounding * rounding;
    pthread_mutex_lock(&fake->lock);
    fake->last_page = *request;
    bool fits = count_page(fake, heap, size, &address);
    pthread_mutex_unlock(&fake->lock);
    if (!fits)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, -7, "the fake is full");
    fake_page *page = malloc(sizeof *page);
    uint64_t max = request->max_size ? request->max_size : size;
    unsigned char *bytes = malloc(max);
    if (!page || !bytes || (request->max_size && (max < size || !fake->table.page_back)))
        abort();
    bool is_zero = fake->zero_pages && request->zero;
    if (is_zero)
        memset(bytes, 0, size);
    else /* dirty, as a driver's memory is */
        memset(bytes, 0xa5, size < 65536 ? size : 65536);
    *page = (fake_page){
        .bytes = bytes, .size = size, .max_size = max, .bytes_backed = size, .heap = heap};
    if (request->max_size)
        make_chunks(fake, request, page);
    *out = (quire_native_page){
        .handle = (uintptr_t)page, .address = address, .size = max, .data = 77, .is_zero = is_zero};
    return QUIRE_SUCCESS;
}

static void fake_page_destroy(void *state, const quire_native_page *native)
{
    fake_backend *fake = state;
    take_time(fake->slow_ms);
    fake_page *page = page_of(native);
    if (page->mapped || page->max_size != native->size || native->data != 77)
        abort(); /* still mapped, or not the page that was created */
    pthread_mutex_lock(&fake->lock);
    fake->pages--;
    fake->page_bytes -= page->bytes_backed;
    fake->heap_bytes[page->heap] -= page->bytes_backed;
    pthread_mutex_unlock(&fake->lock);
    free(page->backed);
    free(page->bytes);
    free(page);
}

static void fake_destroy(void *state)
{
    ((fake_backend *)state)->ended = true;
}

static quire_result fake_map(void *state, const quire_native_page *page, void **pointer)
{
    fake_backend *fake = state;
    quire_result result = fake_enter(fake, FAKE_MAP);
    if (result)
        return result;
    if (page_of(page)->mapped)
        abort();
    page_of(page)->mapped = true;
    add(fake, &fake->maps, 1);
    *pointer = page_of(page)->bytes;
    return QUIRE_SUCCESS;
}

static void fake_unmap(void *state, const quire_native_page *page)
{
    fake_backend *fake = state;
    if (!page_of(page)->mapped)
        abort();
    page_of(page)->mapped = false;
    add(fake, &fake->maps, UINT64_MAX);
}

static void check_sync(fake_backend *fake, const quire_native_page *page, uint64_t offset,
                       uint64_t size)
{
    uint64_t atom = fake->info.limits.non_coherent_atom;
    bool whole = offset % atom == 0 && (size % atom == 0 || offset + size == fake_usable(page));
    if (!size || offset + size > fake_usable(page) || !whole || !page_of(page)->mapped)
        abort(); /* the rules of quire/backend.h are broken */
    pthread_mutex_lock(&fake->lock);
    fake->last_sync_offset = offset;
    fake->last_sync_size = size;
    fake->synced_ranges++;
    fake->synced_bytes += size;
    pthread_mutex_unlock(&fake->lock);
}

static quire_result sync_range(fake_backend *fake, fake_call call, const quire_native_page *page,
                               uint64_t offset, uint64_t size)
{
    quire_result result = fake_enter(fake, call);
    check_sync(fake, page, offset, size);
    return result;
}

static quire_result sync_ranges(fake_backend *fake, fake_call call, const quire_page_range *ranges,
                                uint32_t count)
{
    quire_result result = fake_enter(fake, call);
    if (!count || count > QUIRE_MAX_RANGES)
        abort();
    for (uint32_t i = 0; i < count; i++)
        check_sync(fake, ranges[i].page, ranges[i].offset, ranges[i].size);
    return result;
}

static quire_result fake_flush(void *state, const quire_native_page *page, uint64_t offset,
                               uint64_t size)
{
    return sync_range(state, FAKE_FLUSH, page, offset, size);
}

static quire_result fake_invalidate(void *state, const quire_native_page *page, uint64_t offset,
                                    uint64_t size)
{
    return sync_range(state, FAKE_INVALIDATE, page, offset, size);
}

static quire_result fake_flush_many(void *state, const quire_page_range *ranges, uint32_t count)
{
    return sync_ranges(state, FAKE_FLUSH_MANY, ranges, count);
}

static quire_result fake_invalidate_many(void *state, const quire_page_range *ranges,
                                         uint32_t count)
{
    return sync_ranges(state, FAKE_INVALIDATE_MANY, ranges, count);
}

static quire_result fake_copy_to(void *state, const quire_native_page *page, uint64_t offset,
                                 const void *data, uint64_t size)
{
    quire_result result = fake_enter(state, FAKE_COPY_TO);
    if (!size || offset > fake_usable(page) || size > fake_usable(page) - offset)
        abort();
    if (!result)
        memcpy(page_of(page)->bytes + offset, data, size);
    return result;
}

static quire_result fake_copy_from(void *state, const quire_native_page *page, uint64_t offset,
                                   void *data, uint64_t size)
{
    quire_result result = fake_enter(state, FAKE_COPY_FROM);
    if (!size || offset > fake_usable(page) || size > fake_usable(page) - offset)
        abort();
    if (!result)
        memcpy(data, page_of(page)->bytes + offset, size);
    return result;
}

static void image_needs(const quire_image_options *image, quire_requirements *needs)
{
    needs->row_pitch =
        (uint64_t)image->width * image->channel_count * quire_channel_size(image->channel_type);
    needs->slice_pitch = needs->row_pitch * image->height;
    needs->size = needs->slice_pitch * image->depth;
}

static void fill_needs(const fake_backend *fake, quire_requirements *needs)
{
    if (fake->object_needs.size)
        needs->size = fake->object_needs.size;
    needs->alignment = fake->object_needs.alignment;
    needs->kind_mask = fake->object_needs.kind_mask;
    needs->dedicated = fake->object_needs.dedicated;
    needs->prefers_dedicated = fake->object_needs.prefers_dedicated;
}

static quire_result fake_image_requirements(void *state, const quire_image_options *options,
                                            quire_requirements *needs)
{
    fake_backend *fake = state;
    quire_result result = fake_enter(fake, FAKE_IMAGE_REQUIREMENTS);
    if (result)
        return result;
    image_needs(options, needs);
    fill_needs(fake, needs);
    return QUIRE_SUCCESS;
}

typedef struct fake_object {
    quire_object object;
    bool bound;
} fake_object;

static quire_result fake_object_create(void *state, const quire_object_request *request,
                                       uint64_t *native, quire_requirements *needs)
{
    fake_backend *fake = state;
    quire_result result = fake_enter(fake, FAKE_OBJECT_CREATE);
    if (result)
        return result;
    if (request->description)
        /* so that these describe themselves */
        needs->size = *(const uint64_t *)request->description;
    else if (request->object == QUIRE_OBJECT_BUFFER)
        needs->size = request->buffer->size;
    else
        image_needs(request->image, needs);
    fill_needs(fake, needs);
    fake_object *object = malloc(sizeof *object);
    if (!object)
        abort();
    *object = (fake_object){.object = request->object};
    *native = (uintptr_t)object;
    add(fake, &fake->objects, 1);
    return QUIRE_SUCCESS;
}

static quire_result fake_object_bind(void *state, quire_object kind, uint64_t native,
                                     const quire_native_page *page, uint64_t offset)
{
    fake_backend *fake = state;
    fake_object *object = (fake_object *)(uintptr_t)native;
    if (object->object != kind || object->bound || offset >= fake_usable(page))
        abort();
    quire_result result = fake_enter(fake, FAKE_OBJECT_BIND);
    object->bound = !result;
    return result;
}

static void fake_object_destroy(void *state, quire_object kind, uint64_t native)
{
    fake_backend *fake = state;
    fake_object *object = (fake_object *)(uintptr_t)native;
    if (object->object != kind)
        abort();
    free(object);
    add(fake, &fake->objects, UINT64_MAX);
}

static quire_result fake_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                                   uint64_t size, uint8_t value)
{
    fake_backend *fake = state;
    quire_result result = fake_enter(fake, FAKE_FILL_PAGE);
    if (!result)
        memset(page_of(page)->bytes + offset, value, size);
    return result;
}

static quire_result fake_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget)
{
    fake_backend *fake = state;
    quire_result result = fake_enter(fake, FAKE_HEAP_BUDGET);
    if (heap >= fake->info.heap_count || budget->budget || budget->usage)
        abort(); /* the rules of quire/backend.h are broken */
    if (result)
        return result;
    pthread_mutex_lock(&fake->lock);
    budget->budget = fake->budget[heap];
    budget->usage = fake->heap_bytes[heap] + fake->others[heap];
    budget->lifetime = fake->budget_lifetime;
    pthread_mutex_unlock(&fake->lock);
    return QUIRE_SUCCESS;
}

void fake_offer_fill(fake_backend *fake)
{
    fake->table.features |= QUIRE_BACKEND_FILL;
    fake->table.fill_page = fake_fill_page;
}

/* Sets or clears the chunks of a span. Aborts if one is set or clear already, except in the child
   of a fork. Returns the bytes that changed. */
static uint64_t mark_chunks(const fake_backend *fake, fake_page *page, const quire_span *span,
                            bool is_backed)
{
    uint64_t changed = 0, first = span->offset / page->chunk, count = span->size / page->chunk;
    if (!count || span->offset % page->chunk || span->size % page->chunk ||
        span->offset + span->size > page->max_size)
        abort(); /* the rules of quire/backend.h are broken */
    for (uint64_t i = first; i < first + count; i++) {
        if (page->backed[i] == is_backed && getpid() == fake->process)
            abort();
        changed += page->backed[i] != is_backed;
        page->backed[i] = is_backed;
    }
    return changed * page->chunk;
}

/* Requires the lock. */
static void change_backing(fake_backend *fake, fake_page *page, const quire_span *spans,
                           uint32_t count, bool is_backed)
{
    uint64_t bytes = 0, end = page->max_size / page->chunk;
    for (uint32_t i = 0; i < count; i++) {
        if (i && spans[i].offset < spans[i - 1].offset + spans[i - 1].size)
            abort();
        bytes += mark_chunks(fake, page, &spans[i], is_backed);
    }
    page->bytes_backed += is_backed ? bytes : -bytes;
    fake->page_bytes += is_backed ? bytes : -bytes;
    fake->heap_bytes[page->heap] += is_backed ? bytes : -bytes;
    raise_to(&fake->peak_heap_bytes[page->heap], fake->heap_bytes[page->heap]);
    while (end && !page->backed[end - 1])
        end--;
    page->size = end * page->chunk;
}

static quire_result fake_page_back(void *state, const quire_native_page *native,
                                   const quire_span *spans, uint32_t count)
{
    fake_backend *fake = state;
    fake_page *page = page_of(native);
    take_time(fake->slow_ms);
    quire_result result = fake_enter(fake, FAKE_PAGE_BACK);
    if (result)
        return result;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += spans[i].size;
    pthread_mutex_lock(&fake->lock);
    bool fits = !fake->page_budget || fake->page_bytes + bytes <= fake->page_budget;
    if (fits)
        change_backing(fake, page, spans, count, true);
    pthread_mutex_unlock(&fake->lock);
    return fits ? QUIRE_SUCCESS
                : quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, -7, "the fake is full");
}

static void fake_page_unback(void *state, const quire_native_page *native, const quire_span *spans,
                             uint32_t count, bool moves)
{
    fake_backend *fake = state;
    (void)moves;
    take_time(fake->slow_ms);
    pthread_mutex_lock(&fake->lock);
    fake->unbacks++;
    change_backing(fake, page_of(native), spans, count, false);
    pthread_mutex_unlock(&fake->lock);
}

static void fake_fork_prepare(void *state)
{
    fake_backend *fake = state;
    pthread_mutex_lock(&fake->lock);
}

static void fake_fork_done(void *state)
{
    fake_backend *fake = state;
    pthread_mutex_unlock(&fake->lock);
}

static void fake_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS])
{
    fake_backend *fake = state;
    (void)heap_bytes;
    fake->forks++;
}

void fake_offer_fork(fake_backend *fake)
{
    fake->table.features |= QUIRE_BACKEND_FORK;
    fake->table.fork_prepare = fake_fork_prepare;
    fake->table.fork_done = fake_fork_done;
    fake->table.fork_child = fake_fork_child;
}

static uint64_t fake_device_address(void *state, const quire_native_page *page, uint64_t buffer)
{
    const fake_backend *fake = state;
    (void)page;
    (void)buffer;
    return fake->device_address;
}

void fake_offer_device_address(fake_backend *fake)
{
    fake->table.features |= QUIRE_BACKEND_DEVICE_ADDRESS;
    fake->table.device_address = fake_device_address;
}

void fake_offer_growth(fake_backend *fake)
{
    fake->table.features |= QUIRE_BACKEND_ELASTIC;
    fake->table.page_back = fake_page_back;
    fake->table.page_unback = fake_page_unback;
    fake->info.limits.elastic_kinds = (UINT64_C(1) << fake->info.kind_count) - 1;
}

void fake_offer_flush_many(fake_backend *fake)
{
    fake->table.features |= QUIRE_BACKEND_FLUSH_MANY;
    fake->table.flush_many = fake_flush_many;
    fake->table.invalidate_many = fake_invalidate_many;
}

void fake_offer_budget(fake_backend *fake)
{
    fake->table.features |= QUIRE_BACKEND_BUDGET;
    fake->table.heap_budget = fake_heap_budget;
}

void fake_set_budget(fake_backend *fake, uint32_t heap, uint64_t budget, uint64_t others)
{
    pthread_mutex_lock(&fake->lock);
    fake->budget[heap] = budget;
    fake->others[heap] = others;
    pthread_mutex_unlock(&fake->lock);
}

void fake_reset_peaks(fake_backend *fake)
{
    pthread_mutex_lock(&fake->lock);
    fake->peak_pages = fake->pages;
    memcpy(fake->peak_heap_bytes, fake->heap_bytes, sizeof fake->heap_bytes);
    pthread_mutex_unlock(&fake->lock);
}

void fake_init(fake_backend *fake)
{
    *fake = (fake_backend){
        .process = getpid(),
        .table = {.size = sizeof(quire_backend),
                  .name = "fake",
                  .features = QUIRE_BACKEND_MAP | QUIRE_BACKEND_FLUSH | QUIRE_BACKEND_COPY_TO_PAGE |
                              QUIRE_BACKEND_COPY_FROM_PAGE | QUIRE_BACKEND_IMAGES |
                              QUIRE_BACKEND_OBJECTS,
                  .describe = fake_describe,
                  .page_create = fake_page_create,
                  .page_destroy = fake_page_destroy,
                  .destroy = fake_destroy,
                  .map = fake_map,
                  .unmap = fake_unmap,
                  .flush = fake_flush,
                  .invalidate = fake_invalidate,
                  .copy_to_page = fake_copy_to,
                  .copy_from_page = fake_copy_from,
                  .image_requirements = fake_image_requirements,
                  .object_create = fake_object_create,
                  .object_bind = fake_object_bind,
                  .object_destroy = fake_object_destroy},
        .info = {.name = "fake device",
                 .heap_count = 2,
                 .kind_count = 4,
                 .heaps = {{.size = GIB, .flags = QUIRE_HEAP_DEVICE_LOCAL}, {.size = GIB}},
                 .kinds = {{.flags = QUIRE_DEVICE_LOCAL, .heap = 0},
                           {.flags = QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT, .heap = 1},
                           {.flags = QUIRE_HOST_VISIBLE | QUIRE_HOST_CACHED, .heap = 1},
                           {.flags = QUIRE_DEVICE_LOCAL | QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT,
                            .heap = 0}},
                 .limits = {.page_granularity = 256,
                            .page_alignment = UINT64_C(1) << 32,
                            .buffer_alignment = 64,
                            .non_coherent_atom = 64}},
        .fail_with = QUIRE_ERROR_BACKEND_FAILURE,
        .fail_native = -13,
        .next_address = 4 * GIB,
        .object_needs = {.alignment = 64, .kind_mask = UINT32_MAX},
    };
    pthread_mutex_init(&fake->lock, NULL);
}

quire_result fake_open(fake_backend *fake, const quire_host_memory *memory, quire_device **device)
{
    return quire_device_create(&fake->table, fake, &(quire_device_options){.host_memory = memory},
                               device);
}

void fake_fail(fake_backend *fake, uint64_t call, bool from_then, quire_result with)
{
    pthread_mutex_lock(&fake->lock);
    fake->fallible_calls = 0;
    fake->fail_at = call;
    fake->fail_from_then = from_then;
    fake->fail_with = with;
    pthread_mutex_unlock(&fake->lock);
}
