/*
 * vulkan_main.c - bench_vulkan: compares memories of quire and of the Vulkan Memory Allocator on a
 * real Vulkan device in one run: raw ranges, which need no Vulkan calls in a steady state, and
 * buffers. Text goes to standard output, a JSON document to the file of --json.
 *
 * quire_vulkan_open selects the device, by QUIRE_VULKAN_DEVICE and the loader's VK_ICD_FILENAMES.
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
    "  --family GLOB   run only these families: pages many-pages full-pages; repeatable\n"
    "                  (default pages)\n"
    "  --subject GLOB  run only these subjects; repeatable\n"
    "  --pairs N       time at most N pairs, for a trial run\n"
    "  --json FILE     write all results into a file\n"
    "  --list          list the device and the subjects, and exit\n",
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
        {"reps", .number = &b->reps, .max = MAX_REPS},
        {"family", .list = &b->wanted_families},
        {"subject", .list = &b->wanted_subjects},
        {"pairs", .number = &b->max_pairs, .max = UINT64_MAX},
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

/* The name is empty without a device; then the subjects state the reason. */
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
