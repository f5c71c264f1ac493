/* cuda_open.c - opening and wrapping devices on the fake CUDA driver: selection, kinds, contexts,
   threads, forks, and lost devices. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/cuda_bench.h"
#include "tests/support/unit.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define MIB (UINT64_C(1) << 20)

static const quire_memory_options SMALL = {.pages = {.page_size = 2 * MIB}};

static quire_cuda_info info_of(cuda_bench *b)
{
    quire_cuda_info info;
    CHECK_OK(quire_cuda_get_info(b->device, &info));
    return info;
}

/* Creates a page, writes and reads it, and destroys it. */
static void use(quire_memory *memory)
{
    quire_allocation a;
    char in[100], out[100] = {0};
    memset(in, 7, sizeof in);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &a));
    CHECK_OK(quire_write(memory, a, 0, in, sizeof in));
    CHECK_OK(quire_read(memory, a, 0, out, sizeof out));
    CHECK(!memcmp(in, out, sizeof in));
    CHECK_OK(quire_free(memory, a));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
}

/* ---- which device ---------------------------------------------------------------------------- */

static fc_options three_devices(void)
{
    fc_options options = {
        .models = {fc_model_named("h200"), fc_model_named("a100"), fc_model_named("vgpu")}};
    return options;
}

static int ordinal_of(const char *device)
{
    quire_device *opened = NULL;
    quire_cuda_info info;
    const quire_cuda_options options = {.device = device, .library = FAKE_CUDA_LIBRARY};
    CHECK_OK(quire_cuda_open(&options, &opened));
    CHECK_OK(quire_cuda_get_info(opened, &info));
    CHECK_OK(quire_device_destroy(&opened));
    return info.ordinal;
}

UNIT(cuda_open, a_device_is_named_by_ordinal_part_of_its_name_or_environment)
{
    cuda_bench b;
    fc_options options = three_devices();
    cuda_bench_begin(&b, &options);
    CHECK_EQ(ordinal_of(NULL), 0);
    CHECK_EQ(ordinal_of(""), 0);
    CHECK_EQ(ordinal_of("1"), 1);
    CHECK_EQ(ordinal_of("VGPU"), 2);
    CHECK_EQ(ordinal_of("a1"), 1);
    setenv("QUIRE_CUDA_DEVICE", "2", 1);
    CHECK_EQ(ordinal_of(NULL), 2);
    CHECK_EQ(ordinal_of("0"), 0);
    quire_device *none = NULL;
    const quire_cuda_options wrong = {.device = "3", .library = FAKE_CUDA_LIBRARY};
    CHECK_FAILS(quire_cuda_open(&wrong, &none), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "no CUDA device matches '3'; available: 0 '");
    cuda_bench_end(&b);
}

static void cannot_open(const fc_options *options, quire_result code, const char *part)
{
    cuda_bench b;
    cuda_bench_begin(&b, options);
    CHECK(!cuda_bench_open(&b, NULL));
    CHECK_EQ(b.result, code);
    CHECK_HAS(quire_last_error(), part);
    cuda_bench_end(&b);
}

