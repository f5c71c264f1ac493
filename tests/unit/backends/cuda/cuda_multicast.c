/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* cuda_multicast.c - multicast objects of the CUDA backend: pages of several devices behind one
   object, bindings, one address for each device, other processes, fabric handles; and refusals. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/cuda_bench.h"
#include "tests/support/unit.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define OUT_OF_RANGE QUIRE_ERROR_OUT_OF_RANGE
#define WRONG_STATE QUIRE_ERROR_WRONG_STATE
#define NOT_PERMITTED QUIRE_ERROR_NOT_PERMITTED
#define MIB (UINT64_C(1) << 20)

static const quire_memory_options SMALL = {.pages = {.page_size = 2 * MIB}};
static const quire_intent EXPORTABLE = QUIRE_INTENT_EXPORT;
static const int32_t BOTH[] = {0, 1};

static cuda_bench b;
#define CASE(name) UNIT_WITHIN(cuda_multicast, name, (void)0, cuda_bench_end(&b))

/* Two devices of a model. */
static fc_options two(const fc_model *model)
{
    return (fc_options){.models = {model, model}, .peers = {2, 1}};
}

static quire_memory *begin_with(const fc_options *driver, const quire_cuda_settings *settings)
{
    cuda_bench_begin(&b, driver);
    CHECK(cuda_bench_open(&b, settings));
    return cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &SMALL);
}

static quire_memory *begin(void)
{
    fc_options driver = two(fc_model_named("h200"));
    return begin_with(&driver, NULL);
}

static quire_cuda_multicast_info info_of(void)
{
    quire_cuda_multicast_info info;
    CHECK_OK(quire_cuda_multicast_get_info(b.multicast, &info));
    return info;
}

/* An object of the bench, over this many of the two devices. */
static void create(uint64_t size, uint32_t device_count, quire_cuda_handle_types types)
{
    const quire_cuda_multicast_options options = {
        .size = size, .devices = BOTH, .device_count = device_count, .handle_types = types};
    CHECK_OK(quire_cuda_multicast_create(b.device, &options, &b.multicast));
}

/* ---- bindings ------------------------------------------------------------------------------- */

CASE(an_object_covers_memory_of_two_devices)
{
    quire_memory *memory = begin(), *theirs = cuda_bench_open_peer(&b, &SMALL);
    quire_allocation a = cuda_bench_allocate(memory, 100), t = cuda_bench_allocate(theirs, 100);
    create(MIB, 2, 0);
    quire_cuda_multicast_info info = info_of();
    CHECK_EQ(info.size, 2 * MIB);
    CHECK(info.handle && info.granularity == 2 * MIB && info.team_size == 2);
    CHECK_OK(quire_cuda_multicast_bind(b.multicast, 0, memory, a));
    CHECK_OK(quire_cuda_multicast_bind(b.multicast, 0, theirs, t));
    CHECK_OK(quire_cuda_multicast_unbind(b.multicast, 0, 0, 2 * MIB));
    CHECK_OK(quire_cuda_multicast_unbind(b.multicast, 1, 0, 2 * MIB));
    CHECK_OK(quire_cuda_multicast_destroy(&b.multicast));
    CHECK(!b.multicast);
}

