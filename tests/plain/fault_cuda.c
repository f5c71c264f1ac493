/*
 * fault_cuda.c - every call of the CUDA driver fails, at every index and with each code that is
 * documented for it, those that give something back among them; and every allocation of host
 * memory; and every function of the driver is missing in turn: nothing is left behind in the
 * driver, no host memory is lost, the library's records stay whole, and the driver, which checks
 * what it is asked, has nothing to say.
 *
 *     fault_cuda [--scenario NUMBER]
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "quire/cuda_array.h"
#include "tests/support/cuda_bench.h"
#include "tests/support/plain.h"

#define MIB (UINT64_C(1) << 20)

typedef struct scenario {
    const char *name;
    const char *model; /* NULL: "h200" */
    uint32_t flags;    /* FC_, WRAPPED */
    void (*body)(cuda_bench *b);
} scenario;

/* Beside the flags: in a context of the caller's, which is there before anything fails. */
#define WRAPPED (UINT32_C(1) << 31)

static const quire_memory_options SMALL = {.pages = {.page_size = 2 * MIB}};
static const quire_intent EXPORTABLE = {.exportable = true};

static unsigned char data[64 * 1024], back[64 * 1024];

/* A device with one page kind, and a memory of it; NULL: one of them failed. */
static quire_memory *start(cuda_bench *b, quire_cuda_page_kind page_kind)
{
    const quire_cuda_settings settings = {.kinds = QUIRE_CUDA_KIND_BIT(page_kind)};
    return cuda_bench_open(b, &settings) ? cuda_bench_memory(b, page_kind, &SMALL) : NULL;
}

/* ---- pages ---------------------------------------------------------------------------------- */

static void open_alone(cuda_bench *b)
{
    cuda_bench_open(b, NULL);
}

static void range_of(cuda_bench *b, quire_memory *m)
{
    quire_allocation a;
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000, .zero = true}, &a));
    STEP(b, quire_write(m, a, 0, data, 1000));
    memset(back, 0, 1000);
    STEP(b, quire_read(m, a, 0, back, 1000));
    CHECK(!memcmp(data, back, 1000));
    STEP(b, quire_free(m, a));
    STEP(b, quire_memory_trim(m, 0, NULL));
}

#define RANGE_OF(name, page_kind)                                                                  \
    static void name(cuda_bench *b)                                                                \
    {                                                                                              \
        range_of(b, start(b, page_kind));                                                          \
    }

RANGE_OF(device, QUIRE_CUDA_DEVICE)
RANGE_OF(plain, QUIRE_CUDA_PLAIN)
RANGE_OF(compressed, QUIRE_CUDA_COMPRESSED)
RANGE_OF(registered, QUIRE_CUDA_REGISTERED)
RANGE_OF(pinned, QUIRE_CUDA_PINNED)
RANGE_OF(combined, QUIRE_CUDA_COMBINED)
RANGE_OF(host_numa, QUIRE_CUDA_HOST_NUMA)
RANGE_OF(host, QUIRE_CUDA_HOST)
RANGE_OF(managed, QUIRE_CUDA_MANAGED)

static void with_peers(cuda_bench *b)
{
    static const int32_t peer = 1;
    const quire_cuda_settings settings = {
        .kinds = CUDA_KIND(DEVICE), .peers = &peer, .peer_count = 1};
    if (cuda_bench_open(b, &settings))
        range_of(b, cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL));
}

static void in_chunks(cuda_bench *b)
{
    const quire_memory_options options = {.pages = {.page_size = 8 * MIB}};
    const quire_cuda_settings settings = {
        .kinds = CUDA_KIND(DEVICE), .chunk_size = 3 * MIB, .kept_bytes = 8 * MIB};
    if (!cuda_bench_open(b, &settings))
        return;
    quire_memory *m = cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &options);
    for (int i = 0; m && i < 2 && !b->result; i++)
        range_of(b, m);
    if (b->result)
        return;
    STEP(b, quire_cuda_release_kept(b->device));
}

static void many_pages(cuda_bench *b)
{
    quire_allocation a[5];
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    for (int i = 0; m && i < 5; i++)
        STEP(b, quire_allocate(m, &(quire_allocation_options){.size = MIB + 1}, &a[i]));
    for (int i = 0; m && i < 5; i++)
        STEP(b, quire_free(m, a[i]));
    if (m)
        STEP(b, quire_memory_trim(m, 0, NULL));
}

static void budget(cuda_bench *b)
{
    quire_budget_info info;
    if (cuda_bench_open(b, NULL))
        STEP(b, quire_device_get_budget(b->device, 0, &info));
}

/* ---- other processes and devices ------------------------------------------------------------ */

