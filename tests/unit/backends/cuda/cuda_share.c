/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* cuda_share.c - pages of the CUDA backend for other processes and drivers, and imported pages:
   descriptors, fabric handles, handles, pointers; and refusals. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/cuda_bench.h"
#include "tests/support/unit.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define MIB (UINT64_C(1) << 20)

static const quire_intent EXPORTABLE = QUIRE_INTENT_EXPORT;
static const quire_intent EXPORTABLE_HOST = QUIRE_INTENT_EXPORT | QUIRE_INTENT_HOST_WRITE;
static const quire_memory_options SMALL = {.pages = {.page_size = 2 * MIB}};

static quire_memory *begin(cuda_bench *b, const fc_options *driver,
                           const quire_cuda_settings *settings, quire_cuda_page_kind page_kind,
                           quire_intent intent)
{
    quire_memory_options options = SMALL;
    options.kind.intent = intent;
    cuda_bench_begin(b, driver);
    CHECK(cuda_bench_open(b, settings));
    return cuda_bench_memory(b, page_kind, &options);
}

/* ---- another process ------------------------------------------------------------------------ */

typedef struct parcel {
    uint64_t size, offset;
} parcel;

static void send_parcel(int socket, int descriptor, parcel p)
{
    char room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&p, sizeof p};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    CHECK_EQ(sendmsg(socket, &message, 0), sizeof p);
}

static bool receive_parcel(int socket, int *descriptor, parcel *p)
{
    char room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {p, sizeof *p};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (recvmsg(socket, &message, 0) != sizeof *p || !CMSG_FIRSTHDR(&message))
        return false;
    memcpy(descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof *descriptor);
    return true;
}

/* A second process with its own driver and device: reads the value and writes 2. */
static int other_process(int socket, quire_cuda_page_kind page_kind)
{
    cuda_bench b;
    parcel p = {0};
    quire_allocation imported;
    unsigned char bytes[100] = {0};
    cuda_bench_begin(&b, NULL);
    if (!cuda_bench_open(&b, &(quire_cuda_settings){.kinds = QUIRE_CUDA_KIND_BIT(page_kind)}))
        return 1;
    quire_memory *memory = cuda_bench_memory(&b, page_kind, &SMALL);
    if (!memory || !receive_parcel(socket, &b.descriptor, &p))
        return 2;
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_FD, .descriptor = b.descriptor, .size = p.size};
    if (quire_cuda_import_range(memory, &import, &imported) ||
        quire_read(memory, imported, p.offset, bytes, sizeof bytes))
        return 3;
    for (size_t i = 0; i < sizeof bytes; i++)
        if (bytes[i] != 1)
            return 4;
    memset(bytes, 2, sizeof bytes);
    if (quire_write(memory, imported, p.offset, bytes, sizeof bytes) ||
        quire_free(memory, imported))
        return 5;
    cuda_bench_end(&b);
    return 0;
}

/* The child is forked before either process initialises CUDA, as CUDA requires. */
static void share_with_a_process(quire_cuda_page_kind page_kind, quire_intent intent)
{
    cuda_bench b;
    int ends[2], descriptor = -1;
    unsigned char bytes[100];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child)
        child_end(!other_process(ends[1], page_kind));
    quire_memory *memory =
        begin(&b, NULL, &(quire_cuda_settings){.kinds = QUIRE_CUDA_KIND_BIT(page_kind)}, page_kind,
              intent);
    cuda_bench_allocate(memory, 300);
    quire_allocation a = cuda_bench_allocate(memory, 100);
    memset(bytes, 1, sizeof bytes);
    CHECK_OK(quire_write(memory, a, 0, bytes, sizeof bytes));
    CHECK_OK(quire_cuda_export_fd(memory, a, &descriptor));
    quire_cuda_range range = cuda_bench_range(memory, a);
    send_parcel(ends[0], descriptor, (parcel){range.padded_size, range.page_offset});
    close(descriptor);
    CHECK(child_was_well(child));
    CHECK_OK(quire_read(memory, a, 0, bytes, sizeof bytes));
    for (size_t i = 0; i < sizeof bytes; i++)
        CHECK_EQ(bytes[i], 2);
    close(ends[0]);
    close(ends[1]);
    cuda_bench_end(&b);
}

UNIT(cuda_share, device_pages_are_shared_with_another_process)
{
    share_with_a_process(QUIRE_CUDA_DEVICE, EXPORTABLE);
}

UNIT(cuda_share, pages_for_registration_are_shared_with_another_process)
{
    share_with_a_process(QUIRE_CUDA_REGISTERED, 0);
}