UNIT(cuda_open, drivers_that_cannot_be_used_are_told_apart)
{
    cannot_open(&(fc_options){.no_devices = true}, UNSUPPORTED, "");
    cannot_open(&(fc_options){.version = 11010}, UNSUPPORTED, "version 11.1: 11.2 is the minimum");
    cannot_open(&(fc_options){.no_init = QI_CUDA_ERROR_STUB_LIBRARY}, UNSUPPORTED,
                "CUDA driver not found");
    cannot_open(&(fc_options){.no_init = QI_CUDA_ERROR_NO_DEVICE}, UNSUPPORTED,
                "CUDA_ERROR_NO_DEVICE (CUresult 100)");
    cannot_open(&(fc_options){.no_init = QI_CUDA_ERROR_UNKNOWN}, QUIRE_ERROR_BACKEND_FAILURE,
                "CUDA_ERROR_UNKNOWN");
    CHECK_EQ(quire_last_native_code(), QI_CUDA_ERROR_UNKNOWN);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static uint32_t page_kinds_of(cuda_bench *b)
{
    quire_device_info info;
    quire_cuda_kind_info kind;
    uint32_t all = 0;
    CHECK_OK(quire_device_get_info(b->device, &info));
    for (uint32_t i = 0; i < info.kind_count; i++) {
        CHECK_OK(quire_cuda_get_kind_info(b->device, i, &kind));
        all |= QUIRE_CUDA_KIND_BIT(kind.page_kind);
    }
    CHECK_FAILS(quire_cuda_get_kind_info(b->device, info.kind_count, &kind),
                QUIRE_ERROR_OUT_OF_RANGE);
    return all;
}

static void check_kinds(const char *model, int version, uint32_t expected)
{
    cuda_bench b;
    fc_options options = cuda_bench_options(model, 0);
    options.version = version;
    cuda_bench_begin(&b, &options);
    CHECK(cuda_bench_open(&b, NULL));
    CHECK_EQ(page_kinds_of(&b), expected);
    cuda_bench_end(&b);
}

UNIT(cuda_open, the_usual_kinds_are_those_that_device_and_driver_have)
{
    const uint32_t usual = CUDA_KIND(DEVICE) | CUDA_KIND(PINNED) | CUDA_KIND(COMBINED);
    check_kinds("h200", 0, usual | CUDA_KIND(HOST_NUMA));
    check_kinds("h200", 12010, usual);
    check_kinds("h200", 11020, usual);
    check_kinds("a100", 0, usual);
    check_kinds("vgpu", 0, usual);
}

UNIT(cuda_open, a_kind_that_is_named_and_not_there_is_refused)
{
    static const uint32_t absent[] = {CUDA_KIND(COMPRESSED), CUDA_KIND(REGISTERED),
                                      CUDA_KIND(HOST_NUMA),  CUDA_KIND(HOST),
                                      CUDA_KIND(MANAGED),    CUDA_KIND(TILES)};
    static const char *const names[] = {"compressed", "registered", "host NUMA",
                                        "host",       "managed",    "tile pools"};
    for (int i = 0; i < 6; i++) {
        cuda_bench b;
        fc_options options = cuda_bench_options("vgpu", 0);
        cuda_bench_begin(&b, &options);
        CHECK(!cuda_bench_open(&b, &(quire_cuda_settings){.kinds = absent[i]}));
        CHECK_EQ(b.result, UNSUPPORTED);
        CHECK_HAS(quire_last_error(), names[i]);
        cuda_bench_end(&b);
    }
}

/* In a container the driver may refuse what an attribute promises. */
UNIT(cuda_open, what_is_promised_and_refused_is_left_out_or_told)
{
    for (int is_named = 0; is_named < 2; is_named++) {
        cuda_bench b;
        uint32_t kind;
        cuda_bench_begin(&b, NULL);
        const quire_cuda_settings settings = {.kinds = is_named ? CUDA_KIND(HOST_NUMA) : 0};
        /* the granularity of the host node is queried after four queries of the device kind */
        CHECK(b.fc->fail(&(fc_fault){.function = "cuMemGetAllocationGranularity",
                                     .call = is_named ? 1 : 5,
                                     .result = QI_CUDA_ERROR_NOT_SUPPORTED}));
        CHECK_EQ(cuda_bench_open(&b, &settings), !is_named);
        if (is_named)
            CHECK_EQ(b.result, UNSUPPORTED);
        else
            CHECK_FAILS(quire_cuda_find_kind(b.device, QUIRE_CUDA_HOST_NUMA, -1, &kind),
                        UNSUPPORTED);
        cuda_bench_end(&b);
    }
}

UNIT(cuda_open, without_virtual_memory_management_device_pages_are_plain)
{
    cuda_bench b;
    quire_cuda_kind_info kind;
    fc_options options = cuda_bench_options("vgpu", 0);
    cuda_bench_begin(&b, &options);
    CHECK(cuda_bench_open(&b, NULL));
    CHECK(!info_of(&b).has_virtual_memory);
    CHECK_OK(quire_cuda_get_kind_info(b.device, 0, &kind));
    CHECK_EQ(kind.page_kind, QUIRE_CUDA_DEVICE);
    CHECK(!kind.is_virtual_memory && !kind.recommended);
    use(cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &SMALL));
    CHECK(b.fc->calls("cuMemAlloc") > 0);
    CHECK_EQ(b.fc->calls("cuMemCreate"), 0);
    cuda_bench_end(&b);
}

UNIT(cuda_open, host_nodes_and_peers_that_are_named_are_not_passed_over)
{
    static const int32_t peer = 1;
    const quire_cuda_settings wrong[] = {{.numa_nodes = 1}, {.peers = &peer, .peer_count = 1}};
    const fc_model *vgpu = fc_model_named("vgpu");
    const fc_options options = {.models = {vgpu, vgpu}, .peers = {0x2, 0x1}};
    for (int i = 0; i < 2; i++) {
        cuda_bench b;
        cuda_bench_begin(&b, &options);
        CHECK(!cuda_bench_open(&b, &wrong[i]));
        CHECK_EQ(b.result, UNSUPPORTED);
        CHECK_HAS(quire_last_error(), i ? "peers are named" : "host NUMA");
        cuda_bench_end(&b);
    }
}

