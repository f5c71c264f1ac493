/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* cuda_open.c - opening and wrapping devices on the fake CUDA driver: selection, kinds, contexts,
   forks, and drivers that are gone. */
#include <stdio.h>
#include <stdlib.h>
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

UNIT_ALONE(cuda_open, a_device_is_named_by_ordinal_part_of_its_name_or_environment)
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
    cuda_bench_start(&b, &options);
    CHECK_EQ(page_kinds_of(&b), expected);
    cuda_bench_end(&b);
}

UNIT(cuda_open, the_usual_kinds_are_those_that_device_and_driver_have)
{
    const uint32_t usual = CUDA_KIND(DEVICE) | CUDA_KIND(PINNED) | CUDA_KIND(COMBINED);
    check_kinds("h200", 0, usual);
    check_kinds("h200", 12010, usual);
    check_kinds("h200", 11020, usual);
    check_kinds("a100", 0, usual);
    check_kinds("vgpu", 0, usual);
}

CUDA_UNIT_EACH(cuda_open, a_kind_that_is_named_and_not_there_is_refused, i, 6)
{
    static const uint32_t absent[] = {CUDA_KIND(COMPRESSED), CUDA_KIND(REGISTERED),
                                      CUDA_KIND(HOST_NUMA),  CUDA_KIND(HOST),
                                      CUDA_KIND(MANAGED),    CUDA_KIND(TILES)};
    static const char *const names[] = {"compressed", "registered", "host NUMA",
                                        "host",       "managed",    "tile pools"};
    fc_options options = cuda_bench_options("vgpu", 0);
    cuda_bench_begin(b, &options);
    CHECK(!cuda_bench_open(b, &(quire_cuda_settings){.kinds = absent[i]}));
    CHECK_EQ(b->result, UNSUPPORTED);
    CHECK_HAS(quire_last_error(), names[i]);
}

/* In a container the driver may refuse what an attribute promises. */
CUDA_UNIT_ON(cuda_open, what_is_promised_and_refused_is_told, cuda_bench_begin(b, NULL))
{
    CHECK(b->fc->fail(&(fc_fault){.function = "cuMemGetAllocationGranularity",
                                  .call = 1,
                                  .result = QI_CUDA_ERROR_NOT_SUPPORTED}));
    CHECK(!cuda_bench_open(b, &(quire_cuda_settings){.kinds = CUDA_KIND(HOST_NUMA)}));
    CHECK_EQ(b->result, UNSUPPORTED);
}

/* ---- what the user of a program selects ------------------------------------------------------ */

static void check_variable(const char *kinds, uint32_t named, uint32_t expected, const char *words)
{
    cuda_bench b;
    cuda_bench_begin(&b, NULL);
    CHECK(!setenv("QUIRE_CUDA_KINDS", kinds, 1));
    CHECK_EQ(cuda_bench_open(&b, &(quire_cuda_settings){.kinds = named}), !words);
    CHECK(!unsetenv("QUIRE_CUDA_KINDS"));
    if (words)
        CHECK_HAS(quire_last_error(), words);
    else
        CHECK_EQ(page_kinds_of(&b), expected);
    cuda_bench_end(&b);
}

UNIT_ALONE(cuda_open, a_variable_selects_the_kinds)
{
    const uint32_t usual = CUDA_KIND(DEVICE) | CUDA_KIND(PINNED) | CUDA_KIND(COMBINED);
    check_variable("", 0, usual, NULL);
    check_variable("device", 0, CUDA_KIND(DEVICE), NULL);
    check_variable("plain,HOST-numa,", 0, CUDA_KIND(PLAIN) | CUDA_KIND(HOST_NUMA), NULL);
    check_variable("device, tile_pools", CUDA_KIND(TILES), CUDA_KIND(TILES), NULL);
    check_variable("device,pinned", CUDA_KIND(DEVICE), CUDA_KIND(DEVICE), NULL);
    check_variable("device,pinned", CUDA_KIND(DEVICE) | CUDA_KIND(HOST_NUMA), 0,
                   "QUIRE_CUDA_KINDS leaves out pages of kind host NUMA");
    check_variable("device,pined", 0, 0, "the variable QUIRE_CUDA_KINDS has 'pined'");
    check_variable("dev", 0, 0, "'dev'");
    check_variable("devices", 0, 0, "'devices'");
}

