/*
 * transfer.c - copies: what is asked is checked and pinned, then copied part by part (way.c).
 *
 * Each check is made before anything is copied. No lock is held: pins keep both ends.
 */
#include "src/memory/transfer.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/transit.h"
#include "src/memory/fork.h"

/* Bytes between two calls of a progress callback that does not say. */
static const uint64_t DEFAULT_STEP = UINT64_C(16) << 20;

/* ---- the shape ---------------------------------------------------------------------------- */

static quire_result check_options(const quire_copy_options *o)
{
    if (!o->to.memory && !o->from.memory)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "both ends of the copy are host memory: at least one is in a memory");
    if ((o->to.memory ? o->host_to != NULL : o->to.allocation.id != 0) ||
        (o->from.memory ? o->host_from != NULL : o->from.allocation.id != 0))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "an end of the copy is host memory or an allocation of a memory, not both");
    if (o->size && ((!o->to.memory && !o->host_to) || (!o->from.memory && !o->host_from)))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the host memory of the copy is null");
    if (!o->progress.goes_on && (o->progress.step || o->progress.user))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "the copy has a progress step or user, and no function to call");
    return qi_check_reserved(o, "quire_copy_options");
}

static quire_result refuse_pitch(const char *end, const char *what, uint64_t pitch, uint64_t least)
{
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                        "the copy's %s has a %s pitch of %llu bytes, and a %s has %llu", end, what,
                        (unsigned long long)pitch, what, (unsigned long long)least);
}

static quire_result refuse_extent(const qi_box *box)
{
    return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                        "%u slices of %u rows of %u bytes: they cannot be counted", box->slices,
                        box->rows, box->size);
}

/* The pitches of an end, defaults resolved, and how far it reaches. */
static quire_result resolve_side(const qi_box *box, const quire_copy_end *end, const char *name,
                                 qi_box_side *side, uint64_t *extent)
{
    uint64_t slice = 0;
    side->offset = end->offset;
    side->row = end->row_pitch ? end->row_pitch : box->size;
    if (side->row < box->size)
        return refuse_pitch(name, "row", side->row, box->size);
    if (qi_multiply_overflows(box->rows - 1, side->row, &slice) ||
        qi_add_overflows(slice, box->size, &slice))
        return refuse_extent(box);
    side->slice = end->slice_pitch;
    if (side->slice && side->slice < slice)
        return refuse_pitch(name, "slice", side->slice, slice);
    if (!side->slice && qi_multiply_overflows(box->rows, side->row, &side->slice))
        return refuse_extent(box);
    return qi_box_extent_overflows(box, side, extent) ? refuse_extent(box) : QUIRE_SUCCESS;
}

/* ---- the ends ----------------------------------------------------------------------------- */

static const qi_device_page *page_of(const quire_memory *memory, uint32_t slot)
{
    return &qi_memory_page(memory, slot)->native;
}

/* Pins an allocation and moves the side from its first byte to its page's. */
static quire_result begin_in_memory(const quire_copy_end *asked, uint64_t extent, qi_end *end,
                                    qi_box_side *side)
{
    quire_memory *memory = asked->memory;
    quire_result result = qi_device_check_bytes(memory->device, memory->kind);
    if (result)
        return result;
    result = qi_slot_pin(&memory->slots, asked->allocation, QI_ACCEPT_LIVE, &end->slot);
    if (result)
        return result;
    const qi_slot *record = qi_memory_slot(memory, end->slot);
    if (!qi_range_fits(side->offset, extent, record->requested)) {
        result = qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                              "the copy takes %u bytes at offset %u of an allocation of %u bytes",
                              extent, side->offset, record->requested);
        qi_slot_unpin(&memory->slots, end->slot);
        return result;
    }
    end->memory = memory;
    end->page = page_of(memory, end->slot);
    end->host = end->page->host;
    side->offset += record->offset;
    return QUIRE_SUCCESS;
}

/* The pointer is only read where it is the source. */
static quire_result begin_on_host(const void *pointer, uint64_t extent, qi_end *end,
                                  const qi_box_side *side)
{
    uint64_t last = 0;
    *end = (qi_end){.host = (char *)(uintptr_t)pointer};
    if (qi_add_overflows((uintptr_t)pointer, side->offset, &last) ||
        qi_add_overflows(last, extent, &last) || last > UINTPTR_MAX)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "the copy takes %u bytes at offset %u of host memory at %x: they go "
                            "beyond the last address",
                            extent, side->offset, (uintptr_t)pointer);
    return QUIRE_SUCCESS;
}

static void unpin(const qi_end *end)
{
    if (end->memory)
        qi_slot_unpin(&end->memory->slots, end->slot);
}