CASE(bindings_follow_the_rules)
{
    quire_memory *memory = begin();
    quire_allocation a = cuda_bench_allocate(memory, 100),
                     large = cuda_bench_allocate(memory, 4 * MIB);
    create(4 * MIB, 2, 0);
    CHECK_FAILS(quire_cuda_multicast_bind(b.multicast, 1, memory, a), INVALID);
    CHECK_HAS(quire_last_error(), "granularity");
    CHECK_FAILS(quire_cuda_multicast_bind(b.multicast, 4 * MIB, memory, a), OUT_OF_RANGE);
    CHECK_OK(quire_cuda_multicast_bind(b.multicast, 2 * MIB, memory, a));
    CHECK_FAILS(quire_cuda_multicast_bind(b.multicast, 0, memory, large), WRONG_STATE);
    CHECK_HAS(quire_last_error(), "device 0 is bound");
    CHECK_EQ(b.fc->calls("cuMulticastBindMem"), 1); /* the driver was not asked */
    CHECK_FAILS(quire_cuda_multicast_unbind(b.multicast, 0, 2 * MIB, 4 * MIB), OUT_OF_RANGE);
    CHECK_FAILS(quire_cuda_multicast_unbind(b.multicast, 0, 2 * MIB, 0), OUT_OF_RANGE);
    CHECK_FAILS(quire_cuda_multicast_unbind(b.multicast, 0, 2 * MIB, 1), INVALID);
    CHECK_FAILS(quire_cuda_multicast_unbind(b.multicast, 0, 0, 4 * MIB), WRONG_STATE);
    CHECK_FAILS(quire_cuda_multicast_unbind(b.multicast, 1, 2 * MIB, 2 * MIB), WRONG_STATE);
    CHECK_EQ(b.fc->calls("cuMulticastUnbind"), 0);
    CHECK_OK(quire_cuda_multicast_unbind(b.multicast, 0, 2 * MIB, 2 * MIB));
    CHECK_FAILS(quire_cuda_multicast_unbind(b.multicast, 0, 2 * MIB, 2 * MIB), WRONG_STATE);
    CHECK_OK(quire_cuda_multicast_bind(b.multicast, 0, memory, large));
    CHECK_OK(quire_cuda_multicast_destroy(&b.multicast)); /* takes the rest */
    CHECK_EQ(b.fc->calls("cuMulticastUnbind"), 2);
}

/* What the driver refuses leaves no record: the range can be bound again. */
CASE(a_refused_binding_is_none)
{
    const fc_fault refused = {
        .function = "cuMulticastBindMem", .call = 1, .result = QI_CUDA_ERROR_OUT_OF_MEMORY};
    quire_memory *memory = begin();
    quire_allocation a = cuda_bench_allocate(memory, 100);
    create(2 * MIB, 2, 0);
    CHECK(b.fc->fail(&refused));
    CHECK_FAILS(quire_cuda_multicast_bind(b.multicast, 0, memory, a),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_FAILS(quire_cuda_multicast_unbind(b.multicast, 0, 0, 2 * MIB), WRONG_STATE);
    CHECK_OK(quire_cuda_multicast_bind(b.multicast, 0, memory, a));
}

CASE(memory_is_bound_by_its_address)
{
    const quire_cuda_settings settings = {.kinds = CUDA_KIND(DEVICE) | CUDA_KIND(POOL)};
    fc_options driver = two(fc_model_named("h200"));
    quire_memory *memory = begin_with(&driver, &settings);
    quire_memory *pool = cuda_bench_memory(&b, QUIRE_CUDA_POOL, &SMALL);
    uint64_t page = cuda_bench_range(memory, cuda_bench_allocate(memory, 4 * MIB)).page_address;
    uint64_t pooled = cuda_bench_range(pool, cuda_bench_allocate(pool, 4 * MIB)).page_address;
    pooled = (pooled + 2 * MIB - 1) & ~(2 * MIB - 1); /* the first granule inside */
    create(6 * MIB, 2, 0);
    CHECK_OK(quire_cuda_multicast_bind_address(b.multicast, 0, page + 2 * MIB, 2 * MIB));
    CHECK_OK(quire_cuda_multicast_bind_address(b.multicast, 2 * MIB, pooled, 2 * MIB));
    CHECK_FAILS(quire_cuda_multicast_bind_address(b.multicast, 2 * MIB, page, 2 * MIB),
                WRONG_STATE);
    CHECK_FAILS(quire_cuda_multicast_bind_address(b.multicast, 4 * MIB, page + 4096, 2 * MIB),
                INVALID);
    CHECK_HAS(quire_last_error(), "granularity");
    CHECK_FAILS(quire_cuda_multicast_bind_address(b.multicast, 4 * MIB, 2 * MIB, 2 * MIB), INVALID);
    CHECK_HAS(quire_last_error(), "not an address");
    CHECK_FAILS(quire_cuda_multicast_bind_address(b.multicast, 4 * MIB, page, 4 * MIB),
                OUT_OF_RANGE);
    CHECK_FAILS(quire_cuda_multicast_bind_address(b.multicast, 4 * MIB, 0, 2 * MIB), INVALID);
    CHECK_OK(quire_cuda_multicast_unbind(b.multicast, 0, 0, 2 * MIB));
    CHECK_OK(quire_cuda_multicast_unbind(b.multicast, 0, 2 * MIB, 2 * MIB));
}

/* ---- threads -------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 50 };

static uint64_t first_address;

/* Binds and unbinds a range of its own, and maps and unmaps for the device that it shares. */
static void *bind_often(void *number)
{
    uint64_t offset = (uintptr_t)number * 2 * MIB, address = 0;
    uintptr_t failed = 0;
    for (int i = 0; i < ROUNDS; i++) {
        failed += quire_cuda_multicast_bind_address(b.multicast, offset, first_address + offset,
                                                    2 * MIB) != QUIRE_SUCCESS;
        if (!quire_cuda_multicast_map(b.multicast, (int32_t)((uintptr_t)number % 2), &address))
            failed += quire_cuda_multicast_unmap(b.multicast, (int32_t)((uintptr_t)number % 2)) !=
                      QUIRE_SUCCESS;
        failed += quire_cuda_multicast_unbind(b.multicast, 0, offset, 2 * MIB) != QUIRE_SUCCESS;
    }
    return (void *)failed;
}

CASE(threads_may_change_the_same_object)
{
    pthread_t threads[THREADS];
    void *failed = NULL;
    quire_memory *memory = begin();
    first_address =
        cuda_bench_range(memory, cuda_bench_allocate(memory, THREADS * 2 * MIB)).page_address;
    create(THREADS * 2 * MIB, 2, 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, bind_often, (void *)i));
    for (int i = 0; i < THREADS; i++) {
        CHECK(!pthread_join(threads[i], &failed));
        CHECK(!failed);
    }
    CHECK_EQ(b.fc->calls("cuMulticastUnbind"), THREADS * ROUNDS);
}

