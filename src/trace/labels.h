/*
 * labels.h - the labels of a trace, copied into blocks that stay where they are, so that events can
 * point to them while more are added. The blocks grow with what they hold; labels that follow each
 * other and are the same share one copy. One thread at a time.
 */
#ifndef QUIRE_SRC_TRACE_LABELS_H
#define QUIRE_SRC_TRACE_LABELS_H

#include "src/base/host_memory.h"

typedef struct qi_label_block {
    struct qi_label_block *before;
    uint64_t size; /* bytes, with this head */
    char text[];
} qi_label_block;

typedef struct qi_labels {
    qi_label_block *last; /* NULL: there is none yet */
    uint64_t used;        /* bytes of its text */
    const char *newest;
} qi_labels;

/* The copy of a label; "" needs none. NULL when host memory is out. */
const char *qi_labels_add(qi_labels *labels, qi_host *host, const char *label);

void qi_labels_finish(qi_labels *labels, qi_host *host);

#endif
