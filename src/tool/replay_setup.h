/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * replay_setup.h - what replay, map and tune share: the options of a memory, a trace with its
 * device and memory, and the report.
 */
#ifndef QUIRE_SRC_TOOL_REPLAY_SETUP_H
#define QUIRE_SRC_TOOL_REPLAY_SETUP_H

#include "quire/trace.h"
#include "src/base/json.h"
#include "src/base/member.h"
#include "src/tool/open.h"

/* ---- the options of a memory -------------------------------------------------------------- */

/*
 * The members of quire_memory_options that replay and map accept. One table serves the flags of the
 * command line, their help, the keys of an options file, and the JSON of tune and replay. The value
 * 0 of every member is the library's default. A member that is 0 is not written.
 */

/* The options of a memory as the command line gives them. */
typedef struct memory_choice {
    const char *file;   /* path of an options file, or NULL */
    const char *preset; /* of the page policy: a word of --preset, or NULL */
    quire_memory_options options;
    bool given[QI_MEMBER_COUNT]; /* by a flag, which overrides the file */
} memory_choice;

/* Fills `specs` with --options, --preset and a row for each member: 2 + QI_MEMBER_COUNT rows.
   Returns their number. */
size_t list_member_flags(option_spec *specs, memory_choice *choice);

/* Applies a flag of list_member_flags. Returns NULL, or what a valid value looks like. */
const char *set_member(memory_choice *choice, const char *flag, const char *value);

/* The words that a flag of list_member_flags takes; NULL ends the list. NULL if it takes something
   else, or there is no such flag. */
const char *const *words_of_flag(const char *flag);

/* Writes the members as a JSON object that read_members accepts. */
void write_members(qi_json *json, const char *key, const quire_memory_options *options);

/* Prints the members as flags, each after a blank. */
void print_member_flags(FILE *out, const quire_memory_options *options);

/* Whether the sizes of pages follow use: see quire_page_policy. */
bool follows_use(const quire_memory_options *options);

/* The name of a fit as --fit takes it. */
const char *fit_text(quire_fit fit);

/* ---- trace, device and memory ------------------------------------------------------------- */

typedef struct replay_setup {
    /* targets of the options */
    device_choice choice;
    const char *path;
    memory_choice memory_choice; /* not of tune, which has its own options, and its own traces */
    /* created by the functions below */
    quire_trace *trace;
    quire_trace_info info;
    quire_device *device;
    quire_memory *memory;
    uint64_t time; /* of the event that is replayed, ns */
} replay_setup;

/* Reads a trace and its totals. Returns -1, or prints the error and returns the exit code. The
   caller destroys the trace. */
int load_trace(const char *path, quire_trace **trace, quire_trace_info *info);

/* Reads the trace and opens the device. Returns -1, or the exit code after printing the error. */
int open_trace_and_device(const command *self, replay_setup *p);

/* Also reads the options file and creates the memory; likewise. */
int open_replay(const command *self, replay_setup *p);

/* The trace's own clock, for memories: a replay gives the same result at any speed. It shows
   `time`, which quire_replay_options.time is to receive. */
quire_clock trace_clock(replay_setup *p);

/*
 * Converts the value of --at, or NULL for the peak, into the number of events to replay. Returns
 * -1, or prints a usage error and returns its exit code.
 */
int read_moment(const command *self, const replay_setup *p, const char *at, uint64_t *count);

/* Destroys whatever exists. Returns `code`, or EXIT_FAILED if the device cannot be destroyed. */
int close_replay(replay_setup *p, int code);

/* ---- the report --------------------------------------------------------------------------- */

/* Adds the fields of the report to the open JSON object; docs/formats.md lists the keys. */
void write_report(qi_json *json, const quire_replay_report *report);

#endif
