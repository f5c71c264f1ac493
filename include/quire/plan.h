/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/plan.h - plans: offsets for ranges whose lifetimes are known before the first is used.
 *
 * A compiler or an inference engine knows which tensors it will have, and in which steps it uses
 * them. quire_plan gives each an offset, so that those in use at one time share no byte and the
 * whole needs few bytes. One allocation of that size then serves all of them.
 *
 *     const quire_plan_item items[] = {
 *         {.size = 4096, .first_use = 0, .last_use = 2},
 *         {.size = 1024, .first_use = 1, .last_use = 3},
 *         {.size = 4096, .first_use = 3, .last_use = 4},
 *     };
 *     quire_plan_place places[3];
 *     quire_plan_info info;
 *     quire_plan(&(quire_plan_problem){.items = items, .item_count = 3}, NULL, places, &info);
 *     // info.peak_bytes is 5120, and places[0].offset equals places[2].offset
 *
 * Times are numbers in the order in which the program uses the items, for example the numbers of
 * its operations. An item is in use at each time from its first use to its last, both included.
 *
 * Thread-safety: the functions have no state. Any thread may call them at any time.
 */
#ifndef QUIRE_PLAN_H
#define QUIRE_PLAN_H

#include "quire/allocation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One item of a problem. {0} for all members but the size is a good default. */
typedef struct quire_plan_item {
    uint64_t size;      /* bytes, above 0 */
    uint64_t alignment; /* the offset in its arena is a multiple of it; any number; 0: 1 */
    uint64_t first_use; /* the first time at which it is in use */
    uint64_t last_use;  /* the last one, at or after the first */
    /*
     * With `is_fixed`, the offset that the item has. If the problem has several arenas, `arena`
     * must name one.
     */
    uint64_t fixed_offset;
    /*
     * The arena of the item: 1 is the first one of the problem. 0: any. Items of any arena fill the
     * arenas that have a capacity first, in their order, and then the first one without. List items
     * that belong together, such as those of one network, one after the other: if all arenas have a
     * capacity, the list is also divided between them at places of quire's choice.
     */
    uint32_t arena;
    /*
     * Items with one number, which is not 0, are the same bytes: they have one offset, for example
     * the input and the output of an operation that works in place. These bytes are in use from the
     * first use of any of the items to the last use of any. 0: the item is no alias.
     */
    uint32_t alias_group;
    bool is_fixed;
    const char *name; /* for the sentences of errors; NULL: only its number is stated */
} quire_plan_item;

typedef struct quire_plan_arena {
    uint64_t capacity; /* bytes; 0: as many as the plan needs */
} quire_plan_arena;

/* Two items, by number, that must not share a byte of one arena even if their lifetimes do not
   meet: for example because two streams use them. */
typedef struct quire_plan_separation {
    uint32_t first, second;
} quire_plan_separation;

/* The limits: 2^30 items, 1024 arenas, and sums of sizes, alignments and fixed offsets below
   2^50. */
typedef struct quire_plan_problem {
    const quire_plan_item *items;
    const quire_plan_arena *arenas; /* NULL, with a count of 0: one without a capacity */
    const quire_plan_separation *separations;
    uint32_t item_count; /* may be 0 */
    uint32_t arena_count;
    uint32_t separation_count;
    uint64_t unused[4]; /* must be zero */
} quire_plan_problem;

/* Where an item is. */
typedef struct quire_plan_place {
    uint64_t offset; /* in its arena */
    uint32_t arena;  /* 1 is the first one */
} quire_plan_place;

typedef struct quire_plan_info {
    uint64_t peak_bytes;        /* the sum over the arenas of the largest end of an item */
    uint64_t lower_bound_bytes; /* no plan has less: at least the bytes in use at one time */
    uint64_t steps;             /* the work that was done, see quire_plan_options.step_limit */
    uint64_t wall_ns;           /* that it took */
    bool proven_optimal;        /* peak_bytes is lower_bound_bytes */
    uint64_t unused[4];
} quire_plan_info;