/* ---- addresses ------------------------------------------------------------------------------ */

CASE(each_device_has_an_address_of_its_own)
{
    uint64_t first = 0, second = 0, none = 5;
    fc_address_info at;
    const fc_fault refused = {
        .function = "cuMemSetAccess", .call = 1, .result = QI_CUDA_ERROR_INVALID_DEVICE};
    (void)begin();
    create(2 * MIB, 2, 0);
    CHECK(b.fc->fail(&refused));
    CHECK(quire_cuda_multicast_map(b.multicast, 0, &none) != QUIRE_SUCCESS);
    CHECK_EQ(none, 0);
    CHECK_EQ(b.fc->live(FC_MAPPING), 0);
    CHECK_OK(quire_cuda_multicast_map(b.multicast, 0, &first));
    CHECK_OK(quire_cuda_multicast_map(b.multicast, 1, &second));
    CHECK(first && second && first != second);
    CHECK(b.fc->address_of(first, &at) && at.write == 1);
    CHECK(b.fc->address_of(second, &at) && at.write == 2);
    CHECK_FAILS(quire_cuda_multicast_map(b.multicast, 1, &none), WRONG_STATE);
    CHECK_EQ(none, 0);
    CHECK_FAILS(quire_cuda_multicast_map(b.multicast, 2, &none), INVALID);
    CHECK_HAS(quire_last_error(), "was not added");
    CHECK_OK(quire_cuda_multicast_unmap(b.multicast, 0));
    CHECK(!b.fc->address_of(first, &at));
    CHECK_FAILS(quire_cuda_multicast_unmap(b.multicast, 0), WRONG_STATE);
    CHECK_FAILS(quire_cuda_multicast_unmap(b.multicast, -1), INVALID);
    CHECK_OK(quire_cuda_multicast_map(b.multicast, 0, &first)); /* again */
}

UNIT(cuda_multicast, what_the_driver_refuses_to_end_can_be_ended_later)
{
    static const char *const functions[] = {"cuMemUnmap", "cuMemAddressFree", "cuMulticastUnbind",
                                            "cuMemRelease"};
    uint64_t address = 0;
    for (size_t i = 0; i < 4; i++) {
        const fc_fault refused = {
            .function = functions[i], .call = 1, .result = QI_CUDA_ERROR_INVALID_VALUE};
        quire_memory *memory = begin();
        quire_allocation a = cuda_bench_allocate(memory, 100);
        create(2 * MIB, 2, 0);
        CHECK_OK(quire_cuda_multicast_bind(b.multicast, 0, memory, a));
        CHECK_OK(quire_cuda_multicast_map(b.multicast, 1, &address));
        CHECK(b.fc->fail(&refused));
        CHECK_FAILS(quire_cuda_multicast_destroy(&b.multicast), QUIRE_ERROR_BACKEND_FAILURE);
        CHECK(b.multicast);
        CHECK_OK(quire_cuda_multicast_destroy(&b.multicast));
        cuda_bench_end(&b);
    }
}

