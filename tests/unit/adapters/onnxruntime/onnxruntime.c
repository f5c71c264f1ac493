/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * onnxruntime.c - the allocator of ONNX Runtime against a stand-in of the runtime: a table of the
 * functions that the adapter calls, at the places where the runtime has them.
 */
#include "quire/onnxruntime.h"

#include <stdio.h>
#include <stdlib.h>

#include "quire/memory.h"
#include "src/adapters/onnxruntime/abi.h"
#include "tests/support/unit.h"
#include "tests/support/valgrind.h"

enum { TABLE_SIZE = 301, MAX_PAIRS = 16 };

struct ort_memory_info {
    int type, memory;
};
struct ort_status {
    int code;
    char text[200];
};
struct ort_pairs {
    uint32_t count;
    char keys[MAX_PAIRS][32];
    char values[MAX_PAIRS][32];
};

/* ---- the stand-in ---------------------------------------------------------------------------- */

static struct {
    const char *version;
    uint32_t newest_api; /* that get_api knows */
    uint32_t asked_api;
    bool has_no_info; /* create_cpu_memory_info fails */
    int infos, statuses;
    int heap_trims;
    ort_function table[TABLE_SIZE];
} runtime;

/* The adapter calls this instead of the function of the C library. */
int malloc_trim(size_t pad);
int malloc_trim(size_t pad)
{
    CHECK_EQ(pad, 0);
    runtime.heap_trims++;
    return 1;
}

static ort_status *create_status(int code, const char *text)
{
    ort_status *status = malloc(sizeof *status);
    status->code = code;
    snprintf(status->text, sizeof status->text, "%s", text);
    runtime.statuses++;
    return status;
}

static const char *get_error_message(const ort_status *status)
{
    return status->text;
}

static void release_status(ort_status *status)
{
    runtime.statuses--;
    free(status);
}

static ort_status *create_cpu_memory_info(int type, int memory, ort_memory_info **info)
{
    if (runtime.has_no_info)
        return create_status(1, "no such device");
    *info = malloc(sizeof **info);
    **info = (ort_memory_info){type, memory};
    runtime.infos++;
    return NULL;
}

static void release_memory_info(ort_memory_info *info)
{
    runtime.infos--;
    free(info);
}

static void create_pairs(ort_pairs **pairs)
{
    *pairs = calloc(1, sizeof **pairs);
}

static void add_pair(ort_pairs *pairs, const char *key, const char *value)
{
    CHECK(pairs->count < MAX_PAIRS);
    snprintf(pairs->keys[pairs->count], sizeof *pairs->keys, "%s", key);
    snprintf(pairs->values[pairs->count++], sizeof *pairs->values, "%s", value);
}

static const ort_function *get_api(uint32_t version)
{
    runtime.asked_api = version;
    return version <= runtime.newest_api ? runtime.table : NULL;
}

static const char *get_version_string(void)
{
    return runtime.version;
}

static const ort_api_base base = {get_api, get_version_string};

static void install(const char *version, uint32_t newest_api)
{
    memset(&runtime, 0, sizeof runtime);
    runtime.version = version;
    runtime.newest_api = newest_api;
#define INSTALL(name, number, result, parameters) runtime.table[number] = (ort_function)name;
    ORT_FUNCTIONS(INSTALL)
    if (newest_api >= 22) {
        ORT_PAIR_FUNCTIONS(INSTALL)
    }
}

static ort_allocator *make(const quire_onnxruntime_options *options)
{
    ort_allocator *allocator = NULL;
    CHECK_OK(quire_onnxruntime_create(&base, options, &allocator));
    return allocator;
}

static void end(ort_allocator *allocator)
{
    CHECK_OK(quire_onnxruntime_destroy(&allocator));
    CHECK(!allocator);
    CHECK_EQ(runtime.infos, 0);
    CHECK_EQ(runtime.statuses, 0);
}

static quire_onnxruntime_stats stats_of(const ort_allocator *allocator)
{
    quire_onnxruntime_stats stats;
    CHECK_OK(quire_onnxruntime_get_stats(allocator, &stats));
    return stats;
}

