/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * broken.c - the broken subject (see broken.h): what it spoils of descriptions, pages, objects and
 * budgets. Mappings and copies are in broken_bytes.c, streams in broken_streams.c.
 */
#include "tests/contract/broken.h"

#include <stdlib.h>
#include <time.h>

#include "tests/contract/broken_streams.h"
#include "tests/contract/kit.h"
#include "tests/contract/subjects.h"

typedef struct broken_options {
    const contract_subject *inner;
    broken_thing thing;
} broken_options;

/* ---- the description of the device -------------------------------------------------------- */

static quire_result broken_describe(void *state, quire_device_info *info)
{
    static uint32_t devices;
    const broken_backend *b = state;
    *info = b->wrap.info;
    devices++;
    switch (b->thing) {
    case BROKEN_HEAP_SIZE:
        info->heaps[0].size += devices * MIB;
        break;
    case BROKEN_FEWER_KINDS:
        info->kind_count -= devices % 2;
        break;
    case BROKEN_EXPORTABLE:
        info->exportable = devices % 2;
        break;
    case BROKEN_NO_EXPORT:
        info->exportable = true;
        break;
    case BROKEN_ATOM:
        info->limits.non_coherent_atom = 96;
        break;
    case BROKEN_LARGER_HEAP:
        info->heaps[0].size /= 16;
        info->heaps[1].size /= 16;
        break;
    default:
        break;
    }
    return QUIRE_SUCCESS;
}

/* ---- pages -------------------------------------------------------------------------------- */

static quire_result base_create(broken_backend *b, const quire_page_request *request,
                                quire_native_page *page)
{
    return b->wrap.base->page_create(b->wrap.state, request, page);
}

/* Hands out the previous page again if it suits the request. */
static bool share(broken_backend *b, const quire_page_request *request, quire_native_page *page)
{
    pthread_mutex_lock(&b->lock);
    bool shares =
        b->uses == 1 && request->kind == b->shared_kind && b->shared.size >= request->size;
    b->uses += shares;
    *page = shares ? b->shared : *page;
    pthread_mutex_unlock(&b->lock);
    return shares;
}

static void remember(broken_backend *b, const quire_page_request *request,
                     const quire_native_page *page)
{
    pthread_mutex_lock(&b->lock);
    if (!b->uses) {
        b->shared = *page;
        b->shared_kind = request->kind;
        b->uses = 1;
    }
    pthread_mutex_unlock(&b->lock);
}

/*
 * Creates a page of the size of the latest request of any thread instead of the size of this one.
 */
static quire_result create_in_a_race(broken_backend *b, quire_page_request *request,
                                     quire_native_page *page)
{
    b->latest_size = request->size;
    nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
    request->size = b->latest_size;
    return base_create(b, request, page);
}

static quire_result refuse(const broken_backend *b, quire_result result)
{
    if (b->thing == BROKEN_WRONG_CODE && result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY)
        return quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, 0, "the heap is full");
    return result;
}

static quire_result spoil_request(broken_backend *b, quire_page_request *request,
                                  quire_native_page *page)
{
    uint64_t granularity = b->wrap.info.limits.page_granularity;
    uint64_t heap = b->wrap.info.heaps[b->wrap.info.kinds[request->kind].heap].size;
    switch (b->thing) {
    case BROKEN_SHORT_PAGE:
        request->size -= request->size > granularity ? granularity : 0;
        return base_create(b, request, page);
    case BROKEN_LOW_ALIGNMENT:
        request->size += 4096;
        request->alignment = 1;
        return base_create(b, request, page);
    case BROKEN_NO_EXPORT:
        return request->exportable ? quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0, "no export")
                                   : base_create(b, request, page);
    case BROKEN_NO_REASON:
        return request->size > heap / 3 ? QUIRE_ERROR_OUT_OF_DEVICE_MEMORY
                                        : base_create(b, request, page);
    case BROKEN_PAGE_RACE:
        return create_in_a_race(b, request, page);
    default:
        return base_create(b, request, page);
    }
}

