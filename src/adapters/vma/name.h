/*
 * name.h - names of allocations and pools: copies of the program's strings.
 */
#ifndef QUIRE_SRC_ADAPTERS_VMA_NAME_H
#define QUIRE_SRC_ADAPTERS_VMA_NAME_H

#include "src/adapters/vma/host.h"

/* Replaces a name by a copy of another; NULL: none. Returns false, sets the last error and leaves
   the name if host memory is exhausted. */
bool qi_vma_name_set(const qi_vma_host *host, char **name, const char *text);

#endif
