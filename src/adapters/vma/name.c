/*
 * name.c - see name.h.
 */
#include "src/adapters/vma/name.h"

#include <string.h>

bool qi_vma_name_set(const qi_vma_host *host, char **name, const char *text)
{
    char *copy = NULL;
    if (text) {
        size_t size = strlen(text) + 1;
        copy = qi_vma_host_allocate(host, size);
        if (!copy)
            return false;
        memcpy(copy, text, size);
    }
    qi_vma_host_release(host, *name);
    *name = copy;
    return true;
}
