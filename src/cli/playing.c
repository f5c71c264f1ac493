/*
 * playing.c - see playing.h.
 */
#include "src/cli/playing.h"

#include <stdlib.h>

static int read_trace(playing *p)
{
    size_t size = 0;
    char *text = read_file(p->path, &size);
    if (!text)
        return EXIT_FAILED;
    quire_result result = quire_trace_parse(p->path, text, size, NULL, &p->trace);
    free(text);
    if (result) { /* the sentence begins with file, line and column, as compilers' do */
        print_problem("%s", quire_last_error());
        return EXIT_FAILED;
    }
    return quire_trace_get_info(p->trace, &p->info) ? fail_with_last_error() : -1;
}

static int make_memory(playing *p)
{
    quire_memory_options options = {
        .name = "replay",
        .fit = p->fit,
        .contiguous = p->contiguous,
        .pages = {.page_size = p->page_size},
    };
    return quire_memory_create(p->device, &options, &p->memory) ? fail_with_last_error() : -1;
}

int open_playing(const command *self, playing *p)
{
    int code = read_trace(p);
    return code < 0 ? open_device(self, &p->choice, &p->device) : code;
}

int begin_playing(const command *self, playing *p)
{
    int code = open_playing(self, p);
    return code < 0 ? make_memory(p) : code;
}

int end_playing(playing *p, int code)
{
    quire_trace_destroy(&p->trace);
    quire_memory_destroy_all(&p->memory);
    return quire_device_destroy(&p->device) ? fail_with_last_error() : code;
}

const char *fit_text(quire_fit fit)
{
    switch (fit) {
    case QUIRE_FIT_SEGREGATED:
        break;
    case QUIRE_FIT_FIRST:
        return "first";
    case QUIRE_FIT_BUDDY:
        return "buddy";
    case QUIRE_FIT_LINEAR:
        return "linear";
    }
    return "segregated";
}
