/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda.c - the CUDA backend under the contract: on this machine's driver if there is one, and on
 * the fake driver that poses as devices with many and with few features.
 */
#include <stdlib.h>

#include "tests/contract/contract.h"
#include "tests/support/cuda_bench.h"

#define MIB (UINT64_C(1) << 20)

/* ---- this machine's driver ----------------------------------------------------------------- */

typedef struct driver_settings {
    bool all_kinds; /* every kind that the device has, instead of the usual ones */
    uint64_t chunk_size, kept_bytes;
} driver_settings;

/* Opens and closes a device for each kind, once. Returns the mask of those that the device has. */
static uint32_t available_kinds(void)
{
    static uint32_t found;
    static bool is_complete;
    for (uint32_t i = 0; i < QUIRE_CUDA_PAGE_KINDS && !is_complete; i++) {
        const quire_cuda_options options = {.settings.kinds = QUIRE_CUDA_KIND_BIT(i)};
        quire_device *device;
        if (quire_cuda_open(&options, &device))
            continue;
        found |= options.settings.kinds;
        CHECK_OK(quire_device_destroy(&device));
    }
    is_complete = true;
    return found;
}

/* Opens a device that the process keeps, so that its scenarios share one primary context. */
static quire_result keep_context(void)
{
    static quire_device *kept;
    return kept ? QUIRE_SUCCESS : quire_cuda_open(NULL, &kept);
}

static quire_result open_driver(const contract_subject *subject, const quire_host_memory *host,
                                contract_opened *opened)
{
    const driver_settings *settings = subject->options;
    quire_result result = keep_context();
    if (result)
        return result;
    const quire_cuda_options options = {
        .settings = {.device = {.host_memory = host},
                     .kinds = settings->all_kinds ? available_kinds() : 0,
                     .chunk_size = settings->chunk_size,
                     .kept_bytes = settings->kept_bytes}};
    return quire_cuda_open(&options, &opened->device);
}

#define DRIVER(what, ...)                                                                          \
    {                                                                                              \
        .name = "cuda, this machine's driver" what,                                                \
        .options = &(const driver_settings){__VA_ARGS__}, .open = open_driver, .is_shared = true   \
    }

static const contract_subject drivers[] = {
    DRIVER("", .all_kinds = false),
    DRIVER(", in chunks that are kept", .chunk_size = 2 * MIB, .kept_bytes = 64 * MIB),
    DRIVER(", all kinds", .all_kinds = true),
};

/* ---- the fake driver ----------------------------------------------------------------------- */

/* A device and its settings. */
typedef struct pose {
    const char *model;
    uint32_t flags;       /* FC_ */
    uint32_t without;     /* FC_ features of the model that this device lacks */
    int version;          /* of the driver */
    uint64_t bytes;       /* of the device; 0 means the model's */
    uint64_t granularity; /* 0 means the model's */
    uint64_t chunk_size, kept_bytes;
    uint32_t kinds;  /* 0 means all kinds of the model */
    bool is_wrapped; /* opened in a context of the caller */
} pose;

/*
 * All devices of a process share one driver. It is reset when the first device is opened and
 * checked when the last one is closed.
 */
static int open_devices;

static void reset_driver(const pose *p)
{
    const fc_control *fc = cuda_bench_driver();
    fc_options options = cuda_bench_options(p->model, p->flags);
    fc_model model = *options.models[0];
    if (p->bytes)
        model.bytes = p->bytes;
    if (p->granularity) { /* the host's stays a multiple of the device's */
        model.host_granularity = model.host_granularity / model.granularity * p->granularity;
        model.granularity = p->granularity;
    }
    options.models[0] = &model;
    model.features &= ~p->without;
    options.version = p->version;
    fc->reset(&options);
}

static void look_at_driver(void)
{
    const fc_control *fc = cuda_bench_driver();
    const char *message = fc->message(0);
    if (message)
        check_failed(__FILE__, __LINE__, "%s", message);
    CHECK_EQ(fc->leaks(), 0);
    CHECK_EQ(fc->depth(), 0);
}

