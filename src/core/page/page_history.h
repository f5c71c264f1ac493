/*
 * page_history.h - the sizes of a memory's pages, as the policy needs them for the next page
 * (device/policy.h).
 *
 * The lock of the pages protects what is read. Nothing is changed.
 */
#ifndef QUIRE_SRC_CORE_PAGE_PAGE_HISTORY_H
#define QUIRE_SRC_CORE_PAGE_PAGE_HISTORY_H

#include "src/core/device/policy.h"
#include "src/core/state/page.h"

/*
 * Requires the lock of the pages. Reads every page if the policy's growth depends on all pages. For
 * other policies `largest` and `total` are 0, because nothing reads them.
 */
qi_page_history qi_page_history_of(const quire_page_policy *policy, const qi_pages *pages);

#endif
