/*
 * replay_setup.c - see replay_setup.h.
 */
#include "src/tool/replay_setup.h"

#include <stdlib.h>

/* The text is freed right after parsing, because the trace has copies of its labels. */
static int read_trace(replay_setup *p)
{
    size_t size = 0;
    char *text = read_file(p->path, &size);
    if (!text)
        return EXIT_FAILED;
    quire_result result = quire_trace_parse(p->path, text, size, NULL, &p->trace);
    free(text);
    if (result) { /* without "quire: ": the message starts with FILE:LINE:COLUMN, as of compilers */
        print_problem("%s", quire_last_error());
        return EXIT_FAILED;
    }
    return quire_trace_get_info(p->trace, &p->info) ? fail_with_last_error() : -1;
}

static uint64_t read_time(void *user)
{
    return *(const uint64_t *)user;
}

quire_clock trace_clock(replay_setup *p)
{
    return (quire_clock){read_time, &p->time};
}

static int make_memory(replay_setup *p)
{
    p->memory_choice.options.name = "replay";
    p->memory_choice.options.clock = trace_clock(p);
    return quire_memory_create(p->device, &p->memory_choice.options, &p->memory)
               ? fail_with_last_error()
               : -1;
}

/* A preset depends on the memory kind, which the library chooses: a memory is made to learn it. */
static int make_memory_of_preset(replay_setup *p)
{
    quire_memory_info info;
    int code = make_memory(p);
    if (code >= 0 || !p->memory_choice.preset)
        return code;
    if (quire_memory_get_info(p->memory, &info))
        return fail_with_last_error();
    quire_memory_destroy_all(&p->memory);
    code = apply_preset(&p->memory_choice, p->device, info.kind);
    return code < 0 ? make_memory(p) : code;
}

int open_trace_and_device(const command *self, replay_setup *p)
{
    int code = read_trace(p);
    return code < 0 ? open_device(self, &p->choice, &p->device) : code;
}

int open_replay(const command *self, replay_setup *p)
{
    if (is_standard(p->path) && is_standard(p->memory_choice.file))
        return bad_usage(self, "standard input is either the trace or --options");
    int code = read_members(&p->memory_choice);
    if (code < 0)
        code = open_trace_and_device(self, p);
    return code < 0 ? make_memory_of_preset(p) : code;
}

/* The memory goes before the device, which cannot be destroyed while it has memories. */
int close_replay(replay_setup *p, int code)
{
    quire_trace_destroy(&p->trace);
    quire_memory_destroy_all(&p->memory);
    return quire_device_destroy(&p->device) ? fail_with_last_error() : code;
}

bool follows_use(const quire_memory_options *options)
{
    const quire_page_policy *p = &options->pages;
    return options->fit.algorithm != QUIRE_FIT_LINEAR && !p->page_size && !p->first_page_size &&
           !p->growth_percent && !p->growth && !p->max_page && !p->max_pages;
}

const char *fit_text(quire_fit fit)
{
    return qi_fit_words[fit];
}