#define CALL(name, version)                                                                        \
    ((qi_cu_fn_##name)cuda_bench_find(cuda_bench_driver(), "cu" #name, version))

static quire_result open_wrapped(const quire_cuda_settings *settings, contract_opened *opened)
{
    qi_cu_context context = NULL;
    CHECK_EQ(CALL(Init, 2000)(0), 0);
    CHECK_EQ(CALL(CtxCreate, 3020)(&context, 0, 0), 0);
    CHECK_EQ(CALL(CtxPopCurrent, 4000)(NULL), 0);
    const quire_cuda_wrap_options options = {
        .context = context, .library = FAKE_CUDA_LIBRARY, .settings = *settings};
    opened->own = context;
    return quire_cuda_wrap(&options, &opened->device);
}

static quire_result open_fake(const contract_subject *subject, const quire_host_memory *host,
                              contract_opened *opened)
{
    const pose *p = subject->options;
    if (!open_devices)
        reset_driver(p);
    const quire_cuda_options options = {
        .library = FAKE_CUDA_LIBRARY,
        .settings = {.device = {.host_memory = host},
                     .kinds = p->kinds ? p->kinds : cuda_bench_kinds(fc_model_named(p->model)),
                     .chunk_size = p->chunk_size,
                     .kept_bytes = p->kept_bytes}};
    quire_result result = p->is_wrapped ? open_wrapped(&options.settings, opened)
                                        : quire_cuda_open(&options, &opened->device);
    open_devices += !result;
    return result;
}

static void close_fake(void *own)
{
    if (own)
        CHECK_EQ(CALL(CtxDestroy, 4000)(own), 0);
    if (!--open_devices)
        look_at_driver();
}

/* Reads as the device does: the driver copies, also from memory that the host can access. */
static bool look(void *own, const quire_native_page *page, uint64_t offset, void *data,
                 uint64_t size)
{
    qi_cu_context context = NULL;
    (void)own;
    CHECK_EQ(CALL(DevicePrimaryCtxRetain, 7000)(&context, 0), 0);
    CHECK_EQ(CALL(CtxPushCurrent, 4000)(context), 0);
    qi_cu_result code = CALL(MemcpyDtoH, 3020)(data, page->address + offset, size);
    CHECK_EQ(CALL(CtxPopCurrent, 4000)(&context), 0);
    CHECK_EQ(CALL(DevicePrimaryCtxRelease, 11000)(0), 0);
    CHECK_EQ(code, 0);
    return true;
}

#define POSE(what, ...)                                                                            \
    {                                                                                              \
        .name = "cuda, " what, .options = &(const pose){__VA_ARGS__}, .open = open_fake,           \
        .close = close_fake, .look = look                                                          \
    }

static const contract_subject poses[] = {
    POSE("posing as an H200", .model = "h200", .flags = FC_NEEDS_CONTEXT | FC_DIRTY),
    POSE("posing as an H200 of 48 MiB, done late", .model = "h200", .flags = FC_LATE | FC_DIRTY,
         .bytes = 48 * MIB, .granularity = 65536,
         .kinds = CUDA_KIND(DEVICE) | CUDA_KIND(PLAIN) | CUDA_KIND(PINNED)),
    POSE("posing as an A100, in chunks that are kept", .model = "a100", .flags = FC_DIRTY,
         .granularity = 65536, .chunk_size = 100000, .kept_bytes = 2 * MIB),
    POSE("posing as a GH200", .model = "gh200", .flags = FC_DIRTY, .granularity = 65536),
    POSE("posing as an Orin", .model = "orin"),
    POSE("posing as a virtual GPU", .model = "vgpu", .flags = FC_LATE | FC_DIRTY),
    POSE("posing as an A100 with the driver of CUDA 11.2", .model = "a100", .version = 11020,
         .granularity = 65536),
    POSE("posing as a GH200, in the caller's context", .model = "gh200",
         .flags = FC_NEEDS_CONTEXT | FC_LATE, .granularity = 65536, .is_wrapped = true),
    POSE("posing as an H200 with tile pools", .model = "h200",
         .flags = FC_NEEDS_CONTEXT | FC_LATE | FC_DIRTY, .granularity = 65536,
         .kinds = CUDA_KIND(DEVICE) | CUDA_KIND(PINNED) | CUDA_KIND(TILES)),
    POSE("posing as an A100 whose arrays are sparse", .model = "a100", .flags = FC_DIRTY,
         .without = FC_DEFERRED_ARRAYS, .version = 11020, .granularity = 65536,
         .kinds = CUDA_KIND(PLAIN) | CUDA_KIND(TILES)),
};

const contract_subject *const cuda_subjects[] = {
    &drivers[0], &drivers[1], &drivers[2], &poses[0], &poses[1], &poses[2], &poses[3],
    &poses[4],   &poses[5],   &poses[6],   &poses[7], &poses[8], &poses[9], NULL,
};