UNIT(cuda_share, pages_of_a_host_node_are_shared_with_another_process)
{
    share_with_a_process(QUIRE_CUDA_HOST_NUMA, EXPORTABLE_HOST);
}

UNIT(cuda_share, pinned_pages_are_shared_with_another_process)
{
    share_with_a_process(QUIRE_CUDA_PINNED, EXPORTABLE_HOST);
}

CUDA_UNIT_ON(cuda_share, a_memfd_has_the_name_of_its_memory, cuda_bench_begin(b, NULL))
{
    char path[64], name[256] = "";
    int descriptor = -1;
    CHECK(cuda_bench_open(b, &(quire_cuda_settings){.kinds = CUDA_KIND(PINNED)}));
    quire_memory_options options = SMALL;
    options.kind.intent = EXPORTABLE_HOST;
    options.name = "frames";
    quire_memory *memory = cuda_bench_memory(b, QUIRE_CUDA_PINNED, &options);
    CHECK_OK(quire_cuda_export_fd(memory, cuda_bench_allocate(memory, 100), &descriptor));
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    CHECK(readlink(path, name, sizeof name - 1) > 0);
    CHECK_HAS(name, "memfd:quire frames");
    close(descriptor);
}

CUDA_UNIT(cuda_share, what_was_not_made_for_export_is_refused)
{
    int descriptor = 5;
    unsigned char fabric[QUIRE_CUDA_FABRIC_SIZE];
    quire_allocation made;
    quire_memory *memory =
        begin(b, NULL,
              &(quire_cuda_settings){.kinds = cuda_bench_kinds(fc_model_named("h200")),
                                     .chunk_size = 2 * MIB}, /* pages of several handles */
              QUIRE_CUDA_DEVICE, 0);
    quire_allocation a = cuda_bench_allocate(memory, 100);
    CHECK_FAILS(quire_cuda_export_fd(memory, a, &descriptor), UNSUPPORTED);
    CHECK_EQ(descriptor, -1);
    CHECK_FAILS(quire_cuda_export_fabric(memory, a, fabric), UNSUPPORTED);
    static const quire_cuda_page_kind others[] = {QUIRE_CUDA_PLAIN, QUIRE_CUDA_HOST,
                                                  QUIRE_CUDA_MANAGED};
    for (int i = 0; i < 3; i++) {
        quire_memory_options options = SMALL;
        options.kind.intent = i ? EXPORTABLE_HOST : EXPORTABLE;
        memory = cuda_bench_memory(b, others[i], &options);
        CHECK_FAILS(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &made),
                    UNSUPPORTED);
    }
}

/* ---- fabric --------------------------------------------------------------------------------- */

static quire_cuda_info info_of(cuda_bench *b)
{
    quire_cuda_info info;
    CHECK_OK(quire_cuda_get_info(b->device, &info));
    return info;
}

CUDA_UNIT_EACH(cuda_share, a_fabric_that_is_refused_is_told_from_one_that_is_absent, i, 3)
{
    static const struct {
        const char *model;
        quire_cuda_fabric before, after;
        quire_cuda_handle_types types;
    } cases[] = {
        {"a100", QUIRE_CUDA_FABRIC_ABSENT, QUIRE_CUDA_FABRIC_ABSENT, QUIRE_CUDA_FD},
        {"h200", QUIRE_CUDA_FABRIC_UNTRIED, QUIRE_CUDA_FABRIC_REFUSED, QUIRE_CUDA_FD},
        {"gh200", QUIRE_CUDA_FABRIC_UNTRIED, QUIRE_CUDA_FABRIC_GRANTED,
         QUIRE_CUDA_FD | QUIRE_CUDA_FABRIC},
    };
    fc_options driver = cuda_bench_options(cases[i].model, 0);
    quire_memory *memory =
        begin(b, &driver, &(quire_cuda_settings){.export_types = QUIRE_CUDA_FD | QUIRE_CUDA_FABRIC},
              QUIRE_CUDA_DEVICE, EXPORTABLE);
    CHECK_EQ(info_of(b).fabric, cases[i].before);
    CHECK_EQ(cuda_bench_range(memory, cuda_bench_allocate(memory, 2 * MIB)).export_types,
             cases[i].types);
    CHECK_EQ(info_of(b).fabric, cases[i].after);
    bool is_refused = cases[i].after == QUIRE_CUDA_FABRIC_REFUSED;
    CHECK_EQ(info_of(b).fabric_code != 0, is_refused);
    b->fc->reset_counters();
    cuda_bench_allocate(memory, 2 * MIB);
    CHECK_EQ(b->fc->calls("cuMemCreate"), 1); /* a refused handle is not requested again */
}

