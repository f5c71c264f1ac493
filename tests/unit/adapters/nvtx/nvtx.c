/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * nvtx.c - pages as heaps and allocations as regions, as a listening tool sees them. The test plays
 * the tool and enforces the rules of NVTX: regions are inside their heap, do not overlap, and end
 * once.
 */
#include "quire/nvtx.h"

#include <nvtx3/nvToolsExtMem.h>
#include <pthread.h>

#include "quire/host.h"
#include "quire/quire.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"
#include "tests/support/unit.h"

#define KIB UINT64_C(1024)

/* ---- the tool ----------------------------------------------------------------------------- */

enum { MAX_COUNT = 4096 };

typedef struct range {
    uintptr_t begin, end; /* 0 means none */
    size_t heap;          /* index of a region */
} range;

struct nvtx_heap {
    char none;
};

static struct {
    pthread_mutex_t mutex;
    range heaps[MAX_COUNT], regions[MAX_COUNT];
    uint32_t heap_count, region_count, domains;
    struct nvtx_heap names[MAX_COUNT]; /* a heap's handle is the address of one */
} tool = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static range take_range(const void *desc, size_t size)
{
    nvtxMemVirtualRangeDesc_t wanted;
    CHECK_EQ(size, sizeof wanted);
    memcpy(&wanted, desc, sizeof wanted);
    CHECK(wanted.ptr && wanted.size);
    return (range){(uintptr_t)wanted.ptr, (uintptr_t)wanted.ptr + wanted.size, 0};
}

static size_t put(range *list, range added)
{
    size_t place = MAX_COUNT;
    for (size_t i = 0; i < MAX_COUNT; i++) {
        if (list[i].begin)
            CHECK(added.end <= list[i].begin || list[i].end <= added.begin);
        else if (place == MAX_COUNT)
            place = i;
    }
    CHECK(place < MAX_COUNT);
    list[place] = added;
    return place;
}

nvtxDomainHandle_t nvtxDomainCreateA(const char *name)
{
    CHECK_STR(name, "quire");
    tool.domains++;
    return (nvtxDomainHandle_t)&tool;
}

void nvtxDomainDestroy(nvtxDomainHandle_t domain)
{
    CHECK(domain == (nvtxDomainHandle_t)&tool);
    tool.domains--;
}

nvtxMemHeapHandle_t nvtxMemHeapRegister(nvtxDomainHandle_t domain, nvtxMemHeapDesc_t const *desc)
{
    CHECK(domain == (nvtxDomainHandle_t)&tool);
    CHECK(desc->extCompatID == 0x0102 && desc->structSize == sizeof *desc && !desc->reserved0);
    CHECK(desc->usage == 1 && desc->type == 1);
    pthread_mutex_lock(&tool.mutex);
    size_t at = put(tool.heaps, take_range(desc->typeSpecificDesc, desc->typeSpecificDescSize));
    tool.heap_count++;
    pthread_mutex_unlock(&tool.mutex);
    return &tool.names[at];
}

void nvtxMemHeapUnregister(nvtxDomainHandle_t domain, nvtxMemHeapHandle_t heap)
{
    size_t at = (size_t)(heap - tool.names);
    CHECK(domain == (nvtxDomainHandle_t)&tool && at < MAX_COUNT);
    pthread_mutex_lock(&tool.mutex);
    CHECK(tool.heaps[at].begin);
    tool.heaps[at] = (range){0};
    tool.heap_count--;
    for (size_t i = 0; i < MAX_COUNT; i++)
        if (tool.regions[i].begin && tool.regions[i].heap == at) {
            tool.regions[i] = (range){0};
            tool.region_count--;
        }
    pthread_mutex_unlock(&tool.mutex);
}

void nvtxMemRegionsRegister(nvtxDomainHandle_t domain, nvtxMemRegionsRegisterBatch_t const *desc)
{
    size_t at = (size_t)(desc->heap - tool.names);
    CHECK(domain == (nvtxDomainHandle_t)&tool && at < MAX_COUNT);
    CHECK(desc->extCompatID == 0x0102 && desc->structSize == sizeof *desc);
    CHECK(desc->regionType == 1 && desc->regionCount == 1 && !desc->regionHandleElementsOut);
    range added = take_range(desc->regionDescElements, desc->regionDescElementSize);
    added.heap = at;
    pthread_mutex_lock(&tool.mutex);
    CHECK(tool.heaps[at].begin && tool.heaps[at].begin <= added.begin &&
          added.end <= tool.heaps[at].end);
    (void)put(tool.regions, added);
    tool.region_count++;
    pthread_mutex_unlock(&tool.mutex);
}

