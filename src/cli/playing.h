/*
 * playing.h - what replay, map and tune share: reading the trace, opening the device, making the
 * memory.
 */
#ifndef QUIRE_SRC_CLI_PLAYING_H
#define QUIRE_SRC_CLI_PLAYING_H

#include "quire/trace.h"
#include "src/cli/cli.h"

typedef struct playing {
    /* what the options say */
    device_choice choice;
    const char *path;
    quire_fit fit;
    uint64_t page_size; /* 0: the memory's default */
    bool contiguous;
    /* what is made of it */
    quire_trace *trace;
    quire_trace_info info;
    quire_device *device;
    quire_memory *memory;
} playing;

/* Reads the trace and opens the device; returns -1, or the exit code with the sentence printed. */
int open_playing(const command *self, playing *p);

/* Makes the memory too; returns likewise. */
int begin_playing(const command *self, playing *p);

/* Ends whatever was made; returns `code`, or EXIT_FAILED when something would not go. */
int end_playing(playing *p, int code);

/* The name of a fit as --fit takes it. */
const char *fit_text(quire_fit fit);

#endif
