/*
 * transfer.h - what quire_copy and quire_copy_on share: from options to two pinned ends and a box.
 */
#ifndef QUIRE_SRC_MEMORY_TRANSFER_H
#define QUIRE_SRC_MEMORY_TRANSFER_H

#include "src/memory/way.h"

/*
 * Checks options and pins both ends. A box of size 0: there is nothing to copy. On failure nothing
 * is pinned.
 */
QUIRE_MUST_USE quire_result qi_transfer_begin(qi_transfer *transfer,
                                              const quire_copy_options *options);

/* Copies all of it, and tells the caller on the way. */
QUIRE_MUST_USE quire_result qi_transfer_run(qi_transfer *transfer, const quire_progress *progress);

/* Unpins, and gives back what copying took. */
void qi_transfer_end(qi_transfer *transfer);

#endif
