/*
 * page_attempt.c - smaller and smaller sizes for a page (see page_attempt.h).
 */
#include "src/core/page/page_attempt.h"

#include "src/base/bits.h"
#include "src/core/page/page_size.h"

static uint64_t releases_of(const quire_memory *memory)
{
    const quire_device *device = memory->device;
    return qi_heap_releases(&device->heaps[device->info.kinds[memory->kind].heap]);
}

static uint64_t half_of(const quire_memory *memory, uint64_t size, uint64_t needed)
{
    uint64_t half = qi_align_down(size / 2, qi_page_unit(memory));
    return half > needed ? half : needed;
}

uint64_t qi_page_attempt_size(const quire_memory *memory, uint64_t wanted, uint64_t needed,
                              uint64_t most, bool *is_reduced)
{
    const qi_pages *pages = &memory->pages;
    uint64_t size = most && most < wanted ? most : wanted;
    size = size > needed ? size : needed;
    *is_reduced = false;
    if (!pages->refused || pages->refused_as_of != releases_of(memory))
        return size;
    while (size >= pages->refused && size > needed) {
        size = half_of(memory, size, needed);
        *is_reduced = true;
    }
    return size;
}

qi_page_attempt qi_page_attempt_begin(quire_memory *memory, uint64_t size, uint64_t needed,
                                      bool is_reduced, qi_page_progress *progress)
{
    progress->is_smaller |= is_reduced;
    progress->is_over_budget = false;
    return (qi_page_attempt){
        .memory = memory,
        .size = size,
        .needed = needed,
        .is_reduced = is_reduced,
        .terms = {.is_strict = memory->within_budget || progress->within_budget,
                  .may_exceed = progress->may_exceed},
    };
}

/* Read before the request: a release during it makes its refusal outdated. */
void qi_page_attempt_start(qi_page_attempt *a)
{
    a->releases = releases_of(a->memory);
}

/* Another thread's record may already be of a later time than this refusal. */
static void note_refused(qi_page_attempt *a)
{
    qi_pages *pages = &a->memory->pages;
    a->was_refused = true;
    if (a->is_tied)
        return;
    qi_lock_acquire(&pages->lock);
    if (a->releases > pages->refused_as_of || !pages->refused)
        pages->refused = a->size;
    else if (a->releases == pages->refused_as_of && a->size < pages->refused)
        pages->refused = a->size;
    if (a->releases > pages->refused_as_of)
        pages->refused_as_of = a->releases;
    qi_lock_release(&pages->lock);
}

static void note_made(const qi_page_attempt *a)
{
    qi_pages *pages = &a->memory->pages;
    if (a->is_tied)
        return;
    qi_lock_acquire(&pages->lock);
    if (pages->refused && a->size >= pages->refused)
        pages->refused = 0;
    else if (a->is_reduced && !a->was_refused && pages->refused > UINT64_MAX / 2)
        pages->refused = 0;
    else if (a->is_reduced && !a->was_refused)
        pages->refused *= 2;
    qi_lock_release(&pages->lock);
}

/* Whether the least size exceeds the backend's budget and no limit of the caller. */
static bool is_over_budget(const qi_page_attempt *a)
{
    const qi_budget_terms *terms = &a->terms;
    return terms->is_refused && !terms->is_strict && !terms->may_exceed &&
           a->needed > terms->room && a->needed <= terms->room_by_limit;
}

bool qi_page_attempt_again(qi_page_attempt *a, quire_result result, qi_page_progress *progress)
{
    if (!result)
        note_made(a);
    if (!qi_is_out_of_memory(result))
        return false;
    if (!a->terms.is_refused)
        note_refused(a);
    progress->is_over_budget = is_over_budget(a);
    progress->excess = a->terms.excess;
    if (progress->is_over_budget || a->size == a->needed)
        return false;
    uint64_t room = a->terms.is_refused ? a->terms.room : UINT64_MAX;
    do
        a->size = half_of(a->memory, a->size, a->needed);
    while (a->size > room && a->size > a->needed);
    progress->is_smaller = true;
    return true;
}

void qi_page_attempt_forget(quire_memory *memory)
{
    qi_lock_acquire(&memory->pages.lock);
    memory->pages.refused = 0;
    qi_lock_release(&memory->pages.lock);
}
