/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pickle.h - a restricted reader of Python's pickles, protocols 0 to 5, that makes no objects.
 *
 * It is a stack machine for data alone: None, bools, numbers, texts, bytes, tuples, sets, lists and
 * dicts. Opcodes that make or call objects are refused. It builds no tree: a list or dict is a
 * number that the shape gives it, and its elements go to the shape as they are added. What the
 * shape does not keep is gone, so the memory is that of the memo, of the different texts, and of
 * the items of one batch. Belongs to one thread.
 */
#ifndef QUIRE_SRC_TOOL_IMPORT_PICKLE_H
#define QUIRE_SRC_TOOL_IMPORT_PICKLE_H

#include "src/base/id_map.h"
#include "src/tool/import/import.h"

/* ---- growing arrays ----------------------------------------------------------------------- */

/* Elements in blocks, which never move, so that growing needs no second copy. */
typedef struct pickle_pile {
    qi_host *host;
    void **blocks;
    uint64_t directory; /* capacity of `blocks` */
    uint64_t count;     /* of elements */
    size_t size;        /* of an element */
} pickle_pile;

void pickle_pile_begin(pickle_pile *pile, qi_host *host, size_t size);
void pickle_pile_end(pickle_pile *pile);

/* An existing element. */
void *pickle_pile_at(const pickle_pile *pile, uint64_t index);

/* Adds a zeroed element. Returns NULL if host memory is exhausted. */
void *pickle_pile_add(pickle_pile *pile);

/* ---- values ------------------------------------------------------------------------------- */

typedef enum pickle_kind {
    PICKLE_OTHER, /* a value without a meaning here: None, a bool, a real, bytes, a tuple, ... */
    PICKLE_TEXT,  /* number: of the text, see pickle_text; a reader knows the words as 1, 2, ... */
    PICKLE_DICT,  /* number: from the shape */
    PICKLE_LIST,  /* likewise */
    PICKLE_SET,
    PICKLE_NUMBER, /* 0 to INT64_MAX; other integers are PICKLE_OTHER */
    PICKLE_MARK,
} pickle_kind;

typedef struct pickle_value {
    pickle_kind kind;
    uint64_t number;
} pickle_value;

enum {
    PICKLE_ROLES = 16, /* numbers of lists and dicts below it are roles */
    PICKLE_MOST_NUMBER = (1 << 29) - 1,
    PICKLE_MOST_MARKS = 64,
    PICKLE_MOST_VALUES = 1 << 20, /* on the stack */
    PICKLE_MOST_TEXT = 1024,      /* bytes that are kept; the rest is left out */
};

/*
 * What a file means. Calls return false after a refusal.
 *
 * A list or dict whose number is a role is not kept: it may be added to its parent once, and no
 * reference may lead to it. When two of one role follow each other on the stack, the second takes
 * the place of the first: `begin` tells the shape that the first has ended.
 */
typedef struct pickle_shape {
    /* A list or dict begins. `below` is the list or dict below it: its parent, or, if that is a
       list, maybe the item before it. `key` is a text if the parent is a dict. */
    bool (*begin)(void *user, pickle_kind kind, pickle_value below, pickle_value key,
                  uint64_t *number);
    bool (*set)(void *user, uint64_t dict, pickle_value key, pickle_value value);
    bool (*append)(void *user, uint64_t list, pickle_value value);
} pickle_shape;

/* ---- the reader --------------------------------------------------------------------------- */

typedef struct pickle_reader {
    import_source *source;
    qi_host *host;
    const pickle_shape *shape;
    void *user;
    const char *opcode; /* the name of the one being run */
    pickle_value *stack;
    uint64_t count, capacity;
    uint64_t marks[PICKLE_MOST_MARKS]; /* their places on the stack */
    uint32_t mark_count;
    bool has_stopped;
    pickle_pile memo;      /* uint32_t */
    pickle_pile texts;     /* of each different text */
    pickle_pile slabs;     /* of the bytes of texts */
    uint64_t slab_filled;  /* bytes of the last slab */
    qi_id_map text_hashes; /* to the first text with the hash */
} pickle_reader;

/* Begins a reader that knows the words as texts 1, 2, ...; NULL ends them. Returns false after a
   refusal. pickle_end releases everything, after a failure too. */
bool pickle_begin(pickle_reader *p, import_source *source, qi_host *host, const pickle_shape *shape,
                  void *user, const char *const *words);
void pickle_end(pickle_reader *p);

/* Reads the whole file. `result` is the value that it holds. Returns false after a refusal. */
bool pickle_read(pickle_reader *p, pickle_value *result);

/* A text with its final 0; "" for number 0. */
const char *pickle_text(const pickle_reader *p, uint64_t number);

/* Refuses the file because host memory is exhausted. */
bool pickle_exhausted(import_source *source);

#endif