/* ---- versions -------------------------------------------------------------------------------- */

UNIT(onnxruntime, offers_what_the_api_of_the_runtime_knows)
{
    const struct {
        const char *name;
        uint32_t api;
        bool has_stats, has_shrink;
    } versions[] = {
        {"1.18.0", 18, false, false}, {"1.21.0", 21, false, false}, {"1.22.1", 22, false, false},
        {"1.23.0", 23, true, false},  {"1.25.0", 25, true, true},   {"1.30.0", 25, true, true},
    };
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        install(versions[i].name, versions[i].api);
        ort_allocator *a = make(NULL);
        CHECK_EQ(a->version, versions[i].api);
        CHECK_EQ(runtime.asked_api, versions[i].api);
        CHECK(a->alloc && a->free && a->reserve);
        CHECK_EQ(a->get_stats != NULL, versions[i].has_stats);
        CHECK_EQ(a->shrink != NULL, versions[i].has_shrink);
        CHECK(!a->alloc_on_stream);
        CHECK_EQ(a->info(a)->type, ORT_DEVICE_ALLOCATOR);
        CHECK_EQ(a->info(a)->memory, ORT_MEMORY_DEFAULT);
        end(a);
    }
}

UNIT(onnxruntime, refuses_unknown_runtimes)
{
    const char *names[] = {"1.17.3", "0.30.0", "2.0.0", "", "one", NULL};
    ort_allocator *a = (ort_allocator *)1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        install(names[i], 30);
        CHECK_FAILS(quire_onnxruntime_create(&base, NULL, &a), QUIRE_ERROR_UNSUPPORTED);
        CHECK_HAS(quire_last_error(), names[i] ? names[i] : "''");
        CHECK(!a);
    }
    install("1.30.0", 21); /* the name and the API disagree */
    CHECK_FAILS(quire_onnxruntime_create(&base, NULL, &a), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "no API of version 25");
}