UNIT(cuda_open, each_host_node_that_is_named_is_a_kind)
{
    cuda_bench b;
    uint32_t first, second, none;
    fc_options options = cuda_bench_options("gh200", 0);
    options.numa_nodes = 2;
    cuda_bench_begin(&b, &options);
    CHECK(cuda_bench_open(&b,
                          &(quire_cuda_settings){.kinds = CUDA_KIND(HOST_NUMA), .numa_nodes = 3}));
    CHECK_OK(quire_cuda_find_kind(b.device, QUIRE_CUDA_HOST_NUMA, 0, &first));
    CHECK_OK(quire_cuda_find_kind(b.device, QUIRE_CUDA_HOST_NUMA, 1, &second));
    CHECK_EQ(first, 0);
    CHECK_EQ(second, 1);
    CHECK_FAILS(quire_cuda_find_kind(b.device, QUIRE_CUDA_HOST_NUMA, 2, &none), UNSUPPORTED);
    CHECK_FAILS(quire_cuda_find_kind(b.device, QUIRE_CUDA_DEVICE, -1, &none), UNSUPPORTED);
    CHECK_FAILS(
        quire_cuda_find_kind(b.device, (quire_cuda_page_kind)QUIRE_CUDA_PAGE_KINDS, -1, &none),
        INVALID);
    CHECK_FAILS(quire_cuda_find_kind(b.device, QUIRE_CUDA_HOST_NUMA, -2, &none), INVALID);
    cuda_bench_end(&b);
}

static void check_intent(cuda_bench *b, quire_intent intent, quire_cuda_page_kind expected)
{
    uint32_t kind;
    quire_cuda_kind_info info;
    CHECK_OK(quire_device_choose_kind_for(b->device, &intent, &kind));
    CHECK_OK(quire_cuda_get_kind_info(b->device, kind, &info));
    CHECK_EQ(info.page_kind, expected);
}

/* The device has managed memory, but only a caller who names its kind gets it. */
UNIT(cuda_open, intents_choose_among_the_kinds)
{
    cuda_bench b;
    cuda_bench_begin(&b, NULL);
    CHECK(cuda_bench_open(
        &b, &(quire_cuda_settings){.kinds = cuda_bench_kinds(fc_model_named("h200"))}));
    check_intent(&b, (quire_intent){.host_read = false}, QUIRE_CUDA_DEVICE);
    check_intent(&b, (quire_intent){.host_write = true, .upload = true}, QUIRE_CUDA_COMBINED);
    check_intent(&b, (quire_intent){.host_write = true}, QUIRE_CUDA_COMBINED);
    check_intent(&b, (quire_intent){.host_read = true}, QUIRE_CUDA_PINNED);
    check_intent(&b, (quire_intent){.host_read = true, .host_write = true}, QUIRE_CUDA_PINNED);
    cuda_bench_end(&b);
}

/* ---- contexts -------------------------------------------------------------------------------- */

UNIT(cuda_open, the_primary_context_is_shared_and_given_back)
{
    cuda_bench b;
    qi_cu_context mine = NULL;
    cuda_bench_begin(&b, NULL);
    CHECK(cuda_bench_open(&b, NULL));
    CHECK_EQ(b.fc->live(FC_CONTEXT), 1);
    CHECK_EQ(CUDA_BENCH_CALL(&b, DevicePrimaryCtxRetain, 7000)(&mine, 0), 0);
    CHECK(info_of(&b).is_primary && info_of(&b).context == (void *)mine);
    CHECK_EQ(CUDA_BENCH_CALL(&b, DevicePrimaryCtxRelease, 11000)(0), 0);
    CHECK_EQ(b.fc->live(FC_CONTEXT), 1);
    cuda_bench_end(&b);
}

