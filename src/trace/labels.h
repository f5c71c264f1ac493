/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * labels.h - stores the labels of a trace in blocks that never move, so that events can point to
 * them while more labels are added. Blocks double in size. Successive equal labels share one copy.
 * Not thread-safe.
 */
#ifndef QUIRE_SRC_TRACE_LABELS_H
#define QUIRE_SRC_TRACE_LABELS_H

#include "src/base/host_memory.h"

typedef struct qi_label_block {
    struct qi_label_block *before;
    uint64_t size; /* bytes, including this header */
    char text[];
} qi_label_block;

typedef struct qi_labels {
    qi_label_block *last; /* NULL until the first label is added */
    uint64_t used;        /* bytes used of last->text */
    const char *newest;   /* the label added last, or NULL */
} qi_labels;

/*
 * Returns the copy of a label, valid until qi_labels_finish; a constant for "". Returns NULL if
 * host memory is exhausted.
 */
const char *qi_labels_add(qi_labels *labels, qi_host *host, const char *label);

/* Frees all blocks. */
void qi_labels_finish(qi_labels *labels, qi_host *host);

#endif
