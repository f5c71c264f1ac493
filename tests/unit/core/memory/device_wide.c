/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device_wide.c - what a program does with a device as a whole: handles alone, a walk over the
 * memories, a trim, sums and the hook of a device.
 */
#include <unistd.h>

#include "tests/support/fixture.h"

#include "src/core/state/memory.h"
#include "tests/support/crew.h"

enum { PAGE = 64 * 1024, MAX_MEMORIES = 8 };

/* A device with three memories: that of the fixture, one more, and a default memory. */
typedef struct family {
    fixture b;
    quire_memory *second, *by_default;
} family;

static const quire_memory_options ONE = {.name = "one", .pages = {.page_size = PAGE}},
                                  TWO = {.name = "two", .pages = {.page_size = PAGE}};

static void begin(family *f)
{
    fixture_make(&f->b, &ONE);
    CHECK_OK(quire_memory_create(f->b.device, &TWO, &f->second));
    CHECK_OK(quire_device_default_memory(f->b.device, 1, &f->by_default));
}

static void end(family *f)
{
    quire_memory_destroy_all(&f->second);
    fixture_end(&f->b);
}

#define CASE(name) UNIT_ON(device_wide, name, family, f, begin(f), end)

static quire_allocation allocate(quire_memory *memory, uint64_t size)
{
    quire_allocation made;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = size}, &made));
    return made;
}

static quire_memory *owner_of(quire_device *device, quire_allocation allocation)
{
    quire_memory *owner;
    CHECK_OK(quire_device_owner(device, allocation, &owner));
    return owner;
}

/* ---- handles alone -------------------------------------------------------------------------- */

CASE(a_handle_names_its_memory)
{
    quire_memory *const memories[] = {f->b.memory, f->second, f->by_default};
    for (int i = 0; i < 3; i++) {
        quire_allocation made = allocate(memories[i], 100), reserved;
        CHECK(owner_of(f->b.device, made) == memories[i]);
        CHECK_OK(quire_device_free(f->b.device, made));
        CHECK_FAILS(quire_free(memories[i], made), QUIRE_ERROR_STALE_HANDLE);
        CHECK_OK(quire_reserve(memories[i], &(quire_allocation_options){.size = 1}, &reserved));
        CHECK(owner_of(f->b.device, reserved) == memories[i]);
        CHECK_FAILS(quire_device_free(f->b.device, reserved), QUIRE_ERROR_WRONG_STATE);
        CHECK_OK(quire_abort(memories[i], reserved));
    }
}

UNIT(device_wide, a_handle_that_is_not_live_is_refused)
{
    family f, other;
    begin(&f);
    begin(&other);
    quire_memory *owner;
    quire_allocation freed = allocate(f.second, 100), lost = allocate(f.second, 100),
                     foreign = allocate(other.second, 100);
    CHECK_OK(quire_free(f.second, freed));
    const struct {
        quire_allocation allocation;
        quire_result reason;
        const char *says;
    } wrong[] = {
        {freed, QUIRE_ERROR_STALE_HANDLE, "of memory 'two' is not live: it was freed before"},
        {foreign, QUIRE_ERROR_FOREIGN_HANDLE, "belongs to no live memory of device 'fake device'"},
        {{0}, QUIRE_ERROR_INVALID_ARGUMENT, "the allocation is {0}, which is no handle"},
    };
    for (int i = 0; i < 3; i++) {
        CHECK_FAILS(quire_device_owner(f.b.device, wrong[i].allocation, &owner), wrong[i].reason);
        CHECK_HAS(quire_last_error(), wrong[i].says);
        CHECK(owner == NULL);
        CHECK_FAILS(quire_device_free(f.b.device, wrong[i].allocation), wrong[i].reason);
        CHECK_HAS(quire_last_error(), wrong[i].says);
    }
    CHECK_OK(quire_free(other.second, foreign)); /* it was not touched */
    quire_memory_destroy_all(&f.second);
    CHECK_FAILS(quire_device_free(f.b.device, lost), QUIRE_ERROR_STALE_HANDLE);
    CHECK_HAS(quire_last_error(), "belongs to no live memory of device 'fake device'");
    end(&other);
    end(&f);
}

