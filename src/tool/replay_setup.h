/*
 * replay_setup.h - the common part of replay, map and tune: they read a trace, open a device and
 * create a memory.
 */
#ifndef QUIRE_SRC_TOOL_REPLAY_SETUP_H
#define QUIRE_SRC_TOOL_REPLAY_SETUP_H

#include "quire/trace.h"
#include "src/tool/member.h"

typedef struct replay_setup {
    /* targets of the options */
    device_choice choice;
    const char *path;
    memory_choice memory_choice; /* not of tune, which makes its own options */
    /* created by the functions below */
    quire_trace *trace;
    quire_trace_info info;
    quire_device *device;
    quire_memory *memory;
    uint64_t time; /* of the event that is replayed, ns */
} replay_setup;

/* Reads the trace and opens the device. Returns -1, or the exit code after printing the error. */
int open_trace_and_device(const command *self, replay_setup *p);

/* Also reads the options file and creates the memory; likewise. */
int open_replay(const command *self, replay_setup *p);

/* The trace's own clock, for memories: a replay gives the same result at any speed. It shows
   `time`, which quire_replay_options.time is to receive. */
quire_clock trace_clock(replay_setup *p);

/* Destroys whatever exists. Returns `code`, or EXIT_FAILED if the device cannot be destroyed. */
int close_replay(replay_setup *p, int code);

/* Whether the sizes of pages follow use: see quire_page_policy. */
bool follows_use(const quire_memory_options *options);

/* The name of a fit as --fit takes it. */
const char *fit_text(quire_fit fit);

#endif
