/* plugin_fork.c - a forked child with a plugin's device of its parent: every call is refused except
   destroying, which releases the records and does not call the plugin. */
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/plugin_bench.h"
#include "tests/support/unit.h"

#define DENIED QUIRE_ERROR_NOT_PERMITTED

static bool is_refused(plugin_bench *b, quire_allocation held)
{
    quire_allocation a;
    quire_plugin_info info;
    quire_device *again = NULL;
    char byte = 0;
    const quire_plugin_options options = {.path = TEST_PLUGIN};
    quire_memory *m = b->memories[0];
    return quire_allocate(m, &(quire_allocation_options){.size = 1 << 20}, &a) == DENIED &&
           quire_read(m, held, 0, &byte, 1) == DENIED && quire_free(m, held) == DENIED &&
           quire_plugin_get_info(b->device, &info) == DENIED &&
           quire_plugin_open(&options, &again) == DENIED && !again;
}

static bool is_ended(plugin_bench *b)
{
    return !quire_stream_destroy(&b->streams[0]) && !quire_memory_destroy(&b->memories[0]) &&
           !quire_device_destroy(&b->devices[0]) && !b->host_memory.blocks;
}

static bool child(plugin_bench *b, quire_allocation held)
{
    uint64_t calls = b->tp->calls(0);
    alarm(20);
    return is_refused(b, held) && is_ended(b) && b->tp->calls(0) == calls;
}

UNIT(plugin_fork, a_forked_child_is_refused_and_can_end_everything)
{
    plugin_bench b;
    quire_allocation held;
    plugin_bench_begin(&b, NULL);
    CHECK(plugin_bench_open(&b, 0, NULL));
    quire_memory *memory = plugin_bench_memory(&b, 0, 0, NULL);
    CHECK(memory != NULL);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &held));
    CHECK_OK(quire_stream_create(b.device, NULL, &b.streams[0]));
    CHECK_OK(quire_free_on_stream(memory, held, b.streams[0]));
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &held));
    pid_t made = fork();
    CHECK(made >= 0);
    if (!made)
        child_end(child(&b, held));
    CHECK(child_was_well(made));
    CHECK_OK(quire_free(memory, held));
    plugin_bench_end(&b);
}
