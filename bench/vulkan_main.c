/*
 * vulkan_main.c - bench_vulkan: memories on a real Vulkan device, of this project and of the Vulkan
 * Memory Allocator, side by side in the same run: raw ranges, where no call of Vulkan is left to be
 * made, and buffers. Text goes to standard output, a JSON document to the file asked for.
 *
 * Which device: what quire_vulkan_open says, QUIRE_VULKAN_DEVICE and the loader's VK_ICD_FILENAMES.
 */
#include <stdlib.h>

#include "bench/memory.h"
#include "bench/options.h"
#include "bench/ticks.h"
#include "quire/quire.h"
#include "quire/vulkan.h"
#include "src/base/result.h"

static const usage USAGE = {
    "bench_vulkan",
    "usage: bench_vulkan [options]\n"
    "  --reps N        repeats of each measurement (default 9)\n"
    "  --family GLOB   only these: pages many-pages full-pages; repeatable (default pages)\n"
    "  --subject GLOB  only these of those listed at the start; repeatable\n"
    "  --pairs N       times N pairs at most: a trial, no result\n"
    "  --json FILE     writes all figures there\n"
    "  --list          lists device and subjects, present and absent, and ends\n",
};

typedef struct choices {
    memory_bench bench;
    const char *json_path;
    bool list;
} choices;

/* ---- options -------------------------------------------------------------------------------- */

static void parse(choices *c, int argc, char **argv)
{
    memory_bench *b = &c->bench;
    const option_rule rules[] = {
        {"reps", .number = &b->reps, .most = MAX_REPS},
        {"family", .list = &b->wanted_families},
        {"subject", .list = &b->wanted_subjects},
        {"pairs", .number = &b->max_pairs, .most = UINT64_MAX},
        {"json", .text = &c->json_path},
        {"list", .flag = &c->list},
    };
    b->reps = DEFAULT_REPS;
    b->max_pairs = UINT64_MAX;
    options_parse(&USAGE, rules, sizeof rules / sizeof *rules, argc, argv);
    if (!b->wanted_families.count)
        (void)patterns_add(&b->wanted_families, "pages");
}

/* ---- the run -------------------------------------------------------------------------------- */

/* Its name; empty where there is none, which the subjects say. */
static quire_device_info device_info(void)
{
    quire_device *device = NULL;
    quire_device_info info = {.kind_count = 0};
    if (!quire_vulkan_open(NULL, &device)) {
        qi_ignore(quire_device_get_info(device, &info));
        qi_ignore(quire_device_destroy(&device));
    }
    return info;
}

static void measure(memory_bench *b, const char *part, const subject *subjects)
{
    printf("\n-- %s\n", part);
    b->subjects.count = 0;
    subjects_add(&b->subjects, subjects, VULKAN_SUBJECT_COUNT);
    measure_pages(b, part);
}

int main(int argc, char **argv)
{
    static choices c;
    memory_bench *b = &c.bench;
    parse(&c, argc, argv);
    const quire_device_info info = device_info();
    printf("device: %s\n", info.name[0] ? info.name : "none");
    subjects_add(&b->subjects, VULKAN_RANGES, VULKAN_SUBJECT_COUNT);
    subjects_print(&b->subjects);
    if (c.list)
        return 0;
    ticks_init();
    if (!document_begin(&b->out, c.json_path, b->reps))
        return 1;
    report_clock();
    qi_json_text(&b->out.json, "device", info.name);
    subjects_write(&b->subjects, &b->out.json);
    measure(b, "ranges", VULKAN_RANGES);
    measure(b, "buffers", VULKAN_BUFFERS);
    return document_end(&b->out, USAGE.program);
}
