/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * replay.c - quire_trace_replay: replays a trace on a memory through the public calls and reports
 * the cost.
 *
 * One thread. Each allocation and each free is timed by itself; the cost of reading the clock is
 * subtracted.
 */
#include <string.h>

#include "src/base/bits.h"
#include "src/base/histogram.h"
#include "src/base/result.h"
#include "src/base/system.h"
#include "src/trace/trace.h"

/* The default number of progress calls; readings of the clock that measure_clock takes. */
enum { PROGRESS_CALLS = 2000, CLOCK_SAMPLES = 1000 };

/* The limit of quire_replay_options.size_percent. */
enum { MAX_PERCENT = 1000 };

/* A range of the trace during the replay. */
typedef struct qi_played {
    quire_allocation allocation; /* {0} if the allocation failed or the range is free */
    uint64_t size;               /* requested */
} qi_played;

typedef struct player {
    const quire_trace *trace;
    quire_memory *memory;
    const quire_replay_options *options;
    quire_replay_report *report;
    qi_played *live;           /* indexed by the range of an event */
    uint64_t bytes, max_bytes; /* requested bytes of the live allocations, and their maximum */
    uint64_t requested;        /* as `bytes`, but including allocations that failed */
    bool at_peak;              /* max_bytes rose and nothing was freed since */
    qi_histogram *alloc_ns;
    qi_histogram *free_ns;
    uint64_t clock_cost;
    bool failed_before;
    qi_error first_failure;
} player;

/* The minimum cost of two readings of the clock, in nanoseconds. */
static uint64_t measure_clock(void)
{
    uint64_t min = UINT64_MAX;
    for (int i = 0; i < CLOCK_SAMPLES; i++) {
        uint64_t begin = qi_clock(), spent = qi_clock() - begin;
        min = spent < min ? spent : min;
    }
    return min;
}

/* Subtracts the cost of the clock; a call cannot take less than 0. */
static void add_sample(const player *p, qi_histogram *histogram, uint64_t spent)
{
    qi_histogram_add(histogram, spent > p->clock_cost ? spent - p->clock_cost : 0);
}

/* Keeps the first error; later calls overwrite the thread's last error. */
static void note_failure(player *p)
{
    p->report->failures++;
    if (p->failed_before)
        return;
    p->failed_before = true;
    qi_error_save(&p->first_failure);
}

/* Reads the statistics of the peak so far. Runs before the first free after it. */
static void read_stats_at_peak(player *p)
{
    if (!p->at_peak)
        return;
    quire_memory_stats stats;
    qi_ignore(quire_memory_get_stats(p->memory, &stats));
    p->report->fragmentation = stats.fragmentation;
    p->at_peak = false;
}

/*
 * The name of an allocation: the label, or NULL without one. A label longer than a name may be is
 * cut into `cut` at the start of a UTF-8 character.
 */
static const char *name_of(const quire_trace_event *event, char cut[QUIRE_MAX_NAME + 1])
{
    size_t length = strlen(event->label);
    if (length <= QUIRE_MAX_NAME)
        return length ? event->label : NULL;
    length = QUIRE_MAX_NAME;
    while (length && ((unsigned char)event->label[length] & 0xc0) == 0x80)
        length--;
    memcpy(cut, event->label, length);
    cut[length] = '\0';
    return cut;
}

/* The requested size of an allocation in the replay: see quire_replay_options.size_percent. */
static uint64_t scaled_size(const player *p, const quire_trace_event *event)
{
    uint64_t percent = p->options->size_percent, size = event->size;
    if (percent == 100)
        return size;
    uint64_t scaled = size / 100 * percent + size % 100 * percent / 100;
    if (size % event->alignment == 0)
        scaled = (scaled + event->alignment - 1) / event->alignment * event->alignment;
    return scaled ? scaled : 1;
}

/* A failed allocation counts in the requested peak of the report, but not in `bytes`. */
static void play_alloc(player *p, const quire_trace_event *event)
{
    char cut[QUIRE_MAX_NAME + 1];
    uint64_t size = scaled_size(p, event);
    quire_allocation_options options = {.size = size, .alignment = event->alignment};
    if (p->options->name)
        options.name = name_of(event, cut);
    qi_played *range = &p->live[event->range];
    range->size = size;
    p->requested += size;
    qi_raise(&p->report->peak_requested_bytes, p->requested);
    uint64_t begin = qi_clock();
    quire_result result = quire_allocate(p->memory, &options, &range->allocation);
    add_sample(p, p->alloc_ns, qi_clock() - begin);
    if (result) {
        note_failure(p);
        return;
    }
    p->report->allocations++;
    p->bytes += size;
    if (p->bytes > p->max_bytes) {
        p->max_bytes = p->bytes;
        p->at_peak = true;
    }
}

/* A range whose allocation failed is only removed. */
static void play_free(player *p, const quire_trace_event *event)
{
    qi_played *range = &p->live[event->range];
    p->requested -= range->size;
    if (!range->allocation.id) {
        *range = (qi_played){0};
        return;
    }
    read_stats_at_peak(p);
    uint64_t begin = qi_clock();
    quire_result result = quire_free(p->memory, range->allocation);
    add_sample(p, p->free_ns, qi_clock() - begin);
    if (result)
        note_failure(p);
    else
        p->report->frees++;
    p->bytes -= range->size;
    *range = (qi_played){0};
}

static void play_event(player *p, const quire_trace_event *event)
{
    switch (event->op) {
    case QUIRE_TRACE_ALLOC:
        play_alloc(p, event);
        break;
    case QUIRE_TRACE_FREE:
        play_free(p, event);
        break;
    case QUIRE_TRACE_USE:
        p->report->uses += p->live[event->range].allocation.id != 0;
        break;
    case QUIRE_TRACE_FRAME:
        p->report->frames++;
        break;
    }
    p->report->operations++;
}

