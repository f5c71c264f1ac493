/*
 * place.c - placing ranges in the pages of a memory and giving them back (see place.h).
 *
 * The order of an allocation: slot and range under one hold of the shard's lock - if no range fits,
 * an empty page of another shard - a page made without the lock, in which the request is placed
 * before anybody else can - if no page can be had, one full pass over the space of every shard -
 * the caller's callback, and all again - the refusal, with its numbers.
 */
#include "src/memory/place.h"

#include <stdio.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/memory/access.h"
#include "src/memory/policy.h"
#include "src/memory/put.h"
#include "src/space/fit.h"

quire_result qi_wish_check_all(const quire_memory *memory, const qi_wish *wish)
{
    if (!wish->size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an allocation of size 0 is asked for");
    if (!qi_is_power_of_two(wish->alignment))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "alignment %u is not a power of two",
                            wish->alignment);
    if (wish->alignment > memory->largest_alignment)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "alignment %llu is above the largest of memory '%s', %llu",
                            (unsigned long long)wish->alignment, memory->name,
                            (unsigned long long)memory->largest_alignment);
    if (wish->name && strlen(wish->name) > QUIRE_LONGEST_NAME)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "a name of %u bytes: %u are allowed",
                            strlen(wish->name), QUIRE_LONGEST_NAME);
    if (wish->host_access && !(memory->flags & QUIRE_HOST_VISIBLE))
        return qi_fail_text(QUIRE_ERROR_NOT_HOST_VISIBLE,
                            "host access is asked for, and memory '%s' of kind %u is not "
                            "host-visible (%s)",
                            memory->name, memory->kind, qi_flags(memory->flags).text);
    return QUIRE_SUCCESS;
}

/* ---- placing ------------------------------------------------------------------------------ */

/* A page made on the way, for the log. */
typedef struct made {
    uint64_t size; /* 0: none */
    uint32_t number;
} made;

/* What was tried before a refusal, for its sentence. */
enum { TRIED_EMPTY = 1, TRIED_SHARDS = 2, TRIED_PASS = 4, TRIED_CALLER = 8 };

/* What the parts of placing hand to each other. */
typedef struct placing {
    const qi_wish *wish;
    qi_load load;
    qi_shard *shard; /* the one whose lock is held */
    qi_page *leaving;
    made made;
    unsigned tried;
    qi_patience patience;
} placing;

/* With the lock: takes a slot and a range of the shared pages. */
static quire_result place_shared(const placing *p, uint32_t how, uint32_t *slot)
{
    return qi_put(p->shard, &p->load, how, slot);
}

/* With the lock: gives the request the whole of an empty dedicated page. */
static quire_result place_dedicated(const placing *p, qi_page *page, uint32_t *slot)
{
    quire_memory *memory = p->shard->memory;
    quire_result result = qi_slot_take(&memory->slots, &p->shard->queue, &memory->host, slot);
    if (result)
        return result;
    uint64_t padding = qi_padding(page->native.native.address, p->load.alignment);
    qi_slot *record = qi_memory_slot(memory, *slot);
    *record = (qi_slot){
        .offset = padding,
        .size = p->load.size,
        .left_padding = padding,
        .requested = p->load.requested,
        .user_data = p->load.user_data,
        .extra = p->load.extra,
        .page = page,
    };
    page->slot = *slot;
    qi_put_count_in(p->shard, record);
    return QUIRE_SUCCESS;
}

/*
 * With the lock, given up meanwhile: the pages that the policy has taken out on the way are
 * destroyed. Whoever waits for pages that leave must not hold any.
 */
static void give_leaving(placing *p)
{
    if (!p->leaving)
        return;
    qi_lock_release(&p->shard->lock);
    qi_pages_destroy(p->shard->memory, p->leaving);
    p->leaving = NULL;
    qi_lock_acquire(&p->shard->lock);
}

