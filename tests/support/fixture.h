/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fixture.h - a memory on a device of the fake backend, for unit tests of the code above them.
 */
#ifndef QUIRE_TESTS_SUPPORT_FIXTURE_H
#define QUIRE_TESTS_SUPPORT_FIXTURE_H

#include "quire/quire.h"
#include "tests/support/fake.h"
#include "tests/support/unit.h"

typedef struct fixture {
    fake_backend fake;
    quire_device *device;
    quire_memory *memory;
} fixture;

/* A fake that the test may change before fixture_open; fixture_make does both steps. */
void fixture_prepare(fixture *f);
void fixture_open(fixture *f, const quire_memory_options *options);
void fixture_make(fixture *f, const quire_memory_options *options);

/* Destroys memory and device with all live objects, and checks that the backend has none left. */
void fixture_end(fixture *f);

/* An allocation that must succeed, and where one lies. */
quire_allocation fixture_allocate(fixture *f, const quire_allocation_options *options);
quire_allocation_info fixture_info(fixture *f, quire_allocation allocation);

/* A request that must fail with this code: it makes nothing. */
void fixture_allocate_fails(fixture *f, quire_result code, const quire_allocation_options *options);

/* fixture_allocate by another thread, which works in a different shard than the caller. */
quire_allocation fixture_allocate_elsewhere(fixture *f, const quire_allocation_options *options);
void fixture_free_elsewhere(fixture *f, quire_allocation allocation);

/* A buffer and an image that must succeed. */
quire_buffer fixture_buffer(fixture *f, const quire_buffer_options *options);
quire_image fixture_image(fixture *f, const quire_image_options *options);

quire_memory_stats fixture_stats(fixture *f);

/* A test of a memory with these options; 0 means the defaults. */
#define UNIT_MEMORY(suite, name, object, ...)                                                      \
    UNIT_ON(suite, name, fixture, object,                                                          \
            fixture_make(object, &(quire_memory_options){__VA_ARGS__}), fixture_end)

/* A test that changes the fake of its fixture before it opens it. */
#define UNIT_PREPARED(suite, name, object)                                                         \
    UNIT_ON(suite, name, fixture, object, fixture_prepare(object), fixture_end)

#define ALLOCATE(f, ...) fixture_allocate((f), &(quire_allocation_options){__VA_ARGS__})

#define ALLOCATE_FAILS(f, code, ...)                                                               \
    fixture_allocate_fails((f), (code), &(quire_allocation_options){__VA_ARGS__})

#define BUFFER(f, ...) fixture_buffer((f), &(quire_buffer_options){__VA_ARGS__})
#define IMAGE(f, ...) fixture_image((f), &(quire_image_options){__VA_ARGS__})

#define ALLOCATE_ELSEWHERE(f, ...)                                                                 \
    fixture_allocate_elsewhere((f), &(quire_allocation_options){__VA_ARGS__})

#endif
