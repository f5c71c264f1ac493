/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * nvtx.c - see quire/nvtx.h. Reports pages as heaps and allocations as regions to NVTX.
 *
 * Events of different threads may arrive in another order than their effects. An allocation event
 * may precede the event that creates its page, or follow the event that destroys it. The watch
 * therefore registers a page as a heap at the first event that names it, and looks the page up at
 * that moment: a destroyed page is not found. The core reports the destruction of a page before its
 * number and addresses are reused, and the free of an allocation before its range is reused.
 */
#include "quire/nvtx.h"

#include <nvtx3/nvToolsExtMem.h>
#include <pthread.h>
#include <stdlib.h>

#include "quire/backend.h"

typedef struct heap {
    nvtxMemHeapHandle_t handle;
    uint64_t address; /* 0: the page has no heap */
    uint64_t size;
} heap;

struct quire_nvtx {
    quire_attachment attachment; /* first member: finish converts its address to the watch */
    quire_memory *memory;
    quire_hook next;
    nvtxDomainHandle_t domain;
    /* protects the heaps; only functions of quire that call no hook are called while it is held */
    pthread_mutex_t mutex;
    heap *heaps; /* `room` of them, by page number */
    uint32_t room;
};

/* ---- heaps -------------------------------------------------------------------------------- */

/* Requires the mutex or exclusive use of the memory, as do all functions on heaps and regions. */
static void begin_heap(quire_nvtx *w, heap *h, const quire_page_info *page)
{
    const nvtxMemVirtualRangeDesc_t range = {.size = page->size,
                                             .ptr = (const void *)(uintptr_t)page->address};
    const nvtxMemHeapDesc_t desc = {
        .extCompatID = NVTX_EXT_COMPATID_MEM,
        .structSize = sizeof desc,
        .usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR,
        .type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
        .typeSpecificDescSize = sizeof range,
        .typeSpecificDesc = &range,
    };
    h->handle = nvtxMemHeapRegister(w->domain, &desc);
    h->address = page->address;
    h->size = page->size;
}

/* NVTX removes the regions of a heap with the heap. */
static void end_heap(quire_nvtx *w, heap *h)
{
    if (h->address)
        nvtxMemHeapUnregister(w->domain, h->handle);
    *h = (heap){.address = 0};
}

/* Ends the heaps that overlap a new page. Two live pages never overlap, so such a heap belongs to a
   page that another thread has destroyed and is about to report. */
static void end_overlapping_heaps(quire_nvtx *w, const quire_page_info *page)
{
    for (uint32_t i = 0; i < w->room; i++) {
        heap *h = &w->heaps[i];
        if (h->address && h->address < page->address + page->size &&
            page->address < h->address + h->size)
            end_heap(w, h);
    }
}

/* Returns false if host memory is exhausted. */
static bool reserve_heaps(quire_nvtx *w, uint32_t number)
{
    uint32_t room = w->room ? w->room : 16;
    if (number < w->room)
        return true;
    while (room <= number)
        room *= 2;
    heap *larger = realloc(w->heaps, room * sizeof *larger);
    if (!larger)
        return false;
    for (uint32_t i = w->room; i < room; i++)
        larger[i] = (heap){.address = 0};
    w->heaps = larger;
    w->room = room;
    return true;
}

/* Returns the heap of a page and registers it if necessary. NULL if the page is gone or has no
   address. */
static heap *find_heap(quire_nvtx *w, uint32_t number)
{
    quire_page_info page;
    if (number < w->room && w->heaps[number].address)
        return &w->heaps[number];
    if (quire_page_get_info(w->memory, number, &page) || !page.address || !reserve_heaps(w, number))
        return NULL;
    end_overlapping_heaps(w, &page);
    begin_heap(w, &w->heaps[number], &page);
    return &w->heaps[number];
}

/* ---- regions ------------------------------------------------------------------------------ */

static void begin_region(const quire_nvtx *w, const heap *h, uint64_t offset, uint64_t size)
{
    const nvtxMemVirtualRangeDesc_t range = {.size = size,
                                             .ptr = (const void *)(uintptr_t)(h->address + offset)};
    const nvtxMemRegionsRegisterBatch_t batch = {
        .extCompatID = NVTX_EXT_COMPATID_MEM,
        .structSize = sizeof batch,
        .regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
        .heap = h->handle,
        .regionCount = 1,
        .regionDescElementSize = sizeof range,
        .regionDescElements = &range,
    };
    nvtxMemRegionsRegister(w->domain, &batch);
}

