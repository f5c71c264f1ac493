/*
 * transfer.h - what quire_copy and quire_copy_on share: from options to two pinned ends and a box.
 */
#ifndef QUIRE_SRC_CORE_COPY_COPY_H
#define QUIRE_SRC_CORE_COPY_COPY_H

#include "src/core/copy/copy_path.h"

/*
 * Checks options and pins both ends. A box of size 0: there is nothing to copy. On failure nothing
 * is pinned.
 */
QUIRE_MUST_USE quire_result qi_copy_begin(qi_copy *transfer, const quire_copy_options *options);

/* Copies all of it, and tells the caller on the way. */
QUIRE_MUST_USE quire_result qi_copy_run(qi_copy *transfer, const quire_progress *progress);

/* Unpins, and gives back what copying took. */
void qi_copy_end(qi_copy *transfer);

#endif
