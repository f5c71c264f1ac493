/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_end.c - destroying a memory: refused while an allocation is live, or with everything in
 * it; callbacks meanwhile; and handles of later memories.
 */
#include "tests/support/fake.h"
#include "tests/support/unit.h"

#include <stdio.h>

#include "quire/quire.h"
#include "src/core/checked.h"

typedef struct bench {
    fake_backend fake;
    quire_device *device;
    quire_memory *memory;
    char log[16384];          /* warnings */
    quire_allocation to_free; /* at the next warning */
    int ends,
        set; /* ends of pages and memories that were reported, and with a variable still set */
} bench;

static void keep_line(void *user, quire_log_level level, const char *line)
{
    bench *b = user;
    size_t length = strlen(b->log);
    if (level == QUIRE_LOG_WARNING) {
        snprintf(b->log + length, sizeof b->log - length, "%s\n", line);
        if (b->to_free.id)
            CHECK_OK(quire_free(b->memory, b->to_free));
        b->to_free.id = 0;
    } else if (strstr(line, "destroyed")) {
        b->ends++;
        b->set += b->memory != NULL;
    }
}

static void make(bench *b, quire_memory_flags flags)
{
    *b = (bench){.device = NULL};
    fake_init(&b->fake);
    quire_device_options options = {.host_memory = unit_memory(),
                                    .log = {.write = keep_line, .level = QUIRE_LOG_INFO}};
    options.log.user = b;
    CHECK_OK(quire_device_create(&b->fake.table, &b->fake, &options, &b->device));
    quire_memory_options wanted = {
        .name = "weights", .kind.required = flags, .pages = {.page_size = 4096}};
    CHECK_OK(quire_memory_create(b->device, &wanted, &b->memory));
}

static void end(bench *b)
{
    CHECK(b->memory == NULL);
    CHECK_OK(quire_device_destroy(&b->device));
    CHECK_EQ(b->fake.pages, 0);
    CHECK_EQ(b->fake.objects, 0);
    CHECK_EQ(b->fake.maps, 0);
    CHECK(b->fake.ended);
}

static quire_allocation allocate(quire_memory *memory, uint64_t size, const char *name)
{
    quire_allocation allocation;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = size, .name = name},
                            &allocation));
    return allocation;
}

/* What a backend keeps attached to the memory. */
typedef struct child {
    quire_attachment attachment;
    quire_memory *memory;
    uint64_t ends;
} child;

static void count_end(quire_attachment *attachment)
{
    child *one = (child *)attachment;
    one->ends++;
    quire_memory_detach(one->memory, attachment);
}

#define CASE(name, ...) UNIT_ON(memory_end, name, bench, b, make(b, __VA_ARGS__), end)

CASE(backend_children_are_named_and_destroyed_by_destroy_all, QUIRE_DEVICE_LOCAL)
{
    child all[3];
    for (int i = 0; i < 3; i++) {
        all[i] = (child){{.name = i ? "field" : NULL, .end = count_end}, b->memory, 0};
        quire_memory_attach(b->memory, &all[i].attachment);
    }
    quire_memory_detach(b->memory, &all[1].attachment); /* from the middle of the list */
    CHECK_FAILS(quire_memory_destroy(&b->memory), QUIRE_ERROR_BUSY);
    CHECK_STR(quire_last_error(),
              "memory 'weights' still has objects of backend fake: 'field', '(unnamed)'");
    CHECK_STR(b->log, "memory 'weights' still has 'field' of backend fake\n"
                      "memory 'weights' still has '(unnamed)' of backend fake\n");
    quire_memory_detach(b->memory, &all[2].attachment);
    CHECK_FAILS(quire_memory_destroy(&b->memory), QUIRE_ERROR_BUSY);
    CHECK_STR(quire_last_error(),
              "memory 'weights' still has objects of backend fake: '(unnamed)'");
    quire_memory_attach(b->memory, &all[2].attachment);
    quire_memory_destroy_all(&b->memory);
    CHECK_EQ(all[0].ends, 1);
    CHECK_EQ(all[1].ends, 0);
    CHECK_EQ(all[2].ends, 1);
}

