/*
 * output.c - see output.h.
 */
#include "src/adapters/vulkan_layer/output.h"

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include "src/base/process.h"
#include "src/base/text.h"

void layer_say(const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    qi_make_printable(line);
    fprintf(stderr, "VK_LAYER_QUIRE_suballocate: %s\n", line);
}

FILE *layer_open_stream(const char *path, int flags, const char *mode)
{
    int file = qi_output_open(path, flags);
    FILE *stream = file < 0 ? NULL : fdopen(file, mode);
    if (!stream && file >= 0)
        close(file);
    return stream;
}

void layer_warn_file(const char *path)
{
    layer_say("%s cannot be written%s", path, errno == ENXIO ? ": nothing reads it" : "");
}