/* With the lock, given up meanwhile: makes a page for the request and places it there. */
static quire_result place_in_new_page(placing *p, bool dedicated, uint32_t *slot)
{
    qi_page *page = NULL;
    p->tried |= TRIED_EMPTY;
    give_leaving(p);
    quire_result result = qi_page_make(p->shard, p->load.size, p->load.alignment, dedicated, &page);
    if (result)
        return result;
    p->made = (made){.size = page->native.native.size, .number = page->number};
    result = dedicated ? place_dedicated(p, page, slot) : place_shared(p, QI_TRY, slot);
    if (result == QUIRE_ERROR_NO_SPACE) /* holes that fit badly can hide the page from the bounds */
        result = place_shared(p, QI_EXHAUSTIVE, slot);
    if (result) {
        qi_page *leaving = qi_page_take(page, NULL);
        qi_lock_release(&p->shard->lock);
        qi_pages_destroy(p->shard->memory, leaving);
        qi_lock_acquire(&p->shard->lock);
    } else {
        qi_page_keep(page);
    }
    return result;
}

/* ---- other shards ------------------------------------------------------------------------- */

/* Gives up the lock that is held and takes another shard's. */
static void go_to(placing *p, qi_shard *shard)
{
    qi_lock_release(&p->shard->lock);
    p->shard = shard;
    qi_lock_acquire(&shard->lock);
    p->leaving = qi_shard_catch_up(shard, p->leaving);
}

/* With the lock, given up meanwhile: an empty page of another shard becomes this one's. */
static bool take_over_page(placing *p, uint64_t needed)
{
    quire_memory *memory = p->shard->memory;
    qi_shard *mine = p->shard;
    qi_page *page = NULL;
    for (uint32_t i = 1; i < memory->shard_count && !page; i++) {
        go_to(p, &memory->shards[(mine->index + i) % memory->shard_count]);
        page = qi_empties_find_shared(p->shard, needed);
        if (page)
            qi_page_leave_shard(page);
    }
    if (p->shard != mine)
        go_to(p, mine);
    return page && qi_page_enter_shard(page, mine, &p->leaving);
}

/* With the lock, given up meanwhile: a full pass over every shard, this one first. */
static quire_result place_anywhere(placing *p, uint32_t *slot)
{
    const quire_memory *memory = p->shard->memory;
    const uint32_t first = p->shard->index;
    quire_result result = QUIRE_ERROR_NO_SPACE;
    for (uint32_t i = 0; i < memory->shard_count && result; i++) {
        if (i)
            go_to(p, &memory->shards[(first + i) % memory->shard_count]);
        result = place_shared(p, QI_EXHAUSTIVE, slot);
    }
    p->tried |= TRIED_PASS | (memory->shard_count > 1 ? TRIED_SHARDS : 0);
    return result;
}

/* ---- the order of attempts ---------------------------------------------------------------- */

/* Whether no page could be had, so that only what is there can help. */
static bool is_want_of_pages(quire_result result)
{
    return result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY || result == QUIRE_ERROR_TOO_MANY_PAGES ||
           result == QUIRE_ERROR_OUT_OF_RANGE || result == QUIRE_ERROR_OVER_BUDGET;
}

/* With the lock, given up meanwhile: a page of another shard's, or a new one. */
static quire_result place_in_other_page(placing *p, uint32_t *slot)
{
    uint64_t needed = 0;
    if (p->shard->memory->shard_count > 1 &&
        !qi_page_needed_size(p->shard, p->load.size, p->load.alignment, false, &needed) &&
        take_over_page(p, needed) && !place_shared(p, QI_TRY, slot))
        return QUIRE_SUCCESS;
    return place_in_new_page(p, false, slot);
}

/* With the lock, given up meanwhile: what there is, looked through whole. On failure, from the
   caller's own shard again, and with the sentence of before. */
static bool is_placed_anywhere(placing *p, uint32_t *slot)
{
    qi_shard *mine = p->shard;
    qi_error error = qi_error_save();
    if (!place_anywhere(p, slot))
        return true;
    qi_error_restore(&error);
    if (p->shard != mine)
        go_to(p, mine);
    give_leaving(p);
    return false;
}

/* With the lock, given up meanwhile: no range fits, so that a page is needed. */
static quire_result find_with_page(placing *p, uint32_t *slot)
{
    uint64_t room = 0;
    if (qi_add_overflows(p->load.size, p->load.alignment, &room))
        room = UINT64_MAX;
    const qi_page *joined = NULL;
    quire_result result = QUIRE_ERROR_NO_SPACE;
    give_leaving(p);
    while (result == QUIRE_ERROR_NO_SPACE) {
        p->patience.changes = qi_pages_changes(p->shard);
        if (!qi_page_join(p->shard, room, &joined)) {
            result = place_in_other_page(p, slot);
            if (!is_want_of_pages(result))
                return result;
            if (!qi_page_await_change(p->shard, result, &p->patience)) {
                if (is_placed_anywhere(p, slot))
                    return QUIRE_SUCCESS;
                if (!qi_page_await_change(p->shard, result, &p->patience))
                    return result;
            }
        }
        result = place_shared(p, QI_TRY, slot);
    }
    return result;
}