/* Two memories get one tag, as owners beyond 4,095 do. */
UNIT(device_wide, memories_that_share_a_tag_are_told_apart)
{
    enum { TAGS = (1 << QI_TAG_BITS) - 1 };
    family f;
    fixture_make(&f.b, &ONE);
    const uint32_t tag = f.b.memory->tag;
    uint32_t taken[TAGS], count = 0;
    while (count < TAGS && (taken[count] = qi_tag_take()) != tag)
        count++; /* every tag is in use when one comes twice */
    qi_tag_give(tag);
    while (count)
        qi_tag_give(taken[--count]);
    quire_memory *many[2 * TAGS];
    uint32_t made = 0;
    do
        CHECK_OK(quire_memory_create(f.b.device, &TWO, &many[made++]));
    while (many[made - 1]->tag != tag);
    f.second = many[made - 1];
    quire_memory *owner;
    quire_allocation first = allocate(f.b.memory, 100);
    CHECK(owner_of(f.b.device, first) == f.b.memory);
    quire_allocation same = allocate(f.second, 100), second = allocate(f.second, 100);
    CHECK_EQ(first.id, same.id);
    CHECK_FAILS(quire_device_free(f.b.device, first), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_device_owner(f.b.device, same, &owner), QUIRE_ERROR_WRONG_STATE);
    CHECK_HAS(quire_last_error(), "is live in 2 memories of device 'fake device'");
    CHECK(owner == NULL && owner_of(f.b.device, second) == f.second);
    CHECK_OK(quire_device_free(f.b.device, second));
    CHECK_OK(quire_free(f.b.memory, first));
    CHECK(owner_of(f.b.device, same) == f.second);
    CHECK_OK(quire_device_free(f.b.device, same));
    CHECK_FAILS(quire_device_free(f.b.device, same), QUIRE_ERROR_STALE_HANDLE);
    while (made)
        CHECK_OK(quire_memory_destroy(&many[--made]));
    CHECK_FAILS(quire_device_free(f.b.device, second), QUIRE_ERROR_STALE_HANDLE);
    fixture_end(&f.b);
}

/* ---- the walk ------------------------------------------------------------------------------- */

typedef struct visits {
    quire_memory *seen[MAX_MEMORIES];
    int count, max_count; /* the walk ends after `max_count`; 0: it goes on */
    quire_device *device;
    quire_memory *destroyed; /* in its visit */
    bool makes_one;          /* in the first visit */
    quire_memory *made;
} visits;

static bool note(void *user, quire_memory *memory)
{
    visits *v = user;
    CHECK(v->count < MAX_MEMORIES);
    v->seen[v->count++] = memory;
    if (memory == v->destroyed)
        CHECK_OK(quire_memory_destroy(&v->destroyed));
    if (v->makes_one)
        CHECK_OK(quire_memory_create(v->device, &TWO, &v->made));
    v->makes_one = false;
    return v->count != v->max_count;
}

CASE(a_walk_visits_the_memories_in_the_order_of_their_creation)
{
    visits v = {.count = 0};
    CHECK_OK(quire_device_walk(f->b.device, note, &v));
    CHECK(v.count == 3 && v.seen[0] == f->b.memory && v.seen[1] == f->second &&
          v.seen[2] == f->by_default);
    v = (visits){.max_count = 2};
    CHECK_OK(quire_device_walk(f->b.device, note, &v));
    CHECK_EQ(v.count, 2);
    CHECK_OK(quire_memory_destroy(&f->second)); /* no visit is left behind */
    CHECK_OK(quire_memory_create(f->b.device, &TWO, &f->second));
    v = (visits){.count = 0};
    CHECK_OK(quire_device_walk(f->b.device, note, &v));
    CHECK(v.count == 3 && v.seen[1] == f->by_default && v.seen[2] == f->second);
}

UNIT(device_wide, a_visit_may_destroy_its_memory_and_make_others)
{
    for (int place = 0; place < 3; place++) {
        family f;
        begin(&f);
        quire_memory *third;
        CHECK_OK(quire_memory_create(f.b.device, &TWO, &third));
        visits v = {.destroyed = place == 0   ? f.b.memory
                                 : place == 1 ? f.second
                                              : third,
                    .device = f.b.device,
                    .makes_one = true};
        CHECK_OK(quire_device_walk(f.b.device, note, &v));
        CHECK(v.count == 5 && !v.destroyed && v.seen[4] == v.made);
        f.b.memory = v.made;
        v = (visits){.count = 0};
        CHECK_OK(quire_device_walk(f.b.device, note, &v));
        CHECK_EQ(v.count, 4);
        while (v.count)
            if (v.seen[--v.count] != f.by_default && v.seen[v.count] != f.b.memory)
                CHECK_OK(quire_memory_destroy(&v.seen[v.count]));
        fixture_end(&f.b);
    }
}

