/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* array.c - see array.h. */
#include "src/tool/array.h"

#include <stdlib.h>

void *grow_array(void *array, uint64_t *room, uint64_t at, size_t size)
{
    uint64_t more = *room ? *room : 16;
    while (more <= at)
        more *= 2;
    void *larger = more == *room ? array : realloc(array, more * size);
    if (larger)
        *room = more;
    return larger;
}
