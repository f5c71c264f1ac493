/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy.c - copies that are complete on return: from options to two ends and a region, then part by
 * part (see copy.h).
 */
#include "src/core/copy/copy.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/page/lazy.h"
#include "src/core/slot/slot.h"

/* 16 MiB: bytes between two calls of a progress callback whose step is 0. */
static const uint64_t DEFAULT_STEP = UINT64_C(16) << 20;

/* ---- the region --------------------------------------------------------------------------- */

static quire_result check_options(const quire_copy_options *o)
{
    if (!o->to.memory && !o->from.memory)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "both ends of the copy are host memory: at least one is in a memory");
    if ((o->to.memory ? o->host_to != NULL : o->to.allocation.id != 0) ||
        (o->from.memory ? o->host_from != NULL : o->from.allocation.id != 0))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "an end of the copy is host memory or an allocation of a memory, not both");
    if (!o->to.memory && !o->host_to)
        return qi_fail_null("quire_copy", "host_to");
    if (!o->from.memory && !o->host_from)
        return qi_fail_null("quire_copy", "host_from");
    bool has_rows = o->rows || o->slices || o->to.row_pitch || o->to.slice_pitch ||
                    o->from.row_pitch || o->from.slice_pitch;
    if (!o->size && has_rows)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the copy has rows or pitches, and no size");
    if (!o->progress.goes_on && (o->progress.step || o->progress.user))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "the copy has a progress step or user, and no function to call");
    return qi_check_unused(o, "quire_copy_options");
}

static quire_result refuse_pitch(const char *end, const char *what, uint64_t pitch, uint64_t min)
{
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                        "the copy's %s has a %s pitch of %llu byte%s, and a %s has %llu", end, what,
                        (unsigned long long)pitch, qi_plural(pitch), what, (unsigned long long)min);
}

static quire_result refuse_extent(const qi_copy_region *region)
{
    return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                        "%u slice%s of %u row%s of %u byte%s: their size exceeds 64 bits",
                        region->slices, region->rows, region->size);
}

/* Resolves the pitches of an end, whose 0 means "without a gap", and computes its extent. */
static quire_result resolve_side(const qi_copy_region *region, const quire_copy_end *end,
                                 const char *name, qi_copy_region_side *side, uint64_t *extent)
{
    uint64_t slice = 0;
    side->offset = end->offset;
    side->row = end->row_pitch ? end->row_pitch : region->size;
    if (side->row < region->size)
        return refuse_pitch(name, "row", side->row, region->size);
    if (qi_multiply_overflows(region->rows - 1, side->row, &slice) ||
        qi_add_overflows(slice, region->size, &slice))
        return refuse_extent(region);
    side->slice = end->slice_pitch;
    if (side->slice && side->slice < slice)
        return refuse_pitch(name, "slice", side->slice, slice);
    if (!side->slice && qi_multiply_overflows(region->rows, side->row, &side->slice))
        return refuse_extent(region);
    return qi_copy_region_extent_overflows(region, side, extent) ? refuse_extent(region)
                                                                 : QUIRE_SUCCESS;
}

/* ---- the ends ----------------------------------------------------------------------------- */

static const qi_device_page *page_of(const quire_memory *memory, uint32_t slot)
{
    return &qi_memory_page(memory, slot)->native;
}

/* Begins a use of an allocation. The side's offset then counts from the first byte of the page. */
static quire_result begin_in_memory(const quire_copy_end *requested, uint64_t extent,
                                    bool is_target, qi_end *end, qi_copy_region_side *side)
{
    quire_memory *memory = requested->memory;
    quire_result result = qi_device_check_bytes(memory->device, memory->kind);
    if (result)
        return result;
    result = qi_slot_begin_use(&memory->slots, requested->allocation, QI_ACCEPT_LIVE, &end->slot);
    if (result)
        return result;
    const qi_slot *record = qi_memory_slot(memory, end->slot);
    if (qi_range_fits(side->offset, extent, qi_slot_usable(record)))
        result = qi_lazy_check_if(memory, end->slot, side->offset, extent);
    else
        result =
            qi_fail_naming(QUIRE_ERROR_OUT_OF_RANGE,
                           "the copy takes %u byte%s at offset %u of the allocation in '%t', "
                           "which has %u byte%s",
                           is_target ? "to" : "from", extent, side->offset, qi_slot_usable(record));
    if (result) {
        qi_slot_end_use(&memory->slots, end->slot);
        return result;
    }
    end->memory = memory;
    end->page = page_of(memory, end->slot);
    end->host = memory->maps_on_demand ? NULL : end->page->host;
    side->offset += record->offset;
    return QUIRE_SUCCESS;
}

