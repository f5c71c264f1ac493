/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * callbacks.c - see callbacks.h.
 *
 * Each callback performs its actions unless another callback is running, because the actions of a
 * sink write log lines too. A place lists what must occur if callbacks only read, so that no place
 * can be skipped unnoticed. A call that does not return ends the program by a signal.
 */
#include "tests/support/callbacks_scene.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/support/check.h"

/* ---- log lines ------------------------------------------------------------------------------ */

static const struct {
    const char *part;
    occurrence what;
} LINES[] = {
    {"opened: backend", OPENED},
    {"closed", CLOSED},
    {"is not destroyed", DEVICE_BUSY},
    {"' made: kind", MEMORY_MADE},
    {"' destroyed", MEMORY_DESTROYED},
    {"still holds", STILL_HOLDS},
    {" made, ", PAGE_LINE},
    {" grown, ", GROWN_LINE},
    {"pages given back", GIVEN_LINE},
};

/* ---- the scene ------------------------------------------------------------------------------ */

static const uint32_t ACTIONS[] = {
    LOOK, SMALL, KEEP, DEDICATED, HOPELESS, TRIM, SMALL | TRIM | HOPELESS, LOOK | KEEP | DEDICATED};

enum { MAX_CALLS = 5000, TIMEOUT_SECONDS = 240 };

scene callbacks_scene;
static char text[400]; /* the current place, for the signal handler */

static void end_by_timeout(int number)
{
    (void)number;
    ssize_t written = write(2, text, strlen(text));
    (void)written;
    _exit(1);
}

/* ---- what callbacks do ---------------------------------------------------------------------- */

static bool visit_nothing(void *user, const quire_item *item)
{
    (void)user, (void)item;
    return true;
}

static bool write_nothing(void *user, const char *piece, size_t size)
{
    (void)user, (void)piece, (void)size;
    return true;
}

static void look(quire_memory *m)
{
    quire_memory_stats stats;
    quire_device_stats whole;
    CHECK_OK(quire_memory_get_stats(m, &stats));
    CHECK_OK(quire_device_get_stats(callbacks_scene.device, &whole));
    CHECK_OK(quire_memory_write_report(m, write_nothing, NULL));
    CHECK_OK(quire_memory_write_json(m, write_nothing, NULL));
    CHECK_OK(quire_memory_walk(m, visit_nothing, NULL));
    CHECK_OK(quire_memory_check(m));
}

/* A request may fail only for lack of memory, or because the memory is being destroyed. */
bool callbacks_allocate(quire_memory *m, const quire_allocation_options *options,
                        quire_allocation *a)
{
    quire_result result = quire_allocate(m, options, a);
    CHECK(!result || result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY ||
          result == QUIRE_ERROR_OVER_BUDGET || result == QUIRE_ERROR_TOO_MANY_PAGES ||
          result == QUIRE_ERROR_OUT_OF_RANGE || result == QUIRE_ERROR_WRONG_STATE);
    CHECK(result != QUIRE_ERROR_WRONG_STATE || !callbacks_scene.memory);
    return !result;
}

static void use_small(quire_memory *m)
{
    quire_allocation a;
    quire_memory_info info;
    void *pointer;
    if (!callbacks_allocate(m, &(quire_allocation_options){.size = 64, .name = "a/sink"}, &a))
        return;
    CHECK_OK(quire_memory_get_info(m, &info));
    if (info.mappable) {
        CHECK_OK(quire_map(m, a, &pointer));
        memset(pointer, 1, 64);
        CHECK_OK(quire_unmap(m, a));
    }
    CHECK_OK(quire_free(m, a));
}

static void keep(quire_memory *m)
{
    quire_result result =
        callbacks_scene.kept.id ? quire_free(m, callbacks_scene.kept) : QUIRE_SUCCESS;
    CHECK(!result || !callbacks_scene.memory); /* a destroyed memory has freed its allocations */
    callbacks_scene.kept.id = 0;
    if (!callbacks_allocate(m, &(quire_allocation_options){.size = 100}, &callbacks_scene.kept))
        callbacks_scene.kept.id = 0;
}

static void use_whole_page(quire_memory *m)
{
    quire_allocation a;
    if (callbacks_allocate(
            m, &(quire_allocation_options){.size = callbacks_scene.page, .dedicated = true}, &a))
        CHECK_OK(quire_free(m, a));
}

static void request_too_much(quire_memory *m)
{
    quire_allocation none;
    CHECK(!callbacks_allocate(m, &(quire_allocation_options){.size = UINT64_C(1) << 50}, &none));
}

/* Every callback calls this. */
static void act(uint32_t what)
{
    callbacks_scene.seen |= what;
    if (callbacks_scene.is_inside)
        return;
    callbacks_scene.is_inside = true;
    if (++callbacks_scene.calls > MAX_CALLS)
        check_failed(__FILE__, __LINE__, "the callbacks are called without end: %s", text);
    quire_memory *m = callbacks_scene.in_use;
    if (m && callbacks_scene.actions & LOOK)
        look(m);
    if (m && callbacks_scene.actions & SMALL)
        use_small(m);
    if (m && callbacks_scene.actions & KEEP)
        keep(m);
    if (m && callbacks_scene.actions & DEDICATED)
        use_whole_page(m);
    if (m && callbacks_scene.actions & HOPELESS)
        request_too_much(m);
    if (m && callbacks_scene.actions & TRIM)
        CHECK_OK(quire_memory_trim(m, 0, NULL));
    callbacks_scene.is_inside = false;
}