static quire_result broken_page_create(void *state, const quire_page_request *original,
                                       quire_native_page *page)
{
    broken_backend *b = state;
    quire_page_request request = *original;
    bool shares = b->thing == BROKEN_SAME_PAGE || b->thing == BROKEN_SAME_HIDDEN_PAGE;
    if (shares && share(b, original, page))
        return QUIRE_SUCCESS;
    quire_result result = spoil_request(b, &request, page);
    if (result)
        return refuse(b, result);
    if (shares && (b->thing == BROKEN_SAME_PAGE || !page->address))
        remember(b, original, page);
    if (b->thing == BROKEN_ODD_ADDRESS)
        page->address += page->address ? 24 : 0;
    if (b->thing == BROKEN_LOW_ALIGNMENT)
        page->address += page->address ? 4096 : 0;
    return QUIRE_SUCCESS;
}

static void broken_page_destroy(void *state, const quire_native_page *page)
{
    broken_backend *b = state;
    pthread_mutex_lock(&b->lock);
    bool is_shared = b->uses && b->shared.handle == page->handle;
    b->uses -= is_shared;
    bool stays = is_shared && b->uses;
    pthread_mutex_unlock(&b->lock);
    if (b->thing == BROKEN_KEPT_PAGE || stays)
        return;
    b->wrap.base->page_destroy(b->wrap.state, page);
    quire_page_request rest = {
        .kind = 0, .size = b->wrap.info.limits.page_granularity, .alignment = 1, .label = "kept"};
    quire_native_page kept = {0};
    if (b->thing == BROKEN_KEPT_LARGE_PAGE && page->size > 100 * KIB)
        (void)base_create(b, &rest, &kept);
}

/* ---- images and objects ------------------------------------------------------------------- */

static quire_result broken_image_requirements(void *state, const quire_image_options *options,
                                              quire_requirements *needs)
{
    static uint64_t times;
    const broken_backend *b = state;
    bool is_wide = quire_channel_size(options->channel_type) == 8;
    if (b->thing == BROKEN_IMAGE_CODE && is_wide)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0, "too wide");
    if (b->thing == BROKEN_OBJECT_UNREPORTED && is_wide)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0, "too wide");
    quire_result result = b->wrap.base->image_requirements(b->wrap.state, options, needs);
    if (b->thing == BROKEN_SMALL_IMAGE)
        needs->size = (needs->size + 1) / 2;
    if (b->thing == BROKEN_WRAPPED_IMAGE)
        needs->size = needs->size & UINT32_MAX ? needs->size & UINT32_MAX : 64;
    if (b->thing == BROKEN_GROWING_IMAGE)
        needs->size += 64 * ++times;
    if (b->thing == BROKEN_ODD_ROWS)
        needs->row_pitch++;
    if (b->thing == BROKEN_NARROW_ROWS)
        needs->row_pitch = (needs->row_pitch / 128 + 1) * 64;
    return result;
}

static uint64_t same_object(broken_backend *b, uint64_t native)
{
    pthread_mutex_lock(&b->lock);
    uint64_t first = b->first_object ? b->first_object : native;
    b->first_object = first;
    pthread_mutex_unlock(&b->lock);
    return first;
}

static quire_result broken_object_create(void *state, const quire_object_request *request,
                                         uint64_t *native, quire_requirements *needs)
{
    broken_backend *b = state;
    quire_result result = b->wrap.base->object_create(b->wrap.state, request, native, needs);
    if (result)
        return result;
    bool is_image = request->object == QUIRE_OBJECT_IMAGE;
    if (b->thing == BROKEN_OBJECT_NEEDS && is_image)
        needs->size += 64;
    if (b->thing == BROKEN_OBJECT_KINDS && is_image)
        needs->kind_mask = 1;
    if (b->thing == BROKEN_SMALL_BUFFER && !is_image)
        needs->size = (needs->size + 1) / 2;
    if (b->thing == BROKEN_LOW_BUFFER && !is_image)
        needs->alignment = 4;
    if (b->thing == BROKEN_SAME_OBJECT)
        *native = same_object(b, *native);
    return QUIRE_SUCCESS;
}

