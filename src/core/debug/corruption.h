/*
 * corruption.h - finds bytes of a checked memory that were written outside of any live allocation,
 * describes the finding and reports it.
 *
 * Called by checked.c and quarantine.c without a lock, for slots whose records do not change while
 * the function runs.
 */
#ifndef QUIRE_SRC_CORE_DEBUG_CORRUPTION_H
#define QUIRE_SRC_CORE_DEBUG_CORRUPTION_H

#include "src/core/debug/debug_pattern.h"

typedef enum qi_corruption_place {
    QI_CORRUPTION_BEFORE,    /* in the red zone before the first byte */
    QI_CORRUPTION_AFTER,     /* in the red zone after the last byte */
    QI_CORRUPTION_AFTER_FREE /* in the bytes of a freed allocation */
} qi_corruption_place;

typedef struct qi_corruption {
    qi_corruption_place place;
    qi_difference difference;
} qi_corruption;

/* A sentence. Use within one expression, as qi_corruption_describe(...).text. */
typedef struct qi_corruption_sentence {
    char text[QI_CORRUPTION_TEXT];
} qi_corruption_sentence;

/* Compares the red zones of a slot, and the bytes of one in quarantine, with their patterns.
   Returns whether one differs; *corruption receives the first that does. */
bool qi_corruption_find(quire_memory *memory, uint32_t slot, qi_corruption *corruption);

/* Describes a finding with the name of the allocation. Takes the lock of its shard. */
qi_corruption_sentence qi_corruption_describe(quire_memory *memory, uint32_t slot,
                                              const qi_corruption *corruption);

/* Logs a sentence. Without a log sink it is printed to standard error, so that it is not missed. */
void qi_corruption_report(const quire_memory *memory, const char *sentence);

#endif