/* ---- the callbacks -------------------------------------------------------------------------- */

static void write_line(void *user, quire_log_level level, const char *line)
{
    (void)user, (void)level;
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++)
        if (strstr(line, LINES[i].part)) {
            if (LINES[i].what == MEMORY_MADE)
                callbacks_scene.in_use = callbacks_scene.memory;
            act(LINES[i].what);
            return;
        }
}

static void on_event(void *user, quire_memory *memory, const quire_event *event)
{
    (void)user;
    CHECK(memory == callbacks_scene.in_use);
    for (uint32_t i = 0; i < 6; i++)
        if (event->kind == UINT32_C(1) << i)
            act((uint32_t)ALLOCATED << i);
}

/* Returns true once per request: the second call reports times 2. */
static bool help(void *user, quire_memory *memory, const quire_out_of_memory *report)
{
    (void)user, (void)memory;
    act(NO_MEMORY);
    return report->times == 1;
}

bool callbacks_visit(void *user, const quire_item *item)
{
    (void)user, (void)item;
    act(VISITED);
    return true;
}

bool callbacks_visit_memory(void *user, quire_memory *memory)
{
    (void)user, (void)memory;
    act(VISITED);
    return true;
}

bool callbacks_take_text(void *user, const char *piece, size_t size)
{
    (void)user, (void)piece, (void)size;
    act(WRITTEN);
    return true;
}

bool callbacks_progress(void *user, uint64_t done, uint64_t total)
{
    (void)user, (void)done, (void)total;
    act(PROGRESS);
    return true;
}

/* ---- running the places --------------------------------------------------------------------- */

static bool can_be_elastic(void)
{
    quire_device_info info;
    CHECK_OK(quire_device_get_info(callbacks_scene.device, &info));
    return info.limits.elastic_kinds >> callbacks_scene.subject->kind & 1;
}

static void make_memory(const place *p)
{
    const bool elastic = p->flags & ELASTIC;
    const quire_memory_options options = {
        .name = "tried",
        .kind.mask = UINT32_C(1) << callbacks_scene.subject->kind,
        .elastic = elastic,
        .address_space = elastic ? 64 * callbacks_scene.page : 0,
        .shards = elastic ? 1 : callbacks_scene.shards,
        .limit = p->limit * callbacks_scene.page,
        .on_out_of_memory = {.callback = help},
        .pages = {.page_size = callbacks_scene.page,
                  .max_pages = p->pages,
                  .retained_empty_bytes = p->retained},
    };
    callbacks_scene.memory = callbacks_scene.in_use = NULL;
    CHECK_OK(quire_memory_create(callbacks_scene.device, &options, &callbacks_scene.memory));
    CHECK_OK(quire_memory_set_hook(callbacks_scene.memory, &(quire_hook){.event = on_event}));
}

static void end_memory(void)
{
    CHECK_OK(quire_memory_check(callbacks_scene.memory));
    callbacks_scene.is_inside = false;
    quire_memory_destroy_all(&callbacks_scene.memory);
    callbacks_scene.in_use = NULL;
    callbacks_scene.kept.id = 0;
    if (callbacks_scene.stream)
        CHECK_OK(quire_stream_destroy(&callbacks_scene.stream));
}

static void try_place(const place *p)
{
    snprintf(text, sizeof text, "'%s' with actions 0x%x and %u shards\n", p->name,
             (unsigned)callbacks_scene.actions, (unsigned)callbacks_scene.shards);
    uint32_t before = callbacks_scene.seen;
    callbacks_scene.seen = callbacks_scene.calls = 0;
    make_memory(p);
    p->visit();
    end_memory();
    if (callbacks_scene.actions == LOOK && (callbacks_scene.seen & p->expected) != p->expected)
        check_failed(__FILE__, __LINE__, "0x%x did not occur at %s",
                     (unsigned)(p->expected & ~callbacks_scene.seen), text);
    CHECK(callbacks_scene.seen & MEMORY_DESTROYED);
    callbacks_scene.seen |= before;
}

static void try_device(const callbacks_subject *subject, uint32_t actions, uint32_t shards)
{
    callbacks_scene =
        (scene){.subject = subject, .page = subject->page, .actions = actions, .shards = shards};
    subject->open((quire_log){.write = write_line, .level = QUIRE_LOG_DEBUG},
                  &callbacks_scene.device);
    const bool grows = can_be_elastic();
    for (const place *p = callbacks_places; p->name; p++)
        if (!(p->flags & ELASTIC) || (grows && shards == 1))
            try_place(p);
    CHECK_OK(quire_device_destroy(&callbacks_scene.device));
    const uint32_t grown = PAGE_RESIZED | GROWN_LINE, all = (PROGRESS << 1) - 1;
    const uint32_t expected = grows && shards == 1 ? all : all & ~grown;
    if ((callbacks_scene.seen & expected) != expected)
        check_failed(__FILE__, __LINE__, "0x%x did not occur with actions 0x%x",
                     (unsigned)(expected & ~callbacks_scene.seen), (unsigned)actions);
    subject->close();
}

void callbacks_try(const callbacks_subject *subject)
{
    signal(SIGALRM, end_by_timeout);
    alarm(TIMEOUT_SECONDS);
    for (size_t i = 0; i < sizeof ACTIONS / sizeof *ACTIONS; i++)
        for (uint32_t shards = 1; shards <= 4; shards += 3)
            try_device(subject, ACTIONS[i], shards);
    alarm(0);
}
