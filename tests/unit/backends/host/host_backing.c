/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* host_backing.c - the backing of host pages: memfds that others can map, and huge pages. Creating
   pages leaves mappings of other threads alone. */
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/host/host.h"
#include "quire/quire.h"
#include "tests/support/valgrind.h"

#define MIB (UINT64_C(1) << 20)
#define TIB (UINT64_C(1) << 40)

enum { PAGE = 65536 };

typedef struct bench {
    quire_device *device;
    quire_memory *memory;
} bench;

static void make(bench *b, quire_host_options host, quire_memory_options options)
{
    *b = (bench){.device = NULL};
    host.device.host_memory = unit_memory();
    CHECK_OK(quire_host_open(&host, &b->device));
    CHECK_OK(quire_memory_create(b->device, &options, &b->memory));
}

static void end(bench *b)
{
    CHECK_OK(quire_memory_check(b->memory));
    quire_memory_destroy_all(&b->memory);
    CHECK_OK(quire_device_destroy(&b->device));
}

#define CASE(name) UNIT_ON(host_backing, name, bench, b, (void)b, end)

static quire_allocation allocate(bench *b, uint64_t size)
{
    quire_allocation allocation;
    CHECK_OK(quire_allocate(b->memory, &(quire_allocation_options){.size = size}, &allocation));
    return allocation;
}

static int descriptor_of(bench *b, quire_allocation allocation, uint64_t *offset)
{
    int descriptor = -1;
    CHECK_OK(quire_host_descriptor(b->memory, allocation, &descriptor, offset));
    CHECK(descriptor >= 0);
    return descriptor;
}

/* ---- memfd -------------------------------------------------------------------------------- */

UNIT(host_backing, another_mapping_of_the_descriptor_sees_the_same_bytes)
{
    static const quire_memory_flags kinds[] = {QUIRE_DEVICE_LOCAL, QUIRE_HOST_VISIBLE};
    for (int k = 0; k < 2; k++) {
        bench b;
        make(&b, (quire_host_options){.backing = QUIRE_HOST_MEMFD},
             (quire_memory_options){.kind.required = kinds[k], .pages = {.page_size = PAGE}});
        allocate(&b, 1000);
        quire_allocation allocation = allocate(&b, 1000);
        quire_allocation_info info;
        uint64_t offset = 0;
        int descriptor = descriptor_of(&b, allocation, &offset);
        CHECK_OK(quire_allocation_get_info(b.memory, allocation, &info));
        CHECK_EQ(offset, info.offset);
        CHECK(offset > 0);
        struct stat stat;
        CHECK(!fstat(descriptor, &stat));
        CHECK(stat.st_size >= PAGE);
        char *bytes = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        CHECK(bytes != MAP_FAILED);
        CHECK_OK(quire_write(b.memory, allocation, 0, "there", 6));
        CHECK_STR(bytes + offset, "there");
        memcpy(bytes + offset, "back again", 11);
        char text[11];
        CHECK_OK(quire_read(b.memory, allocation, 0, text, 11));
        CHECK_STR(text, "back again");
        munmap(bytes, PAGE);
        end(&b);
    }
}