static bool walk_within(void *user, quire_memory *memory)
{
    visits *v = user;
    v->destroyed = memory; /* which ends both visits */
    CHECK_OK(quire_device_walk(v->device, note, v));
    return false;
}

CASE(a_walk_within_a_walk_may_destroy_the_memory_of_both)
{
    visits v = {.device = f->b.device};
    CHECK_OK(quire_device_walk(f->b.device, walk_within, &v));
    CHECK_EQ(v.count, 3);
    CHECK_OK(quire_memory_create(f->b.device, &ONE, &f->b.memory));
}

static bool set_hook(void *user, quire_memory *memory)
{
    return !quire_memory_set_hook(memory, user);
}

/* It would wait for its own visit. */
CASE(a_visit_may_set_the_hook_of_its_memory)
{
    CHECK_OK(quire_device_walk(f->b.device, set_hook, NULL));
}

/* A hook that another thread's destruction of the memory meets. */
typedef struct meeting {
    family *f;
    crew other;
    _Atomic bool begins;
    uint64_t pages; /* that the backend still has a while after the destruction began */
} meeting;

static void destroy_second(void *user)
{
    meeting *m = user;
    m->begins = true;
    quire_memory_destroy(&m->f->second);
}

static void meet(void *user, quire_memory *memory, const quire_event *event)
{
    (void)memory;
    (void)event;
    meeting *m = user;
    if (m->begins)
        return;
    crew_tell(&m->other, 1, destroy_second, m);
    while (!m->begins)
        usleep(100);
    usleep(50000); /* long enough for a thread that does not wait */
    fake_backend *fake = &m->f->b.fake;
    pthread_mutex_lock(&fake->lock);
    m->pages = fake->pages;
    pthread_mutex_unlock(&fake->lock);
}

/* A trim that gives back the first of two empty pages is in its hook. */
CASE(a_destruction_waits_for_a_trim_before_it_takes_pages)
{
    meeting m = {.f = f};
    quire_allocation first = allocate(f->second, PAGE), second = allocate(f->second, PAGE);
    CHECK_OK(quire_free(f->second, first));
    CHECK_OK(quire_free(f->second, second));
    CHECK_EQ(f->b.fake.pages, 2);
    crew_start(&m.other, 1);
    CHECK_OK(quire_memory_set_hook(
        f->second, &(quire_hook){.event = meet, .user = &m, .kinds = QUIRE_EVENT_PAGE_GONE}));
    CHECK_OK(quire_device_trim(f->b.device, PAGE, NULL));
    crew_await(&m.other, 1);
    crew_end(&m.other);
    CHECK_EQ(m.pages, 1);
    CHECK(f->second == NULL);
}

/* ---- trim and sums -------------------------------------------------------------------------- */

CASE(a_trim_keeps_bytes_in_the_first_memories)
{
    CHECK_OK(quire_free(f->b.memory, allocate(f->b.memory, PAGE)));
    CHECK_OK(quire_free(f->second, allocate(f->second, PAGE)));
    quire_allocation live = allocate(f->second, PAGE), more = allocate(f->second, PAGE);
    CHECK_OK(quire_free(f->second, more));
    uint64_t released = 7;
    CHECK_OK(quire_device_trim(f->b.device, UINT64_MAX, &released));
    CHECK_EQ(released, 0);
    CHECK_OK(quire_device_trim(f->b.device, PAGE, &released));
    CHECK_EQ(released, PAGE);
    CHECK_EQ(fixture_stats(&f->b).empty_bytes, PAGE);
    CHECK_OK(quire_device_trim(f->b.device, 0, &released));
    CHECK_EQ(released, PAGE);
    CHECK_EQ(f->b.fake.pages, 1);
    CHECK_OK(quire_device_trim(f->b.device, 0, NULL));
    CHECK_OK(quire_device_free(f->b.device, live));
}

