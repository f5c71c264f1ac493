/*
 * stats_string.c - descriptions as text, which the program prints or logs.
 */
#include "quire/quire_vma.h"
#include "src/adapters/vma/memory.h"
#include "src/adapters/vma/text.h"

static void append_json(void *user, quire_memory *memory, uint32_t type)
{
    qi_vma_text *t = user;
    (void)type;
    if (t->size > 1)
        qi_vma_text_add(t, ",\n");
    if (quire_memory_write_json(memory, qi_vma_text_write, t))
        t->has_failed = true;
}

static void append_report(void *user, quire_memory *memory, uint32_t type)
{
    qi_vma_text *t = user;
    (void)type;
    if (quire_memory_write_report(memory, qi_vma_text_write, t))
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
    qi_vma_text t = {.host = &allocator->host};
    qi_vma_text_add(&t, detailed ? "[" : "");
    qi_vma_each_memory(allocator, detailed ? append_json : append_report, &t);
    qi_vma_text_add(&t, detailed ? "]\n" : "");
    *string = qi_vma_text_end(&t);
    if (!*string)
        qi_vma_print("vmaBuildStatsString");
}

void quire_vma_free_stats_string(VmaAllocator allocator, char *string)
{
    if (string && qi_vma_is_allocator(allocator))
        qi_vma_host_release(&allocator->host, string);
}