static quire_result begin_ends(qi_transfer *t, const quire_copy_options *o, uint64_t to_extent,
                               uint64_t from_extent)
{
    quire_result result = o->to.memory ? begin_in_memory(&o->to, to_extent, &t->to, &t->box.to)
                                       : begin_on_host(o->host_to, to_extent, &t->to, &t->box.to);
    if (result)
        return result;
    result = o->from.memory ? begin_in_memory(&o->from, from_extent, &t->from, &t->box.from)
                            : begin_on_host(o->host_from, from_extent, &t->from, &t->box.from);
    if (result)
        unpin(&t->to);
    return result;
}

/* ---- overlap ------------------------------------------------------------------------------ */

/*
 * Whether one byte is of both ends: of one page, or at one address of the host, which two pages can
 * be mapped at where one was made of the other's memory.
 */
static quire_result check_overlap(const qi_transfer *t)
{
    qi_box box = t->box;
    if (t->to.page != t->from.page) {
        if (!t->to.host || !t->from.host)
            return QUIRE_SUCCESS;
        box.to.offset += (uintptr_t)t->to.host;
        box.from.offset += (uintptr_t)t->from.host;
    }
    if (!qi_box_overlaps(&box))
        return QUIRE_SUCCESS;
    uint64_t apart = box.to.offset > box.from.offset ? box.to.offset - box.from.offset
                                                     : box.from.offset - box.to.offset;
    return qi_fail_with(QUIRE_ERROR_OVERLAP,
                        "the ends of the copy share bytes: they begin %u bytes apart, and take %u "
                        "and %u bytes",
                        apart, qi_box_extent(&box, &box.to), qi_box_extent(&box, &box.from));
}

quire_result qi_transfer_begin(qi_transfer *transfer, const quire_copy_options *o)
{
    *transfer = (qi_transfer){.box = {.size = o->size, .rows = 1, .slices = 1}};
    qi_box *box = &transfer->box;
    uint64_t to_extent = 0, from_extent = 0;
    if (o->size && o->rows)
        box->rows = o->rows;
    if (o->size && o->slices)
        box->slices = o->slices;
    quire_result result = check_options(o);
    if (!result)
        result = resolve_side(box, &o->to, "target", &box->to, &to_extent);
    if (!result)
        result = resolve_side(box, &o->from, "source", &box->from, &from_extent);
    if (!result)
        result = begin_ends(transfer, o, to_extent, from_extent);
    if (result || !o->size)
        return result;
    qi_box_merge(box);
    result = check_overlap(transfer);
    if (result)
        qi_transfer_end(transfer);
    return result;
}

void qi_transfer_end(qi_transfer *transfer)
{
    qi_transfer_finish(transfer);
    unpin(&transfer->to);
    unpin(&transfer->from);
}

/* ---- copying ------------------------------------------------------------------------------ */

/* Whether to go on; what fails within the callback is not the copy's failure. */
static bool tell(const quire_progress *progress, uint64_t done, uint64_t total)
{
    if (!progress->goes_on)
        return true;
    qi_transit_assert_none();
    qi_error before = qi_error_save();
    qi_fork_keep_pins(true);
    bool goes_on = progress->goes_on(progress->user, done, total);
    qi_fork_keep_pins(false);
    qi_error_restore(&before);
    return goes_on || done == total;
}

quire_result qi_transfer_run(qi_transfer *transfer, const quire_progress *progress)
{
    const qi_box *box = &transfer->box;
    uint64_t total = qi_box_bytes(box), step = total;
    if (progress->goes_on)
        step = progress->step ? progress->step : DEFAULT_STEP;
    for (uint64_t done = 0; done < total;) {
        qi_box part = qi_box_part(box, done, step);
        quire_result result = qi_transfer_copy(transfer, &part);
        if (result)
            return result;
        done += qi_box_bytes(&part);
        if (!tell(progress, done, total))
            return qi_fail_with(QUIRE_ERROR_BUSY,
                                "the copy was ended by its progress callback after %u of %u bytes",
                                done, total);
    }
    return QUIRE_SUCCESS;
}

quire_result quire_copy(const quire_copy_options *options)
{
    if (!options)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_copy: options is null");
    qi_transfer transfer;
    quire_result result = qi_transfer_begin(&transfer, options);
    if (result)
        return result;
    if (options->size)
        result = qi_transfer_run(&transfer, &options->progress);
    qi_transfer_end(&transfer);
    return result;
}

static bool has_bytes(const quire_memory *memory)
{
    return !memory || !(memory->flags & QUIRE_OBJECTS_ONLY);
}

quire_result quire_copy_get_path(quire_memory *to, quire_memory *from, quire_copy_path *path)
{
    if (path)
        *path = QUIRE_COPY_DIRECT;
    if (!path)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_copy_get_path: path is null");
    if (!to && !from)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_copy_get_path: both memories are null, which is host memory");
    if ((to && to->device->is_cut) || (from && from->device->is_cut))
        return qi_cut_refuse();
    qi_way way = has_bytes(to) && has_bytes(from) ? qi_way_first(to, from) : QI_WAY_NONE;
    *path = qi_way_path(way, to, from);
    return QUIRE_SUCCESS;
}