/* ---- granularity ---------------------------------------------------------------------------- */

UNIT(cuda_multicast, the_recommended_granularity_is_used_on_request)
{
    fc_model model = *fc_model_named("h200");
    model.multicast_recommended = 16 * MIB;
    fc_options driver = two(&model);
    for (int coarse = 0; coarse < 2; coarse++) {
        (void)begin_with(&driver, &(quire_cuda_settings){.recommended_granularity = coarse});
        create(MIB, 2, 0);
        quire_cuda_multicast_info info = info_of();
        CHECK_EQ(info.size, coarse ? 16 * MIB : 2 * MIB);
        CHECK_EQ(info.granularity, 2 * MIB);
        CHECK_EQ(info.recommended, 16 * MIB);
        cuda_bench_end(&b);
    }
}

/* ---- another process ------------------------------------------------------------------------ */

/* What the first process says: where its descriptor is, and the object. */
typedef struct parcel {
    int process, descriptor;
    quire_cuda_multicast_info info;
} parcel;

static void say(int socket)
{
    CHECK_EQ(write(socket, "", 1), 1);
}

static void hear(int socket)
{
    char byte;
    CHECK_EQ(read(socket, &byte, 1), 1);
}

static quire_cuda_multicast_import_options import_of(const parcel *p, int descriptor)
{
    return (quire_cuda_multicast_import_options){.type = QUIRE_CUDA_IMPORT_FD,
                                                 .descriptor = descriptor,
                                                 .size = p->info.size,
                                                 .team_size = p->info.team_size,
                                                 .devices = &BOTH[1],
                                                 .device_count = 1};
}

/* Takes over a descriptor of the first process. */
static int fetch(const parcel *p)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", p->process, p->descriptor);
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    CHECK(descriptor >= 0);
    return descriptor;
}

/* Opens device 1 of two, with exportable memory. */
static quire_memory *begin_second(void)
{
    fc_options driver = two(fc_model_named("h200"));
    quire_memory_options exportable = SMALL;
    exportable.kind.intent = EXPORTABLE;
    cuda_bench_begin(&b, &driver);
    const quire_cuda_options options = {
        .device = "1",
        .library = FAKE_CUDA_LIBRARY,
        .settings = {.device = {.host_memory = &b.host_memory.callbacks},
                     .kinds = CUDA_KIND(DEVICE) | CUDA_KIND(COMPRESSED)}};
    CHECK_OK(quire_cuda_open(&options, &b.device));
    CHECK_OK(quire_memory_create(b.device, &exportable, &b.memories[0]));
    b.memory_count = 1;
    return b.memories[0];
}

/* The second process of the team: imports the object, adds device 1, binds, maps. */
static void join(int socket)
{
    parcel p;
    uint64_t address = 0;
    int none = 5;
    CHECK_EQ(read(socket, &p, sizeof p), sizeof p);
    quire_memory *memory = begin_second();
    b.descriptor = fetch(&p);
    const quire_cuda_multicast_import_options import = import_of(&p, b.descriptor);
    CHECK_OK(quire_cuda_multicast_import(b.device, &import, &b.multicast));
    say(socket); /* the team is complete */
    CHECK(info_of().is_imported && info_of().size == p.info.size);
    CHECK_FAILS(quire_cuda_multicast_export_fd(b.multicast, &none), UNSUPPORTED);
    CHECK_EQ(none, -1);
    CHECK_OK(quire_cuda_multicast_bind(b.multicast, 0, memory, cuda_bench_allocate(memory, 100)));
    CHECK_OK(quire_cuda_multicast_map(b.multicast, 1, &address));
    CHECK_FAILS(quire_cuda_multicast_map(b.multicast, 0, &address), INVALID); /* the other's */
    quire_memory *plain = cuda_bench_memory(&b, QUIRE_CUDA_COMPRESSED, &SMALL);
    CHECK_FAILS(
        quire_cuda_multicast_bind(b.multicast, 2 * MIB, plain, cuda_bench_allocate(plain, 100)),
        UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "exportable pages only");
    cuda_bench_end(&b);
}

