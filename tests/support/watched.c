/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * watched.c - see watched.h.
 */
#include "tests/support/watched.h"

#include <stdio.h>

#include "src/base/poison.h"
#include "tests/support/check.h"

static void keep_line(void *user, quire_log_level level, const char *line)
{
    watched *w = user;
    if (level > QUIRE_LOG_WARNING || w->is_quiet)
        return;
    size_t length = strlen(w->log);
    snprintf(w->log + length, sizeof w->log - length, "%s\n", line);
}

void watched_prepare(watched *w)
{
    memset(w, 0, sizeof *w);
    fake_init(&w->fake);
}

void watched_open(watched *w, const quire_memory_options *options)
{
    const quire_device_options device = {.log = {.write = keep_line, .user = w}};
    CHECK_OK(quire_device_create(&w->fake.table, &w->fake, &device, &w->device));
    CHECK_OK(quire_memory_create(w->device, options, &w->memory));
}

void watched_make(watched *w, uint32_t kind)
{
    watched_prepare(w);
    watched_open(w, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind,
                                            .pages = {.page_size = 65536}});
}

void watched_end(watched *w)
{
    quire_memory_destroy_all(&w->memory);
    CHECK_OK(quire_device_destroy(&w->device));
    CHECK_EQ(w->fake.pages + w->fake.maps + w->fake.objects, 0);
}

quire_allocation watched_allocate(watched *w, uint64_t size, const char *name)
{
    const quire_allocation_options options = {.size = size, .name = name, .user_data = 77};
    CHECK_OK(quire_allocate(w->memory, &options, &w->allocation));
    return w->allocation;
}

quire_allocation_info watched_info(watched *w, quire_allocation allocation)
{
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(w->memory, allocation, &info));
    return info;
}

quire_native watched_native(watched *w, quire_allocation allocation)
{
    quire_native native;
    CHECK_OK(quire_allocation_get_native(w->memory, allocation, &native));
    return native;
}

/* Poisoned bytes stay poisoned: the byte is accessible only for this access. */
static unsigned char exchange(const quire_native *native, int64_t at, unsigned char change)
{
    volatile unsigned char *byte = (unsigned char *)native->host + at;
    bool is_shut = qi_is_poisoned((const void *)(uintptr_t)byte);
    if (is_shut)
        qi_unpoison((const void *)(uintptr_t)byte, 1);
    unsigned char seen = *byte;
    if (change)
        *byte = (unsigned char)(seen ^ change);
    if (is_shut)
        qi_poison((const void *)(uintptr_t)byte, 1);
    return seen;
}

unsigned char watched_byte(watched *w, const quire_native *native, int64_t at)
{
    unsigned char byte = 0;
    if (native->host)
        return exchange(native, at, 0);
    CHECK_OK(w->fake.table.copy_from_page(&w->fake, &native->page,
                                          (uint64_t)((int64_t)native->offset + at), &byte, 1));
    return byte;
}

void watched_spoil(watched *w, const quire_native *native, int64_t at)
{
    unsigned char byte = watched_byte(w, native, at) ^ 0x40;
    if (native->host)
        exchange(native, at, 0x40);
    else
        CHECK_OK(w->fake.table.copy_to_page(&w->fake, &native->page,
                                            (uint64_t)((int64_t)native->offset + at), &byte, 1));
}

void watched_settle(watched *w)
{
    CHECK_OK(quire_memory_trim(w->memory, UINT64_MAX, NULL));
}
