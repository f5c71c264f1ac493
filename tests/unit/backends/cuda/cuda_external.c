/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_external.c - memory of other APIs as pages of the CUDA backend: files as a driver exports
 * them, the GPU they belong to, and refusals. tests/plain/cuda_vulkan.c has Vulkan as the exporter.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/cuda_bench.h"
#include "tests/support/unit.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define MIB (UINT64_C(1) << 20)

/* Creates a file of a size, which stands for memory of another driver. */
static int make_file(uint64_t size)
{
    int file = memfd_create("theirs", MFD_CLOEXEC);
    CHECK(file >= 0 && !ftruncate(file, (off_t)size));
    return file;
}

static quire_memory *begin(cuda_bench *b)
{
    cuda_bench_start(b, NULL);
    b->descriptor = make_file(3 * MIB);
    return cuda_bench_memory(b, QUIRE_CUDA_DEVICE, NULL);
}

static quire_cuda_import whole(const cuda_bench *b)
{
    return (quire_cuda_import){.type = QUIRE_CUDA_IMPORT_EXTERNAL_FD,
                               .descriptor = b->descriptor,
                               .size = 3 * MIB,
                               .name = "theirs"};
}

CUDA_UNIT_EACH(cuda_external, the_same_bytes_are_read_and_written, dedicated, 2)
{
    quire_cuda_info info;
    quire_cuda_range range;
    quire_allocation_info told;
    quire_allocation page;
    char bytes[12] = "from them", back[12];
    quire_memory *memory = begin(b);
    quire_cuda_import import = whole(b);
    CHECK_OK(quire_cuda_get_info(b->device, &info));
    import.device_uuid = info.uuid;
    import.is_dedicated = dedicated;
    CHECK_EQ(pwrite(b->descriptor, bytes, 12, 2 * MIB), 12);
    CHECK_OK(quire_cuda_import_range(memory, &import, &page));
    CHECK_OK(quire_read(memory, page, 2 * MIB, back, 12));
    CHECK_STR(back, "from them");
    CHECK_OK(quire_write(memory, page, MIB, "from quire", 11));
    CHECK_EQ(pread(b->descriptor, back, 11, MIB), 11);
    CHECK_STR(back, "from quire");
    CHECK_OK(quire_cuda_get_range(memory, page, &range));
    CHECK(range.size == 3 * MIB && range.page_size == 3 * MIB && range.address);
    CHECK(!range.page_offset && !range.handle && !range.export_types && !range.host);
    CHECK_OK(quire_allocation_get_info(memory, page, &told));
    CHECK(told.dedicated);
    CHECK_EQ(b->fc->live(FC_EXTERNAL), 1);
    CHECK_OK(quire_free(memory, page));
    CHECK_EQ(b->fc->live(FC_EXTERNAL) + b->fc->live(FC_BUFFER), 0);
}

CUDA_UNIT_IN(cuda_external, another_gpu_is_refused_by_name, begin(b))
{
    quire_cuda_info info;
    quire_allocation page;
    quire_cuda_import import = whole(b);
    CHECK_OK(quire_cuda_get_info(b->device, &info));
    info.uuid[0] ^= 0xff;
    import.device_uuid = info.uuid;
    uint64_t calls = b->fc->calls(NULL);
    CHECK_FAILS(quire_cuda_import_range(memory, &import, &page), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "is of GPU 99616b65-2067-7075-206e-756d62657200"); /* "fake .." */
    CHECK_HAS(quire_last_error(), "'fake h200', device 0, is GPU 66616b65-");
    CHECK_EQ(b->fc->calls(NULL), calls);
}

CUDA_UNIT_ON(cuda_external, a_driver_that_does_not_tell_its_gpu_cannot_be_compared,
             cuda_bench_begin(b, NULL))
{
    quire_cuda_info info;
    quire_allocation page;
    static const uint8_t any[QUIRE_CUDA_UUID_SIZE] = {1};
    CHECK(b->fc->hide("cuDeviceGetUuid"));
    CHECK(cuda_bench_open(b, NULL));
    CHECK_OK(quire_cuda_get_info(b->device, &info));
    for (int i = 0; i < QUIRE_CUDA_UUID_SIZE; i++)
        CHECK_EQ(info.uuid[i], 0);
    quire_memory *memory = cuda_bench_memory(b, QUIRE_CUDA_DEVICE, NULL);
    b->descriptor = make_file(3 * MIB);
    quire_cuda_import import = whole(b);
    import.device_uuid = any;
    CHECK_FAILS(quire_cuda_import_range(memory, &import, &page), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "does not tell");
    import.device_uuid = NULL;
    CHECK_OK(quire_cuda_import_range(memory, &import, &page));
}

CUDA_UNIT_IN(cuda_external, what_is_no_such_memory_is_refused_and_the_descriptor_stays_ours,
             begin(b))
{
    quire_allocation page;
    quire_memory *pinned = cuda_bench_memory(b, QUIRE_CUDA_PINNED, NULL);
    quire_cuda_import import = whole(b);
    CHECK_FAILS(quire_cuda_import_range(pinned, &import, &page), UNSUPPORTED);
    import.size = 4 * MIB;
    CHECK_FAILS(quire_cuda_import_range(memory, &import, &page), INVALID);
    import.size = 0;
    CHECK_FAILS(quire_cuda_import_range(memory, &import, &page), INVALID);
    import = whole(b);
    import.descriptor = -1;
    CHECK_FAILS(quire_cuda_import_range(memory, &import, &page), INVALID);
    import.descriptor = 100000;
    CHECK_FAILS(quire_cuda_import_range(memory, &import, &page), QUIRE_ERROR_BACKEND_FAILURE);
    import = whole(b);
    import.unused[3] = 1;
    CHECK_FAILS(quire_cuda_import_range(memory, &import, &page), INVALID);
    import = whole(b);
    CHECK_OK(quire_cuda_import_range(memory, &import, &page));
}

UNIT(cuda_external, what_the_driver_does_not_take_back_is_gone_on_with_later)
{
    static const struct {
        const char *function;
        qi_cu_result code;
    } calls[] = {{"cuMemFree", QI_CUDA_ERROR_INVALID_VALUE},
                 {"cuDestroyExternalMemory", QI_CUDA_ERROR_INVALID_HANDLE}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        cuda_bench b;
        quire_allocation page;
        quire_memory *memory = begin(&b);
        quire_cuda_import import = whole(&b);
        CHECK_OK(quire_cuda_import_range(memory, &import, &page));
        CHECK(b.fc->fail(
            &(fc_fault){.function = calls[i].function, .call = 1, .result = calls[i].code}));
        CHECK_OK(quire_free(memory, page));
        CHECK_EQ(b.fc->live(FC_EXTERNAL), 1);
        b.fc->heal();
        CHECK_OK(quire_cuda_import_range(memory, &import, &page)); /* destroys the other one too */
        CHECK_EQ(b.fc->live(FC_EXTERNAL), 1);
        cuda_bench_end(&b);
    }
}
