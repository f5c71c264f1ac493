/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* host.c - the host backend: the devices it poses as, its heaps, the cost of its pages, and its
   host pointers. memfds and huge pages are in host_backing.c. */
#include "tests/support/fake.h"
#include "tests/support/same_limits.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "quire/host.h"
#include "quire/quire.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static quire_device *open_host(quire_host_options options)
{
    quire_device *device = NULL;
    options.device.host_memory = unit_memory();
    CHECK_OK(quire_host_open(&options, &device));
    return device;
}

static quire_memory *create(quire_device *device, quire_memory_options options)
{
    quire_memory *memory = NULL;
    CHECK_OK(quire_memory_create(device, &options, &memory));
    return memory;
}

static void end(quire_device *device, quire_memory *memory)
{
    if (memory)
        CHECK_OK(quire_memory_check(memory));
    quire_memory_destroy_all(&memory);
    CHECK_OK(quire_device_destroy(&device));
}

static quire_allocation allocate(quire_memory *memory, uint64_t size)
{
    quire_allocation allocation;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = size}, &allocation));
    return allocation;
}

static quire_device_info info_of(const quire_device *device)
{
    quire_device_info info;
    CHECK_OK(quire_device_get_info(device, &info));
    return info;
}

/* ---- posing ------------------------------------------------------------------------------- */

UNIT(host, nothing_asked_is_two_heaps_of_a_tebibyte_and_four_kinds)
{
    quire_device *device = open_host((quire_host_options){.row_alignment = 0});
    quire_device_info info = info_of(device);
    CHECK_STR(info.name, "host");
    CHECK_STR(info.backend, "host");
    CHECK_EQ(info.heap_count, 2);
    CHECK_EQ(info.heaps[0].size, 1024 * GIB);
    CHECK_EQ(info.heaps[0].flags, QUIRE_HEAP_DEVICE_LOCAL);
    CHECK_EQ(info.heaps[1].size, 1024 * GIB);
    CHECK_EQ(info.heaps[1].flags, 0);
    CHECK_EQ(info.kind_count, 4);
    CHECK_EQ(info.kinds[0].flags, QUIRE_DEVICE_LOCAL);
    CHECK_EQ(info.kinds[1].flags, QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT);
    CHECK_EQ(info.kinds[2].flags, QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT | QUIRE_HOST_CACHED);
    CHECK_EQ(info.kinds[3].flags, QUIRE_DEVICE_LOCAL | QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT);
    CHECK_EQ(info.kinds[3].heap, 0);
    CHECK_EQ(info.limits.buffer_alignment, 64);
    CHECK_EQ(info.limits.image_row_alignment, 64);
    CHECK(!info.exportable);
    end(device, NULL);
    CHECK_OK(quire_host_open(NULL, &device)); /* the same with malloc */
    CHECK_EQ(info_of(device).kind_count, 4);
    end(device, NULL);
}

UNIT(host, a_profile_is_posed_as_it_stands)
{
    char name[] = "GeForce";
    quire_host_profile profile = {
        .name = name,
        .heap_count = 3,
        .kind_count = 2,
        .heaps = {{.size = 7 * GIB, .flags = QUIRE_HEAP_DEVICE_LOCAL | QUIRE_HEAP_MULTI_INSTANCE},
                  {.size = 0},
                  {.size = 1}},
        .kinds = {{.flags = QUIRE_HOST_VISIBLE | QUIRE_HOST_CACHED, .heap = 1},
                  {.flags = QUIRE_DEVICE_LOCAL | QUIRE_LAZILY_ALLOCATED}},
        .limits = {.page_granularity = 65536,
                   .page_alignment = 4 * MIB,
                   .max_page = 4292870144,
                   .max_pages = 4096,
                   .buffer_image_granularity = 1024,
                   .non_coherent_atom = 128,
                   .buffer_alignment = 256,
                   .image_row_alignment = 512},
    };
    quire_device *device = open_host((quire_host_options){.profile = &profile});
    name[0] = 'X';
    quire_host_profile given = profile;
    memset(&profile, 0, sizeof profile); /* it was copied */
    quire_device_info info = info_of(device);
    CHECK_STR(info.name, "GeForce");
    CHECK_EQ(info.heap_count, 3);
    CHECK_EQ(info.heaps[0].size, 7 * GIB);
    CHECK_EQ(info.heaps[0].flags, given.heaps[0].flags);
    CHECK_EQ(info.heaps[1].size, 8 * GIB); /* unknown size: the default */
    CHECK_EQ(info.heaps[2].size, 1);
    CHECK_EQ(info.kinds[0].flags, given.kinds[0].flags);
    CHECK_EQ(info.kinds[0].heap, 1);
    CHECK_EQ(info.kinds[1].flags, given.kinds[1].flags);
    CHECK_EQ(info.limits.elastic_kinds, (UINT64_C(1) << info.kind_count) - 1);
    CHECK_EQ(info.limits.elastic_granularity, 65536); /* that of its pages */
    info.limits.elastic_kinds = 0; /* the capability of the backend, whatever it poses as */
    info.limits.elastic_granularity = 0;
    CHECK(same_limits(&info.limits, &given.limits));
    end(device, NULL);
}

