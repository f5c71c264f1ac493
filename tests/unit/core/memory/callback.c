/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * callback.c - hooks and backends that call quire: the order of the events of pages and when their
 * numbers are free, and what a memory that is being destroyed does with such calls.
 * tests/plain/callbacks.c tests every place on every backend.
 */
#include "src/core/state/memory.h"
#include "tests/support/event_log.h"
#include "tests/support/fixture.h"

enum { PAGE = 64 * 1024 };

/* ---- a hook --------------------------------------------------------------------------------- */

typedef struct record {
    fixture f;
    event_log log;
    bool allocates; /* when a page is destroyed */
    quire_result result;
} record;

static void note(void *user, quire_memory *memory, const quire_event *event)
{
    record *t = user;
    quire_allocation a;
    event_log_note(&t->log, memory, event);
    if (!t->allocates || event->kind != QUIRE_EVENT_PAGE_GONE)
        return;
    t->allocates = false;
    t->result = quire_allocate(memory, &(quire_allocation_options){.size = 64}, &a);
}

static void listen(record *t, const quire_memory_options *options, quire_event_kinds kinds)
{
    *t = (record){.allocates = false};
    fixture_make(&t->f, options);
    CHECK_OK(quire_memory_set_hook(t->f.memory,
                                   &(quire_hook){.event = note, .user = t, .kinds = kinds}));
}

static void expect(const record *t, uint32_t at, quire_event_kinds kind, uint32_t page)
{
    CHECK(at < t->log.count);
    CHECK_EQ(t->log.events[at].kind, kind);
    CHECK_EQ(t->log.events[at].page, page);
}

static void end_record(record *t)
{
    CHECK_OK(quire_memory_check(t->f.memory));
    CHECK_OK(quire_memory_set_hook(t->f.memory, NULL));
    fixture_end(&t->f);
}

#define CASE(name, ...) UNIT_ON(callback, name, record, t, listen(t, __VA_ARGS__), end_record)

CASE(a_page_reported_as_destroyed_no_longer_counts,
     &(quire_memory_options){.pages = {.page_size = PAGE, .max_pages = 1}}, QUIRE_EVENT_PAGE_GONE)
{
    CHECK_OK(quire_free(t->f.memory, ALLOCATE(&t->f, .size = 64)));
    t->allocates = true;
    uint64_t released = 0;
    CHECK_OK(quire_memory_trim(t->f.memory, 0, &released));
    CHECK_EQ(released, PAGE);
    CHECK_OK(t->result);
    CHECK_EQ(fixture_stats(&t->f).page_count, 1);
}

enum { COMING = QUIRE_EVENT_PAGE_MADE, GOING = QUIRE_EVENT_PAGE_GONE };

CASE(the_end_of_a_page_is_reported_before_the_next_with_its_number,
     &(quire_memory_options){.pages.page_size = PAGE}, COMING | GOING)
{
    ALLOCATE(&t->f, .size = PAGE);
    quire_allocation a = ALLOCATE(&t->f, .size = PAGE), b = ALLOCATE(&t->f, .size = PAGE);
    ALLOCATE(&t->f, .size = PAGE);
    CHECK_OK(quire_free(t->f.memory, a));
    CHECK_OK(quire_free(t->f.memory, b));
    ALLOCATE(&t->f, .size = 3 * PAGE); /* both are destroyed for it, and it has the lower number */
    CHECK_EQ(t->log.count, 7);
    expect(t, 4, GOING, 1);
    expect(t, 5, GOING, 2);
    expect(t, 6, COMING, 1);
    ALLOCATE(&t->f, .size = PAGE);
    expect(t, 7, COMING, 2);
}

CASE(the_number_of_a_page_that_cannot_be_created_is_free_again,
     &(quire_memory_options){.pages.page_size = PAGE}, COMING | GOING)
{
    CHECK_OK(quire_free(t->f.memory, ALLOCATE(&t->f, .size = PAGE)));
    fake_fail(&t->f.fake, 1, true, QUIRE_ERROR_DEVICE_LOST);
    ALLOCATE_FAILS(&t->f, QUIRE_ERROR_DEVICE_LOST, .size = 3 * PAGE);
    fake_fail(&t->f.fake, 0, false, QUIRE_SUCCESS);
    CHECK_EQ(t->log.count, 2);
    expect(t, 1, GOING, 0);
    CHECK_EQ(t->log.events[1].size, PAGE);
    ALLOCATE(&t->f, .size = PAGE);
    expect(t, 2, COMING, 0);
}