UNIT(cuda_share, a_fabric_alone_is_refused_with_its_reason)
{
    cuda_bench b;
    quire_allocation a;
    fc_options driver = cuda_bench_options("a100", 0);
    cuda_bench_begin(&b, &driver);
    CHECK(!cuda_bench_open(&b, &(quire_cuda_settings){.export_types = QUIRE_CUDA_FABRIC}));
    CHECK_EQ(b.result, UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "no fabric handles");
    cuda_bench_end(&b);
    quire_memory *memory =
        begin(&b, NULL, &(quire_cuda_settings){.export_types = QUIRE_CUDA_FABRIC},
              QUIRE_CUDA_DEVICE, EXPORTABLE);
    CHECK_FAILS(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &a),
                QUIRE_ERROR_NOT_PERMITTED);
    CHECK_EQ(info_of(&b).fabric, QUIRE_CUDA_FABRIC_REFUSED);
    cuda_bench_end(&b);
}

/* ---- dma-buf, handles, pointers -------------------------------------------------------------- */

CUDA_UNIT_IN(cuda_share, a_dma_buf_covers_the_page, begin(b, NULL, NULL, QUIRE_CUDA_DEVICE, 0))
{
    char in[100], out[100] = {0};
    quire_memory *pinned = cuda_bench_memory(b, QUIRE_CUDA_PINNED, &SMALL);
    quire_allocation a = cuda_bench_allocate(memory, 2 * MIB), p = cuda_bench_allocate(pinned, 100);
    int none = 5;
    CHECK_OK(quire_cuda_export_dma_buf(memory, a, &b->descriptor));
    CHECK(b->descriptor >= 0);
    memset(in, 7, sizeof in);
    CHECK_OK(quire_write(memory, a, 2 * MIB - sizeof in, in, sizeof in));
    CHECK_EQ(pread(b->descriptor, out, sizeof out, 2 * MIB - sizeof in), sizeof out);
    CHECK(!memcmp(in, out, sizeof in));
    CHECK_FAILS(quire_cuda_export_dma_buf(pinned, p, &none), UNSUPPORTED);
    CHECK_EQ(none, -1);
}

/* Bytes of a dma-buf of several handles, at an offset of the allocation. */
static void expect_in_range(const quire_cuda_dma_buf *range, uint64_t offset, const char *bytes)
{
    char out[4] = {0};
    CHECK_EQ(pread(range->descriptor, out, sizeof out, (off_t)(range->offset + offset)), 4);
    CHECK(!memcmp(out, bytes, sizeof out));
    close(range->descriptor);
}

CUDA_UNIT_IN(cuda_share, a_range_of_an_elastic_page_is_one_dma_buf,
             begin(b, NULL, NULL, QUIRE_CUDA_DEVICE, 0))
{
    const quire_memory_options elastic = {
        .elastic = true, .address_space = 64 * MIB, .pages = {.page_size = 2 * MIB}};
    memory = cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &elastic);
    quire_cuda_dma_buf range;
    quire_allocation_info info;
    (void)cuda_bench_allocate(memory, MIB);
    quire_allocation a = cuda_bench_allocate(memory, 4 * MIB);
    CHECK_OK(quire_write(memory, a, 0, "head", 4));
    CHECK_OK(quire_write(memory, a, 3 * MIB, "tail", 4));
    CHECK_OK(quire_allocation_get_info(memory, a, &info));
    CHECK_EQ(info.extent_offset, 0);
    CHECK_EQ(info.extent_size, 6 * MIB);
    CHECK_OK(quire_cuda_export_dma_buf_range(memory, &(quire_view){a, 0, 0}, &range));
    CHECK_EQ(range.size, 6 * MIB);
    CHECK_EQ(range.offset, MIB);
    CHECK_EQ(range.address + range.offset, info.address);
    expect_in_range(&range, 0, "head");
    CHECK_OK(quire_cuda_export_dma_buf_range(memory, &(quire_view){a, 3 * MIB, 4}, &range));
    CHECK_EQ(range.size, 2 * MIB);
    expect_in_range(&range, 0, "tail");
    CHECK_FAILS(quire_cuda_export_dma_buf_range(memory, &(quire_view){a, 4 * MIB, 0}, &range),
                QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_cuda_export_dma_buf_range(memory, &(quire_view){a, MIB, 4 * MIB}, &range),
                QUIRE_ERROR_OUT_OF_RANGE);
}

