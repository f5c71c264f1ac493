/*
 * page_history.c - sums the shared pages of a memory for its policy (see page_history.h).
 *
 * Dedicated pages are excluded: a request decides their size. A page that is being made counts with
 * the size requested for it.
 */
#include "src/core/page/page_history.h"

#include "src/base/bits.h"

qi_page_history qi_page_history_of(const quire_page_policy *policy, const qi_pages *pages)
{
    qi_page_history history = {.last = pages->last_size};
    for (uint32_t i = 0; policy->growth != QUIRE_GROWTH_LAST && i < pages->top; i++) {
        const qi_page *page = qi_page_at(pages, i);
        bool is_making = page->phase == QI_PAGE_MAKING;
        if (page->dedicated ||
            (!is_making && page->phase != QI_PAGE_LIVE && page->phase != QI_PAGE_MOVING))
            continue;
        uint64_t size = is_making ? page->wanted : page->native.size;
        qi_raise(&history.largest, size);
        history.total += size;
    }
    return history;
}
