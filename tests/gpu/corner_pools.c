/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * corner_pools.c - see corners.h.
 */
#include "quire/cuda_pool.h"
#include "tests/gpu/corners.h"
#include "tests/support/check.h"
#include "tests/support/cuda_direct.h"

#define MIB (UINT64_C(1) << 20)

static const uint32_t POOL = UINT32_C(1) << QUIRE_CUDA_POOL;

static quire_cuda_pool_info info_of(const corner *c)
{
    quire_cuda_pool_info info;
    CHECK_OK(quire_cuda_pool_get_info(c->device, &info));
    return info;
}

/* A page is used by a stream without a further wait, and goes back into the pool. */
void streams_use_pages_of_a_pool(void)
{
    corner c;
    quire_stream *stream;
    unsigned char bytes[CORNER_BYTES];
    corner_open(&c, &(quire_cuda_settings){.kinds = POOL}, NULL);
    CHECK_OK(quire_stream_create(c.device, NULL, &stream));
    quire_allocation a = corner_allocate(&c, CORNER_BYTES);
    const quire_fill_options fill = {.value = 5, .stream = stream};
    CHECK_OK(quire_fill(c.memory, a, &fill, NULL));
    MUST(cu.CtxPushCurrent(c.info.context));
    MUST(cu.CtxSynchronize());
    MUST(cu.CtxPopCurrent(NULL));
    CHECK_OK(quire_read(c.memory, a, 0, bytes, sizeof bytes));
    for (size_t i = 0; i < sizeof bytes; i++)
        CHECK_EQ(bytes[i], 5);
    CHECK(info_of(&c).used > 0 && info_of(&c).reserved >= info_of(&c).used);
    CHECK_OK(quire_free(c.memory, a));
    CHECK_OK(quire_memory_trim(c.memory, 0, NULL));
    CHECK_OK(quire_cuda_pool_trim(c.device, 0));
    CHECK_EQ(info_of(&c).used, 0);
    CHECK_EQ(info_of(&c).reserved, 0);
    CHECK_OK(quire_stream_destroy(&stream));
    corner_close(&c);
}

/* The program allocates from the device's default pool, which serves pages of quire as well. */
void a_pool_is_shared_with_the_program(void)
{
    corner c;
    qi_cu_ptr block;
    const quire_cuda_pool_options shared = {.source = QUIRE_CUDA_POOL_DEFAULT};
    corner_open(&c, &(quire_cuda_settings){.kinds = POOL, .pool = &shared}, NULL);
    uint64_t before = info_of(&c).used;
    (void)corner_allocate(&c, CORNER_BYTES);
    uint64_t with_page = info_of(&c).used;
    CHECK(with_page > before);
    MUST(cu.CtxPushCurrent(c.info.context));
    MUST(cu.MemAllocAsync(&block, 4 * MIB, NULL));
    CHECK(info_of(&c).used >= with_page + 4 * MIB);
    MUST(cu.MemFreeAsync(block, NULL));
    MUST(cu.CtxSynchronize());
    MUST(cu.CtxPopCurrent(NULL));
    CHECK_EQ(info_of(&c).used, with_page);
    corner_close(&c);
}

void a_pool_is_refused_without_one(void)
{
    corner c;
    quire_device *none = NULL;
    quire_cuda_pool_info info;
    corner_open(&c, NULL, NULL); /* without a kind of pools */
    CHECK_FAILS(quire_cuda_pool_get_info(c.device, &info), QUIRE_ERROR_UNSUPPORTED);
    if (!c.info.has_pools)
        CHECK_FAILS(quire_cuda_open(&(quire_cuda_options){.settings.kinds = POOL}, &none),
                    QUIRE_ERROR_UNSUPPORTED);
    corner_close(&c);
}
