/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * host.c - the contract's subjects for the host backend: itself, and the devices that it poses as.
 */
#include "quire/host.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/contract/kit.h"
#include "tests/contract/strict.h"
#include "tests/contract/subjects.h"

/* ---- opening ------------------------------------------------------------------------------ */

static quire_result open_host(const contract_subject *subject, const quire_host_memory *host,
                              contract_opened *opened)
{
    quire_host_options options =
        subject->options ? *(const quire_host_options *)subject->options : (quire_host_options){0};
    options.device.host_memory = host;
    quire_result result = quire_host_open(&options, &opened->device);
    opened->own = opened->device;
    return result;
}

/* More than the scenarios allocate at one time. */
enum { HUGE_BYTES = 256 << 20 };

/* The system may allow huge pages and have none left. Without /sys only a mapping shows that. */
static quire_result open_huge(const contract_subject *subject, const quire_host_memory *host,
                              contract_opened *opened)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
    void *bytes = mmap(NULL, HUGE_BYTES, PROT_NONE, flags, -1, 0);
    if (bytes == MAP_FAILED)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, errno,
                                  "the system has no 256 MiB of huge pages free: %s",
                                  strerror(errno));
    munmap(bytes, HUGE_BYTES);
    return open_host(subject, host, opened);
}

static quire_result set_budget(void *own, uint32_t heap, uint64_t bytes)
{
    return quire_host_set_budget(own, heap, bytes);
}

/* ---- poses -------------------------------------------------------------------------------- */

#define COHERENT (QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT)
#define GIB (1024 * MIB)

/* A card whose memory the host cannot access, with few features. */
static const quire_host_profile discrete = {
    .name = "discrete",
    .heap_count = 2,
    .kind_count = 3,
    .heaps = {{.size = 4 * GIB, .flags = QUIRE_HEAP_DEVICE_LOCAL}, {.size = 8 * GIB}},
    .kinds = {{.flags = QUIRE_DEVICE_LOCAL, .heap = 0},
              {.flags = QUIRE_DEVICE_LOCAL | QUIRE_LAZILY_ALLOCATED, .heap = 0},
              {.flags = COHERENT, .heap = 1}},
    .limits = {.max_pages = 64, .max_page = GIB},
};

static const quire_host_profile not_coherent = {
    .name = "not coherent",
    .heap_count = 1,
    .kind_count = 3,
    .heaps = {{.size = 4 * GIB, .flags = QUIRE_HEAP_DEVICE_LOCAL}},
    .kinds = {{.flags = QUIRE_DEVICE_LOCAL | QUIRE_HOST_VISIBLE, .heap = 0},
              {.flags = QUIRE_HOST_VISIBLE | QUIRE_HOST_CACHED, .heap = 0},
              {.flags = QUIRE_DEVICE_LOCAL | COHERENT, .heap = 0}},
    .limits = {.non_coherent_atom = 256},
};

static const quire_host_profile grainy = {
    .name = "grainy",
    .heap_count = 1,
    .kind_count = 2,
    .heaps = {{.size = 4 * GIB, .flags = QUIRE_HEAP_DEVICE_LOCAL}},
    .kinds = {{.flags = QUIRE_DEVICE_LOCAL, .heap = 0},
              {.flags = QUIRE_DEVICE_LOCAL | COHERENT, .heap = 0}},
    .limits = {.buffer_image_granularity = 1024,
               .page_granularity = 64 * KIB,
               .page_alignment = 4 * MIB,
               .buffer_alignment = 256},
};

static const quire_host_profile small = {
    .name = "small",
    .heap_count = 2,
    .kind_count = 3,
    .heaps = {{.size = 8 * MIB, .flags = QUIRE_HEAP_DEVICE_LOCAL}, {.size = 12 * MIB}},
    .kinds = {{.flags = QUIRE_DEVICE_LOCAL, .heap = 0},
              {.flags = COHERENT, .heap = 1},
              {.flags = QUIRE_HOST_VISIBLE | QUIRE_HOST_CACHED, .heap = 1}},
    .limits = {.non_coherent_atom = 64},
};

const contract_subject subject_host = {.name = "host", .open = open_host, .set_budget = set_budget};

const contract_subject subject_not_coherent = {
    .name = "host, not coherent, atom 256",
    .options = &(const quire_host_options){.profile = &not_coherent},
    .open = open_host,
    .set_budget = set_budget,
};

const contract_subject subject_small = {
    .name = "host, small heaps",
    .options = &(const quire_host_options){.profile = &small},
    .open = open_host,
    .set_budget = set_budget,
};

static const contract_subject subject_discrete = {
    .name = "host as a discrete card",
    .options = &(const quire_host_options){.profile = &discrete},
    .open = open_host,
    .set_budget = set_budget,
};

static const contract_subject subject_grainy = {
    .name = "host, granularity 1024, pages of 64 KiB",
    .options = &(const quire_host_options){.profile = &grainy},
    .open = open_host,
    .set_budget = set_budget,
};

static const contract_subject subject_rows = {
    .name = "host, rows of 4096",
    .options = &(const quire_host_options){.row_alignment = 4096},
    .open = open_host,
    .set_budget = set_budget,
};

static const contract_subject subject_memfd = {
    .name = "host on memfds",
    .options = &(const quire_host_options){.backing = QUIRE_HOST_MEMFD},
    .open = open_host,
    .set_budget = set_budget,
};

static const contract_subject subject_huge = {
    .name = "host on reserved huge pages",
    .options = &(const quire_host_options){.huge_pages = QUIRE_HOST_HUGE_RESERVED},
    .open = open_huge,
    .set_budget = set_budget,
};

/* Enforces the caches of the pose above. */
const contract_subject subject_strict = {
    .name = "host behind a cache",
    .options = &subject_not_coherent,
    .open = strict_open,
    .close = strict_close,
    .set_budget = strict_set_budget,
};

const contract_subject *const host_subjects[] = {
    &subject_host,   &subject_discrete, &subject_not_coherent, &subject_strict, &subject_small,
    &subject_grainy, &subject_rows,     &subject_memfd,        &subject_huge,   NULL,
};
