/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * host_coherence.c - kinds that the host sees and that are not coherent: a forgotten flush or
 * invalidate leaves old bytes, as on a device with a cache.
 */
#include "quire/host.h"
#include "quire/quire.h"
#include "tests/support/unit.h"

#define MIB (UINT64_C(1) << 20)
#define TIB (UINT64_C(1) << 40)

enum { SIZE = 1000 };

/* As mobile GPUs have them: what the host reads fast is cached and not coherent. */
static const quire_host_profile mobile = {
    .name = "mobile",
    .heap_count = 1,
    .kind_count = 2,
    .heaps = {{.size = TIB, .flags = QUIRE_HEAP_DEVICE_LOCAL}},
    .kinds = {{.flags = QUIRE_DEVICE_LOCAL},
              {.flags = QUIRE_DEVICE_LOCAL | QUIRE_HOST_VISIBLE | QUIRE_HOST_CACHED}},
    .limits = {.non_coherent_atom = 64},
};

typedef struct bench {
    quire_device *device;
    quire_memory *cached, *local; /* of kind 1, and of kind 0, which only the device reaches */
    quire_allocation seen, hidden;
    char *pointer; /* of `seen` */
} bench;

static void begin(bench *b, const quire_memory_options *options)
{
    void *pointer = NULL;
    quire_memory_options cached = *options;
    cached.kind.intent = QUIRE_INTENT_HOST_READ;
    const quire_host_options host = {.profile = &mobile, .device.host_memory = unit_memory()};
    CHECK_OK(quire_host_open(&host, &b->device));
    CHECK_OK(quire_memory_create(b->device, &cached, &b->cached));
    CHECK_OK(quire_memory_create(b->device, NULL, &b->local));
    const quire_allocation_options size = {.size = SIZE};
    CHECK_OK(quire_allocate(b->cached, &size, &b->seen));
    CHECK_OK(quire_allocate(b->local, &size, &b->hidden));
    CHECK_OK(quire_map(b->cached, b->seen, &pointer));
    b->pointer = pointer;
    CHECK_OK(quire_write(b->cached, b->seen, 0, "old", 4)); // which host and device see
}

static void end(bench *b)
{
    quire_memory_destroy_all(&b->cached);
    quire_memory_destroy_all(&b->local);
    CHECK_OK(quire_device_destroy(&b->device));
}

/* A test with these options of the cached memory. */
#define CASE(name, ...)                                                                            \
    UNIT_ON(host_coherence, name, bench, b, begin(b, &(quire_memory_options){__VA_ARGS__}), end)

/* On the device. */
static void copy(quire_copy_end to, quire_copy_end from, uint64_t size)
{
    CHECK_OK(quire_copy(&(quire_copy_options){.to = to, .from = from, .size = size}, NULL));
}

/* A byte of an allocation of `cached` as the device sees it. */
static char seen_by_device(bench *b, quire_allocation allocation, uint64_t offset)
{
    char byte = 0;
    copy((quire_copy_end){.memory = b->local, .allocation = b->hidden},
         (quire_copy_end){.memory = b->cached, .allocation = allocation, .offset = offset}, 1);
    CHECK_OK(quire_read(b->local, b->hidden, 0, &byte, 1));
    return byte;
}

/* Text that the device writes to `seen`. */
static void write_on_device(bench *b, const char *text)
{
    const uint64_t size = strlen(text) + 1;
    CHECK_OK(quire_write(b->local, b->hidden, 0, text, size));
    copy((quire_copy_end){.memory = b->cached, .allocation = b->seen},
         (quire_copy_end){.memory = b->local, .allocation = b->hidden}, size);
}

CASE(the_device_sees_what_is_flushed, 0)
{
    memset(b->pointer, 'a', SIZE);
    CHECK_EQ(seen_by_device(b, b->seen, 0), 'o');
    CHECK_OK(quire_flush(b->cached, b->seen, 0, 0));
    CHECK_EQ(seen_by_device(b, b->seen, 0), 'a');
}

CASE(the_host_sees_what_is_invalidated, 0)
{
    write_on_device(b, "written by the device");
    CHECK_STR(b->pointer, "old");
    CHECK_OK(quire_invalidate(b->cached, b->seen, 0, 0));
    CHECK_STR(b->pointer, "written by the device");
}

CASE(the_address_is_the_devices_and_the_pointer_the_hosts, .find_by_address = true)
{
    void *pointer = NULL;
    quire_allocation_info info;
    quire_allocation found;
    CHECK_OK(quire_allocation_get_info(b->cached, b->seen, &info));
    CHECK_OK(quire_host_pointer(b->cached, b->seen, &pointer));
    CHECK(pointer == b->pointer);
    const char *device_bytes = (const char *)(uintptr_t)info.address;
    CHECK(device_bytes && device_bytes != b->pointer);
    memcpy(b->pointer, "flushed", 8);
    CHECK_OK(quire_flush(b->cached, b->seen, 0, 0));
    CHECK_STR(device_bytes, "flushed");
    const uint64_t addresses[] = {info.address + 1, (uintptr_t)b->pointer + 1};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(quire_memory_find(b->cached, addresses[i], &found));
        CHECK_EQ(found.id, b->seen.id);
    }
}

/* Both mappings of an elastic page get and lose their chunks, which come back with zeros. */
CASE(an_elastic_page_keeps_the_two_apart, .elastic = true, .address_space = 64 * MIB)
{
    void *pointer = NULL;
    quire_allocation large;
    for (int round = 0; round < 2; round++) {
        CHECK_OK(quire_allocate(
            b->cached, &(quire_allocation_options){.size = 32 * MIB, .zero = true}, &large));
        CHECK_OK(quire_map(b->cached, large, &pointer));
        char *last = (char *)pointer + 32 * MIB - 1;
        CHECK_EQ(*last, 0);
        *last = 'x';
        CHECK_EQ(seen_by_device(b, large, 32 * MIB - 1), 0);
        CHECK_OK(quire_flush(b->cached, large, 0, 0));
        CHECK_OK(quire_unmap(b->cached, large));
        CHECK_OK(quire_free(b->cached, large));
        CHECK_OK(quire_memory_trim(b->cached, 0, NULL));
    }
}