static void check_pages(const char *words, quire_cuda_without without, bool is_virtual,
                        bool is_rdma, bool has_types)
{
    cuda_bench b;
    quire_cuda_kind_info kind;
    cuda_bench_begin(&b, NULL);
    CHECK(!setenv("QUIRE_CUDA_PAGES", words, 1));
    CHECK(cuda_bench_open(&b, &(quire_cuda_settings){.without = without}));
    CHECK(!unsetenv("QUIRE_CUDA_PAGES"));
    CHECK_OK(quire_cuda_get_kind_info(b.device, 0, &kind));
    CHECK_EQ(kind.page_kind, QUIRE_CUDA_DEVICE);
    CHECK_EQ(kind.is_virtual_memory, is_virtual);
    CHECK_EQ(kind.is_rdma_capable, is_rdma);
    CHECK_EQ(kind.export_types, has_types ? QUIRE_CUDA_FD : 0);
    use(cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &SMALL));
    CHECK_EQ(b.fc->calls("cuMemAlloc") > 0, !is_virtual);
    cuda_bench_end(&b);
}

UNIT_ALONE(cuda_open, device_pages_do_without_what_the_program_or_its_user_names)
{
    check_pages("", 0, true, true, true);
    check_pages("", QUIRE_CUDA_WITHOUT_RDMA, true, false, true);
    check_pages("", QUIRE_CUDA_WITHOUT_EXPORT, true, true, false);
    check_pages("", QUIRE_CUDA_WITHOUT_VIRTUAL_MEMORY, false, false, false);
    check_pages("no-rdma", 0, true, false, true);
    check_pages("no-rdma", QUIRE_CUDA_WITHOUT_EXPORT, true, false, false);
    check_pages("no-export,no-rdma", 0, true, false, false);
    check_pages("plain", 0, false, false, false);
}

UNIT_ALONE(cuda_open, unknown_words_and_bits_are_refused)
{
    cuda_bench b;
    cuda_bench_begin(&b, NULL);
    CHECK(!cuda_bench_open(&b, &(quire_cuda_settings){.without = 8}));
    CHECK_EQ(b.result, INVALID);
    CHECK_HAS(quire_last_error(), "8 of without");
    CHECK(!setenv("QUIRE_CUDA_PAGES", "plain,virtual", 1));
    CHECK(!cuda_bench_open(&b, NULL));
    CHECK_EQ(b.result, INVALID);
    CHECK_HAS(quire_last_error(), "the variable QUIRE_CUDA_PAGES has 'virtual'");
    CHECK_EQ(b.fc->calls("cuInit"), 0);
    cuda_bench_end(&b);
}

CUDA_UNIT(cuda_open, without_virtual_memory_management_device_pages_are_plain)
{
    quire_cuda_kind_info kind;
    const fc_model *vgpu = fc_model_named("vgpu");
    cuda_bench_begin(b, &(fc_options){.models = {vgpu, vgpu}, .peers = {0x2, 0x1}});
    CHECK(cuda_bench_open(b, &(quire_cuda_settings){.reachable_peers = true})); /* none to name */
    CHECK(!info_of(b).has_virtual_memory);
    CHECK_OK(quire_cuda_get_kind_info(b->device, 0, &kind));
    CHECK_EQ(kind.page_kind, QUIRE_CUDA_DEVICE);
    CHECK(!kind.is_virtual_memory && !kind.recommended);
    use(cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL));
    CHECK(b->fc->calls("cuMemAlloc") > 0);
    CHECK_EQ(b->fc->calls("cuMemCreate"), 0);
}

CUDA_UNIT_EACH(cuda_open, host_nodes_and_peers_that_are_named_are_not_passed_over, i, 2)
{
    static const int32_t peer = 1;
    const quire_cuda_settings wrong[] = {{.numa_nodes = 1}, {.peers = &peer, .peer_count = 1}};
    const fc_model *vgpu = fc_model_named("vgpu");
    const fc_options options = {.models = {vgpu, vgpu}, .peers = {0x2, 0x1}};
    cuda_bench_begin(b, &options);
    CHECK(!cuda_bench_open(b, &wrong[i]));
    CHECK_EQ(b->result, UNSUPPORTED);
    CHECK_HAS(quire_last_error(), i ? "peers are named" : "host NUMA");
}

CUDA_UNIT(cuda_open, each_host_node_that_is_named_is_a_kind)
{
    uint32_t first, second, none;
    fc_options options = cuda_bench_options("gh200", 0);
    options.numa_nodes = 2;
    cuda_bench_begin(b, &options);
    CHECK(
        cuda_bench_open(b, &(quire_cuda_settings){.kinds = CUDA_KIND(HOST_NUMA), .numa_nodes = 3}));
    CHECK_OK(quire_cuda_find_kind(b->device, QUIRE_CUDA_HOST_NUMA, 0, &first));
    CHECK_OK(quire_cuda_find_kind(b->device, QUIRE_CUDA_HOST_NUMA, 1, &second));
    CHECK_EQ(first, 0);
    CHECK_EQ(second, 1);
    CHECK_FAILS(quire_cuda_find_kind(b->device, QUIRE_CUDA_HOST_NUMA, 2, &none), UNSUPPORTED);
    CHECK_FAILS(quire_cuda_find_kind(b->device, QUIRE_CUDA_DEVICE, -1, &none), UNSUPPORTED);
    CHECK_FAILS(
        quire_cuda_find_kind(b->device, (quire_cuda_page_kind)QUIRE_CUDA_PAGE_KINDS, -1, &none),
        INVALID);
    CHECK_FAILS(quire_cuda_find_kind(b->device, QUIRE_CUDA_HOST_NUMA, -2, &none), INVALID);
}

