/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_main.c - bench_vulkan: compares memories of quire and of the Vulkan Memory Allocator on a
 * real Vulkan device in one run: raw ranges, which need no Vulkan calls in a steady state, buffers,
 * images, and uploads. Then it measures small writes of quire. Text goes to standard output, a JSON
 * document to the file of --json.
 *
 * quire_vulkan_open selects the device, by QUIRE_VULKAN_DEVICE and the loader's VK_ICD_FILENAMES.
 * With --mock a driver without a device takes its place, whose calls cost next to nothing.
 */
#include <stdio.h>
#include <string.h>

#include "bench/count.h"
#include "bench/memory.h"
#include "bench/options.h"
#include "bench/ticks.h"
#include "bench/vulkan_memories.h"
#include "src/base/result.h"

static const usage USAGE = {
    "bench_vulkan",
    "usage: bench_vulkan [options]\n"
    "  --reps N        repeats of each measurement (default 9)\n"
    "  --family GLOB   run only these families: pages many-pages full-pages writes; repeatable\n"
    "                  (default pages and writes)\n"
    "  --subject GLOB  run only these subjects; repeatable\n"
    "  --pairs N       time at most N pairs, for a trial run\n"
    "  --part GLOB     run only these parts: ranges buffers images uploads; repeatable\n"
    "  --json FILE     write all results into a file\n"
    "  --mock          use a driver without a device\n"
    "  --count W       run workload W once, for an instruction counter; needs one --part and one\n"
    "                  --subject\n"
    "  --list          list the device and the subjects, and exit\n",
};

typedef struct choices {
    memory_bench bench;
    patterns wanted_parts;
    const char *json_path, *count_workload;
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
        {"part", .list = &c->wanted_parts},
        {"json", .text = &c->json_path},
        {"mock", .flag = &vulkan_is_mocked},
        {"count", .text = &c->count_workload},
        {"list", .flag = &c->list},
    };
    b->reps = DEFAULT_REPS;
    b->max_pairs = UINT64_MAX;
    options_parse(&USAGE, rules, sizeof rules / sizeof *rules, argc, argv);
    if (b->wanted_families.count)
        return;
    (void)patterns_add(&b->wanted_families, "pages");
    (void)patterns_add(&b->wanted_families, "writes");
}

/* ---- the run -------------------------------------------------------------------------------- */

/* The name is empty without a device; then the subjects state the reason. */
static quire_device_info device_info(void)
{
    quire_device *device = NULL;
    quire_device_info info = {.kind_count = 0};
    if (!vulkan_open(&device)) {
        qi_ignore(quire_device_get_info(device, &info));
        quire_device_destroy(&device);
    }
    return info;
}

static void measure(memory_bench *b, const vulkan_part *part)
{
    printf("\n-- %s\n", part->name);
    b->subjects.count = 0;
    subjects_add(&b->subjects, part->subjects, part->count);
    measure_pages(b, part->name);
}

static int run(choices *c, const quire_device_info *info)
{
    memory_bench *b = &c->bench;
    ticks_init();
    if (!document_begin(&b->out, c->json_path, b->reps))
        return 1;
    report_clock();
    qi_json_text(&b->out.json, "device", info->name);
    subjects_write(&b->subjects, &b->out.json);
    for (size_t i = 0; i < VULKAN_PART_COUNT; i++)
        if (is_wanted(&c->wanted_parts, VULKAN_PARTS[i].name))
            measure(b, &VULKAN_PARTS[i]);
    if (!vulkan_is_mocked)
        measure_vulkan_writes(b);
    return document_end(&b->out, USAGE.program);
}

/* The instructions of one subject of one part. */
static int count(choices *c)
{
    memory_bench *b = &c->bench;
    if (b->wanted_subjects.count != 1 || c->wanted_parts.count != 1)
        usage_error(&USAGE,
                    "--count requires exactly one --part and one --subject:", c->count_workload);
    b->subjects.count = 0;
    for (size_t i = 0; i < VULKAN_PART_COUNT; i++)
        if (!strcmp(VULKAN_PARTS[i].name, c->wanted_parts.items[0]))
            subjects_add(&b->subjects, VULKAN_PARTS[i].subjects, VULKAN_PARTS[i].count);
    return count_calls(&b->subjects, c->count_workload, b->wanted_subjects.items[0]);
}

int main(int argc, char **argv)
{
    static choices c;
    memory_bench *b = &c.bench;
    parse(&c, argc, argv);
    if (c.count_workload)
        return count(&c);
    const quire_device_info info = device_info();
    printf("device: %s\n", info.name[0] ? info.name : "none");
    subjects_add(&b->subjects, VULKAN_PARTS[VULKAN_BUFFERS].subjects,
                 VULKAN_PARTS[VULKAN_BUFFERS].count);
    subjects_print(&b->subjects);
    return c.list ? 0 : run(&c, &info);
}
