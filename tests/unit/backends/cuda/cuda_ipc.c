/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* cuda_ipc.c - pages of cuMemAlloc for other processes, by legacy handles: a second process opens,
   reads, writes and closes; and refusals. */
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/cuda_bench.h"
#include "tests/support/unit.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define MIB (UINT64_C(1) << 20)

static const quire_memory_options SMALL = {.pages = {.page_size = 2 * MIB}};
static const uint32_t KINDS =
    CUDA_KIND(DEVICE) | CUDA_KIND(PLAIN) | CUDA_KIND(PINNED) | CUDA_KIND(MANAGED) | CUDA_KIND(POOL);

static cuda_bench b;
#define CASE(name) UNIT_WITHIN(cuda_ipc, name, (void)0, cuda_bench_end(&b))

typedef struct parcel {
    unsigned char ipc[QUIRE_CUDA_IPC_SIZE];
    uint64_t size, offset;
} parcel;

static quire_memory *begin(quire_cuda_page_kind page_kind)
{
    cuda_bench_begin(&b, NULL);
    CHECK(cuda_bench_open(&b, &(quire_cuda_settings){.kinds = KINDS}));
    return cuda_bench_memory(&b, page_kind, &SMALL);
}

static quire_cuda_import import_of(const parcel *p)
{
    return (quire_cuda_import){.type = QUIRE_CUDA_IMPORT_IPC, .ipc = p->ipc, .size = p->size};
}

static void check_bytes(quire_memory *memory, quire_allocation a, uint64_t offset, int value)
{
    unsigned char bytes[100] = {0};
    CHECK_OK(quire_read(memory, a, offset, bytes, sizeof bytes));
    for (size_t i = 0; i < sizeof bytes; i++)
        CHECK_EQ(bytes[i], value);
}

static void write_bytes(quire_memory *memory, quire_allocation a, uint64_t offset, int value)
{
    unsigned char bytes[100];
    memset(bytes, value, sizeof bytes);
    CHECK_OK(quire_write(memory, a, offset, bytes, sizeof bytes));
}

/* ---- another process ------------------------------------------------------------------------ */

static parcel receive(int socket)
{
    parcel p;
    CHECK_EQ(read(socket, &p, sizeof p), sizeof p);
    return p;
}

static void hand_over(int socket, const parcel *p)
{
    CHECK_EQ(write(socket, p, sizeof *p), sizeof *p);
}

/* Runs `body` in a second process with its own driver and device, and `give` in this one. */
static void with_a_process(void (*body)(int socket), void (*give)(int socket))
{
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t child = fork(); /* before either process initialises CUDA, as CUDA requires */
    CHECK(child >= 0);
    if (!child) {
        body(ends[1]);
        child_end(true);
    }
    CHECK(!close(ends[1])); /* a child that ends early ends the reads too */
    give(ends[0]);
    CHECK(child_was_well(child));
    CHECK(!close(ends[0]));
}

/* Reads what the exporter wrote and writes an answer, twice imported. */
static void opens(int socket)
{
    quire_allocation first, second, none;
    unsigned char ipc[QUIRE_CUDA_IPC_SIZE];
    int descriptor = 5;
    quire_memory *memory = begin(QUIRE_CUDA_PLAIN);
    parcel p = receive(socket);
    quire_cuda_import import = import_of(&p);
    CHECK_OK(quire_cuda_import_range(memory, &import, &first));
    CHECK_EQ(b.fc->usage_of(0).bytes, 0); /* the other process has the memory */
    quire_cuda_range range = cuda_bench_range(memory, first);
    CHECK(range.is_borrowed && range.padded_size == p.size);
    check_bytes(memory, first, p.offset, 1);
    CHECK_OK(quire_cuda_import_range(memory, &import, &second));
    CHECK_EQ(cuda_bench_range(memory, second).address, range.address);
    CHECK_OK(quire_free(memory, second));
    write_bytes(memory, first, p.offset, 2); /* the first import is still open */
    CHECK_FAILS(quire_cuda_export_ipc(memory, first, ipc), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "only its owner");
    CHECK_FAILS(quire_cuda_export_dma_buf(memory, first, &descriptor), UNSUPPORTED);
    import.size = p.size + 1;
    CHECK_FAILS(quire_cuda_import_range(memory, &import, &none), INVALID);
    CHECK_HAS(quire_last_error(), "the block has");
    CHECK_EQ(b.fc->live(FC_OPENED), 1);
    const fc_fault refused = {
        .function = "cuIpcCloseMemHandle", .call = 1, .result = QI_CUDA_ERROR_MAP_FAILED};
    CHECK(b.fc->fail(&refused));
    CHECK_OK(quire_free(memory, first));
    CHECK_EQ(b.fc->live(FC_OPENED), 1);
    cuda_bench_allocate(memory, 100); /* a new page retries it */
    CHECK_EQ(b.fc->live(FC_OPENED), 0);
    CHECK_EQ(b.fc->calls("cuIpcCloseMemHandle"), 4);
    cuda_bench_end(&b);
}

static quire_memory *exporting;
static quire_allocation exported;