/* ---- peers that the devices themselves tell -------------------------------------------------- */

/* What a page of device 0 lets device 1 and 2 do, "-" for a page of cuMemAlloc. The devices of
   `unreached` do not reach device 0. */
static void check_reachable(const char *variable, uint32_t unreached, const char *expected)
{
    const fc_model *h200 = fc_model_named("h200");
    const fc_options options = {.models = {h200, h200, h200}, .peers = {0x6 & ~unreached}};
    char got[4] = "-";
    cuda_bench b;
    cuda_bench_begin(&b, &options);
    CHECK(!setenv("QUIRE_CUDA_PEERS", variable, 1));
    CHECK(cuda_bench_open(&b, &(quire_cuda_settings){.reachable_peers = true}));
    CHECK(!unsetenv("QUIRE_CUDA_PEERS"));
    quire_memory *memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &SMALL);
    quire_allocation a = cuda_bench_allocate(memory, 64);
    for (int i = 1; i < 3 && cuda_bench_range(memory, a).handle; i++) {
        quire_cuda_access access = {QUIRE_CUDA_AT_DEVICE, i, QUIRE_CUDA_NO_ACCESS};
        CHECK_OK(quire_cuda_get_access(memory, a, &access));
        got[i - 1] = access.flags == QUIRE_CUDA_READ_WRITE ? 'w' : '.';
    }
    CHECK_STR(got, expected);
    cuda_bench_end(&b);
}

UNIT_ALONE(cuda_open, every_other_device_is_a_peer_or_pages_are_plain)
{
    check_reachable("", 0x0, "ww");
    check_reachable("", 0x2, "-");
    check_reachable("", 0x4, "-");
    check_reachable("none", 0x0, "..");
    check_reachable("none", 0x6, "..");
    check_reachable("2", 0x2, ".w");
    check_reachable("0, 1,2", 0x0, "ww");
    check_reachable("1", 0x2, "-");
}

UNIT_ALONE(cuda_open, peers_are_named_or_found_and_the_variable_has_ordinals)
{
    static const char *const wrong[] = {"all", "1 none", "none,1", "-1", "64", "1x"};
    static const int32_t peer = 1;
    cuda_bench b;
    cuda_bench_begin(&b, NULL);
    CHECK(!cuda_bench_open(
        &b, &(quire_cuda_settings){.peers = &peer, .peer_count = 1, .reachable_peers = true}));
    CHECK_EQ(b.result, INVALID);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(!setenv("QUIRE_CUDA_PEERS", wrong[i], 1));
        CHECK(!cuda_bench_open(&b, NULL));
        CHECK_EQ(b.result, INVALID);
        CHECK_HAS(quire_last_error(), "the variable QUIRE_CUDA_PEERS has '");
    }
    cuda_bench_end(&b);
}

static void check_intent(cuda_bench *b, quire_intent intent, quire_cuda_page_kind expected)
{
    uint32_t kind;
    quire_cuda_kind_info info;
    CHECK_OK(quire_device_choose_kind(b->device, &(quire_kind_request){.intent = intent}, &kind));
    CHECK_OK(quire_cuda_get_kind_info(b->device, kind, &info));
    CHECK_EQ(info.page_kind, expected);
}

/* The device has managed memory, but only a caller who names its kind gets it. */
CUDA_UNIT_ON(cuda_open, intents_choose_among_the_kinds, cuda_bench_begin(b, NULL))
{
    CHECK(cuda_bench_open(
        b, &(quire_cuda_settings){.kinds = cuda_bench_kinds(fc_model_named("h200"))}));
    check_intent(b, QUIRE_INTENT_DEVICE, QUIRE_CUDA_DEVICE);
    check_intent(b, QUIRE_INTENT_UPLOAD, QUIRE_CUDA_COMBINED);
    check_intent(b, QUIRE_INTENT_HOST_WRITE, QUIRE_CUDA_COMBINED);
    check_intent(b, QUIRE_INTENT_HOST_READ, QUIRE_CUDA_PINNED);
    check_intent(b, QUIRE_INTENT_HOST_READ | QUIRE_INTENT_HOST_WRITE, QUIRE_CUDA_PINNED);
}

