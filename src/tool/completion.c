/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * completion.c - the command completion: prints a script with which a shell completes command lines
 * of the tool. The script has what the tables of commands and options have.
 */
#include <ctype.h>
#include <string.h>

#include "src/base/member.h"
#include "src/tool/options.h"
#include "src/tool/replay_setup.h"

/* ---- values ------------------------------------------------------------------------------- */

static const char *const BACKENDS[] = {"host", "vulkan", "cuda", "plugin", NULL};
static const char *const MOMENTS[] = {"peak", "end", NULL};
static const char *const FORMATS[] = {"memory_viz", "rmm",      "kineto", "minimalloc",
                                      "vma",        "perfetto", "csv",    NULL};

/* The words that an option takes, also those that only other commands accept. NULL if it takes
   something else. */
static const char *const *words_of(const option_spec *spec)
{
    if (spec->kind == OPTION_FIT)
        return qi_fit_words;
    if (spec->kind != OPTION_TEXT && spec->kind != OPTION_MEMBER)
        return NULL;
    if (!strcmp(spec->name, "backend"))
        return BACKENDS;
    if (!strcmp(spec->name, "at"))
        return MOMENTS;
    if (!strcmp(spec->name, "format"))
        return FORMATS;
    return words_of_flag(spec->name);
}

/* Whether the help names the word. A command leaves out what it refuses: copy has no plugins. */
static bool is_named(const char *help, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(help, word); at; at = strstr(at + length, word))
        if ((at == help || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[length]))
            return true;
    return false;
}

/* Prints the words that the option takes, each after a blank. */
static void print_values(const option_spec *spec)
{
    for (const char *const *word = words_of(spec); word && *word; word++)
        if (is_named(spec->help, *word))
            printf(" %s", *word);
}

static bool takes_file(const option_spec *spec)
{
    return !strcmp(spec->argument, "FILE");
}

static bool has_argument(const command *self)
{
    return self->arguments[0] != '[' || self->runs_program;
}

static void print_commands(void)
{
    for (size_t i = 0; i < command_count; i++)
        printf(" %s", commands[i].name);
}

/* Has each command print its options with `print`. */
static void for_each_command(void (*print)(const command *, const option_spec *, size_t))
{
    for (size_t i = 0; i < command_count; i++) {
        command asked = commands[i];
        asked.take_options = print;
        asked.run(&asked, 0, NULL);
    }
}

/* ---- bash --------------------------------------------------------------------------------- */

/* What completes the value of an option. Nothing completes a number. */
static void print_bash_value(const command *self, const option_spec *spec)
{
    printf("    '%s --%s') ", self->name, spec->name);
    if (takes_file(spec)) {
        printf("_quire_files ;;\n");
        return;
    }
    printf("_quire_words '");
    print_values(spec);
    printf("' ;;\n");
}

static void print_bash_argument(const command *self)
{
    if (!self->print_words) {
        printf(self->runs_program ? "_quire_programs" : "_quire_files");
        return;
    }
    printf("_quire_words '");
    self->print_words(stdout);
    printf("'");
}

/* The cases of values come before the case of any other word: an option or the argument. */
static void print_bash_cases(const command *self, const option_spec *specs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (specs[i].argument)
            print_bash_value(self, &specs[i]);
    printf("    '%s '*) ", self->name);
    if (has_argument(self)) {
        printf("if [[ $word != -* ]]; then ");
        print_bash_argument(self);
        printf("; else ");
    }
    printf("_quire_words '");
    for (size_t i = 0; i < count; i++)
        printf(" --%s", specs[i].name);
    printf(" --help'%s ;;\n", has_argument(self) ? "; fi" : "");
}

/* Readline makes words of the two sides of "=". */
static const char BASH_HEAD[] =
    "_quire_words() { COMPREPLY=($(compgen -W \"$1\" -- \"$word\")); }\n"
    "_quire_files() {\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
    "}\n"
    "_quire_programs() {\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen -cf -- \"$word\" | sort -u)\n"
    "}\n"
    "_quire() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    if [[ $word == = ]]; then\n"
    "        word=\n"
    "    elif [[ $before == = ]]; then\n"
    "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n"
    "    COMPREPLY=()\n"
    "    if ((COMP_CWORD == 1)); then before=; fi\n"
    "    case \"${COMP_WORDS[1]} $before\" in\n";

