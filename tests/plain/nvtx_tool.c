/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * nvtx_tool.c - libquire_nvtx and NVTX's own headers together: a tool that NVTX finds like a
 * sanitizer receives a page and an allocation in it, with the addresses that the program uses.
 *
 *     nvtx_tool LIBRARY
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quire/host.h"
#include "quire/nvtx.h"
#include "quire/quire.h"
#include "tests/support/nvtx/tool.h"

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            printf("# %s:%d: %s: %s\nnot ok 1 - a tool receives page and allocation\n1..1\n",      \
                   __FILE__, __LINE__, #what, quire_last_error());                                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const nvtx_calls *find_tool(const char *library)
{
    const nvtx_calls *(*find)(void) = NULL;
    void *tool = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *found = tool ? dlsym(tool, "nvtx_tool") : NULL;
    if (!found)
        return NULL;
    memcpy(&find, &found, sizeof find);
    return find();
}

int main(int argc, char **argv)
{
    quire_device *device;
    quire_memory *memory;
    quire_nvtx *watch;
    quire_allocation a;
    void *pointer;
    CHECK(argc == 2 && !setenv("NVTX_INJECTION64_PATH", argv[1], 1));
    const nvtx_calls *calls = find_tool(argv[1]);
    CHECK(calls);
    CHECK(!quire_host_open(NULL, &device));
    CHECK(!quire_memory_create(device, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE},
                               &memory));
    CHECK(!quire_nvtx_watch(memory, NULL, &watch));
    CHECK(!quire_allocate(memory, &(quire_allocation_options){.size = 1001}, &a));
    CHECK(!quire_map(memory, a, &pointer));
    CHECK(calls->heaps == 1 && calls->regions == 1);
    CHECK(calls->region.begin == pointer && calls->region.size == 1001);
    CHECK((const char *)calls->heap.begin <= (char *)pointer &&
          (char *)pointer + 1001 <= (const char *)calls->heap.begin + calls->heap.size);
    CHECK(!quire_unmap(memory, a) && !quire_free(memory, a));
    CHECK(calls->regions_ended == 1 && !calls->heaps_ended);
    CHECK(!quire_memory_trim(memory, 0, NULL));
    CHECK(calls->heaps_ended == 1 && !calls->wrong);
    CHECK(!quire_nvtx_end(&watch));
    CHECK(!quire_memory_destroy(&memory) && !quire_device_destroy(&device));
    CHECK(calls->heaps_ended == 1 && calls->heaps == 1);
    printf("ok 1 - a tool receives page and allocation\n1..1\n");
    return 0;
}
