/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * corners.c - quire on a CUDA driver where the contract of the backends does not reach: other
 * processes, exports, multicast, memory pools, peers, captures, a context with an error that stays,
 * calls at exit.
 *
 *     corners [--items FROM SECONDS]     each case is an item of items.h
 *     corners --device                   prints the device, or why there is none
 *     corners --import TYPE HANDLE SIZE OFFSET   the other process of an export
 *     corners --team FD SIZE             the other process of a multicast object
 *     corners --exit                     a process that calls quire after the end of main
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/cuda_kernel.h"
#include "quire/cuda.h"
#include "quire/quire.h"
#include "tests/gpu/corners.h"
#include "tests/support/cuda_direct.h"
#include "tests/support/items.h"
#include "tests/support/plain.h"

extern char **environ;

/* ---- what the cases share ------------------------------------------------------------------- */

void corner_open(corner *c, const quire_cuda_settings *settings,
                 const quire_memory_options *options)
{
    quire_cuda_options open = {.device = NULL};
    if (settings)
        open.settings = *settings;
    *c = (corner){.device = NULL};
    CHECK_OK(quire_cuda_open(&open, &c->device));
    CHECK_OK(quire_cuda_get_info(c->device, &c->info));
    CHECK_OK(quire_memory_create(c->device, options, &c->memory));
}

void corner_close(corner *c)
{
    quire_memory_destroy_all(&c->memory);
    CHECK_OK(quire_device_destroy(&c->device));
}

quire_allocation corner_allocate(corner *c, uint64_t size)
{
    quire_allocation made;
    CHECK_OK(quire_allocate(c->memory, &(quire_allocation_options){.size = size}, &made));
    return made;
}

