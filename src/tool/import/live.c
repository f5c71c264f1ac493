/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * live.c - ids of live allocations by their addresses (see live.h).
 */
#include "src/tool/import/live.h"

bool import_live_begin(import_live *live)
{
    *live = (import_live){.last = 0};
    return !qi_host_init(&live->host, NULL);
}

void import_live_end(import_live *live)
{
    qi_id_map_finish(&live->map, &live->host);
}

uint64_t import_live_find(const import_live *live, uint64_t address)
{
    const uint32_t *id = address ? qi_id_map_find(&live->map, address) : NULL;
    return id ? *id : 0;
}

uint64_t import_live_add(import_live *live, uint64_t address)
{
    if (live->last == UINT32_MAX ||
        !qi_id_map_add(&live->map, &live->host, address, live->last + 1))
        return 0;
    return ++live->last;
}

uint64_t import_live_remove(import_live *live, uint64_t address)
{
    uint64_t id = import_live_find(live, address);
    if (id)
        qi_id_map_remove(&live->map, address);
    return id;
}
