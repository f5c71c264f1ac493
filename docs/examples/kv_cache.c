/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * kv_cache.c - the key/value caches of a serving engine, as lazy allocations of one memory.
 *
 * Each sequence has addresses for the longest context, so that kernels find a token by its number
 * alone. Only chunks with tokens have memory. Requests arrive at random, with one of a few system
 * prompts, whose tokens all its sequences share. Each step gives every running sequence a token. If
 * the memory is full, the engine preempts the youngest sequence and computes its tokens again
 * later. After a turn of a conversation the engine drops the second half of the tokens (reasoning,
 * for example, is of no use in the next turn).
 *
 *     cc kv_cache.c $(pkg-config --cflags --libs quire) && ./a.out [--cuda]
 *
 * The program writes the tokens and verifies their bytes, as it has no model. It runs on the host
 * backend, or with --cuda on a CUDA device. The exit status is 77 if the machine has no device.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <quire/cuda.h>
#include <quire/host.h>
#include <quire/quire.h>

enum { SLOTS = 64, PROMPTS = 4, STEPS = 500, REPORT = 100, NO_DEVICE = 77 };
enum { CONTEXT = 8192, BLOCK = 16, PART = 16 };            /* tokens */
enum { TOKEN = 16 << 10, CHUNK = 2 << 20, MIB = 1 << 20 }; /* bytes */
static const uint64_t CACHE = (uint64_t)CONTEXT * TOKEN;
static const uint64_t LIMIT = (uint64_t)512 * MIB;

/* Some tokens: a lazy allocation of which the first `backed` bytes have memory. */
typedef struct cache {
    quire_allocation allocation;
    uint64_t tokens, backed;
    uint64_t number; /* counts up; its tokens contain it */
} cache;

typedef struct prompt {
    cache cache;
    uint64_t length; /* tokens */
    uint32_t users;  /* sequences; 0: the cache does not exist */
} prompt;

/* A sequence runs if cache.tokens == length. Otherwise it waits to be computed: it is new, or was
   preempted. */
typedef struct sequence {
    cache cache;    /* of its own tokens, which follow those of the prompt */
    prompt *prompt; /* NULL: the slot is free */
    uint64_t length, turn_end;
    uint32_t turns; /* left */
} sequence;

typedef struct totals {
    uint64_t step, sequences, caches;
    uint64_t tokens, reserved, blocks, unshared; /* bytes */
} totals;

typedef struct engine {
    quire_device *device;
    quire_memory *memory;
    uint64_t chunk; /* bytes */
    prompt prompts[PROMPTS];
    sequence sequences[SLOTS];
    uint64_t random, made, backs, unbacks, preemptions, verified;
    totals now, peak;
    bool wrong; /* a check failed, and has said so */
} engine;

typedef enum outcome { DONE, FULL, FAILED } outcome;

static uint64_t between(engine *e, uint64_t low, uint64_t high)
{
    e->random = e->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (e->random >> 33) % (high - low + 1);
}

/* ---- memory for tokens ---------------------------------------------------------------------- */

/* Takes addresses, which never change, and no memory. */
static bool make_cache(engine *e, cache *c)
{
    quire_allocation_options options = {.size = CACHE, .name = "tokens", .lazy = true};
    *c = (cache){.number = ++e->made};
    return !quire_allocate(e->memory, &options, &c->allocation);
}

/* Gives a cache memory for `tokens`. FULL: nothing changed. */
static outcome back(engine *e, cache *c, uint64_t tokens)
{
    uint64_t end = (tokens * TOKEN + e->chunk - 1) / e->chunk * e->chunk;
    if (end <= c->backed)
        return DONE;
    quire_view range = {c->allocation, c->backed, end - c->backed};
    quire_result result = quire_back_range(e->memory, &range, 1);
    if (result) {
        bool full = result == QUIRE_ERROR_OVER_BUDGET || result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY;
        return full ? FULL : FAILED;
    }
    e->backs++;
    c->backed = end;
    return DONE;
}

/* Drops all but the first `tokens` of a cache, fewer than CONTEXT. quire takes the chunks that have
   none of those, at once: no kernel uses them. An engine with kernels passes the point of the last
   one instead of NULL. */
static bool keep(engine *e, cache *c, uint64_t tokens)
{
    quire_view rest = {c->allocation, tokens * TOKEN, 0};
    e->unbacks++;
    if (quire_unback_range(e->memory, &rest, 1, NULL))
        return false;
    c->tokens = tokens;
    c->backed = (tokens * TOKEN + e->chunk - 1) / e->chunk * e->chunk;
    return true;
}

/* ---- contents of tokens --------------------------------------------------------------------- */

static uint64_t words[PART * TOKEN / sizeof(uint64_t)], expected[PART * TOKEN / sizeof(uint64_t)];

/* Fills `expected` for up to PART tokens from `first` on. Returns the bytes. */
static uint64_t expect(const cache *c, uint64_t first, uint64_t end)
{
    uint64_t count = end - first < PART ? end - first : PART;
    for (uint64_t i = 0; i < count * TOKEN / sizeof *expected; i++)
        expected[i] = c->number << 40 | (first * TOKEN / sizeof *expected + i);
    return count * TOKEN;
}

