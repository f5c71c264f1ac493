/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma.c - the JSON of vmaBuildStatsString with its detailed map: what is live at one moment.
 *
 * The file of VMA 3 (GPUOpen-LibrariesAndSDKs/VulkanMemoryAllocator, tools/GpuMemDumpVis) is
 *     {"General": …, "DefaultPools": {"Type 0": POOL, …}, "CustomPools": {"Type 0": [POOL, …]}}
 * where POOL has "Blocks": {"0": {"Suballocations": [ALLOCATION, …]}} by their offsets, and
 * "DedicatedAllocations": [ALLOCATION, …]. An ALLOCATION has Type, Size, and maybe Name; the
 * type FREE is a hole. D3D12MA writes the same. VMA 2 has no "General", and keeps dedicated
 * allocations elsewhere.
 */
#include <string.h>

#include "src/tool/import/import.h"
#include "src/tool/import/json_reader.h"

typedef struct reader {
    json_reader json;
    import_source *source;
    import_rows *rows;
    char name[JSON_MOST_TEXT], type[JSON_MOST_TEXT];
} reader;

static bool read_label(reader *r, char label[JSON_MOST_TEXT])
{
    if (!json_read_text(&r->json))
        return false;
    memcpy(label, r->json.text, r->json.length + 1);
    return true;
}

static bool read_allocation(reader *r)
{
    json_reader *json = &r->json;
    uint64_t size = 0;
    bool has_size = false;
    json_peek(json); /* to the first byte */
    const uint64_t line = r->source->line, column = r->source->column;
    r->name[0] = r->type[0] = '\0';
    for (json_enter(json, '{'); json_next_member(json);) {
        bool is_read;
        if (!strcmp(json->text, "Size"))
            is_read = has_size = json_read_integer(json, &size);
        else if (!strcmp(json->text, "Type"))
            is_read = read_label(r, r->type);
        else if (!strcmp(json->text, "Name"))
            is_read = read_label(r, r->name);
        else
            is_read = json_skip(json);
        if (!is_read)
            return false;
    }
    if (!json_is_good(json))
        return false;
    if (!strcmp(r->type, "FREE"))
        return true;
    if (!r->type[0] || !has_size || !size) {
        r->source->line = line;
        r->source->column = column;
        return import_refuse(r->source, "an allocation needs a Type, and a Size above 0");
    }
    import_alloc(r->rows, r->rows->allocations + 1, size, 1, 0, 0, r->name[0] ? r->name : r->type);
    return true;
}

static bool read_allocations(reader *r)
{
    for (json_enter(&r->json, '['); json_next_element(&r->json);)
        if (!read_allocation(r))
            return false;
    return json_is_good(&r->json);
}

/* Reads an object, in which `read` takes the members of the name `key`, or all if it is null. */
static bool read_members(reader *r, const char *key, bool (*read)(reader *r))
{
    for (json_enter(&r->json, '{'); json_next_member(&r->json);)
        if (key && strcmp(r->json.text, key) ? !json_skip(&r->json) : !read(r))
            return false;
    return json_is_good(&r->json);
}

static bool read_block(reader *r)
{
    return read_members(r, "Suballocations", read_allocations);
}

static bool read_pool(reader *r)
{
    for (json_enter(&r->json, '{'); json_next_member(&r->json);) {
        bool is_read;
        if (!strcmp(r->json.text, "Blocks"))
            is_read = read_members(r, NULL, read_block);
        else if (!strcmp(r->json.text, "DedicatedAllocations"))
            is_read = read_allocations(r);
        else
            is_read = json_skip(&r->json);
        if (!is_read)
            return false;
    }
    return json_is_good(&r->json);
}

static bool read_pools(reader *r)
{
    for (json_enter(&r->json, '['); json_next_element(&r->json);)
        if (!read_pool(r))
            return false;
    return json_is_good(&r->json);
}

static bool read_file(reader *r)
{
    bool has_general = false, has_pools = false;
    for (json_enter(&r->json, '{'); json_next_member(&r->json);) {
        bool is_read;
        const bool is_default = !strcmp(r->json.text, "DefaultPools");
        has_general |= !strcmp(r->json.text, "General");
        has_pools |= is_default;
        if (is_default)
            is_read = read_members(r, NULL, read_pool);
        else if (!strcmp(r->json.text, "CustomPools"))
            is_read = read_members(r, NULL, read_pools);
        else
            is_read = json_skip(&r->json);
        if (!is_read)
            return false;
    }
    if (!json_is_good(&r->json) || !json_end(&r->json))
        return false;
    if (!has_general)
        return import_refuse(r->source, "there is no General, which VMA 3 writes");
    return has_pools || import_refuse(r->source, "there are no DefaultPools: the statistics must "
                                                 "have the detailed map");
}

bool import_vma(import_source *source, import_rows *rows)
{
    reader r = {.source = source, .rows = rows};
    json_begin(&r.json, source);
    return read_file(&r);
}
