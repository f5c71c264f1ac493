/*
 * main.c - bench_space: runs workloads on the spaces of this project and on peers, side by side in
 * the same run. Text goes to standard output, a JSON document to the file asked for.
 */
#include "bench/bench.h"

#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/ticks.h"
#include "bench/vma.h"
#include "quire/quire.h"

enum { DEFAULT_REPS = 9, EXIT_USAGE = 2 };

static const char USAGE[] =
    "usage: bench_space [options]\n"
    "  --reps N          repeats of each measurement of speed (default 9; at most 5 for a1m)\n"
    "  --jobs N          measurements of fragmentation at a time (default: processors)\n"
    "  --workload GLOB   only these: a1k latency-a1k ramp-logu fill-logu m_a4k mmA g1 ...; "
    "repeatable\n"
    "  --subject GLOB    only these of those listed at the start; repeatable\n"
    "  --without GLOB    none of these; repeatable\n"
    "  --peer FILE       a peer of your own, see bench/subject.h; repeatable\n"
    "  --most-steps N    ends ramps and fills after N requests: a trial, no result\n"
    "  --json FILE       writes all figures there\n"
    "  --list            lists the subjects, present and absent, and ends\n"
    "  --count WORKLOAD  plays it once on the one --subject, for an instruction counter\n"
    "\n"
    "QUIRE_TEST_DATA names a folder with static/*.csv, packing problems for the smallest arena.\n";

/* ---- choosing ----------------------------------------------------------------------------- */

static bool matches(const patterns *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (!fnmatch(p->items[i], name, 0))
            return true;
    return false;
}

bool is_wanted(const patterns *p, const char *name)
{
    return !p->count || matches(p, name);
}

roster roster_of(const bench *b, unsigned kinds)
{
    roster out = {.count = 0};
    for (size_t i = 0; i < b->subjects.count; i++) {
        const subject_entry *entry = &b->subjects.entries[i];
        if (is_present(entry) && kinds & 1u << entry->subject->kind &&
            (kinds & TAKE_BATCHES || !entry->subject->free_batch) &&
            is_wanted(&b->wanted_subjects, entry->subject->name) &&
            !matches(&b->unwanted_subjects, entry->subject->name))
            out.items[out.count++] = entry->subject;
    }
    return out;
}

const subject *yardstick(const bench *b)
{
    roster all = roster_of(b, TAKE_PEERS);
    for (size_t i = 0; i < all.count; i++)
        if (all.items[i] == &VMA_BLOCKS[0])
            return all.items[i];
    return NULL;
}

/* ---- options ------------------------------------------------------------------------------ */

typedef struct choices {
    bench bench;
    patterns peers;
    const char *json_path, *count_workload;
    bool list;
} choices;

static void usage_error(const char *what, const char *value)
{
    fprintf(stderr, "bench_space: %s '%s'\n%s", what, value, USAGE);
    exit(EXIT_USAGE);
}

static void add_pattern(patterns *p, const char *item)
{
    if (p->count == MOST_PATTERNS)
        usage_error("one pattern too many:", item);
    p->items[p->count++] = item;
}

static uint64_t number(const char *text, uint64_t most)
{
    char *end = NULL;
    unsigned long long value = strtoull(text, &end, 10);
    if (*end || end == text || *text == '-' || !value || value > most)
        usage_error("not a number in range:", text);
    return value;
}

static void take_option(choices *c, int option, const char *value)
{
    switch (option) {
    case 'r':
        c->bench.reps = number(value, MOST_REPS);
        break;
    case 'j':
        c->bench.jobs = number(value, 1024);
        break;
    case 'w':
        add_pattern(&c->bench.wanted_workloads, value);
        break;
    case 's':
        add_pattern(&c->bench.wanted_subjects, value);
        break;
    case 'x':
        add_pattern(&c->bench.unwanted_subjects, value);
        break;
    case 'p':
        add_pattern(&c->peers, value);
        break;
    case 'm':
        c->bench.most_steps = number(value, UINT64_MAX);
        break;
    case 'o':
        c->json_path = value;
        break;
    case 'l':
        c->list = true;
        break;
    case 'c':
        c->count_workload = value;
        break;
    case 'h':
        printf("%s", USAGE);
        exit(0);
    default:
        fprintf(stderr, "%s", USAGE);
        exit(EXIT_USAGE);
    }
}