static parcel export(void)
{
    parcel p;
    quire_cuda_range range = cuda_bench_range(exporting, exported);
    CHECK_OK(quire_cuda_export_ipc(exporting, exported, p.ipc));
    p.size = range.padded_size;
    p.offset = range.page_offset;
    return p;
}

static void gives(int socket)
{
    exporting = begin(QUIRE_CUDA_PLAIN);
    cuda_bench_allocate(exporting, 300);
    exported = cuda_bench_allocate(exporting, 100); /* not at the start of the page */
    write_bytes(exporting, exported, 0, 1);
    parcel p = export();
    CHECK(p.offset > 0);
    hand_over(socket, &p);
}

CASE(a_plain_page_is_shared_with_another_process)
{
    with_a_process(opens, gives);
    check_bytes(exporting, exported, 0, 2);
}

/* On request work on an import is done before the handle is closed. */
static void opens_late(int socket)
{
    quire_allocation a;
    fc_options late = cuda_bench_options(NULL, FC_LATE);
    parcel p = receive(socket);
    quire_cuda_import import = import_of(&p);
    cuda_bench_begin(&b, &late);
    CHECK(cuda_bench_open(&b, &(quire_cuda_settings){.kinds = KINDS, .wait_before_release = true}));
    quire_memory *memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &SMALL);
    CHECK_OK(quire_cuda_import_range(memory, &import, &a));
    const qi_cu_ptr first = cuda_bench_range(memory, a).address + p.offset;
    cuda_bench_enter(b.device);
    qi_cu_stream stream = cuda_bench_make_stream(QI_CU_STREAM_NON_BLOCKING);
    CHECK_EQ(CUDA_BENCH_CALL(&b, MemsetD8Async, 3020)(first, 2, 100, stream), 0);
    CHECK_OK(quire_free(memory, a)); /* quire knows nothing of the work */
    cuda_bench_end_stream(stream);
    cuda_bench_leave();
    cuda_bench_end(&b);
}

CASE(closing_waits_for_the_work_on_request)
{
    with_a_process(opens_late, gives);
    check_bytes(exporting, exported, 0, 2);
}

/* Without virtual memory management device pages are of cuMemAlloc. */
CASE(device_pages_of_cuMemAlloc_have_legacy_handles)
{
    unsigned char ipc[QUIRE_CUDA_IPC_SIZE], zeros[QUIRE_CUDA_IPC_SIZE] = {0};
    fc_options less = cuda_bench_options("vgpu", 0);
    cuda_bench_start(&b, &less);
    quire_memory *memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &SMALL);
    CHECK_OK(quire_cuda_export_ipc(memory, cuda_bench_allocate(memory, 100), ipc));
    CHECK(memcmp(ipc, zeros, sizeof ipc));
}

/* ---- refusals ------------------------------------------------------------------------------- */

static void has_no_handle(quire_cuda_page_kind page_kind, const char *why)
{
    unsigned char ipc[QUIRE_CUDA_IPC_SIZE], zeros[QUIRE_CUDA_IPC_SIZE] = {0};
    memset(ipc, 7, sizeof ipc);
    quire_memory *memory = cuda_bench_memory(&b, page_kind, &SMALL);
    CHECK_FAILS(quire_cuda_export_ipc(memory, cuda_bench_allocate(memory, 100), ipc), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), why);
    CHECK(!memcmp(ipc, zeros, sizeof ipc));
}

CASE(other_pages_have_no_legacy_handles)
{
    (void)begin(QUIRE_CUDA_PLAIN);
    quire_memory_destroy_all(&b.memories[0]);
    b.memory_count = 0;
    has_no_handle(QUIRE_CUDA_DEVICE, "virtual memory management");
    has_no_handle(QUIRE_CUDA_POOL, "memory pool");
    has_no_handle(QUIRE_CUDA_MANAGED, "only device-local pages");
    has_no_handle(QUIRE_CUDA_PINNED, "only device-local pages");
}

static void refuses(quire_memory *memory, quire_result code, quire_cuda_import import,
                    const char *why)
{
    quire_allocation none = {77};
    CHECK_FAILS(quire_cuda_import_range(memory, &import, &none), code);
    CHECK_HAS(quire_last_error(), why);
    CHECK_EQ(none.id, 0);
}

CASE(imports_that_cannot_be_are_refused)
{
    exporting = begin(QUIRE_CUDA_PLAIN);
    exported = cuda_bench_allocate(exporting, 100);
    quire_memory *pinned = cuda_bench_memory(&b, QUIRE_CUDA_PINNED, &SMALL);
    parcel p = export(), zeros = {.size = 100};
    refuses(exporting, UNSUPPORTED, import_of(&p), "of this process");
    refuses(pinned, UNSUPPORTED, import_of(&p), "import type 6");
    refuses(exporting, INVALID, import_of(&zeros), "cuIpcOpenMemHandle");
    refuses(exporting, INVALID, (quire_cuda_import){.type = QUIRE_CUDA_IMPORT_IPC, .size = 100},
            "null");
    p.size = 0;
    refuses(exporting, INVALID, import_of(&p), "size 0");
    CHECK_EQ(b.fc->live(FC_OPENED), 0);
}
