/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire_spaces.c - spaces of quire as subjects, used through the public calls. A new fit or option
 * needs one line in the table below.
 */
#include "bench/quire_spaces.h"

#include <stdlib.h>

#include "quire/space.h"
#include "src/base/result.h"

typedef struct quire_how {
    quire_space_options options; /* a granule of 0 means the unit of the workload */
} quire_how;

#define HOW(...) (&(const quire_how){.options = {__VA_ARGS__}})

static void *create(const subject *self, const subject_arena *arena)
{
    const quire_how *how = self->how;
    quire_space_options options = how->options;
    options.size = arena->size;
    if (!options.fit.granule)
        options.fit.granule = arena->unit;
    quire_space *space = NULL;
    qi_ignore(quire_space_create(&options, &space));
    return space;
}

static void destroy(void *state)
{
    quire_space *space = state;
    quire_space_destroy(&space);
}

/* Reports a fit or option that this build does not support, with the library's error. */
static const char *absent(const subject *self)
{
    void *space = create(self, &(subject_arena){1 << 20, 256, 16});
    if (!space)
        return quire_last_error();
    destroy(space);
    return NULL;
}

static uint64_t allocate(void *state, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    quire_placement at;
    qi_ignore(quire_space_allocate(state, size, alignment, 0, &at));
    *offset = at.offset;
    return at.range.id; /* 0 on failure */
}

static void release(void *state, uint64_t handle)
{
    quire_space_free(state, (quire_range){handle});
}

_Static_assert(sizeof(quire_range) == sizeof(uint64_t), "handles are passed on as ranges");

static void release_batch(void *state, const uint64_t *handles, size_t count)
{
    quire_space_free_batch(state, (const quire_range *)handles, count);
}

static uint64_t metadata(void *state)
{
    quire_space_stats stats;
    qi_ignore(quire_space_get_stats(state, &stats));
    return stats.metadata_bytes;
}

#define SPACE(title, batch, ...)                                                                   \
    {                                                                                              \
        .name = (title), .kind = SUBJECT_SPACE, .how = HOW(__VA_ARGS__), .absent = absent,         \
        .create = create, .destroy = destroy, .allocate = allocate, .free = release,               \
        .free_batch = (batch), .metadata = metadata                                                \
    }

const subject QUIRE_SPACES[] = {
    SPACE("segregated", NULL, .fit.algorithm = QUIRE_FIT_SEGREGATED),
    SPACE("segregated, batch free", release_batch, .fit.algorithm = QUIRE_FIT_SEGREGATED),
    SPACE("segregated, least fragmentation", NULL,
          .fit = {.algorithm = QUIRE_FIT_SEGREGATED, .least_fragmentation = true}),
    SPACE("slabs", NULL, .fit = {.algorithm = QUIRE_FIT_SEGREGATED, .slabs = true}),
    SPACE("first", NULL, .fit = {.algorithm = QUIRE_FIT_FIRST, .granule = 1}),
    SPACE("buddy", NULL, .fit.algorithm = QUIRE_FIT_BUDDY),
    SPACE("linear", NULL, .fit = {.algorithm = QUIRE_FIT_LINEAR, .granule = 1}),
};

const size_t QUIRE_SPACE_COUNT = sizeof QUIRE_SPACES / sizeof *QUIRE_SPACES;
