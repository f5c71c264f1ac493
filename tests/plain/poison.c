/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * poison.c - a checked build under AddressSanitizer: a program that accesses a byte outside its
 * allocations, in a page of the host backend, ends at that access with the sanitizer's report.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "quire/host.h"
#include "src/base/poison.h"
#include "tests/support/plain.h"

enum { SIZE = 100 };

static quire_device *device;
static quire_memory *memory;
static quire_allocation allocation;

static volatile char *make(void)
{
    void *bytes = NULL;
    const quire_memory_options options = {.kind.required =
                                              QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT};
    CHECK_OK(quire_host_open(NULL, &device));
    CHECK_OK(quire_memory_create(device, &options, &memory));
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = SIZE}, &allocation));
    CHECK_OK(quire_map(memory, allocation, &bytes));
    return bytes;
}

static void end(void)
{
    quire_memory_destroy_all(&memory);
    CHECK_OK(quire_device_destroy(&device));
}

static void write_behind(void)
{
    volatile char *bytes = make();
    bytes[SIZE] = 1;
}

static void write_in_front(void)
{
    volatile char *bytes = make();
    bytes[-1] = 1;
}

static void read_behind(void)
{
    volatile char *bytes = make();
    printf("%d\n", bytes[SIZE]);
}

static void write_after_free(void)
{
    volatile char *bytes = make();
    CHECK_OK(quire_unmap(memory, allocation));
    CHECK_OK(quire_free(memory, allocation));
    bytes[SIZE / 2] = 1;
}

static void write_far_away(void)
{
    volatile char *bytes = make();
    bytes[1 << 19] = 1; /* within the first page of 1 MiB */
}

static void write_inside(void)
{
    volatile char *bytes = make();
    bytes[0] = bytes[SIZE - 1] = 1;
    CHECK_OK(quire_unmap(memory, allocation));
    CHECK_OK(quire_free(memory, allocation));
    end();
}

/* Runs a part in a child; returns its standard error, and how it ended. */
static int play(void (*part)(void), char *report, size_t room)
{
    int ends[2], status = 0;
    CHECK_EQ(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        part();
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    char rest[4096];
    for (ssize_t got; (got = read(ends[0], rest, sizeof rest)) > 0;)
        for (ssize_t i = 0; i < got && length + 1 < room; i++)
            report[length++] = rest[i];
    report[length] = '\0';
    close(ends[0]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

/* Returns whether the access is in the part itself, not in a later check: by its address, because a
   report names files only if the machine has the sanitizer's symbolizer. */
static bool is_within(const char *report, void (*part)(void))
{
    enum { MAX_CODE = 4096 };
    const char *at = strstr(report, " at pc 0x");
    uintptr_t pc = at ? (uintptr_t)strtoull(at + strlen(" at pc "), NULL, 16) : 0;
    return pc >= (uintptr_t)part && pc - (uintptr_t)part < MAX_CODE;
}

static const struct violation {
    const char *name;
    void (*part)(void);
    const char *access;
} violations[] = {
    {"a byte after an allocation, written", write_behind, "WRITE of size 1"},
    {"a byte after an allocation, read", read_behind, "READ of size 1"},
    {"a byte before an allocation", write_in_front, "WRITE of size 1"},
    {"a byte after the free", write_after_free, "WRITE of size 1"},
    {"a byte of no allocation", write_far_away, "WRITE of size 1"},
};

static const struct violation *current;

static void expect_report(void)
{
    static char report[65536];
    int status = play(current->part, report, sizeof report);
    CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    CHECK_HAS(report, "AddressSanitizer: use-after-poison");
    CHECK_HAS(report, current->access);
    CHECK(is_within(report, current->part));
}

static void inside(void)
{
    static char report[65536];
    CHECK_EQ(play(write_inside, report, sizeof report), 0);
    CHECK_STR(report, "");
}

/* Destroyed pages leave no poisoned bytes for the next owner of their addresses. */
static void pages_given_back(void)
{
    for (int i = 0; i < 4; i++) {
        volatile char *bytes = make();
        bytes[0] = 1;
        end();
        char *others = malloc(UINT64_C(64) << 20);
        CHECK(others != NULL);
        for (size_t at = 0; at < (size_t)64 << 20; at += 4096)
            others[at] = 1;
        free(others);
    }
}

static void unless_asan(const char *name, void (*body)(void))
{
#ifdef QI_HAS_ASAN
    plain_case(name, body);
#else
    (void)body;
    plain_skip(name, "this build has no address sanitizer");
#endif
}

int main(void)
{
    plain_case("a valid program ends normally", inside);
    plain_case("destroyed pages are not poisoned", pages_given_back);
    for (size_t i = 0; i < sizeof violations / sizeof *violations; i++) {
        current = &violations[i];
        unless_asan(current->name, expect_report);
    }
    return plain_end();
}
