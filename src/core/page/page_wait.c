/*
 * page_wait.c - threads sleep on the lock of the pages; every change of a page wakes all of them.
 */
#include "src/core/page/page_wait.h"

#include "src/base/thread.h"
#include "src/core/page/elastic_end.h"
#include "src/core/page/page_number.h"

/*
 * A thread that claims room lowers to_join of the page, so that no more threads wait for a page
 * than it can serve. The claim is not returned: the page is searched once it is published.
 */
bool qi_page_wait_for_room(qi_shard *shard, uint64_t size, const qi_page **joined)
{
    qi_pages *pages = &shard->memory->pages;
    if (qi_transit_is_on())
        return false;
    qi_lock_acquire(&pages->lock);
    qi_page *page = pages->being_made;
    while (page && page != *joined)
        page = page->next;
    if (!page) { /* not joined yet, or the joined page is finished and had no room */
        page = pages->being_made;
        while (page && (page->to_join < size || page->shard != shard))
            page = page->next;
        if (page)
            page->to_join -= size;
    }
    if (page) {
        *joined = page;
        qi_lock_wait(&pages->lock, &shard->lock);
    }
    qi_lock_release(&pages->lock);
    return page != NULL;
}

uint64_t qi_pages_changes(const qi_shard *shard)
{
    qi_pages *pages = &shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    uint64_t changes = pages->changes;
    qi_lock_release(&pages->lock);
    return changes;
}

/* Requires the lock of the pages. Whether a page begun up to this turn is still being made. */
static bool has_page_begun_by(const qi_pages *pages, uint64_t turn)
{
    const qi_page *page = pages->being_made;
    while (page && page->turn > turn)
        page = page->next;
    return page != NULL;
}

bool qi_page_wait_for_change(qi_shard *shard, quire_result refusal, qi_page_wait *wait)
{
    if (refusal != QUIRE_ERROR_TOO_MANY_PAGES && !qi_is_out_of_memory(refusal))
        return false;
    if (qi_transit_is_on())
        return false;
    qi_pages *pages = &shard->memory->pages;
    uint32_t max = shard->memory->policy.max_pages;
    qi_lock_acquire(&pages->lock);
    bool is_full = (max && pages->in_use >= max) || /* or the only page of the fit is being made */
                   shard->shared < qi_page_max_shared(shard);
    bool has_changed = pages->changes != wait->changes;
    if (!wait->turn || wait->as_of != wait->changes)
        *wait = (qi_page_wait){wait->changes, pages->turns, wait->changes};
    bool waits = pages->leaving || pages->moving || qi_elastic_is_shrinking(shard) ||
                 (is_full && pages->being_made) || has_page_begun_by(pages, wait->turn);
    if (waits && !has_changed)
        qi_lock_wait(&pages->lock, &shard->lock);
    qi_lock_release(&pages->lock);
    return waits || has_changed;
}