CASE(held_allocations_are_freed_with_the_rest, QUIRE_DEVICE_LOCAL)
{
    quire_allocation one = allocate(b->memory, 100, "one"), other = allocate(b->memory, 100, NULL);
    CHECK_OK(quire_allocation_hold(b->memory, one));
    CHECK_OK(quire_allocation_hold(b->memory, one));
    CHECK_OK(quire_allocation_hold(b->memory, other));
    CHECK_OK(quire_allocation_release(b->memory, one));
    CHECK_FAILS(quire_free(b->memory, one), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "in use by 1 call or object");
    CHECK_OK(quire_allocation_release(b->memory, one));
    CHECK_OK(quire_free(b->memory, one));
    CHECK_FAILS(quire_allocation_hold(b->memory, one), QUIRE_ERROR_STALE_HANDLE);
    quire_memory_destroy_all(&b->memory);
}

CASE(an_evicted_allocation_is_named_without_a_place, QUIRE_DEVICE_LOCAL)
{
    const quire_allocation_options options = {.size = 300, .movable = true, .name = "layer"};
    quire_allocation layer;
    if (QI_IS_CHECKED)
        unit_skip("checked builds evict nothing");
    CHECK_OK(quire_allocate(b->memory, &options, &layer));
    CHECK_OK(quire_memory_evict(b->memory, &(quire_evict_options){.bytes = 1}, NULL));
    CHECK_FAILS(quire_memory_destroy(&b->memory), QUIRE_ERROR_BUSY);
    CHECK_STR(quire_last_error(), "memory 'weights' still has 1 live allocation: 'layer'");
    CHECK_STR(b->log, "memory 'weights' still holds 'layer', which is evicted\n");
    CHECK_OK(quire_free(b->memory, layer));
    CHECK_OK(quire_memory_destroy(&b->memory));
}

CASE(live_allocations_are_named_in_error_and_log_and_nothing_changes, QUIRE_DEVICE_LOCAL)
{
    quire_memory *same = b->memory;
    quire_allocation layer = allocate(b->memory, 300, "layer"),
                     none = allocate(b->memory, 10, NULL);
    CHECK_FAILS(quire_memory_destroy(&b->memory), QUIRE_ERROR_BUSY);
    CHECK_STR(quire_last_error(),
              "memory 'weights' still has 2 live allocations: 'layer', '(unnamed)'");
    CHECK_STR(b->log, "memory 'weights' still holds 'layer': 512 B at page 0 offset 0\n"
                      "memory 'weights' still holds '(unnamed)': 256 B at page 0 offset 512\n");
    CHECK(b->memory == same);
    CHECK_OK(quire_memory_check(b->memory));
    CHECK_OK(quire_free(b->memory, layer));
    CHECK_FAILS(quire_memory_destroy(&b->memory), QUIRE_ERROR_BUSY);
    CHECK_STR(quire_last_error(), "memory 'weights' still has 1 live allocation: '(unnamed)'");
    CHECK_OK(quire_free(b->memory, none));
    CHECK_OK(quire_memory_destroy(&b->memory)); /* with an empty page */
}

CASE(a_long_list_is_truncated_in_the_error_and_complete_in_the_log, QUIRE_DEVICE_LOCAL)
{
    enum { COUNT = 40 };
    char name[64];
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "%02d-a-name-that-is-rather-long-so-that-the-list", i);
        allocate(b->memory, 1, name);
    }
    CHECK_FAILS(quire_memory_destroy(&b->memory), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "still has 40 live allocations: '00-a-name");
    CHECK_HAS(quire_last_error(), "'01-a-name");
    CHECK(!strstr(quire_last_error(), "39-a-name"));
    int lines = 0;
    for (const char *at = b->log; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    CHECK_EQ(lines, COUNT);
    CHECK_HAS(b->log, "39-a-name");
    quire_memory_destroy_all(&b->memory);
}

