/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* host_elastic.c - chunks of elastic host pages: what has memory can be used and is zero at first,
   what has none cannot be used and is not charged to the heap. */
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "quire/backend.h"
#include "quire/host.h"
#include "tests/support/valgrind.h"

#define MIB (UINT64_C(1) << 20)

enum { CHUNK = 65536, CHUNKS = 256 };

typedef struct bench {
    quire_device *device;
    const quire_backend *table;
    void *state;
    quire_native_page page;
    int pipe[2];
} bench;

/* A page without memory. */
static void begin(bench *b, uint32_t kind)
{
    const quire_host_options options = {.device.host_memory = unit_memory()};
    const quire_page_request request = {
        .kind = kind, .max_size = CHUNKS * CHUNK, .chunk = CHUNK, .alignment = 256};
    CHECK_OK(quire_host_open(&options, &b->device));
    b->table = quire_device_backend(b->device);
    b->state = quire_device_state(b->device);
    CHECK_OK(b->table->page_create(b->state, &request, &b->page));
    CHECK(!pipe2(b->pipe, O_NONBLOCK));
}

static void end(bench *b)
{
    close(b->pipe[0]);
    close(b->pipe[1]);
    b->table->page_destroy(b->state, &b->page);
    CHECK_OK(quire_device_destroy(&b->device));
}

#define CASE(name) UNIT_ON(host_elastic, name, bench, b, begin(b, 1), end)

static uint64_t charged(const bench *b)
{
    quire_heap_budget budget = {0};
    CHECK_OK(b->table->heap_budget(b->state, 1, &budget));
    return budget.usage;
}

static char *byte_of(const bench *b, uint64_t chunk)
{
    return (char *)(uintptr_t)b->page.address + chunk * CHUNK;
}

/* The system copies from the byte, or answers that it cannot be read. */
static bool has_memory(const bench *b, uint64_t chunk)
{
    char byte;
    if (write(b->pipe[1], byte_of(b, chunk), 1) < 0) {
        CHECK_EQ(errno, EFAULT);
        return false;
    }
    CHECK_EQ(read(b->pipe[0], &byte, 1), 1);
    return true;
}

/* ---- chunks that come and go ---------------------------------------------------------------- */

CASE(only_chunks_with_memory_can_be_used)
{
    static const quire_span spans[] = {{2 * CHUNK, CHUNK}, {5 * CHUNK, 3 * CHUNK}};
    CHECK_EQ(charged(b), 0);
    CHECK_OK(b->table->page_back(b->state, &b->page, spans, 2));
    CHECK_EQ(charged(b), 4 * CHUNK);
    for (uint64_t i = 0; i < 10; i++)
        CHECK_EQ(has_memory(b, i), i == 2 || (i >= 5 && i <= 7));
    memset(byte_of(b, 5), 7, 3 * CHUNK);
    b->table->page_unback(b->state, &b->page, &(quire_span){6 * CHUNK, CHUNK}, 1, false);
    CHECK_EQ(charged(b), 3 * CHUNK);
    CHECK(!has_memory(b, 6));
    CHECK_OK(b->table->page_back(b->state, &b->page, &(quire_span){6 * CHUNK, CHUNK}, 1));
    CHECK_EQ(*byte_of(b, 5), 7);
    CHECK_EQ(*byte_of(b, 6), 0);
    CHECK_EQ(*byte_of(b, 7), 7);
}

/* In the child of a fork a span may have chunks without memory: it is charged for those that have
   some. */
CASE(a_span_without_memory_is_not_charged)
{
    CHECK_OK(b->table->page_back(b->state, &b->page, &(quire_span){CHUNK, CHUNK}, 1));
    b->table->page_unback(b->state, &b->page, &(quire_span){0, CHUNKS * CHUNK}, 1, false);
    CHECK_EQ(charged(b), 0);
    CHECK(!has_memory(b, 1));
}

/* ---- refusals ------------------------------------------------------------------------------- */

static uint64_t private_bytes(void)
{
    char line[200];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file);
    while (!kib && fgets(line, sizeof line, file))
        if (!strncmp(line, "VmData:", 7))
            kib = strtoull(line + 7, NULL, 10);
    CHECK(!fclose(file));
    CHECK(kib);
    return kib * 1024;
}

/* The system refuses the second span. */
UNIT_ALONE(host_elastic, a_list_gets_memory_as_a_whole_or_not_at_all)
{
    static const quire_span spans[] = {{CHUNK, 2 * CHUNK}, {16 * CHUNK, 200 * CHUNK}};
    bench b;
    struct rlimit before;
    if (under_valgrind())
        unit_skip("valgrind takes memory of its own");
    begin(&b, 1);
    CHECK(!getrlimit(RLIMIT_DATA, &before));
    const struct rlimit few = {private_bytes() + 4 * MIB, before.rlim_max};
    CHECK(!setrlimit(RLIMIT_DATA, &few));
    quire_result result = b.table->page_back(b.state, &b.page, spans, 2);
    CHECK(!setrlimit(RLIMIT_DATA, &before));
    CHECK_EQ(result, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_HAS(quire_last_error(), "mapping of 12.50 MiB");
    CHECK_EQ(charged(&b), 0);
    CHECK(!has_memory(&b, 1) && !has_memory(&b, 16));
    CHECK_OK(b.table->page_back(b.state, &b.page, spans, 2));
    CHECK_EQ(charged(&b), 202 * CHUNK);
    end(&b);
}