/* With the lock: an empty page kept from an earlier dedicated allocation. */
static quire_result place_in_kept_page(const placing *p, uint32_t *slot)
{
    uint64_t needed = 0;
    if (qi_page_needed_size(p->shard, p->load.size, p->load.alignment, true, &needed))
        return QUIRE_ERROR_NO_SPACE; /* making one will say so */
    qi_page *page = qi_empties_find_dedicated(p->shard, needed);
    return page ? place_dedicated(p, page, slot) : QUIRE_ERROR_NO_SPACE;
}

/* With the lock, given up meanwhile. */
static quire_result find_dedicated(placing *p, uint32_t *slot)
{
    quire_result result;
    give_leaving(p);
    do {
        p->patience.changes = qi_pages_changes(p->shard);
        result = place_in_kept_page(p, slot);
        if (result == QUIRE_ERROR_NO_SPACE)
            result = place_in_new_page(p, true, slot);
    } while (qi_page_await_change(p->shard, result, &p->patience));
    return result;
}

/* With the lock, given up meanwhile. What failed on the way to a success is not told. */
static quire_result find(placing *p, bool dedicated, uint32_t *slot)
{
    quire_result result = dedicated ? QUIRE_ERROR_NO_SPACE : place_shared(p, QI_TRY, slot);
    if (result != QUIRE_ERROR_NO_SPACE)
        return result;
    qi_error before = qi_error_save();
    result = dedicated ? find_dedicated(p, slot) : find_with_page(p, slot);
    if (!result)
        qi_error_restore(&before);
    return result;
}

/*
 * With the lock, given up meanwhile: the same within the limits of the request's name. They are
 * looked at before a page is made in vain, and hold for what is really held, once that is known.
 */
static quire_result find_by_name(placing *p, bool dedicated, uint32_t *slot)
{
    quire_memory *memory = p->shard->memory;
    const char *name = p->wish->name;
    if (!name)
        return find(p, dedicated, slot);
    quire_result result = qi_names_admit(&memory->names, name, p->load.size);
    if (!result)
        result = find(p, dedicated, slot);
    if (result)
        return result;
    qi_slot *record = qi_memory_slot(memory, *slot);
    result = qi_names_replace(&memory->names, NULL, name, record);
    if (result) {
        record->extra = NULL; /* it has no name where it is not counted */
        qi_lock_release(&p->shard->lock);
        qi_place_undo(memory, *slot);
        qi_lock_acquire(&p->shard->lock);
    }
    return result;
}

/* Without a lock: one attempt, from the calling thread's shard. */
static quire_result attempt(quire_memory *memory, placing *p, bool dedicated, uint32_t *slot)
{
    p->shard = qi_shard_mine(memory);
    p->leaving = NULL;
    p->made = (made){0};
    qi_lock_acquire(&p->shard->lock);
    p->leaving = qi_shard_catch_up(p->shard, NULL);
    quire_result result = find_by_name(p, dedicated, slot);
    qi_lock_release(&p->shard->lock);
    if (p->made.size)
        qi_log(&memory->device->log, QUIRE_LOG_DEBUG, "memory '%s': page %u made, %s%s",
               memory->name, p->made.number, qi_bytes(p->made.size).text,
               dedicated ? ", dedicated" : "");
    if (p->leaving)
        qi_pages_destroy(memory, p->leaving);
    return result;
}

/* Attempts, and asks the caller to free something while that promises to help. */
static quire_result place(quire_memory *memory, placing *p, bool dedicated, uint32_t *slot)
{
    const quire_on_shortage *on_shortage = &memory->on_shortage;
    for (uint32_t times = 1;; times++) {
        quire_result result = attempt(memory, p, dedicated, slot);
        if (!is_want_of_pages(result) || !on_shortage->freed || times > QUIRE_MOST_SHORTAGES)
            return result;
        qi_error error = qi_error_save();
        quire_shortage shortage = {
            .size = p->load.size, .alignment = p->load.alignment, .reason = result, .times = times};
        p->tried |= TRIED_CALLER;
        if (!on_shortage->freed(on_shortage->user, memory, &shortage)) {
            qi_error_restore(&error);
            return result;
        }
    }
}

