/*
 * text.c - see text.h.
 */
#include "src/adapters/vma/text.h"

#include <string.h>

/* Makes room for `size` more bytes and a terminating 0. */
static bool reserve(qi_vma_text *text, size_t size)
{
    if (text->room - text->size > size)
        return true;
    size_t room = 2 * text->room + size + 1;
    char *data = qi_vma_host_allocate(text->host, room);
    if (!data)
        return false;
    if (text->data)
        memcpy(data, text->data, text->size);
    qi_vma_host_release(text->host, text->data);
    text->data = data;
    text->room = room;
    return true;
}

bool qi_vma_text_write(void *user, const char *piece, size_t size)
{
    qi_vma_text *text = user;
    if (text->has_failed || !reserve(text, size)) {
        text->has_failed = true;
        return false;
    }
    memcpy(text->data + text->size, piece, size);
    text->size += size;
    text->data[text->size] = '\0';
    return true;
}

void qi_vma_text_add(qi_vma_text *text, const char *piece)
{
    (void)qi_vma_text_write(text, piece, strlen(piece));
}

char *qi_vma_text_end(qi_vma_text *text)
{
    if (!text->has_failed)
        return text->data;
    qi_vma_host_release(text->host, text->data);
    return NULL;
}
