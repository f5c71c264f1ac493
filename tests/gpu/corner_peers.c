/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * corner_peers.c - see corners.h.
 */
#include <string.h>

#include "quire/cuda_pool.h"
#include "tests/gpu/corners.h"
#include "tests/support/check.h"
#include "tests/support/cuda_direct.h"

bool has_peer(void)
{
    int count = 0, can = 0;
    MUST(cu.DeviceGetCount(&count));
    return count > 1 && cu.DeviceCanAccessPeer && !cu.DeviceCanAccessPeer(&can, 0, 1) && can;
}

/* Copies a block of device 1 into the allocation and back, as programs do that know nothing of
   quire, and compares the bytes. */
static void exchange_bytes(const corner *c, uint64_t address)
{
    unsigned char sent[CORNER_BYTES], found[CORNER_BYTES] = {0};
    qi_cu_context other;
    qi_cu_ptr block, back;
    memset(sent, 7, sizeof sent);
    MUST(cu.DevicePrimaryCtxRetain(&other, 1));
    MUST(cu.CtxPushCurrent(other));
    MUST(cu.MemAlloc(&block, CORNER_BYTES));
    MUST(cu.MemAlloc(&back, CORNER_BYTES));
    MUST(cu.MemcpyHtoD(block, sent, sizeof sent));
    MUST(cu.MemcpyDtoD(address, block, CORNER_BYTES));
    MUST(cu.CtxSynchronize());
    MUST(cu.MemcpyPeer(back, other, address, c->info.context, CORNER_BYTES));
    MUST(cu.CtxSynchronize());
    MUST(cu.MemcpyDtoH(found, back, sizeof found));
    CHECK(!memcmp(sent, found, sizeof sent));
    MUST(cu.MemFree(block));
    MUST(cu.MemFree(back));
    MUST(cu.CtxPopCurrent(NULL));
    MUST(cu.DevicePrimaryCtxRelease(1));
}

static void exchange_with(const quire_cuda_settings *settings)
{
    corner c;
    quire_cuda_range range;
    corner_open(&c, settings, NULL);
    quire_allocation a = corner_allocate(&c, CORNER_BYTES);
    CHECK_OK(quire_cuda_get_range(c.memory, a, &range));
    exchange_bytes(&c, range.address);
    corner_close(&c);
}

void a_peer_copies_to_and_from_a_page(void)
{
    exchange_with(&(quire_cuda_settings){.reachable_peers = true});
}

/* A driver has been seen whose copies from a pool wrote nothing once a peer had access to it
   (JuliaGPU/CUDA.jl #3112). */
void a_peer_copies_to_and_from_a_pool(void)
{
    exchange_with(
        &(quire_cuda_settings){.kinds = UINT32_C(1) << QUIRE_CUDA_POOL, .reachable_peers = true});
}