/* For both directions: the memory is written only if this end is the target. */
static quire_result begin_on_host(const void *pointer, uint64_t extent, qi_end *end,
                                  const qi_copy_region_side *side)
{
    uint64_t last = 0;
    *end = (qi_end){.host = (char *)(uintptr_t)pointer};
    if (qi_add_overflows((uintptr_t)pointer, side->offset, &last) ||
        qi_add_overflows(last, extent, &last) || last > UINTPTR_MAX)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "the copy takes %u byte%s at offset %u of host memory at %x: they go "
                            "beyond the last address",
                            extent, side->offset, (uintptr_t)pointer);
    return QUIRE_SUCCESS;
}

/* Does nothing for an end in host memory. */
static void end_use(const qi_end *end)
{
    if (end->memory)
        qi_slot_end_use(&end->memory->slots, end->slot);
}

/* Lowers *size to the bytes of an allocation from the end's offset on. Host memory has no end. */
static quire_result limit_to_end(const quire_copy_end *end, uint64_t *size)
{
    quire_memory *memory = end->memory;
    uint32_t slot;
    if (!memory)
        return QUIRE_SUCCESS;
    quire_result result = qi_slot_begin_use(&memory->slots, end->allocation, QI_ACCEPT_LIVE, &slot);
    if (result)
        return result;
    uint64_t requested = qi_memory_slot(memory, slot)->requested;
    qi_slot_end_use(&memory->slots, slot);
    if (end->offset > requested)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "the copy begins at offset %u of an allocation of %u byte%s",
                            end->offset, requested);
    if (*size > requested - end->offset)
        *size = requested - end->offset;
    return QUIRE_SUCCESS;
}

/* Returns the bytes of a row; without a size those of the shorter end. */
static quire_result resolve_size(const quire_copy_options *o, uint64_t *size)
{
    *size = o->size;
    if (*size)
        return QUIRE_SUCCESS;
    *size = UINT64_MAX;
    quire_result result = limit_to_end(&o->to, size);
    return result ? result : limit_to_end(&o->from, size);
}

/* Begins the uses of both ends, or of neither. */
static quire_result begin_ends(qi_copy *copy, const quire_copy_options *o, uint64_t to_extent,
                               uint64_t from_extent)
{
    quire_result result =
        o->to.memory ? begin_in_memory(&o->to, to_extent, true, &copy->to, &copy->region.to)
                     : begin_on_host(o->host_to, to_extent, &copy->to, &copy->region.to);
    if (result)
        return result;
    result = o->from.memory
                 ? begin_in_memory(&o->from, from_extent, false, &copy->from, &copy->region.from)
                 : begin_on_host(o->host_from, from_extent, &copy->from, &copy->region.from);
    if (result)
        end_use(&copy->to);
    return result;
}

/* ---- overlap ------------------------------------------------------------------------------ */

/*
 * The ends must not share a byte. They can if both lie in one page, or if the host reaches
 * both at the same address: two pages can be mapped there if one was created from the memory of the
 * other. That is not known of pages that are mapped on demand and that the backend copies.
 */