CUDA_UNIT_IN(cuda_share, a_range_without_memory_is_no_dma_buf,
             begin(b, NULL, NULL, QUIRE_CUDA_DEVICE, 0))
{
    const quire_memory_options elastic = {
        .elastic = true, .address_space = 64 * MIB, .pages = {.page_size = 2 * MIB}};
    memory = cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &elastic);
    quire_cuda_dma_buf range;
    quire_allocation lazy;
    const quire_allocation_options options = {.size = 10 * MIB, .lazy = true};
    CHECK_OK(quire_allocate(memory, &options, &lazy));
    const quire_view part = {lazy, 2 * MIB, 4 * MIB};
    CHECK_FAILS(quire_cuda_export_dma_buf_range(memory, &part, &range), QUIRE_ERROR_WRONG_STATE);
    CHECK_EQ(range.descriptor, -1);
    CHECK_OK(quire_back_range(memory, &part, 1));
    CHECK_OK(quire_cuda_export_dma_buf_range(memory, &part, &range));
    CHECK_EQ(range.size, 4 * MIB);
    close(range.descriptor);
    CHECK_FAILS(quire_cuda_export_dma_buf_range(memory, &(quire_view){lazy, MIB, 2 * MIB}, &range),
                QUIRE_ERROR_WRONG_STATE);
    CHECK_OK(quire_memory_sleep(memory, NULL, QUIRE_SLEEP_DISCARD, NULL, NULL));
    CHECK_FAILS(quire_cuda_export_dma_buf_range(memory, &part, &range), QUIRE_ERROR_WRONG_STATE);
    CHECK_HAS(quire_last_error(), "asleep");
}

/* The same memory at two addresses: a write at one is visible at the other. */
CUDA_UNIT_IN(cuda_share, a_retained_handle_makes_an_alias,
             begin(b, NULL, NULL, QUIRE_CUDA_DEVICE, 0))
{
    quire_allocation alias, none;
    uint64_t handle = 0, other = 5;
    char in[100], out[100] = {0};
    quire_memory *pinned = cuda_bench_memory(b, QUIRE_CUDA_PINNED, &SMALL);
    quire_allocation a = cuda_bench_allocate(memory, 100), p = cuda_bench_allocate(pinned, 100);
    quire_cuda_range range = cuda_bench_range(memory, a);
    CHECK_OK(quire_cuda_retain_handle(b->device, range.address, &handle));
    quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_HANDLE, .handle = handle, .size = range.padded_size + 2 * MIB};
    CHECK_FAILS(quire_cuda_import_range(memory, &import, &none), INVALID);
    CHECK_HAS(quire_last_error(), "the memory has another size");
    import.size = range.padded_size;
    CHECK_OK(quire_cuda_import_range(memory, &import, &alias));
    CHECK(cuda_bench_range(memory, alias).page_address != range.page_address);
    memset(in, 3, sizeof in);
    CHECK_OK(quire_write(memory, a, 0, in, sizeof in));
    CHECK_OK(quire_read(memory, alias, range.page_offset, out, sizeof out));
    CHECK(!memcmp(in, out, sizeof in));
    CHECK_FAILS(quire_cuda_retain_handle(b->device, cuda_bench_range(pinned, p).address, &other),
                UNSUPPORTED);
    CHECK_EQ(other, 0);
}

/* Touching memory that its owner has cut off would end the process. */
CUDA_UNIT_ON(cuda_share, a_memfd_that_can_shrink_is_not_imported, cuda_bench_begin(b, NULL))
{
    quire_allocation none, made;
    CHECK(cuda_bench_open(b, NULL));
    quire_memory *pinned = cuda_bench_memory(b, QUIRE_CUDA_PINNED, &SMALL);
    int file = memfd_create("test", MFD_ALLOW_SEALING);
    CHECK(file >= 0 && !ftruncate(file, (off_t)(2 * MIB)));
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_FD, .descriptor = file, .size = 2 * MIB};
    CHECK_FAILS(quire_cuda_import_range(pinned, &import, &none), INVALID);
    CHECK_HAS(quire_last_error(), "sealed");
    CHECK(!fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK));
    CHECK_OK(quire_cuda_import_range(pinned, &import, &made));
    close(file);
}

