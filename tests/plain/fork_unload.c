/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fork_unload.c - a fork after the library was loaded, used and unloaded: its handlers are gone.
 *
 *     fork_unload --library FILE
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "quire/host.h"
#include "quire/quire.h"
#include "tests/support/child.h"
#include "tests/support/plain.h"

static const char *file;

/* In C, data and functions of dlsym have different pointer types. */
static void load(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    CHECK(found != NULL);
    memcpy(function, &found, sizeof found);
}

/* Creates one object of each kind, and destroys them. */
static void use(void *library)
{
    quire_result (*open)(const quire_host_options *, quire_device **);
    quire_result (*create)(quire_device *, const quire_memory_options *, quire_memory **);
    quire_result (*allocate)(quire_memory *, const quire_allocation_options *, quire_allocation *);
    void (*destroy_all)(quire_memory **);
    quire_result (*destroy)(quire_device **);
    quire_device *device;
    quire_memory *memory;
    quire_allocation made;
    load(library, "quire_host_open", &open);
    load(library, "quire_memory_create", &create);
    load(library, "quire_allocate", &allocate);
    load(library, "quire_memory_destroy_all", &destroy_all);
    load(library, "quire_device_destroy", &destroy);
    CHECK_OK(open(NULL, &device));
    CHECK_OK(create(device, NULL, &memory));
    CHECK_OK(allocate(memory, &(quire_allocation_options){.size = 100}, &made));
    destroy_all(&memory);
    CHECK_OK(destroy(&device));
}

static void fork_here(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        alarm(20);
        child_end(true);
    }
    CHECK(child_was_well(child));
}

static void unloaded(void)
{
    for (int i = 0; i < 3; i++) {
        void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        CHECK(library != NULL);
        use(library);
        if (i)
            fork_here();
        CHECK(!dlclose(library));
        CHECK(!dlopen(file, RTLD_NOW | RTLD_NOLOAD)); /* it is unloaded indeed */
        fork_here();
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], "--library"))
            file = argv[i + 1];
    CHECK(file != NULL);
    plain_case("a fork after the library was unloaded", unloaded);
    return plain_end();
}
