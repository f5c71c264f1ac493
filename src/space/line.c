/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * line.c - a binary search finds a stretch; a gap is searched from the lowest one that is not known
 * to be full (see line.h).
 */
#include "src/space/line.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"

/* A hint for a larger size replaces the present one if it skips so many more stretches. */
enum { FIRST_CAPACITY = 8, MORE_STRETCHES = 64 };

void qi_line_init(qi_line *line, uint64_t limit)
{
    *line = (qi_line){.limit = limit};
}

void qi_line_finish(qi_line *line, qi_host *host)
{
    qi_host_release(host, line->stretches, line->capacity, sizeof *line->stretches);
    qi_line_init(line, line->limit);
}

uint64_t qi_line_extent(const qi_line *line)
{
    return line->count ? line->stretches[line->count - 1].end : 0;
}

static uint64_t end_before(const qi_line *line, uint32_t index)
{
    return index ? line->stretches[index - 1].end : 0;
}

/* Whether the gap from `gap` to `end` has a place; *start gets the lowest one. */
static bool has_place(uint64_t gap, uint64_t end, uint64_t size, uint64_t base, uint64_t alignment,
                      uint64_t *start)
{
    uint64_t padding = (base - gap) & (alignment - 1);
    *start = gap + padding;
    return padding <= end - gap && size <= end - gap - padding;
}

static bool is_full_for(const qi_line *line, uint64_t base, uint64_t alignment)
{
    return line->full_base == base && line->full_alignment == alignment;
}

/*
 * Records that none of the gaps before the `index` lowest stretches has such a place. A hint for a
 * smaller size serves more requests and stays, unless the new one skips many more stretches.
 */
static void learn_full(qi_line *line, uint32_t index, uint64_t size, uint64_t base,
                       uint64_t alignment)
{
    bool replaces = !is_full_for(line, base, alignment) || size <= line->full_size ||
                    index > line->full + MORE_STRETCHES;
    if (!replaces)
        return;
    line->full = index;
    line->full_size = size;
    line->full_base = base;
    line->full_alignment = alignment;
}

/*
 * Finds the lowest gap that holds the size, and the place in it. Returns the index of the stretch
 * after the gap, or line->count for the place after the last stretch. A search of all gaps that
 * finds nothing computes the exact maximum gap.
 */
static uint32_t find_gap(qi_line *line, uint64_t size, uint64_t base, uint64_t alignment,
                         uint64_t *start)
{
    uint64_t largest = 0;
    const bool skips = is_full_for(line, base, alignment) && size >= line->full_size;
    const uint32_t begin = skips ? line->full : 0;
    for (uint32_t i = begin; line->max_gap >= size && i < line->count; i++) {
        uint64_t gap = end_before(line, i), end = line->stretches[i].start;
        if (has_place(gap, end, size, base, alignment, start)) {
            learn_full(line, i, size, base, alignment);
            return i;
        }
        if (end - gap > largest)
            largest = end - gap;
        if (i + 1 == line->count) {
            learn_full(line, line->count, size, base, alignment);
            line->max_gap = begin ? line->max_gap : largest;
        }
    }
    uint64_t extent = qi_line_extent(line);
    *start = extent + ((base - extent) & (alignment - 1));
    return line->count;
}

/* Ensures capacity for one more stretch. */
static quire_result make_room(qi_line *line, qi_host *host)
{
    if (line->count < line->capacity)
        return QUIRE_SUCCESS;
    uint32_t capacity = line->capacity ? line->capacity * 2 : FIRST_CAPACITY;
    qi_stretch *stretches =
        qi_host_resize(host, line->stretches, line->capacity, capacity, sizeof *line->stretches);
    if (!stretches)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                            "no host memory for the places of %u region%s", capacity);
    line->stretches = stretches;
    line->capacity = capacity;
    return QUIRE_SUCCESS;
}

/* Ensures room in the array first: the search itself changes only hints. */
quire_result qi_line_place(qi_line *line, qi_host *host, uint64_t size, uint64_t base,
                           uint64_t alignment, uint64_t *start)
{
    quire_result result = make_room(line, host);
    if (result)
        return result;
    uint32_t index = find_gap(line, size, base & (alignment - 1), alignment, start);
    if (!qi_range_fits(*start, size, line->limit))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "a region of %u byte%s does not fit on the line: %u of %u are taken; a "
                            "space with a larger granule reaches further",
                            size, qi_line_extent(line), line->limit);
    uint64_t before = end_before(line, index);
    if (index == line->count && *start - before > line->max_gap)
        line->max_gap = *start - before;
    memmove(line->stretches + index + 1, line->stretches + index,
            (line->count - index) * sizeof *line->stretches);
    line->stretches[index] = (qi_stretch){*start, *start + size};
    line->count++;
    return QUIRE_SUCCESS;
}

/* The index of the first stretch that starts at or after `start`. */
static uint32_t index_of(const qi_line *line, uint64_t start)
{
    uint32_t low = 0, high = line->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (line->stretches[middle].start < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Raises max_gap to the gap that results, if that is larger. */
void qi_line_remove(qi_line *line, uint64_t start)
{
    uint32_t index = index_of(line, start);
    line->count--;
    if (index < line->full)
        line->full = index;
    memmove(line->stretches + index, line->stretches + index + 1,
            (line->count - index) * sizeof *line->stretches);
    if (index < line->count) {
        uint64_t gap = line->stretches[index].start - end_before(line, index);
        if (gap > line->max_gap)
            line->max_gap = gap;
    }
}

/* A shorter stretch makes a gap, a longer one uses the gap above it. */
quire_result qi_line_resize(qi_line *line, uint64_t start, uint64_t size)
{
    uint32_t index = index_of(line, start);
    bool is_last = index + 1 == line->count;
    uint64_t next = is_last ? line->limit : line->stretches[index + 1].start;
    if (size > next - start)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            is_last ? "a region cannot end %u byte%s from its start: the line ends "
                                      "%u byte%s from there"
                                    : "a region cannot end %u byte%s from its start: another lies "
                                      "on the line %u byte%s from there",
                            size, next - start);
    line->stretches[index].end = start + size;
    if (index + 1 < line->full)
        line->full = index + 1;
    uint64_t gap = is_last ? 0 : next - start - size;
    if (gap > line->max_gap)
        line->max_gap = gap;
    return QUIRE_SUCCESS;
}

bool qi_line_is_sound(const qi_line *line)
{
    if (line->count > line->capacity || line->full > line->count)
        return false;
    uint64_t end = 0, place = 0;
    for (uint32_t i = 0; i < line->count; i++) {
        const qi_stretch *stretch = &line->stretches[i];
        if (stretch->start < end || stretch->start - end > line->max_gap ||
            stretch->end <= stretch->start)
            return false;
        if (i < line->full && has_place(end, stretch->start, line->full_size, line->full_base,
                                        line->full_alignment, &place))
            return false;
        end = stretch->end;
    }
    return end <= line->limit;
}

bool qi_line_has(const qi_line *line, uint64_t start, uint64_t size)
{
    uint32_t index = index_of(line, start);
    return index < line->count && line->stretches[index].start == start &&
           line->stretches[index].end - start == size;
}