static quire_memory *start_exportable(cuda_bench *b, quire_cuda_page_kind page_kind,
                                      quire_cuda_handle_types types)
{
    quire_memory_options options = SMALL;
    options.intent = &EXPORTABLE;
    const quire_cuda_settings settings = {.kinds = QUIRE_CUDA_KIND_BIT(page_kind),
                                          .export_types = types};
    return cuda_bench_open(b, &settings) ? cuda_bench_memory(b, page_kind, &options) : NULL;
}

static void exported(cuda_bench *b, quire_memory *m)
{
    quire_allocation a, imported;
    quire_cuda_range range;
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_get_range(m, a, &range));
    STEP(b, quire_cuda_export_fd(m, a, &b->descriptor));
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_FD, .descriptor = b->descriptor, .size = range.padded_size};
    STEP(b, quire_cuda_import_range(m, &import, &imported));
    STEP(b, quire_write(m, a, 0, data, 1000));
    memset(back, 0, 1000);
    STEP(b, quire_read(m, imported, range.page_offset, back, 1000));
    CHECK(!memcmp(data, back, 1000));
    STEP(b, quire_free(m, imported));
}

static void exported_device(cuda_bench *b)
{
    exported(b, start_exportable(b, QUIRE_CUDA_DEVICE, 0));
}

/* Where the fabric is refused the descriptor stays. */
static void exported_with_fabric(cuda_bench *b)
{
    exported(b, start_exportable(b, QUIRE_CUDA_DEVICE, QUIRE_CUDA_FD | QUIRE_CUDA_FABRIC));
}

static void exported_host_numa(cuda_bench *b)
{
    quire_memory_options options = SMALL;
    const quire_intent intent = {.exportable = true, .host_write = true};
    options.intent = &intent;
    const quire_cuda_settings settings = {.kinds = CUDA_KIND(HOST_NUMA)};
    if (cuda_bench_open(b, &settings))
        exported(b, cuda_bench_memory(b, QUIRE_CUDA_HOST_NUMA, &options));
}

static void exported_pinned(cuda_bench *b)
{
    quire_memory_options options = SMALL;
    const quire_intent intent = {.exportable = true, .host_write = true};
    options.intent = &intent;
    const quire_cuda_settings settings = {.kinds = CUDA_KIND(PINNED)};
    if (cuda_bench_open(b, &settings))
        exported(b, cuda_bench_memory(b, QUIRE_CUDA_PINNED, &options));
}

static void fabric(cuda_bench *b)
{
    unsigned char handle[QUIRE_CUDA_FABRIC_SIZE];
    quire_allocation a, imported;
    quire_cuda_range range;
    quire_memory *m = start_exportable(b, QUIRE_CUDA_DEVICE, QUIRE_CUDA_FABRIC);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_get_range(m, a, &range));
    STEP(b, quire_cuda_export_fabric(m, a, handle));
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_FABRIC, .fabric = handle, .size = range.padded_size};
    STEP(b, quire_cuda_import_range(m, &import, &imported));
}

static void dma_buf(cuda_bench *b)
{
    quire_allocation a;
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_export_dma_buf(m, a, &b->descriptor));
}

static void retained(cuda_bench *b)
{
    quire_allocation a, imported;
    quire_cuda_range range;
    uint64_t handle = 0;
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_get_range(m, a, &range));
    STEP(b, quire_cuda_retain_handle(b->device, range.address, &handle));
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_HANDLE, .handle = handle, .size = range.padded_size};
    if (!cuda_bench_step(b, quire_cuda_import_range(m, &import, &imported))) {
        quire_result failed = b->result;
        b->fc->heal(); /* the handle stayed ours */
        CHECK_OK(quire_cuda_release_handle(b->device, handle));
        b->result = failed;
    }
}

static void borrowed(cuda_bench *b)
{
    quire_allocation a, imported;
    quire_cuda_range range;
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 4096}, &a));
    STEP(b, quire_cuda_get_range(m, a, &range));
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_POINTER, .pointer = range.address, .size = 4096};
    STEP(b, quire_cuda_import_range(m, &import, &imported));
    STEP(b, quire_write(m, imported, 0, data, 4096));
    STEP(b, quire_free(m, imported));
}

static void external(cuda_bench *b)
{
    quire_allocation imported;
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    if (!m)
        return;
    b->descriptor = memfd_create("theirs", MFD_CLOEXEC);
    CHECK(b->descriptor >= 0 && !ftruncate(b->descriptor, 8192));
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_EXTERNAL_FD, .descriptor = b->descriptor, .size = 8192};
    STEP(b, quire_cuda_import_range(m, &import, &imported));
    STEP(b, quire_write(m, imported, 4096, data, 4096));
    STEP(b, quire_free(m, imported));
}

