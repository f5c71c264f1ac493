/*
 * member.h - the members of quire_memory_options that replay and map accept. One table serves the
 * flags of the command line, their help, the keys of an options file, and the JSON of tune and
 * replay.
 *
 * The value 0 of every member is the library's default. A member that is 0 is not written.
 */
#ifndef QUIRE_SRC_TOOL_MEMBER_H
#define QUIRE_SRC_TOOL_MEMBER_H

#include "src/base/json.h"
#include "src/base/member.h"
#include "src/tool/tool.h"

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

/*
 * Reads choice->file, if it is not NULL, into the members that no flag has given. The file is a
 * JSON object of members, or the output of tune --json, whose recommendation counts. Returns -1, or
 * prints the error and returns the exit code.
 */
int read_members(memory_choice *choice);

/*
 * Fills in the page policy of choice->preset for a memory kind of the device. Does nothing without
 * a preset. Returns -1, or prints the error and returns the exit code: the preset is unknown, or a
 * flag or the file sets a member of the page policy.
 */
int apply_preset(memory_choice *choice, const quire_device *device, uint32_t kind);

/* Writes the members as a JSON object that read_members accepts. */
void write_members(qi_json *json, const char *key, const quire_memory_options *options);

/* Prints the members as flags, each after a blank. */
void print_member_flags(FILE *out, const quire_memory_options *options);

#endif