void nvtxMemRegionsUnregister(nvtxDomainHandle_t domain,
                              nvtxMemRegionsUnregisterBatch_t const *desc)
{
    bool found = false;
    CHECK(domain == (nvtxDomainHandle_t)&tool && desc->extCompatID == 0x0102);
    CHECK(desc->structSize == sizeof *desc && desc->refType == 1 && desc->refCount == 1 &&
          desc->refElementSize == sizeof *desc->refElements);
    pthread_mutex_lock(&tool.mutex);
    for (size_t i = 0; i < MAX_COUNT && !found; i++)
        if (tool.regions[i].begin == (uintptr_t)desc->refElements->pointer) {
            tool.regions[i] = (range){0};
            tool.region_count--;
            found = true;
        }
    CHECK(found);
    pthread_mutex_unlock(&tool.mutex);
}

/* Exactly this range is a region. */
static bool is_region(const void *pointer, uint64_t size)
{
    for (size_t i = 0; i < MAX_COUNT; i++)
        if (tool.regions[i].begin == (uintptr_t)pointer)
            return tool.regions[i].end - tool.regions[i].begin == size;
    return false;
}

/* ---- a memory of the host ------------------------------------------------------------------- */

static quire_device *device;
static quire_memory *memory;
static quire_nvtx *watch;

static void begin(uint32_t shards)
{
    const quire_memory_options options = {
        .kind.required = QUIRE_HOST_VISIBLE, .shards = shards, .pages = {.page_size = 64 * KIB}};
    CHECK_OK(quire_host_open(NULL, &device));
    CHECK_OK(quire_memory_create(device, &options, &memory));
}

static void end(void)
{
    CHECK_OK(quire_nvtx_end(&watch));
    CHECK(!watch);
    CHECK_OK(quire_memory_destroy(&memory));
    CHECK_OK(quire_device_destroy(&device));
    CHECK(!tool.heap_count && !tool.region_count && !tool.domains);
}

static quire_allocation allocate(uint64_t size)
{
    quire_allocation a;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = size}, &a));
    return a;
}

static void *pointer_of(quire_allocation a)
{
    quire_native native;
    CHECK_OK(quire_allocation_get_native(memory, a, &native));
    return native.host;
}

UNIT(nvtx, pages_are_heaps_and_allocations_regions_of_the_requested_size)
{
    begin(1);
    CHECK_OK(quire_nvtx_watch(memory, NULL, &watch));
    quire_allocation a = allocate(1001), b = allocate(7), large = allocate(300 * KIB);
    CHECK(is_region(pointer_of(a), 1001) && is_region(pointer_of(b), 7));
    CHECK(is_region(pointer_of(large), 300 * KIB));
    CHECK(tool.heap_count == 2 && tool.region_count == 3);
    void *at = pointer_of(a);
    CHECK_OK(quire_free(memory, a));
    CHECK(!is_region(at, 1001) && tool.region_count == 2);
    a = allocate(999); /* the range exists again */
    CHECK(is_region(pointer_of(a), 999));
    CHECK_OK(quire_free(memory, large));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_EQ(tool.heap_count, 1);
    CHECK_OK(quire_free(memory, a));
    CHECK_OK(quire_free(memory, b));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK(!tool.heap_count && !tool.region_count);
    end();
}

static uint32_t events;

static void count(void *user, quire_memory *from, const quire_event *event)
{
    CHECK(user == &events && from == memory && event->kind == QUIRE_EVENT_FREED);
    events++;
}

UNIT(nvtx, existing_allocations_are_reported_and_the_callers_hook_stays_active)
{
    const quire_hook next = {.event = count, .user = &events, .kinds = QUIRE_EVENT_FREED};
    begin(1);
    quire_allocation a = allocate(100), b = allocate(200);
    CHECK_OK(quire_nvtx_watch(memory, &next, &watch));
    CHECK(tool.heap_count == 1 && tool.region_count == 2);
    CHECK(is_region(pointer_of(a), 100) && is_region(pointer_of(b), 200));
    CHECK_OK(quire_free(memory, a));
    CHECK(events == 1 && tool.region_count == 1);
    CHECK_OK(quire_nvtx_end(&watch));
    CHECK(!tool.heap_count && !tool.region_count);
    CHECK_OK(quire_free(memory, b));
    CHECK_EQ(events, 2);
    end();
}