static void set_and_asked(cuda_bench *b)
{
    quire_cuda_access set = {QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_READ};
    quire_allocation a;
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_set_access(m, a, &set, 1));
    STEP(b, quire_cuda_get_access(m, a, &set));
    CHECK_EQ(set.flags, QUIRE_CUDA_READ);
}

static void multicast(cuda_bench *b)
{
    static const int32_t only = 0;
    const quire_cuda_multicast_options options = {.size = MIB, .devices = &only, .device_count = 1};
    quire_allocation a;
    quire_cuda_range range;
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_get_range(m, a, &range));
    STEP(b, quire_cuda_multicast_create(b->device, &options, &b->multicast));
    STEP(b, quire_cuda_multicast_bind(b->multicast, 0, m, a));
    STEP(b, quire_cuda_multicast_map(b->multicast));
    STEP(b, quire_cuda_multicast_unbind(b->multicast, 0, 0, range.padded_size));
}

static void arrays(cuda_bench *b, bool sparse)
{
    const quire_cuda_array_options deep = {.width = 300,
                                           .height = 200,
                                           .layers = 2,
                                           .levels = 3,
                                           .channel_count = 4,
                                           .sparse = sparse};
    quire_image image, other;
    quire_memory *m = start(b, QUIRE_CUDA_TILES);
    if (!m)
        return;
    STEP(b, quire_image_create(m, &(quire_image_options){.width = 32, .height = 32}, &image));
    STEP(b, quire_cuda_array_create(m, &deep, &other));
    STEP(b, quire_free(m, image.allocation));
    STEP(b, quire_image_create(m, &(quire_image_options){.width = 64, .depth = 9}, &image));
    STEP(b, quire_free(m, other.allocation));
}

static void deferred_arrays(cuda_bench *b)
{
    arrays(b, false);
}

static void sparse_arrays(cuda_bench *b)
{
    arrays(b, true);
}

/* ---- the sweep ------------------------------------------------------------------------------ */

static const scenario scenarios[] = {
    {"a device", NULL, 0, open_alone},
    {"a device of little", "vgpu", 0, open_alone},
    {"a page of device memory", NULL, FC_DIRTY | FC_LATE, device},
    {"the same in the caller's context", NULL, FC_DIRTY | FC_LATE | WRAPPED, device},
    {"the same where there is cuMemAlloc alone", "vgpu", FC_DIRTY | FC_LATE, device},
    {"a plain page", NULL, FC_DIRTY, plain},
    {"a compressed page", NULL, FC_DIRTY, compressed},
    {"a page for registration", NULL, FC_DIRTY, registered},
    {"a pinned page", NULL, FC_DIRTY, pinned},
    {"a write-combined page", NULL, FC_DIRTY, combined},
    {"a page of a host node", NULL, FC_DIRTY, host_numa},
    {"a page of the host", NULL, FC_DIRTY, host},
    {"a managed page", NULL, FC_DIRTY, managed},
    {"pages in chunks that are kept", NULL, FC_DIRTY, in_chunks},
    {"pages that come and go", NULL, 0, many_pages},
    {"pages that another device reaches", NULL, 0, with_peers},
    {"a budget", NULL, 0, budget},
    {"a page exported and imported", NULL, 0, exported_device},
    {"the same where the fabric is refused", NULL, 0, exported_with_fabric},
    {"the same where it is granted", "gh200", 0, exported_with_fabric},
    {"a page of a host node exported and imported", NULL, 0, exported_host_numa},
    {"a pinned page exported and imported", NULL, 0, exported_pinned},
    {"a fabric handle", "gh200", 0, fabric},
    {"a dma-buf", NULL, 0, dma_buf},
    {"a retained handle imported", NULL, 0, retained},
    {"a pointer borrowed", NULL, 0, borrowed},
    {"memory of another API", NULL, FC_LATE, external},
    {"access", NULL, 0, set_and_asked},
    {"a multicast object", NULL, 0, multicast},
    {"arrays mapped whole", NULL, FC_DIRTY | FC_LATE, deferred_arrays},
    {"arrays mapped in tiles", NULL, FC_DIRTY, sparse_arrays},
};

enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

/* Of the driver's functions, those that give something back, or that the ends of pages call. */
static const char *const ENDS[] = {
    "cuMemUnmap",
    "cuMemRelease",
    "cuMemAddressFree",
    "cuMemFree",
    "cuMemFreeHost",
    "cuMemHostUnregister",
    "cuCtxSynchronize",
    "cuCtxPushCurrent",
    "cuMulticastUnbind",
    "cuArrayDestroy",
    "cuMipmappedArrayDestroy",
    "cuDestroyExternalMemory",
};

static uint64_t failures;    /* made, all scenarios together */
static uint64_t fallible;    /* calls of the scenario when nothing fails */
static uint64_t allocations; /* of host memory, likewise */

