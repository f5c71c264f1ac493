/*
 * harm.h - bytes of a checked memory that nobody should have written: found, put into words, told.
 *
 * Called by checked.c and quarantine.c without a lock, for slots that stay as they are meanwhile.
 */
#ifndef QUIRE_SRC_MEMORY_HARM_H
#define QUIRE_SRC_MEMORY_HARM_H

#include "src/memory/pattern.h"

typedef enum qi_harm_place { QI_HARM_IN_FRONT, QI_HARM_BEHIND, QI_HARM_AFTER_FREE } qi_harm_place;

typedef struct qi_harm {
    qi_harm_place place;
    qi_difference difference;
} qi_harm;

/* A sentence; use as qi_harm_describe(...).text within one expression. */
typedef struct qi_harm_sentence {
    char text[QI_HARM_TEXT];
} qi_harm_sentence;

/* The red zones of a slot, and, of one in quarantine, its bytes. The first harm found. */
bool qi_harm_find(quire_memory *memory, uint32_t slot, qi_harm *harm);

/* Names the allocation; takes its shard's lock for that. */
qi_harm_sentence qi_harm_describe(quire_memory *memory, uint32_t slot, const qi_harm *harm);

/* Tells the log, or standard error where the device has no sink: harm must not go unnoticed. */
void qi_harm_tell(const quire_memory *memory, const char *sentence);

#endif
