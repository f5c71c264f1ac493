/*
 * line.h - lays regions out on the line of a space.
 *
 * Regions of different size come and go; a gap is used again, the lowest one that fits first, so
 * that low addresses stay dense. Kept as one array sorted by address: adding and removing happen
 * once per page, beside a backend call. Regions of one size that come one after the other do not
 * look at what is full again. Not thread-safe.
 */
#ifndef QUIRE_SRC_SPACE_LINE_H
#define QUIRE_SRC_SPACE_LINE_H

#include "src/base/host_memory.h"

typedef struct qi_stretch {
    uint64_t start, end; /* bytes on the line */
} qi_stretch;

typedef struct qi_line {
    qi_stretch *stretches; /* sorted, disjoint */
    uint32_t count, capacity;
    uint64_t limit;   /* bytes; nothing lies at or above */
    uint64_t max_gap; /* no gap below the last stretch is larger */

    /* no gap before one of the `full` lowest stretches has a place of `full_size` bytes that is
       congruent to `full_base` modulo `full_alignment`: who looks for that begins behind them */
    uint32_t full;
    uint64_t full_size, full_base, full_alignment;
} qi_line;

void qi_line_init(qi_line *line, uint64_t limit);
void qi_line_finish(qi_line *line, qi_host *host);

/*
 * Takes the lowest place of `size` bytes that is congruent to `base` modulo `alignment`, a power of
 * two. Fails with OUT_OF_RANGE or OUT_OF_HOST_MEMORY and changes nothing then.
 */
QUIRE_MUST_USE quire_result qi_line_place(qi_line *line, qi_host *host, uint64_t size,
                                          uint64_t base, uint64_t alignment, uint64_t *start);

/* Gives the stretch that begins at `start` back. */
void qi_line_remove(qi_line *line, uint64_t start);

/*
 * Lets the stretch that begins at `start` end `size` bytes from there, above 0. Fails with
 * OUT_OF_RANGE where another stretch or the limit is in the way, and changes nothing then.
 */
QUIRE_MUST_USE quire_result qi_line_resize(qi_line *line, uint64_t start, uint64_t size);

/* For checks: whether the stretches are sorted, disjoint and within the limit. */
bool qi_line_is_sound(const qi_line *line);

/* Whether a stretch lies exactly there. */
bool qi_line_has(const qi_line *line, uint64_t start, uint64_t size);

/* End of the last stretch; 0 when there is none. */
uint64_t qi_line_extent(const qi_line *line);

#endif
