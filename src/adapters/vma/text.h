/*
 * text.h - a text that grows in host memory of the program.
 */
#ifndef QUIRE_SRC_ADAPTERS_VMA_TEXT_H
#define QUIRE_SRC_ADAPTERS_VMA_TEXT_H

#include "src/adapters/vma/host.h"

typedef struct qi_vma_text {
    const qi_vma_host *host;
    char *data; /* NULL: none yet */
    size_t size, room;
    bool has_failed;
} qi_vma_text;

/* A quire_sink for a qi_vma_text. */
bool qi_vma_text_write(void *user, const char *piece, size_t size);

void qi_vma_text_add(qi_vma_text *text, const char *piece);

/* Returns the text, which the caller releases. NULL and a last error: something has failed. */
char *qi_vma_text_end(qi_vma_text *text);

#endif