UNIT(onnxruntime, a_failure_of_the_runtime_has_its_sentence)
{
    ort_allocator *a = NULL;
    install("1.21.0", 21);
    runtime.has_no_info = true;
    CHECK_FAILS(quire_onnxruntime_create(&base, NULL, &a), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_HAS(quire_last_error(), "no such device");
    CHECK(!a);
    CHECK_EQ(runtime.statuses, 0);
}

/* ---- allocations ----------------------------------------------------------------------------- */

UNIT(onnxruntime, allocates_and_counts)
{
    install("1.21.0", 21);
    ort_allocator *a = make(&(quire_onnxruntime_options){.name = "model"});
    unsigned char *small = a->alloc(a, 100), *large = a->alloc(a, 1 << 20);
    unsigned char *weights = a->reserve(a, 300000);
    CHECK(small && large && weights);
    CHECK_EQ((uintptr_t)small % 64 + (uintptr_t)large % 64 + (uintptr_t)weights % 64, 0);
    memset(small, 1, 100);
    memset(large, 2, 1 << 20);
    memset(weights, 3, 300000);
    CHECK_EQ(small[99] + large[0] + large[(1 << 20) - 1] + weights[0], 1 + 2 + 2 + 3);
    CHECK(!a->alloc(a, 0));
    a->free(a, NULL);

    quire_onnxruntime_stats stats = stats_of(a);
    CHECK_EQ(stats.requested_bytes, 100 + (1 << 20) + 300000);
    CHECK_EQ(stats.allocation_count, 3);
    CHECK_EQ(stats.allocations, 3);
    CHECK_EQ(stats.reserves, 1);
    CHECK_EQ(stats.max_allocation, 1 << 20);
    CHECK_EQ(stats.bad_frees, 0);

    quire_memory *memory = NULL;
    quire_memory_info info;
    CHECK_OK(quire_onnxruntime_get_memory(a, &memory));
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK_STR(info.name, "model");

    a->free(a, weights + 64);
    a->free(a, large);
    a->free(a, large);
    stats = stats_of(a);
    CHECK_EQ(stats.bad_frees, 2);
    CHECK_EQ(stats.frees, 1);
    a->free(a, small);
    a->free(a, weights);
    CHECK_EQ(stats_of(a).allocation_count, 0);
    end(a);
}

UNIT(onnxruntime, a_limit_refuses_with_null)
{
    install("1.21.0", 21);
    ort_allocator *a = make(&(quire_onnxruntime_options){.limit = 4 << 20});
    void *first = a->alloc(a, 3 << 20);
    CHECK(first);
    CHECK(!a->alloc(a, 2 << 20));
    CHECK(!a->reserve(a, 2 << 20));
    quire_onnxruntime_stats stats = stats_of(a);
    CHECK_EQ(stats.memory.failures, 2);
    CHECK_EQ(stats.reserves, 0);
    CHECK_EQ(stats.max_allocation, 3 << 20);
    a->free(a, first);
    end(a);
}

UNIT(onnxruntime, a_trim_releases_empty_pages)
{
    uint64_t released = 0;
    install("1.30.0", 30);
    ort_allocator *a = make(NULL);
    for (int i = 0; i < 2; i++) {
        a->free(a, a->alloc(a, 4 << 20));
        a->free(a, a->alloc(a, 1000)); /* stays in the cache of the thread */
        CHECK(stats_of(a).memory.reserved_bytes >= 4 << 20);
        if (i) {
            CHECK(!a->shrink(a));
        } else {
            CHECK_OK(quire_onnxruntime_trim(a, &released));
            CHECK(released >= 4 << 20);
        }
        CHECK_EQ(stats_of(a).memory.reserved_bytes, 0);
    }
    end(a);
}

/* ---- the heap of the C library --------------------------------------------------------------- */

UNIT(onnxruntime, growth_by_an_eighth_trims_the_heap)
{
    enum { PAGES = 20, SIZE = 900000 };
    void *tensors[PAGES];
    if (under_valgrind())
        unit_skip("valgrind replaces malloc_trim, which the test counts");
    install("1.21.0", 21);
    ort_allocator *a = make(&(quire_onnxruntime_options){.page_size = 1 << 20});
    CHECK_EQ(runtime.heap_trims, 0);
    for (int i = 0; i < PAGES; i++) {
        tensors[i] = a->reserve(a, SIZE);
        if (i < 4)
            CHECK_EQ(runtime.heap_trims, i + 1);
    }
    int trims = runtime.heap_trims;
    CHECK(trims > 8 && trims < 15);
    for (int again = 0; again < 3; again++) { /* no larger than before */
        a->free(a, tensors[PAGES - 1]);
        CHECK_OK(quire_onnxruntime_trim(a, NULL));
        tensors[PAGES - 1] = a->alloc(a, SIZE);
    }
    CHECK_EQ(runtime.heap_trims, trims);
    for (int i = 0; i < PAGES; i++)
        a->free(a, tensors[i]);
    end(a);
}

UNIT(onnxruntime, an_option_keeps_the_heap)
{
    if (under_valgrind())
        unit_skip("valgrind replaces malloc_trim, which the test counts");
    install("1.21.0", 21);
    ort_allocator *a = make(&(quire_onnxruntime_options){.keep_heap = true});
    a->free(a, a->reserve(a, 9000000));
    CHECK_EQ(runtime.heap_trims, 0);
    end(a);
}

/* ---- statistics for the runtime -------------------------------------------------------------- */

static int64_t value_of(const ort_pairs *pairs, const char *key)
{
    for (uint32_t i = 0; i < pairs->count; i++) {
        if (!strcmp(pairs->keys[i], key))
            return strtoll(pairs->values[i], NULL, 10);
    }
    check_failed(__FILE__, __LINE__, "there is no %s", key);
}

UNIT(onnxruntime, reports_statistics_to_the_runtime)
{
    ort_pairs *pairs = NULL;
    install("1.23.0", 23);
    ort_allocator *a = make(NULL);
    void *weights = a->reserve(a, 70000), *tensor = a->alloc(a, 5 << 20);
    a->free(a, tensor);
    CHECK(!a->get_stats(a, &pairs));
    CHECK_EQ(pairs->count, 10);
    quire_onnxruntime_stats stats = stats_of(a);
    CHECK_EQ(value_of(pairs, "Limit"), -1);
    CHECK_EQ(value_of(pairs, "InUse"), 70000);
    CHECK_EQ(value_of(pairs, "RequestedInUse"), 70000);
    CHECK_EQ(value_of(pairs, "TotalAllocated"), stats.memory.reserved_bytes);
    CHECK_EQ(value_of(pairs, "MaxInUse"), 70000 + (5 << 20));
    CHECK_EQ(value_of(pairs, "NumAllocs"), 2);
    CHECK_EQ(value_of(pairs, "NumReserves"), 1);
    CHECK_EQ(value_of(pairs, "NumArenaExtensions"), stats.memory.pages_created);
    CHECK_EQ(value_of(pairs, "NumArenaShrinkages"), 0);
    CHECK_EQ(value_of(pairs, "MaxAllocSize"), 5 << 20);
    free(pairs);
    a->free(a, weights);
    end(a);

    a = make(&(quire_onnxruntime_options){.limit = 8 << 20});
    CHECK(!a->get_stats(a, &pairs));
    CHECK_EQ(value_of(pairs, "Limit"), 8 << 20);
    free(pairs);
    end(a);
}

/* ---- wrong arguments ------------------------------------------------------------------------- */

UNIT(onnxruntime_misuse, create_refuses_wrong_arguments)
{
    ort_allocator *a = (ort_allocator *)1;
    install("1.21.0", 21);
    CHECK_FAILS(quire_onnxruntime_create(NULL, NULL, &a), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(!a);
    CHECK_FAILS(quire_onnxruntime_create(&base, NULL, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    quire_onnxruntime_options options = {.unused = {0, 0, 1}};
    CHECK_FAILS(quire_onnxruntime_create(&base, &options, &a), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "unused[2]");
    options = (quire_onnxruntime_options){.shards = 65};
    CHECK_FAILS(quire_onnxruntime_create(&base, &options, &a), QUIRE_ERROR_INVALID_ARGUMENT);
    options = (quire_onnxruntime_options){.trace_file = "/nonexistent/trace.csv"};
    CHECK_FAILS(quire_onnxruntime_create(&base, &options, &a), QUIRE_ERROR_BAD_FILE);
    CHECK(!a);
    CHECK_EQ(runtime.infos, 0);
}

UNIT(onnxruntime_misuse, destroy_waits_for_the_last_free)
{
    install("1.21.0", 21);
    ort_allocator *a = make(NULL), *none = NULL;
    void *tensor = a->alloc(a, 1234);
    CHECK_FAILS(quire_onnxruntime_destroy(&a), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "1 allocations of 1234 bytes");
    a->free(a, tensor);
    end(a);
    CHECK_OK(quire_onnxruntime_destroy(&none));
    CHECK_FAILS(quire_onnxruntime_destroy(NULL), QUIRE_ERROR_INVALID_ARGUMENT);
}

UNIT(onnxruntime_misuse, functions_refuse_null_and_foreign_allocators)
{
    quire_onnxruntime_stats stats;
    quire_memory *memory = (quire_memory *)1;
    uint64_t released = 1;
    ort_allocator foreign = {.version = 21}, *pointer = &foreign;
    install("1.21.0", 21);
    ort_allocator *a = make(NULL);
    CHECK_FAILS(quire_onnxruntime_get_stats(NULL, &stats), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_onnxruntime_get_stats(a, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_onnxruntime_get_stats(&foreign, &stats), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_onnxruntime_get_memory(NULL, &memory), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(!memory);
    CHECK_FAILS(quire_onnxruntime_get_memory(a, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_onnxruntime_get_memory(&foreign, &memory), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_onnxruntime_trim(NULL, &released), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(released, 0);
    CHECK_FAILS(quire_onnxruntime_trim(&foreign, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_onnxruntime_destroy(&pointer), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "has not made this allocator");
    CHECK(pointer == &foreign);
    end(a);
}