/* Computes the tokens that a cache lacks up to `end`. */
static outcome compute(engine *e, cache *c, uint64_t end)
{
    outcome result = back(e, c, end);
    while (!result && c->tokens < end) {
        uint64_t bytes = expect(c, c->tokens, end);
        if (quire_write(e->memory, c->allocation, c->tokens * TOKEN, expected, bytes))
            return FAILED;
        c->tokens += bytes / TOKEN;
    }
    return result;
}

static bool verify(engine *e, const cache *c)
{
    for (uint64_t first = 0; first < c->tokens; first += PART) {
        uint64_t bytes = expect(c, first, c->tokens);
        if (quire_read(e->memory, c->allocation, first * TOKEN, words, bytes))
            return false;
        if (memcmp(words, expected, bytes)) {
            fprintf(stderr, "cache %" PRIu64 ": wrong bytes at token %" PRIu64 " or after\n",
                    c->number, first);
            e->wrong = true;
            return false;
        }
        e->verified += bytes / TOKEN;
    }
    return true;
}

/* ---- sequences ------------------------------------------------------------------------------ */

static bool runs(const sequence *s)
{
    return s->prompt && s->cache.tokens == s->length;
}

/* Sets the end of a turn: most turns are short, some fill the context. */
static void begin_turn(engine *e, sequence *s)
{
    uint64_t most = between(e, 0, 15) ? 768 : CONTEXT;
    s->turn_end = s->length + between(e, 1, most);
    if (s->turn_end > CONTEXT)
        s->turn_end = CONTEXT;
}

static bool arrive(engine *e, sequence *s)
{
    prompt *p = &e->prompts[between(e, 0, PROMPTS - 1)];
    *s = (sequence){.length = between(e, 16, 1024), .turns = (uint32_t)between(e, 1, 3)};
    begin_turn(e, s);
    if (!make_cache(e, &s->cache) || (!p->users && !make_cache(e, &p->cache)))
        return false;
    p->users++;
    s->prompt = p;
    return true;
}

/* A free alone leaves the memory to later requests of this memory. The engine takes it before, so
   that other memories of the device can have it. */
static bool free_cache(engine *e, cache *c)
{
    return keep(e, c, 0) && !quire_free(e->memory, c->allocation);
}

/* Frees the cache of a sequence, and that of its prompt if no other sequence has the prompt. */
static bool leave(engine *e, sequence *s)
{
    prompt *p = s->prompt;
    s->prompt = NULL;
    if (!free_cache(e, &s->cache))
        return false;
    return --p->users || (verify(e, &p->cache) && free_cache(e, &p->cache));
}

static bool end_turn(engine *e, sequence *s)
{
    if (!verify(e, &s->cache))
        return false;
    if (!--s->turns)
        return leave(e, s);
    s->length /= 2;
    begin_turn(e, s);
    return keep(e, &s->cache, s->length);
}

/* The youngest sequence that runs, or the oldest one that waits. NULL: there is none. */
static sequence *choose(engine *e, bool running)
{
    sequence *best = NULL;
    for (sequence *s = e->sequences; s < e->sequences + SLOTS; s++) {
        bool younger = best && s->cache.number > best->cache.number;
        if (s->prompt && runs(s) == running && (!best || younger == running))
            best = s;
    }
    return best;
}

/* Adds a token. While the memory is full, the youngest sequence loses all of its memory. */
static bool decode(engine *e, sequence *s)
{
    outcome result = FULL;
    while (runs(s) && (result = compute(e, &s->cache, s->length + 1)) == FULL) {
        e->preemptions++;
        if (!keep(e, &choose(e, true)->cache, 0))
            return false;
    }
    if (result == DONE)
        s->length++;
    return result != FAILED && (result == FULL || s->length < s->turn_end || end_turn(e, s));
}

/* Computes the sequences that wait, the oldest first, as long as there is memory. */
static bool resume(engine *e)
{
    outcome result = DONE;
    for (sequence *s; result == DONE && (s = choose(e, false));) {
        result = compute(e, &s->prompt->cache, s->prompt->length);
        if (result == DONE)
            result = compute(e, &s->cache, s->length);
    }
    return result != FAILED;
}

/* ---- figures -------------------------------------------------------------------------------- */

static void count(totals *t, const cache *c)
{
    uint64_t blocks = (c->tokens + BLOCK - 1) / BLOCK;
    t->tokens += c->tokens * TOKEN;
    t->blocks += blocks * BLOCK * TOKEN;
    t->caches += c->backed > 0;
}