typedef struct quire_plan_options {
    /*
     * The work that is done at most, in steps of one to some ten nanoseconds. Equal problems, seeds
     * and step limits give equal plans on every machine, if `time_limit_ns` does not end the work
     * earlier. 0: no limit if there is a time limit, otherwise QUIRE_PLAN_STEPS.
     */
    uint64_t step_limit;
    uint64_t time_limit_ns; /* 0: none */
    uint64_t seed;          /* of the random choices; any number */
    /*
     * Called from time to time, at most every 10 ms, with the best plan so far. false ends the
     * work: quire_plan then returns this plan. Must not call quire_plan. NULL: none.
     */
    bool (*progress)(void *user, const quire_plan_info *best);
    void *user;
    const quire_host_memory *host_memory; /* NULL: malloc and free */
    uint64_t unused[4];                   /* must be zero */
} quire_plan_options;

/* The step limit by default: less than a second. */
#define QUIRE_PLAN_STEPS UINT64_C(100000000)

/*
 * Writes the place of each item of the best plan that is found, and facts about it. A first plan is
 * made at once, whatever the limits. It is improved until no better one can exist, the limits are
 * reached, or, if the arena has a capacity, it fits. With up to 100,000 items no plan is worse than
 * that of placing the largest items first, each at its lowest free offset, unless a limit ends the
 * work before.
 *
 * A part of the work does not look at the clock. With 100,000 items and more, an eighth of the time
 * limit is kept for it. A plan of 10,000 items and more needs 200 to 400 bytes of host memory for
 * each; more if lifetimes are random and an item is fixed, separated, or may choose its arena.
 *
 * options: NULL for {0}. info: NULL if not wanted. On failure the places are undefined.
 *
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (a fixed offset exceeds the capacity), OVERLAP (two fixed
 * items share bytes), NO_SPACE (no plan was found that fits the arenas; the sentence says whether
 * none exists), OUT_OF_HOST_MEMORY. Sentences have the numbers of items, from 0, and
 * their names.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_plan(const quire_plan_problem *problem,
                                                 const quire_plan_options *options,
                                                 quire_plan_place *places, quire_plan_info *info);

/*
 * Checks a plan of any origin: each item is in its arena, at a multiple of its alignment or at its
 * fixed offset, and ends within the capacity; aliases have one place; items that are in use at one
 * time, or are separated, share no byte. It shares with quire_plan only the check of the problem
 * and the merging of aliases.
 *
 * peaks: the largest end of an item in each arena, one number for each (one if arena_count is 0);
 * NULL if not wanted; zero on failure. host_memory: NULL for malloc and free.
 *
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, OVERLAP, each with the numbers of the items,
 * OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_plan_check(const quire_plan_problem *problem,
                                                       const quire_plan_place *places,
                                                       uint64_t *peaks,
                                                       const quire_host_memory *host_memory);

/*
 * Allocates the bytes of one arena of a plan, and makes a view of them for each item that is in it.
 * The plan is checked first. The caller frees the allocation with quire_free; the views own
 * nothing.
 *
 * options: as for quire_allocate, NULL for {0}. The plan sets the size, which must be 0; it raises
 * the alignment so that the addresses of the items are multiples of their alignments too, and sets
 * `offset_alignment`, which must be 0, if these are no powers of two.
 *
 * arena: 1 is the first. views: one for each item of the problem; {0} for items of other arenas. If
 * the arena has no item, the allocation is {0}.
 *
 * On failure the allocation and the views are {0}. Errors: those of quire_plan_check and of
 * quire_allocate.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_plan_allocate(
    quire_memory *memory, const quire_plan_problem *problem, const quire_plan_place *places,
    uint32_t arena, const quire_allocation_options *options, quire_allocation *allocation,
    quire_view *views);

#ifdef __cplusplus
}
#endif

#endif
