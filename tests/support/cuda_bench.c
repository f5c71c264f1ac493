/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_bench.c - see cuda_bench.h.
 */
#include "tests/support/cuda_bench.h"

#include <dlfcn.h>

#include "tests/support/check.h"

#define CALL(name, version)                                                                        \
    ((qi_cu_fn_##name)cuda_bench_find(cuda_bench_driver(), "cu" #name, version))

const fc_control *cuda_bench_driver(void)
{
    static const fc_control *control;
    const fc_control *(*find)(void) = NULL;
    if (control)
        return control;
    void *library = dlopen(FAKE_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        check_failed(__FILE__, __LINE__, "%s", dlerror());
    void *found = dlsym(library, "fake_cuda");
    CHECK(found);
    memcpy(&find, &found, sizeof find);
    control = find();
    return control;
}

cuda_bench_function cuda_bench_find(const fc_control *fc, const char *name, int version)
{
    qi_cu_query_result why;
    void *found = NULL;
    cuda_bench_function function = NULL;
    CHECK_EQ(fc->find(name, &found, version, 0, &why), 0);
    CHECK(found);
    memcpy(&function, &found, sizeof function);
    return function;
}

fc_options cuda_bench_options(const char *model, uint32_t flags)
{
    fc_options options = {.flags = flags};
    options.models[0] = fc_model_named(model ? model : "h200");
    CHECK(options.models[0]);
    return options;
}

uint32_t cuda_bench_kinds(const fc_model *model)
{
    uint32_t kinds = CUDA_KIND(DEVICE) | CUDA_KIND(PLAIN) | CUDA_KIND(PINNED) | CUDA_KIND(COMBINED);
    if (model->features & FC_CONCURRENT_MANAGED)
        kinds |= CUDA_KIND(MANAGED);
    if (model->features & FC_POOLS)
        kinds |= CUDA_KIND(POOL);
    if (!(model->features & FC_VMM))
        return kinds;
    if (model->features & FC_COMPRESSION)
        kinds |= CUDA_KIND(COMPRESSED);
    if (model->features & FC_RDMA && model->features & FC_POSIX_FD)
        kinds |= CUDA_KIND(REGISTERED);
    if (model->features & FC_HOST_NUMA_VMM)
        kinds |= CUDA_KIND(HOST_NUMA);
    if (model->features & FC_HOST_VMM)
        kinds |= CUDA_KIND(HOST);
    return kinds;
}

void cuda_bench_begin(cuda_bench *b, const fc_options *options)
{
    *b = (cuda_bench){.fc = cuda_bench_driver()};
    driver_bench_begin(&b->common);
    b->fc->reset(options);
}

void cuda_bench_make_context(cuda_bench *b)
{
    CHECK_EQ(CUDA_BENCH_CALL(b, Init, 2000)(0), 0);
    CHECK_EQ(CUDA_BENCH_CALL(b, CtxCreate, 3020)(&b->context, 0, 0), 0);
    CHECK_EQ(CUDA_BENCH_CALL(b, CtxPopCurrent, 4000)(NULL), 0);
}

bool cuda_bench_open(cuda_bench *b, const quire_cuda_settings *asked)
{
    quire_cuda_settings settings = asked ? *asked : (quire_cuda_settings){.kinds = 0};
    settings.device.host_memory = &b->host_memory.callbacks;
    if (b->context)
        return driver_bench_step(
            &b->common, quire_cuda_wrap(&(quire_cuda_wrap_options){.context = b->context,
                                                                   .library = FAKE_CUDA_LIBRARY,
                                                                   .settings = settings},
                                        &b->device));
    return driver_bench_step(&b->common,
                             quire_cuda_open(&(quire_cuda_options){.device = "0",
                                                                   .library = FAKE_CUDA_LIBRARY,
                                                                   .settings = settings},
                                             &b->device));
}

void cuda_bench_start(cuda_bench *b, const fc_options *options)
{
    cuda_bench_begin(b, options);
    CHECK(cuda_bench_open(b, NULL));
}

quire_memory *cuda_bench_open_peer(cuda_bench *b, const quire_memory_options *options)
{
    const quire_cuda_options open = {
        .device = "1",
        .library = FAKE_CUDA_LIBRARY,
        .settings = {.kinds = CUDA_KIND(DEVICE),
                     .device = {.host_memory = &b->host_memory.callbacks}}};
    if (driver_bench_step(&b->common, quire_cuda_open(&open, &b->peer)))
        driver_bench_step(&b->common, quire_memory_create(b->peer, options, &b->peer_memory));
    return b->peer_memory;
}

quire_memory *cuda_bench_memory(cuda_bench *b, quire_cuda_page_kind page_kind,
                                const quire_memory_options *options)
{
    quire_memory_options all = options ? *options : (quire_memory_options){.name = NULL};
    uint32_t kind = 0;
    if (!driver_bench_step(&b->common, quire_cuda_find_kind(b->device, page_kind, -1, &kind)))
        return NULL;
    all.kind.mask = UINT32_C(1) << kind;
    return driver_bench_memory(&b->common, b->device, &all);
}

quire_allocation cuda_bench_allocate(quire_memory *memory, uint64_t size)
{
    quire_allocation made;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = size}, &made));
    return made;
}

quire_cuda_range cuda_bench_range(quire_memory *memory, quire_allocation allocation)
{
    quire_cuda_range range;
    CHECK_OK(quire_cuda_get_range(memory, allocation, &range));
    return range;
}

void cuda_bench_enter(const quire_device *device)
{
    quire_cuda_info info;
    CHECK_OK(quire_cuda_get_info(device, &info));
    CHECK_EQ(CALL(CtxPushCurrent, 4000)(info.context), 0);
}

void cuda_bench_leave(void)
{
    CHECK_EQ(CALL(CtxPopCurrent, 4000)(NULL), 0);
}

qi_cu_stream cuda_bench_make_stream(unsigned flags)
{
    qi_cu_stream stream = NULL;
    CHECK_EQ(CALL(StreamCreate, 2000)(&stream, flags), 0);
    return stream;
}

void cuda_bench_end_stream(qi_cu_stream stream)
{
    CHECK_EQ(CALL(StreamDestroy, 4000)(stream), 0);
}

static void check_driver(cuda_bench *b)
{
    if (b->fc->leaks())
        b->fc->report(stderr);
    CHECK_EQ(b->fc->leaks(), 0);
    CHECK_EQ(b->fc->depth(), 0);
    const char *message = b->fc->message(0);
    if (message)
        check_failed(__FILE__, __LINE__, "%s", message);
}

void cuda_bench_end(cuda_bench *b)
{
    b->fc->heal();
    CHECK_OK(quire_cuda_multicast_destroy(&b->multicast));
    driver_bench_end_memories(&b->common);
    quire_memory_destroy_all(&b->peer_memory);
    CHECK_OK(quire_device_destroy(&b->peer));
    CHECK_OK(quire_device_destroy(&b->device));
    if (b->context)
        CHECK_EQ(CUDA_BENCH_CALL(b, CtxDestroy, 4000)(b->context), 0);
    driver_bench_end(&b->common);
    check_driver(b);
}
