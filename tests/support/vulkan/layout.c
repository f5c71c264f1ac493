/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * layout.c - completion and lookup of layouts: see layout.h. layouts.c has the built-in layouts.
 */
#include "tests/support/vulkan/layout.h"

#include <string.h>

const fv_layout *fv_layout_named(const char *name)
{
    for (uint32_t i = 0; i < fv_layout_count; i++)
        if (!strcmp(fv_layouts[i].name, name))
            return &fv_layouts[i];
    return NULL;
}

static void replace_zero(uint64_t *value, uint64_t usual)
{
    *value = *value ? *value : usual;
}

/* Adds extensions that others require, and those that the core version contains. */
static uint32_t implied_extensions(const fv_layout *layout)
{
    static const uint32_t CORE_VERSION[] = {
#define X(bit, name, scope, core) core,
        FV_EXTENSIONS(X)
#undef X
    };
    uint32_t implied = 0;
    for (uint32_t i = 0; i < FV_EXTENSION_COUNT; i++)
        if (CORE_VERSION[i] && layout->api_version >= CORE_VERSION[i])
            implied |= UINT32_C(1) << i;
    /* in core 1.2, but an optional feature there */
    if (layout->api_version < VK_API_VERSION_1_3 && !(layout->features & FV_ADDRESS))
        implied &= ~FV_BIT(ADDRESS);
    return implied;
}

void fv_layout_complete(fv_layout *layout)
{
    static const struct {
        uint32_t extension, feature;
    } BRINGS[] = {
        {FV_BIT(TIMELINE), FV_TIMELINE},
        {FV_BIT(ADDRESS), FV_ADDRESS},
        {FV_BIT(PRIORITY), FV_PRIORITY},
        {FV_BIT(PAGEABLE), FV_PAGEABLE},
        {FV_BIT(ZERO), FV_ZERO},
        {FV_BIT(MAINTENANCE4), FV_MAINTENANCE4},
        {FV_BIT(DEVICE_COHERENT), FV_DEVICE_COHERENT},
    };
    uint64_t count = layout->max_allocations;
    replace_zero(&layout->granularity, 1024);
    replace_zero(&layout->atom, 64);
    replace_zero(&count, 4096);
    replace_zero(&layout->max_allocation, UINT64_C(1) << 31);
    replace_zero(&layout->max_buffer, layout->max_allocation);
    replace_zero(&layout->map_alignment, 64);
    replace_zero(&layout->host_pointer_alignment, 4096);
    replace_zero(&layout->storage_alignment, 64);
    replace_zero(&layout->uniform_alignment, 64);
    replace_zero(&layout->texel_alignment, 64);
    replace_zero(&layout->copy_alignment, 1);
    layout->max_allocations = (uint32_t)count;
    layout->extensions |= implied_extensions(layout);
    for (size_t i = 0; i < sizeof BRINGS / sizeof *BRINGS; i++)
        if (layout->extensions & BRINGS[i].extension)
            layout->features |= BRINGS[i].feature;
    layout->features |= FV_ROBUST | (layout->api_version >= VK_API_VERSION_1_3 ? FV_SYNC2 : 0);
}