UNIT(nvtx, a_watched_memory_is_busy_and_destroy_all_ends_the_watch)
{
    begin(1);
    (void)allocate(100);
    CHECK_OK(quire_nvtx_watch(memory, NULL, &watch));
    quire_memory *same = memory;
    CHECK_FAILS(quire_memory_destroy(&same), QUIRE_ERROR_BUSY);
    quire_memory_destroy_all(&memory);
    CHECK(!tool.heap_count && !tool.region_count && !tool.domains);
    watch = NULL;
    CHECK_OK(quire_device_destroy(&device));
}

UNIT(nvtx, misuse_is_refused)
{
    const quire_hook unknown = {.event = count, .kinds = 0x8000};
    quire_nvtx *none = (quire_nvtx *)&tool;
    begin(1);
    CHECK_FAILS(quire_nvtx_watch(NULL, NULL, &none), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(!none);
    CHECK_FAILS(quire_nvtx_watch(memory, NULL, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    none = (quire_nvtx *)&tool;
    CHECK_FAILS(quire_nvtx_watch(memory, &unknown, &none), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(!none && !tool.domains);
    CHECK_FAILS(quire_nvtx_end(NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    end();
}

UNIT(nvtx, an_elastic_memory_is_refused)
{
    quire_nvtx *none = (quire_nvtx *)&tool;
    quire_memory *elastic = NULL;
    begin(1);
    CHECK_OK(quire_memory_create(device, &(quire_memory_options){.elastic = true}, &elastic));
    CHECK_FAILS(quire_nvtx_watch(elastic, NULL, &none), QUIRE_ERROR_UNSUPPORTED);
    CHECK(!none && !tool.domains);
    CHECK_OK(quire_memory_destroy(&elastic));
    end();
}

static quire_result (*create_page)(void *, const quire_page_request *, quire_native_page *);

static quire_result create_without_address(void *state, const quire_page_request *request,
                                           quire_native_page *page)
{
    quire_result result = create_page(state, request, page);
    page->address = 0;
    return result;
}

/* Like tile pools. */
UNIT(nvtx, pages_without_an_address_are_skipped)
{
    fixture f;
    fixture_prepare(&f);
    create_page = f.fake.table.page_create;
    f.fake.table.page_create = create_without_address;
    fixture_open(&f, NULL);
    CHECK_OK(quire_nvtx_watch(f.memory, NULL, &watch));
    quire_allocation a = ALLOCATE(&f, .size = 100);
    CHECK(!tool.heap_count && !tool.region_count);
    CHECK_OK(quire_free(f.memory, a));
    CHECK_OK(quire_nvtx_end(&watch));
    fixture_end(&f);
}

/* ---- threads ------------------------------------------------------------------------------ */

static void *work(void *argument)
{
    test_random r = {(uintptr_t)argument};
    quire_allocation held[16] = {{0}};
    for (int i = 0; i < 3000; i++) {
        quire_allocation *a = &held[random_next(&r) % 16];
        if (a->id) {
            CHECK_OK(quire_free(memory, *a));
            a->id = 0;
        } else {
            *a = allocate(1 + random_next(&r) % (20 * KIB));
        }
        if (i % 50 == 0)
            CHECK_OK(quire_memory_trim(memory, 0, NULL));
    }
    for (int i = 0; i < 16; i++)
        if (held[i].id)
            CHECK_OK(quire_free(memory, held[i]));
    return NULL;
}

UNIT(nvtx, several_threads_allocate_and_free)
{
    for (uint32_t shards = 1; shards <= 4; shards += 3) {
        pthread_t threads[4];
        begin(shards);
        CHECK_OK(quire_nvtx_watch(memory, NULL, &watch));
        for (uintptr_t i = 0; i < 4; i++)
            CHECK(!pthread_create(&threads[i], NULL, work, (void *)(i + 1)));
        for (int i = 0; i < 4; i++)
            CHECK(!pthread_join(threads[i], NULL));
        CHECK_EQ(tool.region_count, 0);
        CHECK_OK(quire_memory_trim(memory, 0, NULL));
        CHECK_EQ(tool.heap_count, 0);
        end();
    }
}
