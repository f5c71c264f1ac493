/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * main.c - runs the areas of misuse.h.
 */
#include <dirent.h>
#include <stdio.h>

#include "tests/misuse/misuse.h"
#include "tests/support/state.h"

static const misuse_area *const areas[] = {
    &misuse_base,     &misuse_compact, &misuse_memory, &misuse_plan,
    &misuse_resource, &misuse_space,   &misuse_stream, &misuse_transfer,
#ifdef MISUSE_VULKAN
    &misuse_vulkan,
#endif
#ifdef MISUSE_CUDA
    &misuse_cuda,
#endif
#ifdef MISUSE_PLUGIN
    &misuse_plugin,
#endif
};

enum { AREAS = sizeof areas / sizeof *areas };

/* Headers whose functions no area calls: a unit test does, or this build lacks the backend. */
static const char *const elsewhere[] = {
    "nvtx.h",        /* tests/unit/adapters/nvtx/nvtx.c */
    "onnxruntime.h", /* tests/unit/adapters/onnxruntime/onnxruntime.c */
    "quire_vma.h",   /* tests/unit/adapters/vma */
#ifndef MISUSE_VULKAN
    "vulkan.h",
    "vulkan_device.h",
    "vulkan_share.h",
    "vulkan_sparse.h",
    "lluvia.h",
#endif
#ifndef MISUSE_CUDA
    "cuda.h",
    "cuda_array.h",
    "cuda_pool.h",
    "cuda_share.h",
#endif
#ifndef MISUSE_PLUGIN
    "plugin.h",
#endif
    NULL,
};

static const char *root;
static const misuse_area *running;

static void no_function_is_forgotten(void)
{
    for (int i = 0; running->headers[i]; i++)
        refusal_covers(root, running->headers[i]);
}

static void run_area(const misuse_area *area)
{
    char name[128];
    running = area;
    refusal_forget();
    if (area->begin) {
        plain_begin(area->name);
        area->begin();
    }
    for (const misuse_case *c = area->cases; c->name; c++) {
        snprintf(name, sizeof name, "%s: %s", area->name, c->name);
        plain_case(name, c->body);
    }
    snprintf(name, sizeof name, "%s: no function is forgotten", area->name);
    plain_case(name, no_function_is_forgotten);
    if (area->end)
        area->end();
}

/* ---- every header has an area --------------------------------------------------------------- */

static bool is_in(const char *const *headers, const char *name)
{
    for (; *headers; headers++)
        if (!strcmp(*headers, name))
            return true;
    return false;
}

static bool has_area(const char *header)
{
    for (int i = 0; i < AREAS; i++)
        if (is_in(areas[i]->headers, header))
            return true;
    return is_in(elsewhere, header);
}

static void no_header_is_forgotten(void)
{
    char path[512];
    int headers = 0;
    snprintf(path, sizeof path, "%s/include/quire", root);
    DIR *folder = opendir(path);
    CHECK(folder != NULL);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        size_t length = strlen(entry->d_name);
        if (length < 3 || strcmp(entry->d_name + length - 2, ".h"))
            continue;
        headers++;
        if (!has_area(entry->d_name))
            check_failed(__FILE__, __LINE__, "no area misuses %s", entry->d_name);
    }
    closedir(folder);
    CHECK(headers > 10);
}

int main(int argc, char **argv)
{
    const char *chosen = argc % 2 == 0 ? argv[argc - 1] : NULL; /* options have values */
    root = state_root(argc, argv);
    for (int i = 0; i < AREAS; i++)
        if (!chosen || !strcmp(chosen, areas[i]->name))
            run_area(areas[i]);
    printf("# %" PRIu32 " checks\n", refusal_checks());
    if (!chosen)
        plain_case("every public header has an area", no_header_is_forgotten);
    return plain_end();
}