static void end_region(const quire_nvtx *w, const heap *h, uint64_t offset)
{
    const nvtxMemRegionRef_t region = {.pointer = (const void *)(uintptr_t)(h->address + offset)};
    const nvtxMemRegionsUnregisterBatch_t batch = {
        .extCompatID = NVTX_EXT_COMPATID_MEM,
        .structSize = sizeof batch,
        .refType = NVTX_MEM_REGION_REF_TYPE_POINTER,
        .refCount = 1,
        .refElementSize = sizeof region,
        .refElements = &region,
    };
    nvtxMemRegionsUnregister(w->domain, &batch);
}

/* ---- events ------------------------------------------------------------------------------- */

static void handle(quire_nvtx *w, const quire_event *event)
{
    const heap *h = NULL;
    switch (event->kind) {
    case QUIRE_EVENT_PAGE_MADE:
        (void)find_heap(w, event->page);
        break;
    case QUIRE_EVENT_PAGE_GONE:
        if (event->page < w->room)
            end_heap(w, &w->heaps[event->page]);
        break;
    case QUIRE_EVENT_ALLOCATED:
        h = find_heap(w, event->page);
        if (h)
            begin_region(w, h, event->offset, event->requested);
        break;
    case QUIRE_EVENT_FREED:
        if (event->page < w->room && w->heaps[event->page].address)
            end_region(w, &w->heaps[event->page], event->offset);
        break;
    default:
        break;
    }
}

/* The watch takes every event; `next` receives those that it selected. */
static void on_event(void *user, quire_memory *memory, const quire_event *event)
{
    quire_nvtx *w = user;
    pthread_mutex_lock(&w->mutex);
    handle(w, event);
    pthread_mutex_unlock(&w->mutex);
    bool wants = !w->next.kinds || w->next.kinds & event->kind;
    if (w->next.event && wants)
        w->next.event(w->next.user, memory, event);
}

/* ---- public ------------------------------------------------------------------------------- */

/* Gives the memory's hook to `next`. Runs in quire_nvtx_end or when the memory is destroyed. */
static void finish(quire_attachment *attachment)
{
    quire_nvtx *w = (quire_nvtx *)attachment;
    quire_result result = quire_memory_set_hook(
        w->memory, &w->next); /* was accepted once before, so it cannot fail */
    (void)result;
    quire_memory_detach(w->memory, attachment);
    for (uint32_t i = 0; i < w->room; i++)
        end_heap(w, &w->heaps[i]);
    nvtxDomainDestroy(w->domain);
    pthread_mutex_destroy(&w->mutex);
    free(w->heaps);
    free(w);
}

/* Reports an allocation that existed before the watch. */
static bool report_item(void *user, const quire_item *item)
{
    quire_nvtx *w = user;
    const heap *h = find_heap(w, item->page);
    if (h && !item->is_free)
        begin_region(w, h, item->offset, item->requested);
    return true;
}

/* Returns NULL if host memory is exhausted. */
static quire_nvtx *create_watch(quire_memory *memory, const quire_hook *next)
{
    quire_nvtx *w = calloc(1, sizeof *w);
    if (!w || pthread_mutex_init(&w->mutex, NULL)) {
        free(w);
        return NULL;
    }
    w->attachment = (quire_attachment){.name = "NVTX watch", .end = finish};
    w->memory = memory;
    w->next = next ? *next : (quire_hook){.kinds = 0};
    w->domain = nvtxDomainCreateA("quire");
    return w;
}

quire_result quire_nvtx_watch(quire_memory *memory, const quire_hook *next, quire_nvtx **watch)
{
    if (watch)
        *watch = NULL;
    if (!memory || !watch)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  "quire_nvtx_watch: memory or watch is null");
    quire_memory_info info;
    quire_result result = quire_memory_get_info(memory, &info);
    if (!result && info.address_space)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "memory '%s' is elastic: NVTX has no heap that grows", info.name);
    if (!result && next)
        result = quire_memory_set_hook(memory, next);
    if (result)
        return result; /* `next` selects unknown events */
    quire_nvtx *w = create_watch(memory, next);
    if (!w)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for an NVTX watch");
    quire_memory_attach(memory, &w->attachment);
    result = quire_memory_walk(memory, report_item, w);
    if (!result)
        result = quire_memory_set_hook(memory, &(quire_hook){.event = on_event, .user = w});
    if (result)
        finish(&w->attachment);
    else
        *watch = w;
    return result;
}

quire_result quire_nvtx_end(quire_nvtx **watch)
{
    if (!watch)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0, "quire_nvtx_end: watch is null");
    if (*watch)
        finish(&(*watch)->attachment);
    *watch = NULL;
    return QUIRE_SUCCESS;
}
