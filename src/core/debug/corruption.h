/*
 * harm.h - bytes of a checked memory that nobody should have written: found, put into words, told.
 *
 * Called by checked.c and quarantine.c without a lock, for slots that stay as they are meanwhile.
 */
#ifndef QUIRE_SRC_CORE_DEBUG_CORRUPTION_H
#define QUIRE_SRC_CORE_DEBUG_CORRUPTION_H

#include "src/core/debug/debug_pattern.h"

typedef enum qi_corruption_place {
    QI_CORRUPTION_IN_FRONT,
    QI_CORRUPTION_BEHIND,
    QI_CORRUPTION_AFTER_FREE
} qi_corruption_place;

typedef struct qi_corruption {
    qi_corruption_place place;
    qi_difference difference;
} qi_corruption;

/* A sentence; use as qi_corruption_describe(...).text within one expression. */
typedef struct qi_corruption_sentence {
    char text[QI_CORRUPTION_TEXT];
} qi_corruption_sentence;

/* The red zones of a slot, and, of one in quarantine, its bytes. The first harm found. */
bool qi_corruption_find(quire_memory *memory, uint32_t slot, qi_corruption *corruption);

/* Names the allocation; takes its shard's lock for that. */
qi_corruption_sentence qi_corruption_describe(quire_memory *memory, uint32_t slot,
                                              const qi_corruption *corruption);

/* Tells the log, or standard error where the device has no sink: harm must not go unnoticed. */
void qi_corruption_report(const quire_memory *memory, const char *sentence);

#endif