CASE(two_processes_share_an_object)
{
    int ends[2];
    uint64_t address = 0;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t child = fork(); /* before either process initialises CUDA, as CUDA requires */
    CHECK(child >= 0);
    if (!child) {
        join(ends[1]);
        child_end(true);
    }
    CHECK(!close(ends[1])); /* a child that ends early ends the reads too */
    (void)begin();
    quire_memory_options options = SMALL;
    options.kind.intent = EXPORTABLE;
    quire_memory *memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &options);
    const quire_cuda_multicast_options team = {.size = 4 * MIB,
                                               .devices = BOTH,
                                               .device_count = 1,
                                               .team_size = 2,
                                               .handle_types = QUIRE_CUDA_FD};
    CHECK_OK(quire_cuda_multicast_create(b.device, &team, &b.multicast));
    parcel p = {.process = (int)getpid(), .info = info_of()};
    CHECK_EQ(p.info.export_types, QUIRE_CUDA_FD);
    CHECK_OK(quire_cuda_multicast_export_fd(b.multicast, &b.descriptor));
    p.descriptor = b.descriptor;
    CHECK_EQ(write(ends[0], &p, sizeof p), sizeof p);
    hear(ends[0]);
    CHECK_OK(quire_cuda_multicast_bind(b.multicast, 0, memory, cuda_bench_allocate(memory, 100)));
    CHECK_OK(quire_cuda_multicast_map(b.multicast, 0, &address));
    CHECK(child_was_well(child));
    CHECK(!close(ends[0]));
}

/* ---- fabric --------------------------------------------------------------------------------- */

static quire_result create_types(const fc_options *driver, quire_cuda_handle_types types)
{
    const quire_cuda_multicast_options options = {
        .size = MIB, .devices = BOTH, .device_count = 2, .handle_types = types};
    cuda_bench_start(&b, driver);
    return quire_cuda_multicast_create(b.device, &options, &b.multicast);
}

UNIT(cuda_multicast, a_refused_fabric_is_told_from_one_that_is_absent)
{
    unsigned char handle[QUIRE_CUDA_FABRIC_SIZE], zeros[QUIRE_CUDA_FABRIC_SIZE] = {0};
    const quire_cuda_handle_types both = QUIRE_CUDA_FD | QUIRE_CUDA_FABRIC;
    fc_model none = *fc_model_named("h200");
    none.features &= ~FC_FABRIC;
    fc_options refused = two(fc_model_named("h200")), absent = two(&none);
    CHECK_EQ(create_types(&absent, QUIRE_CUDA_FABRIC), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "no fabric handles");
    cuda_bench_end(&b);
    CHECK_OK(create_types(&absent, both));
    CHECK(info_of().export_types == QUIRE_CUDA_FD && !info_of().fabric_code);
    CHECK_FAILS(quire_cuda_multicast_export_fabric(b.multicast, handle), UNSUPPORTED);
    cuda_bench_end(&b);
    CHECK_EQ(create_types(&refused, QUIRE_CUDA_FABRIC), NOT_PERMITTED);
    cuda_bench_end(&b);
    CHECK_OK(create_types(&refused, both));
    CHECK(info_of().export_types == QUIRE_CUDA_FD);
    CHECK_EQ(info_of().fabric_code, QI_CUDA_ERROR_NOT_PERMITTED);
    CHECK_FAILS(quire_cuda_multicast_export_fabric(b.multicast, handle), NOT_PERMITTED);
    CHECK(!memcmp(handle, zeros, sizeof handle));
    CHECK_OK(quire_cuda_multicast_export_fd(b.multicast, &b.descriptor));
    cuda_bench_end(&b);
}

CASE(a_granted_fabric_handle_makes_the_object_again)
{
    unsigned char handle[QUIRE_CUDA_FABRIC_SIZE];
    quire_cuda_multicast *again = NULL;
    fc_options granted = two(fc_model_named("gh200"));
    CHECK_OK(create_types(&granted, QUIRE_CUDA_FABRIC));
    CHECK_OK(quire_cuda_multicast_export_fabric(b.multicast, handle));
    quire_cuda_multicast_import_options import = {
        .type = QUIRE_CUDA_IMPORT_FABRIC, .fabric = handle, .size = info_of().size, .team_size = 2};
    CHECK_OK(quire_cuda_multicast_import(b.device, &import, &again)); /* adds no device */
    CHECK_OK(quire_cuda_multicast_destroy(&again));
    memset(handle, 1, sizeof handle);
    CHECK_FAILS(quire_cuda_multicast_import(b.device, &import, &again), INVALID);
    CHECK(!again);
}