static quire_result check_overlap(const qi_copy *copy)
{
    qi_copy_region region = copy->region;
    if (copy->to.page != copy->from.page) {
        if (!copy->to.host || !copy->from.host)
            return QUIRE_SUCCESS;
        region.to.offset += (uintptr_t)copy->to.host;
        region.from.offset += (uintptr_t)copy->from.host;
    }
    if (!qi_copy_region_overlaps(&region))
        return QUIRE_SUCCESS;
    uint64_t apart = region.to.offset > region.from.offset ? region.to.offset - region.from.offset
                                                           : region.from.offset - region.to.offset;
    return qi_fail_with(QUIRE_ERROR_OVERLAP,
                        "the ends of the copy share bytes: they begin %u byte%s apart, and take %u "
                        "and %u byte%s",
                        apart, qi_copy_region_extent(&region, &region.to),
                        qi_copy_region_extent(&region, &region.from));
}

quire_result qi_copy_begin(qi_copy *copy, const quire_copy_options *o)
{
    *copy =
        (qi_copy){.region = {.rows = o->rows ? o->rows : 1, .slices = o->slices ? o->slices : 1}};
    qi_copy_region *region = &copy->region;
    uint64_t to_extent = 0, from_extent = 0;
    quire_result result = check_options(o);
    if (!result)
        result = resolve_size(o, &region->size);
    if (!result)
        result = resolve_side(region, &o->to, "target", &region->to, &to_extent);
    if (!result)
        result = resolve_side(region, &o->from, "source", &region->from, &from_extent);
    if (!result)
        result = begin_ends(copy, o, to_extent, from_extent);
    if (result || !region->size)
        return result;
    qi_copy_region_merge(region);
    result = qi_copy_reach(copy, qi_copy_path_first(copy->to.memory, copy->from.memory));
    if (!result)
        result = check_overlap(copy);
    if (result)
        qi_copy_end(copy);
    return result;
}

void qi_copy_end(qi_copy *copy)
{
    qi_copy_finish(copy);
    end_use(&copy->to);
    end_use(&copy->from);
}

/* ---- copying ------------------------------------------------------------------------------ */

/*
 * Calls the progress callback; returns whether the copy continues. An error of a call inside the
 * callback does not become the copy's. A fork inside the callback keeps the uses of both ends.
 */
static bool report_progress(const quire_progress *progress, uint64_t done, uint64_t total)
{
    if (!progress->goes_on)
        return true;
    qi_transit_assert_none();
    qi_error before;
    qi_error_save(&before);
    qi_uses_begin_callback();
    bool goes_on = progress->goes_on(progress->user, done, total);
    qi_uses_end_callback();
    qi_error_restore(&before);
    return goes_on || done == total;
}

quire_result qi_copy_run(qi_copy *copy, const quire_progress *progress)
{
    const qi_copy_region *region = &copy->region;
    uint64_t total = qi_copy_region_bytes(region), step = total;
    if (progress->goes_on)
        step = progress->step ? progress->step : DEFAULT_STEP;
    for (uint64_t done = 0; done < total;) {
        qi_copy_region part = qi_copy_region_part(region, done, step);
        quire_result result = qi_copy_execute(copy, &part);
        if (result)
            return result;
        done += qi_copy_region_bytes(&part);
        if (!report_progress(progress, done, total))
            return qi_fail_with(QUIRE_ERROR_BUSY,
                                "the progress callback ended the copy after %u of %u byte%s", done,
                                total);
    }
    return QUIRE_SUCCESS;
}

quire_result qi_copy_now(const quire_copy_options *options)
{
    qi_copy copy;
    quire_result result = qi_copy_begin(&copy, options);
    if (result)
        return result;
    if (copy.region.size)
        result = qi_copy_run(&copy, &options->progress);
    qi_copy_end(&copy);
    return result;
}

static bool has_bytes(const quire_memory *memory)
{
    return !memory || !(memory->flags & QUIRE_OBJECTS_ONLY);
}

quire_copy_path qi_copy_path_between(const quire_memory *to, const quire_memory *from)
{
    qi_copy_path path =
        has_bytes(to) && has_bytes(from) ? qi_copy_path_first(to, from) : QI_COPY_PATH_NONE;
    return qi_copy_path_public(path, to, from);
}
