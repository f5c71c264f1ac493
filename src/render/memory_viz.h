/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_viz.h - the parts of a snapshot for https://pytorch.org/memory_viz, in the order in which
 * they are written: the segments of each memory, then the events. The tool adds events.
 *
 * A qi_viz belongs to one thread.
 */
#ifndef QUIRE_SRC_RENDER_MEMORY_VIZ_H
#define QUIRE_SRC_RENDER_MEMORY_VIZ_H

#include "src/base/pickle.h"
#include "quire/insight.h"

typedef struct qi_viz {
    qi_pickle pickle;
    /* Returns the address of a page, if the caller has chosen it; NULL: the native ones, or those
       of qi_viz_choose. */
    uint64_t (*address)(void *user, uint32_t page);
    void *user;
    uint64_t chosen;            /* for qi_viz_choose */
    const quire_memory *memory; /* that is written; it has the fields below */
    quire_memory_info info;
    uint64_t index; /* in its device; the pool of its segments */
    bool is_open;   /* a segment */
    uint32_t page;  /* its page */
    uint64_t page_address;
    uint64_t begin, end; /* written ranges of the segment, as offsets in the page */
    uint64_t size;       /* of the segment; 0: it is a stretch of an elastic page */
    uint64_t active, allocated, requested; /* bytes of the blocks */
} qi_viz;

/* Opens the snapshot and its list of segments. */
void qi_viz_begin(qi_viz *viz, quire_sink sink, void *user);

/* Writes the segments of a memory. Errors: OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result qi_viz_write_memory(qi_viz *viz, const quire_memory *memory);

/* Closes the list of segments and opens that of the events of device 0. */
void qi_viz_begin_events(qi_viz *viz);

/* Closes the snapshot. Returns BAD_FILE if the sink failed. */
QUIRE_MUST_USE quire_result qi_viz_finish(qi_viz *viz);

/* Writes the frames of an allocation: none without a name, else the name with the memory as its
   file and the page as its line. */
void qi_viz_write_frames(qi_pickle *pickle, const char *name, const char *memory, uint32_t page);

/*
 * Returns an address for a page of `size` bytes without a native one, and moves *chosen, 0 at
 * first, past it. The addresses are above those of processors (52 bits), and below 2^53, up to
 * which a reader that has only real numbers keeps them apart.
 */
uint64_t qi_viz_choose(uint64_t *chosen, uint64_t size);

#endif