CASE(destroy_all_frees_everything, QUIRE_HOST_VISIBLE)
{
    quire_allocation mapped = allocate(b->memory, 100, "mapped"), reserved, dedicated;
    void *pointer = NULL;
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_map(b->memory, mapped, &pointer));
    CHECK_OK(quire_reserve(b->memory, &(quire_allocation_options){.size = 5000, .name = "reserved"},
                           &reserved));
    CHECK_OK(quire_allocate(
        b->memory, &(quire_allocation_options){.size = 1, .dedicated = true, .name = "own"},
        &dedicated));
    quire_buffer buffer;
    quire_image image;
    CHECK_OK(quire_buffer_create(b->memory, &(quire_buffer_options){.size = 10}, &buffer));
    CHECK_OK(quire_image_create(b->memory, &(quire_image_options){.width = 10}, &image));
    CHECK_OK(quire_free(b->memory, allocate(b->memory, 50, "gone")));
    CHECK_EQ(b->fake.objects, 2);
    CHECK(b->fake.pages >= 3);
    quire_memory_destroy_all(&b->memory);
    CHECK_STR(b->log, "");
}

/* ---- callbacks ---------------------------------------------------------------------------- */

/* The list must not name freed memory. */
CASE(a_sink_may_free_the_allocation_that_a_message_names, QUIRE_DEVICE_LOCAL)
{
    b->to_free = allocate(b->memory, 100, "a name on the heap");
    allocate(b->memory, 100, "another");
    CHECK_FAILS(quire_memory_destroy(&b->memory), QUIRE_ERROR_BUSY);
    CHECK_EQ(b->to_free.id, 0);
    CHECK_HAS(quire_last_error(), "'a name on the heap', 'another'");
    quire_memory_destroy_all(&b->memory);
}

static void watch_page(void *user, quire_memory *memory, const quire_event *event)
{
    bench *b = user;
    (void)memory, (void)event;
    b->ends++;
    b->set += b->memory != NULL;
}

CASE(the_variable_is_null_when_hook_and_sink_are_called, QUIRE_DEVICE_LOCAL)
{
    const quire_hook hook = {.event = watch_page, .user = b, .kinds = QUIRE_EVENT_PAGE_GONE};
    CHECK_OK(quire_memory_set_hook(b->memory, &hook));
    CHECK_OK(quire_free(b->memory, allocate(b->memory, 100, NULL)));
    CHECK_OK(quire_memory_destroy(&b->memory));
    CHECK_EQ(b->ends, 2); /* the page and the memory */
    CHECK_OK(quire_memory_create(b->device, NULL, &b->memory));
    CHECK_OK(quire_memory_set_hook(b->memory, &hook));
    allocate(b->memory, 100, NULL);
    quire_memory_destroy_all(&b->memory);
    CHECK_EQ(b->ends, 4);
    CHECK_EQ(b->set, 0);
}

/* ---- names and handles -------------------------------------------------------------------- */

CASE(a_name_with_line_ends_stays_on_one_line, QUIRE_DEVICE_LOCAL)
{
    allocate(b->memory, 300, "one\ntwo\x1b[31m");
    CHECK_FAILS(quire_memory_destroy(&b->memory), QUIRE_ERROR_BUSY);
    CHECK_HAS(b->log, "'one?two?[31m': 512 B");
    CHECK_HAS(quire_last_error(), "'one?two?[31m'");
    quire_memory_destroy_all(&b->memory);
}

/*
 * Creates and destroys 5000 owners, more than there are tags: the handle of one that stays is still
 * its own.
 */
CASE(a_handle_is_never_mistaken_for_one_of_a_later_memory, QUIRE_DEVICE_LOCAL)
{
    quire_allocation kept = allocate(b->memory, 100, NULL);
    for (int i = 0; i < 5000; i++) {
        quire_memory *other = NULL;
        quire_memory_options small = {.pages = {.page_size = 4096}};
        CHECK_OK(quire_memory_create(b->device, &small, &other));
        quire_allocation allocation = allocate(other, 100, NULL);
        CHECK(allocation.id != kept.id);
        CHECK_FAILS(quire_free(other, kept), QUIRE_ERROR_FOREIGN_HANDLE);
        quire_memory_destroy_all(&other);
    }
    quire_memory_destroy_all(&b->memory);
}