/* Calls the progress callback before each `every` events and after the last one. */
static void play(player *p, uint64_t count)
{
    uint64_t events = p->options->progress_events;
    uint64_t every = events ? events : count / PROGRESS_CALLS + 1;
    for (uint64_t i = 0; i < count; i++) {
        if (p->options->progress && i % every == 0 &&
            !p->options->progress(p->options->user, i, count)) {
            p->report->stopped = true;
            return;
        }
        if (p->options->time)
            *p->options->time = p->trace->events[i].time_ns;
        play_event(p, &p->trace->events[i]);
    }
    if (p->options->progress)
        p->options->progress(p->options->user, count, count);
}

static quire_latency latency_of(const qi_histogram *histogram)
{
    return (quire_latency){
        .p50 = qi_histogram_percentile(histogram, 0.50),
        .p99 = qi_histogram_percentile(histogram, 0.99),
        .p999 = qi_histogram_percentile(histogram, 0.999),
        .max = histogram->max,
    };
}

/* Copies the statistics after the last event into the report, before the remaining frees. */
static void fill_report(const player *p)
{
    quire_memory_stats stats;
    qi_ignore(quire_memory_get_stats(p->memory, &stats));
    quire_replay_report *report = p->report;
    report->peak_live_bytes = stats.peak_live_bytes;
    report->peak_reserved_bytes = stats.peak_reserved_bytes;
    report->pages_created = stats.pages_created;
    report->pages_destroyed = stats.pages_destroyed;
    report->backend_calls = stats.backend_calls;
    report->peak_pages = stats.peak_page_count;
    report->metadata_bytes_peak = stats.metadata_peak;
    report->left_at_end = stats.allocation_count;
    report->left_bytes = stats.requested_bytes;
    report->fragmentation.reserved = stats.fragmentation.reserved;
    report->alloc_ns = latency_of(p->alloc_ns);
    report->free_ns = latency_of(p->free_ns);
}

/* Frees what the trace leaves live, after the report is complete. */
static void free_the_rest(player *p)
{
    for (uint32_t i = 0; i < p->trace->range_count; i++)
        if (p->live[i].allocation.id && quire_free(p->memory, p->live[i].allocation))
            note_failure(p);
}

/* Restores the first error at the end, so that it is the thread's last error. */
static void run(player *p)
{
    uint64_t count = p->trace->info.event_count;
    if (p->options->event_count && p->options->event_count < count)
        count = p->options->event_count;
    p->clock_cost = measure_clock();
    uint64_t begin = qi_clock();
    play(p, count);
    read_stats_at_peak(p);
    p->report->wall_ns = qi_clock() - begin;
    fill_report(p);
    if (!p->options->keep)
        free_the_rest(p);
    if (p->failed_before)
        qi_error_restore(&p->first_failure);
}

/* All before the first event, so that the timed part allocates no host memory of its own. */
static quire_result allocate_records(player *p, qi_host *host)
{
    uint32_t ranges = p->trace->range_count ? p->trace->range_count : 1;
    p->live = qi_host_allocate(host, ranges, sizeof *p->live);
    p->alloc_ns = qi_host_allocate(host, 1, sizeof *p->alloc_ns);
    p->free_ns = qi_host_allocate(host, 1, sizeof *p->free_ns);
    if (p->live && p->alloc_ns && p->free_ns)
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a replay of %u range%s",
                        ranges);
}

static void release_records(player *p, qi_host *host)
{
    uint32_t ranges = p->trace->range_count ? p->trace->range_count : 1;
    qi_host_release(host, p->live, ranges, sizeof *p->live);
    qi_host_release(host, p->alloc_ns, 1, sizeof *p->alloc_ns);
    qi_host_release(host, p->free_ns, 1, sizeof *p->free_ns);
}

/*
 * Resolves and checks size_percent. A size that is rounded up to its alignment grows by less than
 * itself, so the sum of the live sizes stays below peak * (percent + 100) / 100.
 */
static quire_result check_scale(const quire_trace *trace, quire_replay_options *options)
{
    if (!options->size_percent)
        options->size_percent = 100;
    uint32_t percent = options->size_percent;
    if (percent > MAX_PERCENT)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "quire_replay_options.size_percent is %u, above %u", percent,
                            MAX_PERCENT);
    if (percent != 100 && trace->info.peak_bytes > UINT64_MAX / (percent + 100) * 100)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "sizes of %u percent may exceed 64 bits: the trace has a peak of "
                            "%u byte%s",
                            percent, trace->info.peak_bytes);
    return QUIRE_SUCCESS;
}

quire_result quire_trace_replay(const quire_trace *trace, quire_memory *memory,
                                const quire_replay_options *options, quire_replay_report *report)
{
    if (report)
        *report = (quire_replay_report){0};
    if (!trace || !memory || !report)
        return qi_fail_null("quire_trace_replay", !trace ? "trace" : !memory ? "memory" : "report");
    quire_replay_options resolved = options ? *options : (quire_replay_options){0};
    quire_result result = qi_check_unused(&resolved, "quire_replay_options");
    if (!result)
        result = check_scale(trace, &resolved);
    if (result)
        return result;
    qi_host host;
    qi_ignore(qi_host_init(&host, &trace->host.callbacks));
    player p = {.trace = trace, .memory = memory, .options = &resolved, .report = report};
    result = allocate_records(&p, &host);
    if (!result)
        run(&p);
    release_records(&p, &host);
    return result;
}
