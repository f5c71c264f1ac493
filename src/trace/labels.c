/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * labels.c - appends labels to the last block, and compares a label with the newest one only.
 */
#include "src/trace/labels.h"

#include <string.h>

enum { FIRST_BLOCK = 512, MAX_BLOCK = 64 << 10 };

/* Bytes for text in the last block. */
static uint64_t text_room(const qi_labels *labels)
{
    return labels->last ? labels->last->size - sizeof *labels->last : 0;
}

/* Doubles the size of the last block, up to MAX_BLOCK; a longer label gets a block of its size. */
static bool add_block(qi_labels *labels, qi_host *host, size_t label_size)
{
    uint64_t size = labels->last ? labels->last->size * 2 : FIRST_BLOCK;
    size = size < MAX_BLOCK ? size : MAX_BLOCK;
    if (size - sizeof *labels->last < label_size)
        size = sizeof *labels->last + label_size;
    qi_label_block *block = qi_host_allocate(host, size, 1);
    if (!block)
        return false;
    block->before = labels->last;
    block->size = size;
    labels->last = block;
    labels->used = 0;
    return true;
}

/* Compares with the newest label only, which is enough for traces with runs of equal labels. */
const char *qi_labels_add(qi_labels *labels, qi_host *host, const char *label)
{
    if (!*label)
        return "";
    if (labels->newest && !strcmp(labels->newest, label))
        return labels->newest;
    size_t size = strlen(label) + 1;
    if (text_room(labels) - labels->used < size && !add_block(labels, host, size))
        return NULL;
    char *copy = labels->last->text + labels->used;
    memcpy(copy, label, size);
    labels->used += size;
    labels->newest = copy;
    return copy;
}

void qi_labels_finish(qi_labels *labels, qi_host *host)
{
    while (labels->last) {
        qi_label_block *block = labels->last;
        labels->last = block->before;
        qi_host_release(host, block, block->size, 1);
    }
    *labels = (qi_labels){0};
}