/* The link is read because valgrind resolves it only there: to spawn it would start valgrind. */
int corner_run(char *const *words)
{
    pid_t child;
    int status;
    char program[4096] = {0};
    if (readlink("/proc/self/exe", program, sizeof program - 1) <= 0 ||
        posix_spawn(&child, program, NULL, NULL, words, environ) ||
        waitpid(child, &status, 0) != child)
        check_failed(__FILE__, __LINE__, "the other process cannot be started");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static quire_cuda_info default_device(void)
{
    corner c;
    corner_open(&c, NULL, NULL);
    corner_close(&c);
    return c.info;
}

/* ---- exports -------------------------------------------------------------------------------- */

static const quire_intent EXPORTABLE = QUIRE_INTENT_EXPORT;

static void fabric_handles_are_granted_or_descriptors_stay(void)
{
    corner c;
    unsigned char fabric[QUIRE_CUDA_FABRIC_SIZE];
    int descriptor;
    const quire_cuda_settings both = {.export_types = QUIRE_CUDA_FABRIC | QUIRE_CUDA_FD};
    corner_open(&c, &both, &(quire_memory_options){.kind.intent = EXPORTABLE});
    quire_allocation a = corner_allocate(&c, CORNER_BYTES);
    CHECK_OK(quire_cuda_get_info(c.device, &c.info));
    CHECK(c.info.fabric != QUIRE_CUDA_FABRIC_UNTRIED);
    printf("# fabric handles: state %d, CUresult %d\n", (int)c.info.fabric,
           (int)c.info.fabric_code);
    quire_result result = quire_cuda_export_fabric(c.memory, a, fabric);
    CHECK_EQ(!result, c.info.fabric == QUIRE_CUDA_FABRIC_GRANTED);
    CHECK_OK(quire_cuda_export_fd(c.memory, a, &descriptor));
    close(descriptor);
    corner_close(&c);
}

static void a_page_is_a_dma_buf_where_the_device_has_them(void)
{
    corner c;
    int descriptor;
    corner_open(&c, NULL, NULL);
    quire_allocation a = corner_allocate(&c, CORNER_BYTES);
    quire_result result = quire_cuda_export_dma_buf(c.memory, a, &descriptor);
    if (result)
        printf("# no dma-buf: %s\n", quire_last_error());
    CHECK_EQ(!result, c.info.has_dma_buf);
    CHECK_EQ(descriptor >= 0, !result);
    if (!result)
        close(descriptor);
    corner_close(&c);
}

/* ---- an error that stays -------------------------------------------------------------------- */

static void load_kernels(corner *c, cuda_kernels *kernels)
{
    MUST(cu.CtxPushCurrent(c->info.context));
    const char *reason = cuda_kernels_load(cuda_direct_library(), kernels);
    if (reason)
        check_failed(__FILE__, __LINE__, "%s", reason);
}

/* A kernel writes where nothing is mapped. Everything can be destroyed afterwards. Whether new
   pages are refused is up to the driver: calls of virtual memory management belong to no
   context. */
static void a_lost_device_is_torn_down(void)
{
    corner c;
    cuda_kernels kernels;
    const bool grows = default_device().has_virtual_memory;
    const quire_memory_options options = {
        .elastic = grows, .address_space = grows ? 1 << 30 : 0 /* small enough for valgrind */};
    corner_open(&c, NULL, &options);
    (void)corner_allocate(&c, CORNER_BYTES);
    load_kernels(&c, &kernels);
    MUST(cuda_kernel_store(&kernels, 16, NULL));
    CHECK(cu.CtxSynchronize() != 0);
    quire_allocation none;
    const quire_allocation_options large = {.size = 64 << 20};
    if (quire_allocate(c.memory, &large, &none))
        printf("# %s\n", quire_last_error());
    corner_close(&c);
}

/* ---- the end of the process ----------------------------------------------------------------- */

static corner at_exit;

static void call_quire(void)
{
    quire_memory_destroy_all(&at_exit.memory);
    if (quire_device_destroy(&at_exit.device))
        _exit(9);
}

/* The handler runs after those that the driver registers when it is opened. */
static int leave_at_exit(void)
{
    plain_begin("a process that ends");
    CHECK_EQ(atexit(call_quire), 0);
    corner_open(&at_exit, NULL, NULL);
    (void)corner_allocate(&at_exit, CORNER_BYTES);
    return 0;
}

static void quire_may_be_called_at_exit(void)
{
    char *words[] = {corner_text("corners"), corner_text("--exit"), NULL};
    CHECK_EQ(corner_run(words), 0);
}

/* ---- all ------------------------------------------------------------------------------------ */

static bool has_kernels(void)
{
    return cuda_direct_find("cuLaunchKernel") != NULL;
}

static bool has_captures(void)
{
    return cu.StreamBeginCapture && cu.StreamEndCapture;
}

static bool has_exports(void)
{
    return default_device().has_fd;
}

static bool has_pools(void)
{
    return default_device().has_pools;
}

static bool has_peer_and_pools(void)
{
    return has_peer() && has_pools();
}

typedef struct corner_case {
    const char *name;
    void (*body)(void);
    bool (*can)(void); /* NULL: always */
    const char *reason;
} corner_case;

#define NO_EXPORTS "the device exports no page"
#define NO_POOLS "the device has no memory pools"
#define NO_PEER "it needs two GPUs that reach each other, and here is one"

static const corner_case CASES[] = {
    {"another process shares a page", another_process_shares_a_page, has_exports, NO_EXPORTS},
    {"fabric handles are granted or descriptors stay",
     fabric_handles_are_granted_or_descriptors_stay, has_exports, NO_EXPORTS},
    {"a page is a dma-buf where the device has them", a_page_is_a_dma_buf_where_the_device_has_them,
     NULL, NULL},
    {"another process opens a legacy handle", another_process_opens_a_legacy_handle,
     has_legacy_handles, "the driver has no legacy handles"},
    {"multicast of one device binds pages and addresses", multicast_binds_pages_and_addresses, NULL,
     NULL},
    {"another process imports a multicast object", another_process_imports_a_multicast_object, NULL,
     NULL},
    {"streams use pages of a memory pool", streams_use_pages_of_a_pool, has_pools, NO_POOLS},
    {"a memory pool is shared with the program", a_pool_is_shared_with_the_program, has_pools,
     NO_POOLS},
    {"a memory pool is refused where the device has none", a_pool_is_refused_without_one, NULL,
     NULL},
    {"a peer copies to and from a page", a_peer_copies_to_and_from_a_page, has_peer, NO_PEER},
    {"a peer copies to and from a memory pool", a_peer_copies_to_and_from_a_pool,
     has_peer_and_pools, NO_PEER},
    {"quire may be called at exit", quire_may_be_called_at_exit, NULL, NULL},
    {"a capture in the same thread survives pages", capture_in_the_same_thread_survives,
     has_captures, "the driver captures no graphs"},
    {"a capture in another thread survives pages", capture_in_another_thread_survives, has_captures,
     "the driver captures no graphs"},
    {"a lost device is torn down", a_lost_device_is_torn_down, has_kernels, CUDA_NO_KERNELS},
};

/* The emulated driver of the tests exports a symbol that no real driver has. */
static int print_device(void)
{
    quire_device *device;
    quire_device_info info;
    quire_cuda_info of_cuda;
    if (quire_cuda_open(NULL, &device)) {
        printf("device: none\nreason: %s\n", quire_last_error());
        return 0;
    }
    plain_begin("the device");
    CHECK_OK(quire_device_get_info(device, &info));
    CHECK_OK(quire_cuda_get_info(device, &of_cuda));
    cuda_direct_open("libcuda.so.1");
    printf("device: %s%s\n", info.name, cuda_direct_find("fake_cuda") ? ", emulated" : "");
    printf("driver: CUDA %u.%u\n", of_cuda.driver_version / 1000,
           of_cuda.driver_version % 1000 / 10);
    CHECK_OK(quire_device_destroy(&device));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--device"))
        return print_device();
    if (argc == 6 && !strcmp(argv[1], "--import"))
        return corner_import(&argv[2]);
    if (argc == 4 && !strcmp(argv[1], "--team"))
        return corner_team(&argv[2]);
    if (argc == 2 && !strcmp(argv[1], "--exit"))
        return leave_at_exit();
    (void)items_take(argc, argv);
    cuda_direct_open("libcuda.so.1"); /* keeps the primary context for all cases */
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const corner_case *c = &CASES[i];
        if (!items_begin(c->name))
            continue;
        plain_begin(c->name);
        if (c->can && !c->can())
            plain_skip(c->name, c->reason);
        else
            plain_case(c->name, c->body);
    }
    return plain_end();
}
