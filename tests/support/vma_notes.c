/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_notes.c - see vma_notes.h.
 */
#include "tests/support/vma_notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void vma_scenario(vma_notes *notes, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(notes->scenario, sizeof notes->scenario, format, list);
    va_end(list);
}

void vma_note_add(vma_notes *notes, const char *field, uint64_t value)
{
    if (notes->count == notes->room) {
        notes->room = notes->room ? 2 * notes->room : 1024;
        notes->all = realloc(notes->all, notes->room * sizeof *notes->all);
        if (!notes->all)
            abort();
    }
    vma_note *note = &notes->all[notes->count++];
    memcpy(note->scenario, notes->scenario, sizeof note->scenario);
    note->field = field;
    note->value = value;
}

void vma_notes_end(vma_notes *notes)
{
    free(notes->all);
    *notes = (vma_notes){.all = NULL};
}