CASE(the_statistics_of_a_device_are_sums)
{
    quire_device_stats sums;
    quire_memory *const memories[] = {f->b.memory, f->second, f->by_default};
    for (int i = 0; i < 3; i++) {
        allocate(memories[i], 100);
        CHECK_OK(quire_free(memories[i], allocate(memories[i], PAGE)));
    }
    quire_allocation refused;
    CHECK_OK(quire_memory_set_limit(f->second, 1));
    CHECK(quire_allocate(f->second, &(quire_allocation_options){.size = 99 * PAGE}, &refused));
    CHECK_OK(quire_device_get_stats(f->b.device, &sums));
    quire_memory_stats stats[3];
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_memory_get_stats(memories[i], &stats[i]));
#define CHECK_SUM(member) CHECK_EQ(sums.member, stats[0].member + stats[1].member + stats[2].member)
    CHECK(sums.requested_bytes == 300 && sums.frees == 3 && sums.failures == 1);
    CHECK_SUM(requested_bytes);
    CHECK_SUM(free_bytes);
    CHECK_SUM(empty_bytes);
    CHECK_SUM(allocations);
    CHECK_SUM(frees);
    CHECK_SUM(failures);
    CHECK_SUM(pages_created);
    CHECK_SUM(pages_destroyed);
#undef CHECK_SUM
    CHECK_EQ(sums.memory_count, 3);
    quire_memory_destroy_all(&f->by_default);
}

/* ---- the hook ------------------------------------------------------------------------------- */

typedef struct listener {
    quire_memory *memories[32];
    quire_event_kinds kinds[32];
    uint32_t count;
    struct listener *before; /* must have the same event already */
} listener;

static void listen(void *user, quire_memory *memory, const quire_event *event)
{
    listener *l = user;
    CHECK(l->count < 32);
    l->memories[l->count] = memory;
    l->kinds[l->count++] = event->kind;
    if (l->before && memory == l->before->memories[0])
        CHECK_EQ(l->before->kinds[l->before->count - 1], event->kind);
}

CASE(the_hook_of_a_device_gets_the_events_of_all_memories)
{
    listener of_memory = {.count = 0}, of_device = {.before = &of_memory};
    CHECK_OK(quire_memory_set_hook(f->second, &(quire_hook){.event = listen, .user = &of_memory}));
    CHECK_OK(quire_device_set_hook(
        f->b.device, &(quire_hook){.event = listen,
                                   .user = &of_device,
                                   .kinds = QUIRE_EVENT_ALLOCATED | QUIRE_EVENT_FREED}));
    quire_allocation made = allocate(f->second, 100);
    CHECK_EQ(of_memory.count, 2); /* the page as well */
    CHECK_EQ(of_device.count, 1);
    CHECK_OK(quire_device_free(f->b.device, made));
    allocate(f->by_default, 100);
    quire_memory *later;
    CHECK_OK(quire_memory_create(f->b.device, &ONE, &later));
    CHECK_OK(quire_free(later, allocate(later, 10)));
    const quire_event_kinds kinds[] = {QUIRE_EVENT_ALLOCATED, QUIRE_EVENT_FREED,
                                       QUIRE_EVENT_ALLOCATED, QUIRE_EVENT_ALLOCATED,
                                       QUIRE_EVENT_FREED};
    quire_memory *const memories[] = {f->second, f->second, f->by_default, later, later};
    CHECK_EQ(of_device.count, 5);
    CHECK(!memcmp(of_device.kinds, kinds, sizeof kinds));
    CHECK(!memcmp(of_device.memories, memories, sizeof memories));
    CHECK_EQ(of_memory.count, 3);
    CHECK_OK(quire_memory_set_hook(f->second, NULL)); /* the other one stays */
    of_device.before = NULL;
    CHECK_OK(quire_free(f->second, allocate(f->second, 10)));
    CHECK_EQ(of_device.count, 7);
    CHECK_OK(quire_device_set_hook(f->b.device, NULL));
    CHECK_OK(quire_free(f->second, allocate(f->second, 10)));
    CHECK_EQ(of_device.count, 7);
    CHECK_EQ(of_memory.count, 3);
    CHECK_OK(quire_memory_destroy(&later));
    quire_memory_destroy_all(&f->by_default);
}

CASE(removing_the_hook_of_a_device_keeps_that_of_a_memory)
{
    listener of_memory = {.count = 0}, of_device = {.count = 0};
    CHECK_OK(
        quire_device_set_hook(f->b.device, &(quire_hook){.event = listen, .user = &of_device}));
    CHECK_OK(quire_memory_set_hook(f->second, &(quire_hook){.event = listen, .user = &of_memory}));
    CHECK_OK(quire_device_set_hook(f->b.device, &(quire_hook){.kinds = QUIRE_EVENT_FREED}));
    CHECK_OK(quire_free(f->second, allocate(f->second, 10)));
    CHECK_EQ(of_memory.count, 3);
    CHECK_EQ(of_device.count, 0);
    CHECK_OK(quire_memory_set_hook(f->second, NULL));
}