static quire_result broken_object_bind(void *state, quire_object object, uint64_t native,
                                       const quire_native_page *page, uint64_t offset)
{
    const broken_backend *b = state;
    if (b->thing == BROKEN_SAME_OBJECT)
        return QUIRE_SUCCESS;
    if (b->thing == BROKEN_NO_BIND)
        return quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, 0, "nothing can be bound");
    return b->wrap.base->object_bind(b->wrap.state, object, native, page, offset);
}

static void broken_object_destroy(void *state, quire_object object, uint64_t native)
{
    const broken_backend *b = state;
    if (b->thing != BROKEN_KEPT_OBJECT && b->thing != BROKEN_SAME_OBJECT)
        b->wrap.base->object_destroy(b->wrap.state, object, native);
}

/* ---- budgets and closing ------------------------------------------------------------------ */

static quire_result broken_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget)
{
    const broken_backend *b = state;
    quire_result result = b->wrap.base->heap_budget(b->wrap.state, heap, budget);
    if (b->thing == BROKEN_NO_USAGE)
        budget->usage = 1;
    if (b->thing == BROKEN_NO_BUDGET)
        budget->budget = 0;
    return result;
}

static void broken_destroy(void *state)
{
    broken_backend *b = state;
    if (b->thing != BROKEN_KEPT_STATE)
        wrap_destroy(state);
}

/* ---- the subject -------------------------------------------------------------------------- */

static void replace(quire_backend *table)
{
    table->describe = broken_describe;
    table->page_create = broken_page_create;
    table->page_destroy = broken_page_destroy;
    table->destroy = broken_destroy;
    broken_bytes_replace(table);
    broken_streams_replace(table);
    table->image_requirements = broken_image_requirements;
    table->heap_budget = broken_heap_budget;
    if (!table->object_create)
        return;
    table->object_create = broken_object_create;
    table->object_bind = broken_object_bind;
    table->object_destroy = broken_object_destroy;
}

static quire_result open_broken(const contract_subject *subject, const quire_host_memory *host,
                                contract_opened *opened)
{
    const broken_options *options = subject->options;
    broken_backend *b = calloc(1, sizeof *b);
    CHECK(b);
    CHECK_OK(wrap_begin(&b->wrap, options->inner, host));
    b->thing = options->thing;
    b->atom = b->wrap.info.limits.non_coherent_atom;
    b->other = calloc(1, BROKEN_OTHER_SIZE);
    CHECK(b->other);
    pthread_mutex_init(&b->lock, NULL);
    replace(&b->wrap.table);
    return wrap_finish(&b->wrap, host, opened);
}

static void close_broken(void *own)
{
    broken_backend *b = own;
    wrap_close(&b->wrap);
    pthread_mutex_destroy(&b->lock);
    free(b->other);
    free(b);
}

static quire_result set_budget(void *own, uint32_t heap, uint64_t bytes)
{
    const broken_backend *b = own;
    return b->wrap.inner->set_budget(b->wrap.opened.own, heap, bytes);
}

static const struct {
    broken_options options;
    contract_subject subject;
    const char *sentence;
} things[] = {
#define BROKEN_ROW(id, inner, text)                                                                \
    {{&subject_##inner, BROKEN_##id},                                                              \
     {.name = "broken",                                                                            \
      .options = &things[BROKEN_##id].options,                                                     \
      .open = open_broken,                                                                         \
      .close = close_broken,                                                                       \
      .set_budget = set_budget},                                                                   \
     text},
    BROKEN_THINGS(BROKEN_ROW)
#undef BROKEN_ROW
};

const contract_subject *broken_subject(broken_thing thing)
{
    return &things[thing].subject;
}

const char *broken_sentence(broken_thing thing)
{
    return things[thing].sentence;
}