/* Every call restores the context stack: the caller's own context, or none. */
UNIT(cuda_open, the_callers_context_stays_current)
{
    cuda_bench b;
    qi_cu_context own = NULL, current = NULL;
    fc_options options = three_devices();
    cuda_bench_begin(&b, &options);
    CHECK(cuda_bench_open(&b, NULL));
    use(cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &SMALL));
    CHECK_EQ(b.fc->depth(), 0);
    CHECK_EQ(CUDA_BENCH_CALL(&b, CtxCreate, 3020)(&own, 0, 1), 0);
    use(b.memories[0]);
    CHECK_EQ(b.fc->depth(), 1);
    CHECK_EQ(CUDA_BENCH_CALL(&b, CtxGetCurrent, 4000)(&current), 0);
    CHECK(current == own);
    CHECK_EQ(CUDA_BENCH_CALL(&b, CtxDestroy, 4000)(own), 0);
    cuda_bench_end(&b);
}

UNIT(cuda_open, a_wrapped_context_is_the_callers)
{
    cuda_bench b;
    qi_cu_context own = NULL;
    quire_memory *memory = NULL;
    fc_options options = three_devices();
    cuda_bench_begin(&b, &options);
    CUDA_BENCH_CALL(&b, Init, 2000)(0);
    CHECK_EQ(CUDA_BENCH_CALL(&b, CtxCreate, 3020)(&own, 0, 1), 0);
    const quire_cuda_wrap_options wrap = {
        .context = own,
        .library = FAKE_CUDA_LIBRARY,
        .settings = {.device = {.host_memory = &b.host_memory.callbacks}}};
    CHECK_OK(quire_cuda_wrap(&wrap, &b.device));
    CHECK_EQ(info_of(&b).ordinal, 1);
    CHECK(!info_of(&b).is_primary && info_of(&b).context == (void *)own);
    memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &SMALL);
    use(memory);
    CHECK_OK(quire_memory_destroy(&b.memories[0]));
    b.memory_count = 0;
    CHECK_OK(quire_device_destroy(&b.device));
    CHECK_EQ(b.fc->live(FC_CONTEXT), 1);
    CHECK_EQ(b.fc->depth(), 1);
    CHECK_EQ(CUDA_BENCH_CALL(&b, CtxDestroy, 4000)(own), 0);
    cuda_bench_end(&b);
}

/* Violates the rules of CUDA. Pages are released nevertheless, because they do not belong to the
   context. */
static void end_context_first(bool waits)
{
    cuda_bench b;
    qi_cu_context own = NULL;
    quire_allocation a;
    cuda_bench_begin(&b, NULL);
    CUDA_BENCH_CALL(&b, Init, 2000)(0);
    CHECK_EQ(CUDA_BENCH_CALL(&b, CtxCreate, 3020)(&own, 0, 0), 0);
    const quire_cuda_wrap_options wrap = {
        .context = own,
        .library = FAKE_CUDA_LIBRARY,
        .settings = {.device = {.host_memory = &b.host_memory.callbacks},
                     .wait_before_release = waits}};
    CHECK_OK(quire_cuda_wrap(&wrap, &b.device));
    quire_memory *memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &SMALL);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &a));
    CHECK_EQ(CUDA_BENCH_CALL(&b, CtxDestroy, 4000)(own), 0);
    quire_memory_destroy_all(&b.memories[0]);
    b.memory_count = 0;
    CHECK_OK(quire_device_destroy(&b.device));
    CHECK_EQ(b.fc->leaks(), 0);
    b.fc->forget();
    cuda_bench_end(&b);
}

UNIT(cuda_open, a_wrapped_context_that_went_first_costs_nothing)
{
    end_context_first(false);
    end_context_first(true);
}

static void *use_elsewhere(void *memory)
{
    use(memory);
    CHECK_EQ(cuda_bench_driver()->depth(), 0);
    return NULL;
}

UNIT(cuda_open, threads_without_a_context_may_call)
{
    cuda_bench b;
    pthread_t threads[4];
    cuda_bench_begin(&b, NULL);
    CHECK(cuda_bench_open(&b, NULL));
    quire_memory *memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &SMALL);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, use_elsewhere, memory), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    cuda_bench_end(&b);
}

/* ---- forks ----------------------------------------------------------------------------------- */

/* In the child every call is refused, except destroying, which does not call the driver. */
static int in_child(cuda_bench *b, quire_allocation held)
{
    char byte = 0;
    quire_allocation a;
    quire_memory *memory = b->memories[0];
    uint64_t calls = b->fc->calls(NULL);
    if (quire_allocate(memory, &(quire_allocation_options){.size = 3 * MIB}, &a) !=
        QUIRE_ERROR_NOT_PERMITTED)
        return 1;
    if (quire_read(memory, held, 0, &byte, 1) != QUIRE_ERROR_NOT_PERMITTED ||
        !strstr(quire_last_error(), "fork"))
        return 2;
    if (quire_cuda_release_kept(b->device) != QUIRE_ERROR_NOT_PERMITTED)
        return 3;
    if (quire_free(memory, held) != QUIRE_ERROR_NOT_PERMITTED ||
        quire_memory_destroy(&b->memories[0]) || quire_device_destroy(&b->device))
        return 4;
    return b->host_memory.blocks || b->fc->calls(NULL) != calls ? 5 : 0;
}