/* ---- contexts -------------------------------------------------------------------------------- */

CUDA_UNIT_ON(cuda_open, the_primary_context_is_shared_and_given_back, cuda_bench_begin(b, NULL))
{
    qi_cu_context mine = NULL;
    CHECK(cuda_bench_open(b, NULL));
    CHECK_EQ(b->fc->live(FC_CONTEXT), 1);
    CHECK_EQ(CUDA_BENCH_CALL(b, DevicePrimaryCtxRetain, 7000)(&mine, 0), 0);
    CHECK(info_of(b).is_primary && info_of(b).context == (void *)mine);
    CHECK_EQ(CUDA_BENCH_CALL(b, DevicePrimaryCtxRelease, 11000)(0), 0);
    CHECK_EQ(b->fc->live(FC_CONTEXT), 1);
}

/* Every call restores the context stack: the caller's own context, or none. */
CUDA_UNIT(cuda_open, the_callers_context_stays_current)
{
    qi_cu_context own = NULL, current = NULL;
    fc_options options = three_devices();
    cuda_bench_start(b, &options);
    use(cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL));
    CHECK_EQ(b->fc->depth(), 0);
    CHECK_EQ(CUDA_BENCH_CALL(b, CtxCreate, 3020)(&own, 0, 1), 0);
    use(b->memories[0]);
    CHECK_EQ(b->fc->depth(), 1);
    CHECK_EQ(CUDA_BENCH_CALL(b, CtxGetCurrent, 4000)(&current), 0);
    CHECK(current == own);
    CHECK_EQ(CUDA_BENCH_CALL(b, CtxDestroy, 4000)(own), 0);
}

/* Wraps a new context of the caller, which is current, on a device. */
static qi_cu_context wrap(cuda_bench *b, qi_cu_device device, bool waits)
{
    fc_options options = three_devices();
    cuda_bench_begin(b, &options);
    CHECK_EQ(CUDA_BENCH_CALL(b, Init, 2000)(0), 0);
    CHECK_EQ(CUDA_BENCH_CALL(b, CtxCreate, 3020)(&b->context, 0, device), 0);
    CHECK(cuda_bench_open(b, &(quire_cuda_settings){.wait_before_release = waits}));
    qi_cu_context own = b->context;
    b->context = NULL; /* the test ends it */
    return own;
}

/* Ends memory and device before the bench does. */
static void end_device(cuda_bench *b)
{
    quire_memory_destroy_all(&b->memories[0]);
    b->memory_count = 0;
    CHECK_OK(quire_device_destroy(&b->device));
}

CUDA_UNIT(cuda_open, a_wrapped_context_is_the_callers)
{
    qi_cu_context own = wrap(b, 1, false);
    CHECK_EQ(info_of(b).ordinal, 1);
    CHECK(!info_of(b).is_primary && info_of(b).context == (void *)own);
    use(cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL));
    end_device(b);
    CHECK_EQ(b->fc->live(FC_CONTEXT), 1);
    CHECK_EQ(b->fc->depth(), 1);
    CHECK_EQ(CUDA_BENCH_CALL(b, CtxDestroy, 4000)(own), 0);
}

/* Violates the rules of CUDA. Pages are released nevertheless, because they do not belong to the
   context. */
CUDA_UNIT_EACH(cuda_open, a_wrapped_context_that_went_first_costs_nothing, waits, 2)
{
    qi_cu_context own = wrap(b, 0, waits);
    cuda_bench_allocate(cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL), 100);
    CHECK_EQ(CUDA_BENCH_CALL(b, CtxDestroy, 4000)(own), 0);
    end_device(b);
    CHECK_EQ(b->fc->leaks(), 0);
    b->fc->forget();
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

CUDA_UNIT_ON(cuda_open, a_forked_child_is_refused_and_the_parent_goes_on, cuda_bench_begin(b, NULL))
{
    quire_allocation a, large;
    CHECK(cuda_bench_open(b, &(quire_cuda_settings){.kept_bytes = 4 * MIB}));
    quire_memory *memory = cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &a));
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 2 * MIB}, &large));
    CHECK_OK(quire_free(memory, large));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_EQ(info_of(b).kept_bytes, 2 * MIB); /* a handle that the child leaves alone */
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child)
        child_end(!in_child(b, a));
    CHECK(child_was_well(child));
    CHECK_OK(quire_free(memory, a));
    use(memory);
}

/* ---- drivers that are gone ------------------------------------------------------------------- */

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