/* Returns false unless what is reserved is the tokens, and at most a chunk more for each cache. */
static bool measure(engine *e, uint64_t step)
{
    totals now = {.step = step};
    quire_memory_stats stats;
    if (quire_memory_get_stats(e->memory, &stats))
        return false;
    for (const prompt *p = e->prompts; p < e->prompts + PROMPTS; p++)
        if (p->users)
            count(&now, &p->cache);
    for (const sequence *s = e->sequences; s < e->sequences + SLOTS; s++)
        if (s->prompt && runs(s)) {
            count(&now, &s->cache);
            now.sequences++;
            now.unshared += (s->length + s->prompt->length) * TOKEN;
        }
    now.reserved = stats.reserved_bytes;
    e->now = now;
    if (now.tokens > e->peak.tokens)
        e->peak = now;
    e->wrong = now.tokens > now.reserved || now.reserved - now.tokens > now.caches * e->chunk;
    if (e->wrong)
        fprintf(stderr, "reserved %" PRIu64 " bytes for %" PRIu64 " in %" PRIu64 " caches\n",
                now.reserved, now.tokens, now.caches);
    return !e->wrong;
}

static void print_line(const char *text, uint64_t bytes, uint64_t tokens)
{
    printf("  %-40s %7.1f MiB, %5.2f times the tokens\n", text, (double)bytes / MIB,
           (double)bytes / (double)tokens);
}

static void print_totals(const engine *e)
{
    const totals *t = &e->peak;
    printf("most tokens: step %" PRIu64 ", %" PRIu64 " sequences\n", t->step, t->sequences);
    print_line("tokens", t->tokens, t->tokens);
    print_line("reserved", t->reserved, t->tokens);
    print_line("blocks of 16 tokens would need", t->blocks, t->tokens);
    print_line("prompts that are not shared would need", t->unshared, t->tokens);
    print_line("the longest contexts would need", t->sequences * CACHE, t->tokens);
    printf("%" PRIu64 " caches, %" PRIu64 " preemptions, memory given %" PRIu64
           " times and taken %" PRIu64 " times\n",
           e->made, e->preemptions, e->backs, e->unbacks);
}

/* ---- the program ---------------------------------------------------------------------------- */

static bool step(engine *e, uint64_t number)
{
    for (sequence *s = e->sequences; s < e->sequences + SLOTS; s++)
        if (!s->prompt && !between(e, 0, 31) && !arrive(e, s))
            return false;
    if (!resume(e))
        return false;
    for (sequence *s = e->sequences; s < e->sequences + SLOTS; s++)
        if (s->prompt && runs(s) && !decode(e, s))
            return false;
    if (!measure(e, number))
        return false;
    if (number % REPORT == 0)
        printf("step %4" PRIu64 ": %2" PRIu64 " sequences, tokens %5.1f MiB, reserved %5.1f MiB\n",
               number, e->now.sequences, (double)e->now.tokens / MIB,
               (double)e->now.reserved / MIB);
    return true;
}

/* Every sequence that runs drops half of its tokens, and then ends. */
static bool finish(engine *e)
{
    for (sequence *s = e->sequences; s < e->sequences + SLOTS; s++)
        if (s->prompt && runs(s) && !keep(e, &s->cache, s->length /= 2))
            return false;
    if (!measure(e, STEPS))
        return false;
    printf("half of each dropped: tokens %.1f MiB, reserved %.1f MiB, in %" PRIu64
           " caches: %.2f chunks more for each\n",
           (double)e->now.tokens / MIB, (double)e->now.reserved / MIB, e->now.caches,
           (double)(e->now.reserved - e->now.tokens) / (double)(e->now.caches * e->chunk));
    for (sequence *s = e->sequences; s < e->sequences + SLOTS; s++)
        if (s->prompt && (!verify(e, &s->cache) || !leave(e, s)))
            return false;
    printf("%" PRIu64 " tokens were verified\n", e->verified);
    return measure(e, STEPS);
}

static bool run(engine *e)
{
    quire_memory_options options = {
        .name = "caches",
        .elastic = true,
        .pages = {.page_size = CHUNK},
        .address_space = 2 * (SLOTS + PROMPTS) * CACHE, /* with room to spare */
        .limit = LIMIT,
    };
    quire_memory_info info;
    if (quire_memory_create(e->device, &options, &e->memory) ||
        quire_memory_get_info(e->memory, &info))
        return false;
    e->chunk = info.page_size; /* at least CHUNK */
    for (prompt *p = e->prompts; p < e->prompts + PROMPTS; p++)
        p->length = between(e, 256, 1024);
    for (uint64_t number = 1; number <= STEPS; number++)
        if (!step(e, number))
            return false;
    print_totals(e);
    return finish(e) && !quire_memory_destroy(&e->memory);
}

int main(int argc, char **argv)
{
    static engine e;
    bool cuda = argc == 2 && !strcmp(argv[1], "--cuda");
    if (argc > 1 && !cuda) {
        fprintf(stderr, "usage: %s [--cuda]\n", argv[0]);
        return 2;
    }
    quire_result opened =
        cuda ? quire_cuda_open(NULL, &e.device) : quire_host_open(NULL, &e.device);
    bool good = !opened && run(&e);
    if (!good && !e.wrong)
        fprintf(stderr, "stopped: %s\n", quire_last_error());
    if (e.memory)
        quire_memory_destroy_all(&e.memory);
    if (e.device)
        quire_device_destroy(&e.device);
    return good ? 0 : opened == QUIRE_ERROR_UNSUPPORTED ? NO_DEVICE : 1;
}