/*
 * A page whose creation fails later may have the number of another page, whose end must be reported
 * first.
 */
static void expect_unreported(void *user, quire_memory *memory, const quire_event *event)
{
    uint32_t *gone = user;
    if (event->kind != QUIRE_EVENT_PAGE_GONE)
        return;
    CHECK_EQ(qi_page_at(&memory->pages, event->page)->phase, QI_PAGE_GONE);
    CHECK_EQ(event->size, PAGE);
    ++*gone;
}

UNIT_MEMORY(callback, the_number_of_a_page_is_in_use_until_its_end_is_reported, f,
            .pages.page_size = PAGE)
{
    quire_allocation a, none;
    const quire_allocation_options large = {.size = 3 * PAGE, .dedicated = true};
    uint32_t gone = 0;
    a = ALLOCATE(f, .size = PAGE, .dedicated = true);
    for (uint32_t i = 1; i < 1 << QI_TABLE_FIRST_BITS; i++)
        ALLOCATE(f, .size = 64);
    CHECK_OK(quire_free(f->memory, a));
    ALLOCATE(f, .size = 64); /* the last slot that needs no host memory */
    CHECK_OK(
        quire_memory_set_hook(f->memory, &(quire_hook){.event = expect_unreported, .user = &gone}));
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK_FAILS(quire_allocate(f->memory, &large, &none), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK_EQ(gone, 1);
    CHECK_OK(quire_memory_set_hook(f->memory, NULL));
}

/*
 * A name's limit is checked when the placed size is known: the page is destroyed after its creation
 * was reported.
 */
CASE(the_events_of_a_page_above_a_names_limit_are_in_order,
     &(quire_memory_options){.pages = {.page_size = PAGE, .retained_empty_bytes = 1}},
     COMING | GOING)
{
    CHECK_OK(quire_memory_set_name_limit(t->f.memory, "a", 100));
    ALLOCATE_FAILS(&t->f, QUIRE_ERROR_OVER_BUDGET, .size = 90, .name = "a");
    CHECK_EQ(t->log.count, 2);
    expect(t, 0, COMING, 0);
    expect(t, 1, GOING, 0);
}

/* ---- a backend that violates the rule ------------------------------------------------------- */

static quire_result (*make_page)(void *, const quire_page_request *, quire_native_page *);
static quire_memory *target;
static quire_result answer;

static quire_result allocate_inside(void *state, const quire_page_request *request,
                                    quire_native_page *page)
{
    quire_allocation none;
    quire_memory *memory = target;
    target = NULL;
    if (memory)
        answer = quire_allocate(memory, &(quire_allocation_options){.size = PAGE}, &none);
    return make_page(state, request, page);
}

UNIT_PREPARED(callback, a_call_from_inside_a_backend_does_not_wait_for_a_page, f)
{
    make_page = f->fake.table.page_create;
    f->fake.table.page_create = allocate_inside;
    fixture_open(f, &(quire_memory_options){.pages = {.page_size = PAGE, .max_pages = 1}});
    target = f->memory;
    ALLOCATE(f, .size = PAGE); /* the call from inside the backend must not wait for this page */
    CHECK_EQ(answer, QUIRE_ERROR_TOO_MANY_PAGES);
}

/* ---- a memory that is destroyed ------------------------------------------------------------- */

static void end_device(fixture *f)
{
    CHECK_OK(quire_device_destroy(&f->device));
    CHECK_EQ(f->fake.pages, 0);
    CHECK(f->fake.ended);
}

static uint32_t refused;

static void make_all_calls(void *user, quire_memory *memory, const quire_event *event)
{
    quire_allocation a, batch[3];
    quire_buffer buffer;
    quire_memory_stats stats;
    const quire_allocation_options small = {.size = 64},
                                   dedicated = {.size = PAGE, .dedicated = true};
    (void)user;
    if (event->kind != QUIRE_EVENT_PAGE_GONE)
        return;
    CHECK_FAILS(quire_allocate(memory, &small, &a), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_allocate(memory, &dedicated, &a), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_allocate_batch(memory, &small, batch, 3), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_buffer_create(memory, &(quire_buffer_options){.size = 64}, &buffer),
                QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_memory_preallocate(memory, PAGE), QUIRE_ERROR_WRONG_STATE);
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    CHECK_EQ(stats.page_count, 0);
    refused++;
}

UNIT(callback, a_memory_being_destroyed_has_no_pages_to_release)
{
    for (int all = 0; all < 2; all++) {
        fixture f;
        fixture_make(&f, &(quire_memory_options){.pages.page_size = PAGE});
        quire_allocation a = ALLOCATE(&f, .size = 64);
        CHECK_OK(quire_free(f.memory, ALLOCATE(&f, .size = PAGE, .dedicated = true)));
        CHECK_OK(quire_memory_set_hook(f.memory, &(quire_hook){.event = make_all_calls}));
        refused = 0;
        if (all)
            quire_memory_destroy_all(&f.memory);
        else
            CHECK_OK(quire_free(f.memory, a));
        CHECK_OK(quire_memory_destroy(&f.memory));
        CHECK_EQ(refused, 2);
        end_device(&f);
    }
}

/*
 * Frees by a hook while all others are freed: also frees through the inbox of another shard, and
 * deferred frees.
 */
typedef struct frees_at_end {
    fixture f;
    quire_allocation left[2];
    quire_stream *stream; /* NULL means at once */
    uint32_t freed;
} frees_at_end;

static void free_others(void *user, quire_memory *memory, const quire_event *event)
{
    frees_at_end *h = user;
    quire_memory_stats stats;
    if (event->kind != QUIRE_EVENT_PAGE_GONE)
        return;
    while (h->freed < 2) {
        quire_allocation a = h->left[h->freed++];
        CHECK_OK(h->stream ? quire_free_on_stream(memory, a, h->stream) : quire_free(memory, a));
    }
    if (event->page == 0)
        return;
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    CHECK_EQ(stats.allocation_count, 0);
    CHECK_EQ(stats.frees, 3);
}

/* The page of the first allocation is destroyed at once, perhaps as an orphan of a fork. */
static void destroy_with_hook(uint32_t shards, bool waits, bool is_orphan)
{
    frees_at_end h = {.freed = 0};
    fixture_make(&h.f,
                 &(quire_memory_options){.shards = shards,
                                         .pages = {.page_size = PAGE, .retained_empty_bytes = 1}});
    if (waits)
        CHECK_OK(
            quire_stream_create(h.f.device, &(quire_stream_options){.capture = true}, &h.stream));
    quire_allocation first = ALLOCATE(&h.f, .size = PAGE, .dedicated = true);
    uint32_t slot = 0;
    if (is_orphan)
        CHECK_OK(qi_slot_claim(&h.f.memory->slots, first, QI_ACCEPT_LIVE, &slot));
    h.f.memory->has_orphans = is_orphan;
    h.left[0] = ALLOCATE_ELSEWHERE(&h.f, .size = 64);
    h.left[1] = ALLOCATE_ELSEWHERE(&h.f, .size = 64, .name = "named");
    CHECK_OK(quire_memory_set_hook(h.f.memory, &(quire_hook){.event = free_others, .user = &h}));
    quire_memory_destroy_all(&h.f.memory);
    CHECK_EQ(h.freed, 2);
    CHECK_OK(quire_stream_destroy(&h.stream));
    end_device(&h.f);
}

UNIT(callback, allocations_that_a_hook_frees_during_destroy_are_freed_once)
{
    for (uint32_t shards = 1; shards <= 2; shards++) {
        destroy_with_hook(shards, false, false);
        destroy_with_hook(shards, true, false);
        destroy_with_hook(shards, false, true);
    }
}

/* ---- attachments ---------------------------------------------------------------------------- */

static quire_attachment attached[3];
static quire_memory *attached_to;

static void detach_at_line(void *user, quire_log_level level, const char *line)
{
    (void)user, (void)level;
    if (!attached_to || !strstr(line, "still has"))
        return;
    for (int i = 0; i < 3; i++) {
        quire_memory_detach(attached_to, &attached[i]);
        memset(&attached[i], 0xaa, sizeof attached[i]);
    }
    attached_to = NULL;
}

UNIT_ON(callback, a_sink_may_destroy_the_child_that_a_message_names, fixture, f, fixture_prepare(f),
        end_device)
{
    const quire_device_options device = {.host_memory = unit_memory(),
                                         .log = {.write = detach_at_line}};
    CHECK_OK(quire_device_create(&f->fake.table, &f->fake, &device, &f->device));
    CHECK_OK(quire_memory_create(f->device, NULL, &f->memory));
    for (int i = 0; i < 3; i++) {
        attached[i] = (quire_attachment){.name = "attached"};
        quire_memory_attach(f->memory, &attached[i]);
    }
    attached_to = f->memory;
    CHECK_FAILS(quire_memory_destroy(&f->memory), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_memory_destroy(&f->memory));
}