static void print_bash(void)
{
    printf("# bash completion of quire %s\n%s", quire_version(), BASH_HEAD);
    printf("    *' ') _quire_words '");
    print_commands();
    printf(" help --help --version' ;;\n    'help help') _quire_words '");
    print_commands();
    printf("' ;;\n");
    for_each_command(print_bash_cases);
    printf("    esac\n}\ncomplete -F _quire quire\n");
}

/* ---- zsh ---------------------------------------------------------------------------------- */

/* Prints a help text between single quotes and brackets, in one line. */
static void print_zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            printf("'\\''");
        else if (strchr("[]\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text == '\n' ? ' ' : *text);
    }
}

/* One specification of _arguments. An action of a blank completes nothing. */
static void print_zsh_option(const option_spec *spec)
{
    printf(" \\\n            '--%s%s[", spec->name, spec->argument ? "=" : "");
    print_zsh_text(spec->help);
    printf("]");
    if (spec->argument && takes_file(spec)) {
        printf(":%s:_files", spec->argument);
    } else if (spec->argument && words_of(spec)) {
        printf(":%s:(", spec->argument);
        print_values(spec);
        printf(")");
    } else if (spec->argument) {
        printf(":%s: ", spec->argument);
    }
    printf("'");
}

/* One specification for each argument in front of the options. Those of a program are completed as
   its own command line is. */
static void print_zsh_arguments(const command *self)
{
    if (self->runs_program)
        printf(" \\\n            '(-):PROGRAM:_command_names -e' '*::ARGUMENTS:_normal'");
    for (const char *at = self->arguments; *at && *at != '[';) {
        int length = (int)strcspn(at, " ");
        printf(" \\\n            '%s:%.*s:", strstr(self->arguments, "...") ? "*" : "", length, at);
        printf(self->print_words ? "(" : "_files'");
        if (self->print_words) {
            self->print_words(stdout);
            printf(")'");
        }
        at += length;
        at += strspn(at, " ");
    }
}

static void print_zsh_case(const command *self, const option_spec *specs, size_t count)
{
    printf("    %s)\n        _arguments '(- *)'{-h,--help}'[print this text]'", self->name);
    for (size_t i = 0; i < count; i++)
        print_zsh_option(&specs[i]);
    print_zsh_arguments(self);
    printf(" ;;\n");
}

static void print_zsh(void)
{
    printf("#compdef quire\n# zsh completion of quire %s\n_quire() {\n", quire_version());
    printf("    local -a commands=(\n");
    for (size_t i = 0; i < command_count; i++) {
        printf("        '%s:", commands[i].name);
        print_zsh_text(commands[i].summary);
        printf("'\n");
    }
    printf("        'help:print the help of the tool or of a command'\n    )\n"
           "    if ((CURRENT == 2)); then\n"
           "        _describe -t commands command commands\n        return\n    fi\n"
           "    shift words\n    ((CURRENT--))\n    case $words[1] in\n"
           "    help) ((CURRENT == 2)) && _describe -t commands command commands ;;\n");
    for_each_command(print_zsh_case);
    printf("    esac\n}\n((!$+functions[compdef])) || compdef _quire quire\n");
}

/* ---- run ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*print)(void);
} SHELLS[] = {{"bash", print_bash}, {"zsh", print_zsh}};

enum { SHELL_COUNT = sizeof SHELLS / sizeof *SHELLS };

void print_shell_names(FILE *out)
{
    for (size_t i = 0; i < SHELL_COUNT; i++)
        fprintf(out, " %s", SHELLS[i].name);
}

int run_completion(const command *self, int argc, char **argv)
{
    const char *shell = NULL;
    int code = parse_options(self, argc, argv, NULL, 0, &shell);
    if (code >= 0)
        return code;
    for (size_t i = 0; i < SHELL_COUNT; i++)
        if (!strcmp(shell, SHELLS[i].name)) {
            SHELLS[i].print();
            return EXIT_OK;
        }
    return bad_argument(self, "unknown shell '%s'; the shells are bash and zsh", shell);
}