static void count_failure(quire_memory *memory)
{
    qi_shard *shard = qi_shard_mine(memory);
    qi_lock_acquire(&shard->lock);
    shard->stats.failures++;
    qi_lock_release(&shard->lock);
}

/* What was tried, in words. */
static const char *tried_text(unsigned tried, char *text, size_t size)
{
    static const char *const words[] = {"empty pages given back", "other shards", "a full pass",
                                        "the caller's callback"};
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tried & 1u << i && length < size) {
            int more = snprintf(text + length, size - length, "%s%s",
                                length ? ", " : "; tried: ", words[i]);
            length += more > 0 ? (size_t)more : 0;
        }
    return text;
}

/* The refusal: what was asked, what is there, what was tried, and what the last attempt said. */
static quire_result report(quire_memory *memory, const placing *p, quire_result result)
{
    char why[QI_ERROR_TEXT / 2], tried[160];
    snprintf(why, sizeof why, "%s", quire_last_error());
    int64_t native = quire_last_native_code();
    count_failure(memory);
    quire_memory_stats stats;
    qi_ignore(quire_memory_get_stats(memory, &stats));
    return quire_backend_fail(
        result, native,
        "memory '%s' (kind %u, %s): %s at alignment %llu asked; pages: %llu, largest free range %s "
        "of %s free; %s%s",
        memory->name, memory->kind, qi_flags(memory->flags).text, qi_bytes(p->wish->size).text,
        (unsigned long long)p->load.alignment, (unsigned long long)stats.page_count,
        qi_bytes(stats.largest_free).text, qi_bytes(stats.free_bytes).text, why,
        tried_text(p->tried, tried, sizeof tried));
}

static quire_result prepare(const quire_memory *memory, const qi_wish *wish, placing *p)
{
    uint64_t held = wish->held > wish->size ? wish->held : wish->size;
    *p = (placing){.wish = wish,
                   .load = {.alignment = wish->alignment,
                            .requested = wish->size,
                            .user_data = wish->user_data}};
    if (memory->atom > wish->alignment)
        p->load.alignment = memory->atom;
    if (qi_policy_size_overflows(&memory->policy, held, &p->load.size) ||
        qi_align_up_overflows(p->load.size, memory->atom, &p->load.size))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            "%u bytes asked: more than can be counted once rounded up", held);
    return QUIRE_SUCCESS;
}

void qi_extra_release(quire_memory *memory, qi_extra *extra)
{
    if (extra)
        qi_host_release_text(&memory->host, extra->name);
    qi_host_release(&memory->host, extra, 1, sizeof *extra);
}

quire_result qi_extra_make(quire_memory *memory, const char *name, quire_object object,
                           qi_extra **extra)
{
    *extra = NULL;
    if (!name && object == QUIRE_OBJECT_NONE)
        return QUIRE_SUCCESS;
    *extra = qi_host_allocate(&memory->host, 1, sizeof **extra);
    if (*extra && name)
        (*extra)->name = qi_host_copy_text(&memory->host, name);
    if (*extra && (!name || (*extra)->name)) {
        (*extra)->object = object;
        return QUIRE_SUCCESS;
    }
    qi_extra_release(memory, *extra);
    *extra = NULL;
    return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for an allocation's name");
}

static bool wants_dedicated(const quire_memory *memory, const qi_wish *wish)
{
    const quire_page_policy *policy = &memory->policy;
    bool is_one_page = memory->shards->space->fit->most_regions; /* which nothing is to outgrow */
    return wish->dedicated || policy->dedicated == QUIRE_DEDICATED_ALWAYS ||
           (is_one_page && wish->size > policy->page_size) ||
           (policy->dedicated_threshold && wish->size >= policy->dedicated_threshold);
}

uint64_t qi_place_largest_at_once(const quire_memory *memory)
{
    const quire_page_policy *policy = &memory->policy;
    bool is_one_page = memory->shards->space->fit->most_regions;
    if (policy->extra_padding || policy->size_granularity > 1 || memory->atom > 1 ||
        policy->dedicated == QUIRE_DEDICATED_ALWAYS)
        return 0;
    if (policy->dedicated_threshold)
        return policy->dedicated_threshold - 1;
    return is_one_page ? policy->page_size : UINT64_MAX;
}

