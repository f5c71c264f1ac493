/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_growing.c - see cuda_growing.h.
 */
#include "tests/support/cuda_growing.h"

#include "tests/support/check.h"

void growing_open(growing *g, const fc_options *driver, const quire_cuda_settings *settings)
{
    *g = (growing){.size = 0};
    cuda_bench_begin(&g->b, driver);
    CHECK(cuda_bench_open(&g->b, settings));
    g->fc = g->b.fc;
    g->table = quire_device_backend(g->b.device);
    g->cuda = quire_device_state(g->b.device);
}

quire_page_request growing_request(quire_device *device, quire_cuda_page_kind page_kind,
                                   uint64_t size, uint64_t max)
{
    quire_page_request request = {.size = size, .alignment = 256, .max_size = max};
    quire_cuda_kind_info info;
    CHECK_OK(quire_cuda_find_kind(device, page_kind, -1, &request.kind));
    CHECK_OK(quire_cuda_get_kind_info(device, request.kind, &info));
    request.chunk = info.granularity;
    return request;
}

void growing_begin_with(growing *g, const fc_options *driver, const quire_cuda_settings *settings,
                        quire_cuda_page_kind page_kind, uint64_t size, uint64_t max)
{
    growing_open(g, driver, settings);
    quire_page_request request = growing_request(g->b.device, page_kind, size, max);
    if (settings && settings->chunk_size)
        request.chunk = settings->chunk_size;
    CHECK_OK(g->table->page_create(g->cuda, &request, &g->page));
    CHECK_EQ(g->page.size, max);
    g->size = size;
    g->fc->reset_counters();
}

void growing_begin(growing *g, const quire_cuda_settings *settings, uint64_t size, uint64_t max)
{
    growing_begin_with(g, NULL, settings, QUIRE_CUDA_DEVICE, size, max);
}

void growing_end(growing *g)
{
    g->table->page_destroy(g->cuda, &g->page);
    cuda_bench_end(&g->b);
}

const qi_cuda_page *growing_record(const growing *g)
{
    return qi_cuda_page_of(&g->page);
}

quire_result growing_resize(growing *g, uint64_t to)
{
    uint64_t address = growing_record(g)->address;
    const quire_span more = {g->size, to - g->size}, less = {to, g->size - to};
    quire_result result = QUIRE_SUCCESS;
    if (to > g->size)
        result = g->table->page_back(g->cuda, &g->page, &more, 1);
    else
        g->table->page_unback(g->cuda, &g->page, &less, 1, false);
    if (!result)
        g->size = to;
    CHECK_EQ(growing_record(g)->address, address);
    CHECK_EQ(growing_record(g)->requested, g->size);
    CHECK(growing_record(g)->padded >= g->size);
    return result;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static void fill_pattern(unsigned char *bytes, uint64_t at)
{
    for (uint64_t i = 0; i < 64; i++)
        bytes[i] = (unsigned char)((at >> 16) * 37 + (at & 0xffff) + i);
}

void growing_write(growing *g, uint64_t from, uint64_t to)
{
    unsigned char bytes[64];
    for (uint64_t at = from; at < to; at += 64 * KIB) {
        fill_pattern(bytes, at);
        CHECK_OK(g->table->copy_to_page(g->cuda, &g->page, at, bytes, sizeof bytes));
        fill_pattern(bytes, at + 64 * KIB - 64);
        CHECK_OK(
            g->table->copy_to_page(g->cuda, &g->page, at + 64 * KIB - 64, bytes, sizeof bytes));
    }
}

void growing_check(growing *g, uint64_t from, uint64_t to)
{
    unsigned char bytes[64], seen[64];
    for (uint64_t at = from; at < to; at += at & 0xffff ? 64 : 64 * KIB - 64) {
        fill_pattern(bytes, at);
        CHECK_OK(g->table->copy_from_page(g->cuda, &g->page, at, seen, sizeof seen));
        CHECK(!memcmp(bytes, seen, sizeof seen));
    }
}

static bool is_mapped(growing *g, uint64_t offset)
{
    fc_address_info info;
    return g->fc->address_of(g->page.address + offset, &info);
}

void growing_check_handles(growing *g, uint64_t padded, uint32_t count)
{
    CHECK_EQ(growing_record(g)->padded, padded);
    CHECK_EQ(growing_record(g)->chunk_count, count);
    CHECK_EQ(g->fc->live(FC_MAPPING), count);
    CHECK(is_mapped(g, padded - 1));
    CHECK(!is_mapped(g, padded));
}