UNIT(cuda_open, a_forked_child_is_refused_and_the_parent_goes_on)
{
    cuda_bench b;
    quire_allocation a, large;
    cuda_bench_begin(&b, NULL);
    CHECK(cuda_bench_open(&b, &(quire_cuda_settings){.kept_bytes = 4 * MIB}));
    quire_memory *memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &SMALL);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &a));
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 2 * MIB}, &large));
    CHECK_OK(quire_free(memory, large));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_EQ(info_of(&b).kept_bytes, 2 * MIB); /* a handle that the child leaves alone */
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child)
        child_end(!in_child(&b, a));
    CHECK(child_was_well(child));
    CHECK_OK(quire_free(memory, a));
    use(memory);
    cuda_bench_end(&b);
}

/* ---- lost devices ---------------------------------------------------------------------------- */

UNIT(cuda_open, of_a_lost_device_everything_can_be_ended)
{
    cuda_bench b;
    quire_allocation a;
    char byte = 0;
    cuda_bench_begin(&b, NULL);
    CHECK(cuda_bench_open(&b, NULL));
    quire_memory *memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &SMALL);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &a));
    b.fc->lose(0, QI_CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_FAILS(quire_read(memory, a, 0, &byte, 1), QUIRE_ERROR_DEVICE_LOST);
    CHECK_HAS(quire_last_error(), "CUDA_ERROR_ILLEGAL_ADDRESS");
    CHECK_OK(quire_free(memory, a));
    CHECK_OK(quire_memory_destroy(&b.memories[0]));
    CHECK_OK(quire_device_destroy(&b.device));
    CHECK_EQ(b.host_memory.blocks, 0);
}

static void count_errors(void *user, quire_log_level level, const char *line)
{
    (void)line;
    *(int *)user += level == QUIRE_LOG_ERROR;
}

/* At the end of a process the driver may shut down before the destructors of the library run. */
UNIT(cuda_open, a_driver_that_is_gone_is_no_error)
{
    cuda_bench b;
    quire_allocation a;
    int errors = 0;
    cuda_bench_begin(&b, NULL);
    const quire_cuda_settings settings = {
        .kept_bytes = 100 * MIB, .device = {.log = {.write = count_errors, .user = &errors}}};
    CHECK(cuda_bench_open(&b, &settings));
    quire_memory *memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &SMALL);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &a));
    use(cuda_bench_memory(&b, QUIRE_CUDA_PINNED, &SMALL));
    b.fc->deinitialize();
    CHECK_OK(quire_free(memory, a));
    for (int i = 0; i < 2; i++)
        CHECK_OK(quire_memory_destroy(&b.memories[i]));
    CHECK_OK(quire_device_destroy(&b.device));
    CHECK_EQ(errors, 0);
    CHECK_EQ(b.host_memory.blocks, 0);
}

/* An attribute that an older driver does not know counts as 0; any other error is one. */
UNIT(cuda_open, an_attribute_that_cannot_be_read_is_an_error)
{
    static const struct {
        qi_cu_result code;
        quire_result result; /* 0: the device opens without the feature */
    } cases[] = {{QI_CUDA_ERROR_INVALID_VALUE, QUIRE_SUCCESS},
                 {QI_CUDA_ERROR_INVALID_DEVICE, UNSUPPORTED},
                 {QI_CUDA_ERROR_DEINITIALIZED, QUIRE_ERROR_DEVICE_LOST}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cuda_bench b;
        cuda_bench_begin(&b, NULL);
        CHECK(b.fc->fail(
            &(fc_fault){.function = "cuDeviceGetAttribute", .call = 1, .result = cases[i].code}));
        CHECK_EQ(cuda_bench_open(&b, NULL), !cases[i].result);
        CHECK_EQ(b.result, cases[i].result);
        CHECK_EQ(b.fc->failed().times, 1);
        if (b.device)
            CHECK(!info_of(&b).has_virtual_memory);
        cuda_bench_end(&b);
    }
}