UNIT(host, limits_below_what_the_host_needs_are_raised)
{
    quire_host_profile profile = {
        .heap_count = 1,
        .kind_count = 1,
        .kinds = {{.flags = QUIRE_DEVICE_LOCAL}},
        .limits = {.page_granularity = 1, .page_alignment = 16, .buffer_alignment = 4},
    };
    quire_device *device = open_host((quire_host_options){.profile = &profile});
    quire_device_info info = info_of(device);
    CHECK_STR(info.name, "host"); /* a profile without a name */
    CHECK_EQ(info.limits.page_granularity, 256);
    CHECK_EQ(info.limits.page_alignment, 0); /* 0: the alignment of each request */
    CHECK_EQ(info.limits.buffer_alignment, 64);
    CHECK_EQ(info.limits.buffer_image_granularity, 1);
    end(device, NULL);
}

static void expect_no_device(const quire_host_options *options, const char *says)
{
    quire_host_options resolved = *options;
    resolved.device.host_memory = unit_memory();
    quire_device *device = (quire_device *)&resolved;
    CHECK_FAILS(quire_host_open(&resolved, &device), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), says);
    CHECK(device == NULL);
    CHECK_EQ(unit_memory_state()->blocks, 0);
}

UNIT(host, wrong_options_are_refused)
{
    expect_no_device(&(quire_host_options){.backing = (quire_host_backing)2},
                     "unknown host backing 2");
    expect_no_device(&(quire_host_options){.huge_pages = (quire_host_huge_pages)3},
                     "unknown huge page mode 3");
    expect_no_device(&(quire_host_options){.row_alignment = 3}, "row alignment 3");
    expect_no_device(&(quire_host_options){.unused = {1}}, "quire_host_options.unused[0]");
    expect_no_device(&(quire_host_options){.device = {.unused = {0, 1}}},
                     "quire_device_options.unused[1]");
    CHECK_FAILS(quire_host_open(NULL, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
}

UNIT(host, profiles_that_cannot_be_a_device_are_refused)
{
    const quire_host_profile good = {
        .heap_count = 1, .kind_count = 1, .kinds = {{.flags = QUIRE_DEVICE_LOCAL}}};
    quire_host_profile profile = good;
    const quire_host_options options = {.profile = &profile};
    profile.kind_count = 0;
    expect_no_device(&options, "1 heap and 0 memory kinds");
    profile.kind_count = 33;
    expect_no_device(&options, "33 memory kinds");
    profile = good;
    profile.heap_count = 0;
    expect_no_device(&options, "0 heaps");
    profile.heap_count = 17;
    expect_no_device(&options, "17 heaps");
    profile = good;
    profile.kinds[0].heap = 1;
    expect_no_device(&options, "heap 1 of 1");
    profile = good;
    profile.limits.page_granularity = 3;
    expect_no_device(&options, "page_granularity is 3");
    profile = good;
    profile.limits.non_coherent_atom = 48;
    expect_no_device(&options, "non_coherent_atom is 48");
    profile = good;
    profile.kinds[0].flags = QUIRE_HOST_COHERENT;
    expect_no_device(&options, "not host-visible");
}

/* ---- systems that lack something ---------------------------------------------------------- */

/* Makes a system call fail with `code` in this process if one argument has any of `bits`. Every
   test is its own process. Returns false if filters are not available. */
static bool deny(uint32_t call, size_t argument, uint32_t bits, uint32_t code)
{
    uint32_t low = (uint32_t)(offsetof(struct seccomp_data, args) + 8 * argument);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    low += 4;
#endif
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void expect_unsupported(quire_host_options options, const char *says, int code)
{
    quire_device *device = (quire_device *)&options;
    options.device.host_memory = unit_memory();
    CHECK_FAILS(quire_host_open(&options, &device), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), says);
    CHECK_EQ(quire_last_native_code(), code);
    CHECK(device == NULL);
    CHECK_EQ(unit_memory_state()->blocks, 0);
}

UNIT_ALONE(host, a_system_without_memfds_is_told_at_open)
{
    if (!deny(SYS_memfd_create, 1, MFD_CLOEXEC, ENOSYS))
        return;
    expect_unsupported((quire_host_options){.backing = QUIRE_HOST_MEMFD}, "memfd", ENOSYS);
    end(open_host((quire_host_options){.backing = QUIRE_HOST_ANONYMOUS}), NULL);
}

UNIT_ALONE(host, a_system_without_huge_pages_is_told_at_open)
{
    if (!deny(SYS_mmap, 3, MAP_HUGETLB, EINVAL) || !deny(SYS_memfd_create, 1, MFD_HUGETLB, ENODEV))
        return;
    quire_host_options options = {.huge_pages = QUIRE_HOST_HUGE_RESERVED};
    expect_unsupported(options, "huge pages of 2 MiB", EINVAL);
    options.backing = QUIRE_HOST_MEMFD;
    expect_unsupported(options, "huge pages of 2 MiB", ENODEV);
    options.huge_pages = QUIRE_HOST_HUGE_ADVISE; /* huge pages are only a hint */
    end(open_host(options), NULL);
}

/* Reads a counter of the reserve of huge pages; -1 if the file does not exist. */
static long long reserve_of(const char *name)
{
    char path[128];
    long long value = -1;
    snprintf(path, sizeof path, "/sys/kernel/mm/hugepages/hugepages-2048kB/%s", name);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%lld", &value) != 1)
        value = -1;
    if (file)
        fclose(file);
    return value;
}

UNIT(host, a_system_that_reserves_no_huge_pages_is_told_at_open)
{
    if (reserve_of("nr_hugepages") || reserve_of("nr_overcommit_hugepages"))
        return; /* some, or unknown */
    quire_host_options options = {.huge_pages = QUIRE_HOST_HUGE_RESERVED};
    expect_unsupported(options, "nr_hugepages", 0);
    options.backing = QUIRE_HOST_MEMFD;
    expect_unsupported(options, "nr_hugepages", 0);
}

/* No free descriptor at this moment says nothing about the system. */
UNIT_ALONE(host, a_passing_lack_of_descriptors_does_not_keep_a_device_from_opening)
{
    if (!deny(SYS_memfd_create, 1, MFD_CLOEXEC, EMFILE))
        return;
    end(open_host((quire_host_options){.backing = QUIRE_HOST_MEMFD}), NULL);
}

/* ---- heaps -------------------------------------------------------------------------------- */

UNIT(host, a_heap_is_kept_to_the_byte_and_free_again_after_a_page)
{
    quire_host_profile profile = {
        .heap_count = 1,
        .kind_count = 2,
        .heaps = {{.size = 10240}},
        .kinds = {{.flags = QUIRE_DEVICE_LOCAL},
                  {.flags = QUIRE_DEVICE_LOCAL | QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT}}};
    quire_device *device = open_host((quire_host_options){.profile = &profile});
    quire_memory *memory = create(device, (quire_memory_options){.pages = {.page_size = 1024}});
    quire_memory *other = create(device, (quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE,
                                                                .pages = {.page_size = 1024}});
    quire_allocation none, most = allocate(memory, 9216);
    allocate(other, 1024); /* both kinds use this heap */
    CHECK_FAILS(quire_allocate(memory, &(quire_allocation_options){.size = 1}, &none),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_HAS(quire_last_error(), "heap 0 of 'host' has 0 B of 10 KiB left, 256 B requested");
    CHECK_OK(quire_free(memory, most));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    most = allocate(memory, 9216);
    quire_memory_destroy_all(&other);
    CHECK_OK(quire_free(memory, most));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    allocate(memory, 10240);
    CHECK_FAILS(quire_allocate(memory, &(quire_allocation_options){.size = 10241}, &none),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_HAS(quire_last_error(), "has 10 KiB in all");
    end(device, memory);
}

/* Measures the address space of this process and its part in RAM, in bytes. */
static void measure(uint64_t *space, uint64_t *resident)
{
    unsigned long long whole = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL);
    CHECK_EQ(fscanf(file, "%llu %llu", &whole, &pages), 2);
    fclose(file);
    *space = whole * (uint64_t)sysconf(_SC_PAGESIZE);
    *resident = pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

UNIT(host, pages_cost_address_space_until_they_are_touched)
{
    static const quire_memory_flags kinds[] = {QUIRE_DEVICE_LOCAL, QUIRE_HOST_VISIBLE};
    for (int k = 0; k < 2; k++) {
        quire_device *device = open_host((quire_host_options){.row_alignment = 0});
        quire_memory *memory = create(device, (quire_memory_options){.kind.required = kinds[k]});
        uint64_t space = 0, before = 0, after = 0;
        measure(&space, &before);
        for (int i = 0; i < 60 * 32; i++) /* 60 GiB in pages of 32 MiB */
            allocate(memory, 32 * MIB);
        quire_memory_info info;
        CHECK_OK(quire_memory_get_info(memory, &info));
        CHECK_EQ(info.page_count, 60 * 32);
        measure(&space, &after);
        CHECK(after < before + 64 * MIB);
        end(device, memory);
    }
}

UNIT(host, address_space_is_taken_for_the_page_alone_and_given_back)
{
    quire_device *device = open_host((quire_host_options){.row_alignment = 0});
    quire_memory *memory =
        create(device, (quire_memory_options){.fit.max_alignment = GIB}); /* an approximate limit */
    uint64_t before = 0, during = 0, after = 0, resident = 0;
    measure(&before, &resident);
    for (int i = 0; i < 16; i++)
        allocate(memory, 32 * MIB);
    measure(&during, &resident);
    CHECK(during - before < GIB); /* 512 MiB plus the records */
    quire_memory_destroy_all(&memory);
    measure(&after, &resident);
    CHECK(after < before + 64 * MIB);
    end(device, NULL);
}

/* ---- pointers ----------------------------------------------------------------------------- */

UNIT(host, a_host_pointer_needs_no_map_and_is_none_for_the_devices_memory)
{
    static const quire_memory_flags kinds[] = {QUIRE_HOST_VISIBLE, QUIRE_DEVICE_LOCAL};
    for (int k = 0; k < 2; k++) {
        quire_device *device = open_host((quire_host_options){.row_alignment = 0});
        quire_memory *memory = create(device, (quire_memory_options){.kind.required = kinds[k]});
        allocate(memory, 100);
        quire_allocation allocation = allocate(memory, 100);
        void *pointer = &device, *mapped = NULL;
        quire_allocation_info info;
        CHECK_OK(quire_host_pointer(memory, allocation, &pointer));
        CHECK_OK(quire_allocation_get_info(memory, allocation, &info));
        CHECK_EQ(info.address, (uintptr_t)pointer); /* the native address is the pointer */
        CHECK((pointer == NULL) == (k == 1));
        if (k == 0) {
            CHECK_OK(quire_map(memory, allocation, &mapped));
            CHECK(mapped == pointer);
        }
        CHECK_OK(quire_write(memory, allocation, 0, "reached", 8));
        char bytes[8];
        CHECK_OK(quire_read(memory, allocation, 0, bytes, 8));
        CHECK_STR(bytes, "reached");
        end(device, memory);
    }
}

UNIT(host, memories_of_other_backends_have_no_host_pointer)
{
    quire_device *device = NULL;
    fake_backend fake;
    fake_init(&fake);
    CHECK_OK(fake_open(&fake, unit_memory(), &device));
    quire_memory *memory =
        create(device, (quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE});
    void *pointer = &device;
    CHECK_FAILS(quire_host_pointer(memory, allocate(memory, 100), &pointer),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "not of the host backend");
    CHECK(pointer == NULL);
    end(device, memory);
}