/* The usual case, whole: a raw range that fits into a page there is. NO_SPACE: it is another. */
static quire_result place_at_once(quire_memory *memory, const qi_wish *wish, uint32_t *slot)
{
    qi_shard *shard = qi_shard_mine(memory);
    const qi_load load = qi_load_of(wish);
    qi_lock_acquire(&shard->lock);
    quire_result result = QUIRE_ERROR_NO_SPACE;
    if (!qi_shard_is_behind(shard))
        result = qi_put(shard, &load, QI_TRY, slot);
    qi_lock_release(&shard->lock);
    return result;
}

/* The general case, or what is left to say when the usual one failed. */
static quire_result place_with_all_means(quire_memory *memory, const qi_wish *wish,
                                         quire_result failed, uint32_t *slot)
{
    placing p;
    bool dedicated = wants_dedicated(memory, wish);
    quire_result result = prepare(memory, wish, &p);
    if (!result)
        result = failed;
    if (!result)
        result = qi_extra_make(memory, wish->name, wish->object, &p.load.extra);
    if (!result)
        result = place(memory, &p, dedicated, slot);
    if (result) {
        qi_extra_release(memory, p.load.extra);
        return report(memory, &p, result);
    }
    if (wish->zero)
        result = qi_access_fill_zero(memory, *slot);
    if (result) {
        qi_place_undo(memory, *slot);
        count_failure(memory);
    }
    return result;
}

quire_result qi_place(quire_memory *memory, const qi_wish *wish, uint32_t *slot)
{
    quire_result result = QUIRE_ERROR_NO_SPACE;
    if (qi_wish_is_usual(memory, wish))
        result = place_at_once(memory, wish, slot);
    if (!result)
        return QUIRE_SUCCESS;
    if (result == QUIRE_ERROR_NO_SPACE)
        result = QUIRE_SUCCESS;
    return place_with_all_means(memory, wish, result, slot);
}

/* ---- giving back -------------------------------------------------------------------------- */

/* Nobody changes the extra part any more, but a walk may be reading the name. */
static qi_extra *detach_extra(qi_shard *shard, qi_slot *record)
{
    qi_extra *extra = record->extra;
    qi_lock_acquire(&shard->lock);
    qi_ignore(
        qi_names_replace(&shard->memory->names, extra->name, NULL, record)); /* takes nothing */
    record->extra = NULL;
    qi_lock_release(&shard->lock);
    return extra;
}

/* So many frees wait in an inbox at most: then whoever brings one more takes the trouble. */
enum { MOST_WAITING = 1024 };

/* Object and name go first, which other threads may be looking at. */
static void release_extra(quire_memory *memory, qi_shard *shard, qi_slot *record)
{
    qi_extra *extra = detach_extra(shard, record);
    if (extra->native)
        qi_device_object_destroy(memory->device, &memory->calls, extra->object, extra->native);
    qi_extra_release(memory, extra);
}

/* With the lock, given up for good: what others left to do, and what the policy says then. */
static void catch_up(qi_shard *shard)
{
    qi_page *leaving = qi_shard_catch_up(shard, NULL);
    qi_lock_release(&shard->lock);
    if (leaving)
        qi_pages_destroy(shard->memory, leaving);
}

void qi_place_release(quire_memory *memory, uint32_t slot)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_shard *shard = record->page->shard;
    if (record->extra)
        release_extra(memory, shard, record);
    bool is_mine = shard == qi_shard_mine(memory);
    if (!is_mine && qi_inbox_put(&shard->inbox, &memory->slots, slot) < MOST_WAITING)
        return;
    qi_lock_acquire(&shard->lock);
    if (is_mine && qi_put_back(shard, slot))
        shard->emptied = true;
    if (qi_shard_is_behind(shard))
        catch_up(shard);
    else
        qi_lock_release(&shard->lock);
}

void qi_place_undo(quire_memory *memory, uint32_t slot)
{
    qi_shard *shard = qi_shard_of_slot(memory, slot);
    qi_place_release(memory, slot);
    qi_lock_acquire(&shard->lock);
    shard->stats.allocations--;
    shard->stats.frees--;
    qi_lock_release(&shard->lock);
}