/* ---- refusals ------------------------------------------------------------------------------- */

static void refuses(quire_result code, quire_cuda_multicast_options options)
{
    quire_cuda_multicast *none = b.multicast;
    CHECK_FAILS(quire_cuda_multicast_create(b.device, &options, &none), code);
    CHECK(!none);
}

UNIT(cuda_multicast, objects_that_cannot_be_are_refused)
{
    static const int32_t twice[] = {0, 0}, far = 5;
    quire_memory *pinned = NULL;
    (void)begin();
    pinned = cuda_bench_memory(&b, QUIRE_CUDA_PINNED, &SMALL);
    refuses(INVALID,
            (quire_cuda_multicast_options){.size = MIB, .devices = twice, .device_count = 2});
    refuses(INVALID, (quire_cuda_multicast_options){.size = MIB, .devices = twice});
    refuses(INVALID, (quire_cuda_multicast_options){.size = MIB, .device_count = 1});
    refuses(INVALID, (quire_cuda_multicast_options){.devices = twice, .device_count = 1});
    refuses(INVALID, (quire_cuda_multicast_options){
                         .size = MIB, .devices = BOTH, .device_count = 2, .team_size = 1});
    refuses(INVALID, (quire_cuda_multicast_options){
                         .size = MIB, .devices = BOTH, .device_count = 2, .handle_types = 2});
    refuses(INVALID, (quire_cuda_multicast_options){
                         .size = MIB, .devices = BOTH, .device_count = 2, .unused = {0, 0, 0, 1}});
    refuses(UNSUPPORTED,
            (quire_cuda_multicast_options){.size = MIB, .devices = &far, .device_count = 1});
    refuses(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
            (quire_cuda_multicast_options){.size = UINT64_MAX, .devices = BOTH, .device_count = 2});
    create(MIB, 2, 0);
    CHECK_FAILS(quire_cuda_multicast_bind(b.multicast, 0, pinned, cuda_bench_allocate(pinned, 100)),
                UNSUPPORTED);
    CHECK_FAILS(quire_cuda_multicast_export_fd(b.multicast, &b.descriptor), UNSUPPORTED);
    CHECK_EQ(b.descriptor, -1);
    cuda_bench_end(&b);
    fc_options driver = cuda_bench_options("a100", 0);
    (void)begin_with(&driver, NULL);
    refuses(UNSUPPORTED,
            (quire_cuda_multicast_options){.size = MIB, .devices = BOTH, .device_count = 1});
    cuda_bench_end(&b);
}

static void refuses_import(quire_result code, quire_cuda_multicast_import_options import)
{
    quire_cuda_multicast *none = b.multicast;
    CHECK_FAILS(quire_cuda_multicast_import(b.device, &import, &none), code);
    CHECK(!none);
}

CASE(imports_that_cannot_be_are_refused)
{
    int ends[2];
    parcel p = {.info = {.size = 2 * MIB, .team_size = 2}};
    CHECK_EQ(pipe(ends), 0);
    (void)begin();
    quire_cuda_multicast_import_options good = import_of(&p, ends[0]), bad = good;
    refuses_import(INVALID, good); /* a pipe */
    bad.type = QUIRE_CUDA_IMPORT_POINTER;
    refuses_import(INVALID, bad);
    bad = good;
    bad.type = QUIRE_CUDA_IMPORT_FABRIC;
    refuses_import(INVALID, bad);
    bad = good;
    bad.descriptor = -1;
    refuses_import(INVALID, bad);
    bad = good;
    bad.size = MIB;
    refuses_import(INVALID, bad);
    CHECK_HAS(quire_last_error(), "granularity");
    bad.size = 0;
    refuses_import(INVALID, bad);
    bad = good;
    bad.team_size = 0;
    refuses_import(INVALID, bad);
    bad = good;
    bad.devices = NULL;
    refuses_import(INVALID, bad);
    bad = good;
    bad.unused[0] = 1;
    refuses_import(INVALID, bad);
    CHECK(!close(ends[0]) && !close(ends[1]));
}
