/*
 * page_history.h - what the pages of a memory say about the size of the next one (device/policy.h).
 */
#ifndef QUIRE_SRC_CORE_PAGE_PAGE_HISTORY_H
#define QUIRE_SRC_CORE_PAGE_PAGE_HISTORY_H

#include "src/core/device/policy.h"
#include "src/core/state/page.h"

/*
 * Requires the lock of the pages. Reads every page where the policy grows by the pages that exist;
 * for other policies `largest` and `total` stay 0, because nothing reads them.
 */
qi_page_history qi_page_history_of(const quire_page_policy *policy, const qi_pages *pages);

#endif
