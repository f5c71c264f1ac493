/*
 * stats_string.c - descriptions as text, which the program prints or logs.
 */
#include <stdlib.h>
#include <string.h>

#include "quire/quire_vma.h"
#include "src/adapters/vma/memory.h"

/* A growing text. */
typedef struct text {
    const qi_vma_host *host;
    char *data; /* NULL: none yet, or no host memory */
    size_t size, room;
    bool has_failed;
} text;

static bool append(void *user, const char *piece, size_t size)
{
    text *t = user;
    if (t->room - t->size <= size) {
        size_t room = 2 * t->room + size + 1;
        char *data = t->has_failed ? NULL : qi_vma_host_allocate(t->host, room);
        if (!data) {
            t->has_failed = true;
            return false;
        }
        if (t->data)
            memcpy(data, t->data, t->size);
        qi_vma_host_release(t->host, t->data);
        t->data = data;
        t->room = room;
    }
    memcpy(t->data + t->size, piece, size);
    t->size += size;
    t->data[t->size] = '\0';
    return true;
}

static void append_text(text *t, const char *piece)
{
    if (!append(t, piece, strlen(piece)))
        t->has_failed = true;
}

static void append_json(void *user, quire_memory *memory, uint32_t type)
{
    text *t = user;
    (void)type;
    if (t->size > 1)
        append_text(t, ",\n");
    if (quire_memory_write_json(memory, append, t))
        t->has_failed = true;
}

static void append_report(void *user, quire_memory *memory, uint32_t type)
{
    text *t = user;
    (void)type;
    if (quire_memory_write_report(memory, append, t))
        t->has_failed = true;
}

void quire_vma_build_stats_string(VmaAllocator allocator, char **string, VkBool32 detailed)
{
    if (string)
        *string = NULL;
    if (!qi_vma_is_allocator(allocator) || !string) {
        qi_vma_print("vmaBuildStatsString");
        return;
    }
    text t = {.host = &allocator->host};
    append_text(&t, detailed ? "[" : "");
    qi_vma_each_memory(allocator, detailed ? append_json : append_report, &t);
    append_text(&t, detailed ? "]\n" : "");
    if (t.has_failed) {
        qi_vma_print("vmaBuildStatsString");
        qi_vma_host_release(t.host, t.data);
        return;
    }
    *string = t.data;
}

void quire_vma_free_stats_string(VmaAllocator allocator, char *string)
{
    if (string && qi_vma_is_allocator(allocator))
        qi_vma_host_release(&allocator->host, string);
}