CUDA_UNIT_IN(cuda_share, a_handle_that_is_not_imported_is_released_by_the_caller,
             begin(b, NULL, NULL, QUIRE_CUDA_DEVICE, 0))
{
    uint64_t handle = 0;
    quire_allocation a = cuda_bench_allocate(memory, 100);
    CHECK_OK(quire_cuda_retain_handle(b->device, cuda_bench_range(memory, a).address, &handle));
    CHECK_EQ(b->fc->live(FC_REFERENCE), 2);
    CHECK_OK(quire_cuda_release_handle(b->device, handle));
    CHECK_EQ(b->fc->live(FC_REFERENCE), 1);
}

CUDA_UNIT_IN(cuda_share, a_borrowed_pointer_stays_its_owners,
             begin(b, NULL, NULL, QUIRE_CUDA_DEVICE, 0))
{
    quire_allocation a, none;
    qi_cu_ptr block = 0;
    char in[100], out[100] = {0};
    cuda_bench_enter(b->device);
    CHECK_EQ(CUDA_BENCH_CALL(b, MemAlloc, 3020)(&block, 1000), 0);
    quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_POINTER, .pointer = block, .size = 1000, .name = "theirs"};
    CHECK_OK(quire_cuda_import_range(memory, &import, &a));
    CHECK(cuda_bench_range(memory, a).is_borrowed && cuda_bench_range(memory, a).address == block);
    CHECK_EQ(cuda_bench_range(memory, a).padded_size, 1000); /* no byte beyond the import */
    memset(in, 4, sizeof in);
    CHECK_OK(quire_write(memory, a, 0, in, sizeof in));
    CHECK_EQ(CUDA_BENCH_CALL(b, MemcpyDtoH, 3020)(out, block, sizeof out), 0);
    CHECK(!memcmp(in, out, sizeof in));
    CHECK_OK(quire_free(memory, a));
    CHECK_EQ(b->fc->live(FC_ALLOCATION), 1);
    CHECK_EQ(CUDA_BENCH_CALL(b, MemFree, 3020)(block), 0);
    import.pointer = 4096; /* no memory at the address */
    CHECK_FAILS(quire_cuda_import_range(memory, &import, &none), INVALID);
    cuda_bench_leave();
}

static void refuses(quire_memory *memory, quire_result code, quire_cuda_import import)
{
    quire_allocation none = {77};
    CHECK_FAILS(quire_cuda_import_range(memory, &import, &none), code);
    CHECK_EQ(none.id, 0);
}

CUDA_UNIT_IN(cuda_share, imports_that_cannot_be_are_refused,
             begin(b, NULL, NULL, QUIRE_CUDA_DEVICE, 0))
{
    quire_memory *pinned = cuda_bench_memory(b, QUIRE_CUDA_PINNED, &SMALL);
    const quire_cuda_import_type fd = QUIRE_CUDA_IMPORT_FD, handle = QUIRE_CUDA_IMPORT_HANDLE;
    int pipes[2];
    CHECK_EQ(pipe(pipes), 0);
    refuses(memory, INVALID, (quire_cuda_import){.size = MIB});
    refuses(memory, INVALID, (quire_cuda_import){.type = fd, .descriptor = -1, .size = 2 * MIB});
    refuses(memory, INVALID, (quire_cuda_import){.type = fd, .descriptor = pipes[0]});
    refuses(memory, INVALID, (quire_cuda_import){.type = fd, .descriptor = pipes[0], .size = MIB});
    refuses(memory, INVALID,
            (quire_cuda_import){.type = fd, .descriptor = pipes[0], .size = 2 * MIB});
    refuses(memory, INVALID,
            (quire_cuda_import){.type = fd, .size = 2 * MIB, .unused = {0, 0, 0, 1}});
    refuses(memory, INVALID, (quire_cuda_import){.type = handle, .size = 2 * MIB});
    refuses(memory, INVALID,
            (quire_cuda_import){.type = QUIRE_CUDA_IMPORT_FABRIC, .size = 2 * MIB});
    refuses(memory, INVALID,
            (quire_cuda_import){.type = QUIRE_CUDA_IMPORT_POINTER, .size = 2 * MIB});
    refuses(pinned, UNSUPPORTED, (quire_cuda_import){.type = handle, .handle = 1, .size = 2 * MIB});
    refuses(pinned, UNSUPPORTED,
            (quire_cuda_import){.type = QUIRE_CUDA_IMPORT_POINTER, .pointer = 1, .size = MIB});
    refuses(pinned, INVALID,
            (quire_cuda_import){.type = fd, .descriptor = pipes[0], .size = 2 * MIB});
    refuses(pinned, INVALID, (quire_cuda_import){.type = fd, .descriptor = pipes[0], .size = 100});
    close(pipes[0]);
    close(pipes[1]);
}