static void parse(choices *c, int argc, char **argv)
{
    static const struct option options[] = {
        {"reps", required_argument, NULL, 'r'},
        {"jobs", required_argument, NULL, 'j'},
        {"workload", required_argument, NULL, 'w'},
        {"subject", required_argument, NULL, 's'},
        {"peer", required_argument, NULL, 'p'},
        {"without", required_argument, NULL, 'x'},
        {"most-steps", required_argument, NULL, 'm'},
        {"json", required_argument, NULL, 'o'},
        {"list", no_argument, NULL, 'l'},
        {"count", required_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    c->bench.reps = DEFAULT_REPS;
    c->bench.jobs = processors > 0 ? (uint64_t)processors : 1;
    c->bench.most_steps = UINT64_MAX;
    c->bench.data = getenv("QUIRE_TEST_DATA");
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) >= 0;)
        take_option(c, option, optarg);
    if (optind < argc)
        usage_error("what is", argv[optind]);
}

/* ---- the head of the report --------------------------------------------------------------- */

static const char *kind_text(subject_kind kind)
{
    static const char *const texts[] = {"space", "peer", "reference", "heap", "floor"};
    return texts[kind];
}

static void print_subjects(const bench *b)
{
    printf("subjects\n");
    for (size_t i = 0; i < b->subjects.count; i++) {
        const subject_entry *entry = &b->subjects.entries[i];
        const char *word = entry->subject->kind == SUBJECT_SPACE ? "not offered" : "absent";
        printf("  %-26s %-10s", entry->subject->name, kind_text(entry->subject->kind));
        if (!is_present(entry))
            printf(" %s: %s", word, entry->absent);
        printf("\n");
    }
}

static void processor_name(char *name, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(name, size, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !value)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(name, size, "%s", value + 2);
        break;
    }
    if (file)
        fclose(file);
}

static void write_head(bench *b)
{
    char processor[200];
    processor_name(processor, sizeof processor);
    qi_json_text(&b->json, "version", quire_version());
    qi_json_object(&b->json, "machine");
    qi_json_text(&b->json, "processor", processor);
    qi_json_number(&b->json, "processors", b->jobs);
    qi_json_text(&b->json, "compiler", __VERSION__);
    qi_json_text(&b->json, "clock", the_clock.is_counter ? "time-stamp counter" : "monotonic");
    qi_json_real(&b->json, "empty_group_ns", (double)the_clock.empty * the_clock.ns);
    qi_json_end_object(&b->json);
    qi_json_number(&b->json, "reps", b->reps);
    qi_json_array(&b->json, "subjects");
    for (size_t i = 0; i < b->subjects.count; i++) {
        const subject_entry *entry = &b->subjects.entries[i];
        qi_json_object(&b->json, NULL);
        qi_json_text(&b->json, "name", entry->subject->name);
        qi_json_text(&b->json, "kind", kind_text(entry->subject->kind));
        qi_json_text(&b->json, "absent", is_present(entry) ? NULL : entry->absent);
        qi_json_end_object(&b->json);
    }
    qi_json_end_array(&b->json);
}

/* ---- the run ------------------------------------------------------------------------------ */

static bool write_to_file(void *file, const char *text, size_t size)
{
    return !file || fwrite(text, 1, size, file) == size;
}

static int run(bench *b, const char *json_path)
{
    FILE *file = json_path ? fopen(json_path, "w") : NULL;
    if (json_path && !file) {
        perror(json_path);
        return 1;
    }
    ticks_init();
    printf("clock: %s, a pair of readings %.1f ns\n",
           the_clock.is_counter ? "time-stamp counter" : "monotonic",
           (double)the_clock.empty * the_clock.ns);
    print_subjects(b);
    qi_json_init(&b->json, write_to_file, file);
    qi_json_object(&b->json, NULL);
    write_head(b);
    measure_speed(b);
    measure_latency(b);
    measure_fragmentation(b);
    measure_arenas(b);
    measure_adversaries(b);
    qi_json_end_object(&b->json);
    bool bad = qi_json_finish(&b->json);
    if (file && (fclose(file) || bad)) {
        fprintf(stderr, "bench_space: %s cannot be written\n", json_path);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static choices c;
    parse(&c, argc, argv);
    subjects_init(&c.bench.subjects);
    for (size_t i = 0; i < c.peers.count; i++)
        if (!subjects_load(&c.bench.subjects, c.peers.items[i]))
            return 1;
    if (c.list) {
        print_subjects(&c.bench);
        return 0;
    }
    if (!c.count_workload)
        return run(&c.bench, c.json_path);
    if (c.bench.wanted_subjects.count != 1)
        usage_error("needs one --subject: --count", c.count_workload);
    return count_calls(&c.bench, c.count_workload, c.bench.wanted_subjects.items[0]);
}