/* A driver with two devices that reach each other. */
static void begin(cuda_bench *b, const scenario *s)
{
    fc_options options = cuda_bench_options(s->model, s->flags & ~WRAPPED);
    options.models[1] = options.models[0];
    options.peers[0] = 2;
    options.peers[1] = 1;
    cuda_bench_begin(b, &options);
    if (s->flags & WRAPPED)
        cuda_bench_make_context(b);
}

/* Runs a scenario with a fault (NULL: none), or an allocation of host memory failing (0: none);
   whether it came to the fault. */
static bool run_once(const scenario *s, const fc_fault *fault, uint64_t allocation)
{
    cuda_bench b;
    begin(&b, s);
    if (fault && !b.fc->fail(fault))
        return false; /* no such code is documented */
    test_memory_fail(&b.host_memory, allocation, false);
    s->body(&b);
    fc_failure failed = b.fc->failed();
    if (!fault && !allocation) {
        fallible = b.fc->fallible_calls();
        allocations = b.host_memory.calls;
        if (b.result)
            check_failed(__FILE__, __LINE__, "%s: %s", s->name, quire_last_error());
    }
    test_memory_fail(&b.host_memory, 0, false);
    if (b.result)
        CHECK(*quire_last_error());
    failures += failed.times > 0;
    cuda_bench_end(&b);
    return failed.times > 0;
}

/* Then the driver is gone and has nothing any more, which is for tests/unit/cuda_open.c. */
static bool is_gone(qi_cu_result code)
{
    return code == QI_CUDA_ERROR_DEINITIALIZED || code == QI_CUDA_ERROR_CONTEXT_IS_DESTROYED ||
           code == QI_CUDA_ERROR_ILLEGAL_ADDRESS || code == QI_CUDA_ERROR_LAUNCH_FAILED ||
           code == QI_CUDA_ERROR_ECC_UNCORRECTABLE;
}

/* As often as the function is called; then with the next code, until there is none. */
static void sweep_function(const scenario *s, const char *function)
{
    qi_cu_result codes[32];
    uint32_t count = cuda_bench_driver()->codes(function, codes, 32);
    for (uint32_t i = 0; i < count; i++) {
        fc_fault fault = {.function = function, .call = 1, .result = codes[i]};
        while (!is_gone(codes[i]) && run_once(s, &fault, 0))
            fault.call++;
    }
}

static int running;

static void sweep(void)
{
    const scenario *s = &scenarios[running];
    bool any = true;
    run_once(s, NULL, 0);
    CHECK(fallible > 0 && allocations > 0);
    for (uint32_t code = 0; any; code++) {
        any = false;
        for (uint64_t call = 1; call <= fallible; call++)
            any |= run_once(s, &(fc_fault){.call = call, .code_index = code}, 0);
    }
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++)
        sweep_function(s, ENDS[i]);
    for (uint64_t allocation = 1; allocation <= allocations; allocation++)
        run_once(s, NULL, allocation);
}

/* ---- missing functions ---------------------------------------------------------------------- */

typedef enum presence { REQUIRED, OPTIONAL } presence;

static const struct {
    const char *name;
    presence presence;
} functions[] = {
#define ROW(name, suffix, version, presence, parameters) {"cu" #name, presence},
    QI_CU_FUNCTIONS(ROW)
#undef ROW
};

/* The scenario with a function hidden: as far as it goes, with a reason where it does not. */
static void run_without(const scenario *s, const char *function, presence needed)
{
    cuda_bench b;
    begin(&b, s);
    CHECK(b.fc->hide(function));
    s->body(&b);
    if (needed == REQUIRED) {
        CHECK_EQ(b.result, QUIRE_ERROR_UNSUPPORTED);
        CHECK_HAS(quire_last_error(), function);
        CHECK(!b.device);
    } else if (b.result) {
        CHECK_EQ(b.result, QUIRE_ERROR_UNSUPPORTED);
        CHECK(*quire_last_error());
    }
    cuda_bench_end(&b);
}

static void without(void)
{
    const scenario *s = &scenarios[running];
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        run_without(s, functions[i].name, functions[i].presence);
}

int main(int argc, char **argv)
{
    int chosen = (int)plain_option(argc, argv, "scenario", SCENARIOS);
    char title[128];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + i / 256);
    for (running = 0; running < SCENARIOS; running++) {
        if (chosen != SCENARIOS && chosen != running)
            continue;
        plain_case(scenarios[running].name, sweep);
        snprintf(title, sizeof title, "%s, each function missing", scenarios[running].name);
        plain_case(title, without);
    }
    printf("# %d scenarios, %" PRIu64 " calls failed, %zu functions missing in turn\n", SCENARIOS,
           failures, sizeof functions / sizeof *functions);
    return plain_end();
}
