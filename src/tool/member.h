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
#include "src/tool/tool.h"

enum { MEMBER_COUNT = 23 };

/* The options of a memory as the command line gives them. */
typedef struct memory_choice {
    const char *file; /* path of an options file, or NULL */
    quire_memory_options options;
    bool given[MEMBER_COUNT]; /* by a flag, which overrides the file */
} memory_choice;

/* Fills `specs` with --options and a row for each member: 1 + MEMBER_COUNT rows. Returns them. */
size_t list_member_flags(option_spec *specs, memory_choice *choice);

/* Applies a flag of list_member_flags. Returns NULL, or what a valid value looks like. */
const char *set_member(memory_choice *choice, const char *flag, const char *value);

/*
 * Reads choice->file, if it is not NULL, into the members that no flag has given. The file is a
 * JSON object of members, or the output of tune --json, whose recommendation counts. Returns -1, or
 * prints the error and returns the exit code.
 */
int read_members(memory_choice *choice);

/* Writes the members as a JSON object that read_members accepts. */
void write_members(qi_json *json, const char *key, const quire_memory_options *options);

/* Prints the members as flags, each after a blank. */
void print_member_flags(FILE *out, const quire_memory_options *options);

#endif
