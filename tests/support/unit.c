/*
 * unit.c - see unit.h.
 */
#include "tests/support/unit.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/support/leaks.h"

static test_memory memory;

/* The process that runs the tests. A child that a test forked cannot report to Criterion, which
   never answers it. */
static pid_t process;

__attribute__((constructor)) static void remember_process(void)
{
    process = getpid();
}

_Noreturn void check_failed(const char *file, int line, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (getpid() != process) {
        fprintf(stderr, "%s:%d: in a forked child: %s\n", file, line, text);
        _exit(1);
    }
    cr_assert_fail("%s:%d: %s", file, line, text);
    __builtin_unreachable();
}

const quire_host_memory *unit_memory(void)
{
    if (!memory.callbacks.allocate)
        test_memory_init(&memory);
    return &memory.callbacks;
}

test_memory *unit_memory_state(void)
{
    unit_memory();
    return &memory;
}

void unit_end(void)
{
    if (memory.bytes || memory.blocks)
        check_failed(__FILE__, __LINE__, "%" PRIu64 " bytes in %" PRIu64 " blocks are left",
                     memory.bytes, memory.blocks);
    if (leaks_found())
        check_failed(__FILE__, __LINE__, "the leak sanitizer found leaks");
}