/* Touching bytes that were cut off would end every process with SIGBUS, the owner included. */
CASE(who_has_the_descriptor_cannot_change_the_size)
{
    uint64_t offset = 0;
    make(b, (quire_host_options){.backing = QUIRE_HOST_MEMFD},
         (quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE, .pages = {.page_size = PAGE}});
    quire_allocation allocation = allocate(b, 5000);
    int descriptor = descriptor_of(b, allocation, &offset), other = dup(descriptor);
    CHECK_EQ(fcntl(other, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    CHECK(ftruncate(other, 0) < 0 && errno == EPERM);
    CHECK(ftruncate(other, (off_t)PAGE * 2) < 0 && errno == EPERM);
    CHECK_OK(quire_write(b->memory, allocation, 0, "there", 6));
    close(other);
}

CASE(the_descriptor_goes_with_its_page_and_a_duplicate_stays)
{
    make(b, (quire_host_options){.backing = QUIRE_HOST_MEMFD},
         (quire_memory_options){.pages = {.page_size = PAGE}});
    quire_allocation allocation = allocate(b, PAGE);
    uint64_t offset = 0;
    int descriptor = descriptor_of(b, allocation, &offset), kept = dup(descriptor);
    CHECK(fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
    CHECK_OK(quire_write(b->memory, allocation, 0, "kept", 5));
    CHECK_OK(quire_free(b->memory, allocation));
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    CHECK(fcntl(descriptor, F_GETFD) == -1 && errno == EBADF);
    char text[5];
    CHECK_EQ(pread(kept, text, 5, 0), 5);
    CHECK_STR(text, "kept");
    close(kept);
}

CASE(each_page_has_a_descriptor_of_its_own)
{
    make(b, (quire_host_options){.backing = QUIRE_HOST_MEMFD},
         (quire_memory_options){.pages = {.page_size = PAGE}});
    quire_allocation first = allocate(b, PAGE / 2), second = allocate(b, PAGE / 2),
                     third = allocate(b, PAGE);
    uint64_t offset = 0;
    int one = descriptor_of(b, first, &offset);
    CHECK(descriptor_of(b, second, &offset) == one);
    CHECK_EQ(offset, PAGE / 2);
    CHECK(descriptor_of(b, third, &offset) != one);
    CHECK_EQ(offset, 0);
}

CASE(descriptor_0_is_as_good_as_any)
{
    int input = dup(STDIN_FILENO);
    make(b, (quire_host_options){.backing = QUIRE_HOST_MEMFD},
         (quire_memory_options){.pages = {.page_size = PAGE}});
    close(STDIN_FILENO); /* the next descriptor is 0 */
    quire_allocation allocation = allocate(b, PAGE);
    uint64_t offset = 0;
    CHECK_EQ(descriptor_of(b, allocation, &offset), 0);
    CHECK_OK(quire_free(b->memory, allocation));
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    CHECK(fcntl(0, F_GETFD) == -1);
    CHECK_EQ(dup(input < 0 ? STDERR_FILENO : input), 0);
}

UNIT(host_backing, a_label_of_any_length_names_it)
{
    char name[QUIRE_MAX_NAME + 1];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    const char *const names[] = {name, "", "weights"};
    for (int i = 0; i < 3; i++) {
        bench b;
        make(&b, (quire_host_options){.backing = QUIRE_HOST_MEMFD},
             (quire_memory_options){.name = names[i], .pages = {.page_size = PAGE}});
        uint64_t offset = 0;
        char link[64], target[512] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d",
                 descriptor_of(&b, allocate(&b, 1), &offset));
        CHECK(readlink(link, target, sizeof target - 1) > 0);
        CHECK_HAS(target, "quire");
        CHECK_HAS(target, i == 0 ? "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" : names[i]);
        end(&b);
    }
}

CASE(anonymous_pages_have_no_descriptor)
{
    make(b, (quire_host_options){.backing = QUIRE_HOST_ANONYMOUS},
         (quire_memory_options){.pages = {.page_size = PAGE}});
    quire_allocation allocation = allocate(b, 1);
    int descriptor = 7;
    uint64_t offset = 7;
    CHECK_FAILS(quire_host_descriptor(b->memory, allocation, &descriptor, &offset),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "QUIRE_HOST_MEMFD");
    CHECK(descriptor == -1 && offset == 0);
}

UNIT(host_backing, pages_are_exportable_with_memfd_only)
{
    const quire_intent exported = QUIRE_INTENT_EXPORT;
    const quire_memory_options options = {.kind.intent = exported};
    bench b;
    make(&b, (quire_host_options){.backing = QUIRE_HOST_MEMFD}, options);
    quire_device_info info;
    CHECK_OK(quire_device_get_info(b.device, &info));
    CHECK(info.exportable);
    end(&b);
    quire_host_options host = {.device = {.host_memory = unit_memory()}};
    CHECK_OK(quire_host_open(&host, &b.device));
    CHECK_FAILS(quire_memory_create(b.device, &options, &b.memory), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "backend host cannot export");
    CHECK_OK(quire_device_destroy(&b.device));
}

/* ---- huge pages --------------------------------------------------------------------------- */

static const quire_host_backing BACKINGS[] = {QUIRE_HOST_ANONYMOUS, QUIRE_HOST_MEMFD};

static void use(bench *b, uint64_t size)
{
    quire_allocation allocation = allocate(b, size);
    for (uint64_t at = 0; at < size; at += 4096)
        CHECK_OK(quire_write(b->memory, allocation, at, &at, sizeof at));
    for (uint64_t at = 0; at < size; at += 4096) {
        uint64_t value = 0;
        CHECK_OK(quire_read(b->memory, allocation, at, &value, sizeof value));
        CHECK_EQ(value, at);
    }
}

UNIT(host_backing, transparent_huge_pages_are_advice)
{
    for (int k = 0; k < 2; k++) {
        bench b;
        make(&b, (quire_host_options){.backing = BACKINGS[k], .huge_pages = QUIRE_HOST_HUGE_ADVISE},
             (quire_memory_options){.pages = {.page_size = 4 << 20}});
        use(&b, 4 << 20);
        end(&b);
    }
}

UNIT(host_backing, reserved_huge_pages_are_there_or_the_device_or_the_page_is_refused)
{
    for (int k = 0; k < 2; k++) {
        bench b;
        quire_host_options host = {.backing = BACKINGS[k],
                                   .huge_pages = QUIRE_HOST_HUGE_RESERVED,
                                   .device = {.host_memory = unit_memory()}};
        quire_result result = quire_host_open(&host, &b.device);
        if (result) {
            CHECK_EQ(result, QUIRE_ERROR_UNSUPPORTED);
            continue;
        }
        CHECK_OK(quire_device_destroy(&b.device));
        make(&b, host, (quire_memory_options){.pages = {.page_size = 1 << 20}});
        quire_memory_info info;
        CHECK_OK(quire_memory_get_info(b.memory, &info));
        CHECK_EQ(info.page_size, 2 << 20); /* whole huge pages */
        quire_allocation allocation;
        result =
            quire_allocate(b.memory, &(quire_allocation_options){.size = 2 << 20}, &allocation);
        if (!result) {
            CHECK_OK(quire_free(b.memory, allocation));
            use(&b, 2 << 20);
        } else {
            CHECK_EQ(result, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
        }
        end(&b);
    }
}

/* ---- addresses ---------------------------------------------------------------------------- */

UNIT(host_backing, every_page_is_aligned_to_2_mib_or_to_what_the_memory_asks)
{
    static const uint64_t alignments[] = {1, 2 * MIB, 64 * MIB};
    for (int i = 0; i < 6; i++) {
        bench b;
        make(&b, (quire_host_options){.backing = BACKINGS[i % 2]},
             (quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE,
                                    .fit.max_alignment = alignments[i / 2],
                                    .pages = {.page_size = PAGE}});
        for (uint32_t page = 0; page < 4; page++) {
            allocate(&b, PAGE);
            quire_page_info info;
            CHECK_OK(quire_page_get_info(b.memory, page, &info));
            CHECK_EQ(info.address % (2 * MIB), 0);
            CHECK_EQ(info.address % alignments[i / 2], 0);
        }
        end(&b);
    }
}

/* A new mapping has zeros. Checked builds touch it where they write the red zones. */
UNIT(host_backing, zeros_of_a_page_of_its_own_touch_none_of_its_bytes)
{
    enum { SYSTEM_PAGES = 16384 };
    static unsigned char resident[SYSTEM_PAGES];
    const uint64_t size = SYSTEM_PAGES * (uint64_t)sysconf(_SC_PAGESIZE);
    for (int k = 0; k < 2; k++) {
        bench b;
        void *bytes = NULL;
        quire_allocation zeros;
        uint64_t touched = 0;
        make(&b, (quire_host_options){.backing = BACKINGS[k]},
             (quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE});
        CHECK_OK(quire_allocate(
            b.memory, &(quire_allocation_options){.size = size, .zero = true, .dedicated = true},
            &zeros));
        CHECK_OK(quire_map(b.memory, zeros, &bytes));
        uintptr_t first = (uintptr_t)bytes & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
        CHECK(!mincore((void *)first, size, resident));
        for (int i = 0; i < SYSTEM_PAGES; i++)
            touched += resident[i] & 1;
        CHECK(touched < SYSTEM_PAGES / 2);
        CHECK_EQ(*((char *)bytes + size / 2), 0);
        end(&b);
    }
}

/* ---- beside another thread that maps ------------------------------------------------------ */

/* The state of a host device without a device. Tests request pages with it that quire_host_open
   refuses because the system lacks them. */
static qi_host_device make_state(quire_host_backing backing, quire_host_huge_pages huge_pages)
{
    qi_host_device state = {
        .name = "raw",
        .profile = {.heap_count = 1, .kind_count = 1, .heaps = {{.size = 64 * TIB}}},
        .backing = backing,
        .huge_pages = huge_pages,
        .system_page = (uint64_t)sysconf(_SC_PAGESIZE),
    };
    state.profile.limits.page_alignment = QI_HOST_PAGE_ALIGNMENT;
    CHECK_OK(qi_host_init(&state.host, unit_memory()));
    return state;
}

typedef struct neighbour {
    pthread_t thread;
    atomic_bool stop;
    atomic_ullong rounds, changed;
} neighbour;

/* Maps, uses and unmaps memory. The thread crashes or finds changed bytes if another thread takes
   the memory. */
static void *map_and_use(void *user)
{
    neighbour *n = user;
    enum { STEP = 65536 };
    for (uint64_t round = 1; !n->stop; round++) {
        char *bytes =
            mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (bytes == MAP_FAILED)
            continue;
        for (uint64_t at = 0; at < 8 * MIB; at += STEP)
            memcpy(bytes + at, &round, sizeof round);
        for (uint64_t at = 0; at < 8 * MIB; at += STEP)
            n->changed += memcmp(bytes + at, &round, sizeof round) != 0;
        munmap(bytes, 8 * MIB);
        n->rounds++;
    }
    return NULL;
}

static void start(neighbour *n)
{
    if (under_valgrind())
        unit_skip("valgrind does not get through this race of mappings");
    *n = (neighbour){.rounds = 0};
    CHECK(!pthread_create(&n->thread, NULL, map_and_use, n));
    while (!n->rounds)
        sched_yield();
}

static void stop(neighbour *n)
{
    n->stop = true;
    CHECK(!pthread_join(n->thread, NULL));
    CHECK_EQ(n->changed, 0);
}

static const quire_page_request REQUEST = {.size = 24 * MIB, .alignment = 2 * MIB};

UNIT(host_backing, a_page_that_cannot_be_had_takes_nothing_from_others)
{
    neighbour n;
    start(&n);
    for (int k = 0; k < 2; k++) {
        qi_host_device state = make_state(BACKINGS[k], QUIRE_HOST_HUGE_RESERVED);
        for (int i = 0; i < 10000; i++) {
            quire_native_page page;
            quire_result result = qi_host_page_create(&state, &REQUEST, &page);
            if (!result) { /* the system has them */
                qi_host_page_destroy(&state, &page);
                continue;
            }
            CHECK_EQ(result, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
            CHECK(quire_last_native_code() > 0); /* errno */
            CHECK_EQ(qi_atomic_load_u64(&state.heap_used[0]), 0);
        }
    }
    stop(&n);
}

UNIT(host_backing, pages_are_had_while_another_thread_maps)
{
    neighbour n;
    start(&n);
    for (int k = 0; k < 2; k++) {
        qi_host_device state = make_state(BACKINGS[k], QUIRE_HOST_HUGE_NONE);
        for (int i = 0; i < 4000; i++) {
            quire_native_page page;
            quire_page_request request = REQUEST;
            void *bytes = NULL;
            request.alignment = i % 2 ? 64 * MIB : 1;
            CHECK_OK(qi_host_page_create(&state, &request, &page));
            CHECK_OK(qi_host_page_map(&state, &page, &bytes));
            CHECK_EQ((uintptr_t)bytes % (i % 2 ? 64 * MIB : 2 * MIB), 0);
            CHECK_OK(qi_host_copy_to_page(&state, &page, request.size - 4, "end", 4));
            CHECK_STR((char *)bytes + request.size - 4, "end");
            qi_host_page_destroy(&state, &page);
        }
    }
    stop(&n);
}
