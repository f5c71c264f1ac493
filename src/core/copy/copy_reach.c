/*
 * copy_reach.c - maps the ends of a copy whose pages are mapped on demand (see copy_path.h).
 */
#include "src/core/copy/copy_path.h"
#include "src/core/page/map.h"

static bool is_on_demand(const qi_end *end)
{
    return end->memory && end->memory->maps_on_demand;
}

static quire_result reach(qi_end *end)
{
    if (!is_on_demand(end) || end->host)
        return QUIRE_SUCCESS;
    return qi_page_map_begin(end->memory, qi_memory_page(end->memory, end->slot), &end->host);
}

static void leave(qi_end *end)
{
    if (!is_on_demand(end) || !end->host)
        return;
    qi_page_map_end_slot(end->memory, end->slot);
    end->host = NULL;
}

quire_result qi_copy_reach(qi_copy *copy, qi_copy_path path)
{
    bool is_by_host = path == QI_COPY_PATH_HOST;
    quire_result result = QUIRE_SUCCESS;
    if (is_by_host || path == QI_COPY_PATH_TO_PAGE)
        result = reach(&copy->from);
    if (!result && (is_by_host || path == QI_COPY_PATH_FROM_PAGE))
        result = reach(&copy->to);
    return result;
}

void qi_copy_leave(qi_copy *copy)
{
    leave(&copy->to);
    leave(&copy->from);
}
