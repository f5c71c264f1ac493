/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The model llm-serving: a day of one GPU that serves conversations with Llama 2 7B in half
 * precision. It models the arrivals and the memory of each turn: activations for the prefill of a
 * prompt, key/value memory (KV) for the whole prompt at once and for the answer in chunks. The KV
 * of a conversation is kept between its turns and freed together, long after the last one.
 *
 * Arrivals are one Bernoulli trial per second with a probability by hour; lengths are log-normal.
 * Both use SplitMix64 with a fixed seed and integers only, so that the day is identical everywhere.
 *
 * Sources, cited by tag. Values without a tag are choices of this model:
 *   [LLAMA2] Touvron et al. 2023, Llama 2: Open Foundation and Fine-Tuned Chat Models, and
 *            config.json of the 7B model; its 291 tensors: 6,738,415,616 numbers
 *   [PAGED]  Kwon et al., SOSP 2023, PagedAttention: key/value memory in blocks of 16 tokens
 *   [CHUNK]  Agrawal et al., OSDI 2024, Sarathi-Serve: a long prompt is processed in pieces
 *   [TURNS]  Gao et al., USENIX ATC 2024, CachedAttention: KV is kept from turn to turn
 *   [SPLIT]  Patel et al., ISCA 2024, Splitwise; the conversation trace published with it has
 *            medians near 1,020 prompt and 129 answer tokens
 *   [MIX64]  Steele, Lea and Flood, OOPSLA 2014, Fast Splittable Pseudorandom Number Generators
 */
#include "trace_generator.h"

#include <stdbool.h>
#include <stddef.h>

/* [LLAMA2] */
/* clang-format off */
enum { LAYERS = 32, W = 4096, FF = 11008, KV_HEADS = 32, HEAD = 128, VOCAB = 32000,
       CONTEXT = 4096 };
/* clang-format on */
#define PARAMETERS UINT64_C(6738415616)

/* One key and one value per layer and head: 512 KiB per token. */
#define KV_BYTES (HALF * 2 * LAYERS * KV_HEADS * HEAD)

enum { PAGE = 16, PIECE = 2048 }; /* tokens: [PAGED], [CHUNK] */
enum { CHUNK = 256 };             /* tokens by which the KV of an answer grows */
enum { MAX_TURNS = 8, MAX_BLOCKS = MAX_TURNS + CONTEXT / CHUNK + 1 };

enum { DECODE, PREFILL }; /* streams */

#define SECOND UINT64_C(1000000000)
#define DAY (24 * 3600 * SECOND)
#define KEEP (30 * 60 * SECOND) /* how long KV is kept for the next turn */

/* A forward pass takes two flops per weight and token. Decoding reads every weight for each token
 * and reaches half of the bandwidth. */
#define PREFILL_NS(tokens) (2 * PARAMETERS * (tokens) / FLOPS_A_NS)
#define DECODE_NS (2 * HALF * PARAMETERS / BYTES_A_NS)

/* New conversations per hour, for each hour of the day: few at night, a dip at noon. */
static const uint64_t arrivals[24] = {
    6, 4, 3, 2, 2, 3, 6, 10, 16, 22, 25, 24, 21, 22, 25, 26, 24, 21, 19, 18, 17, 15, 12, 9,
};

/* ---- Random numbers ---- */

static uint64_t random_state = 20240229;

/* [MIX64]: a Weyl sequence through a mixing function. */
static uint64_t random_bits(void)
{
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The modulus favours small results by less than 2^-20 for every bound used here. */
static uint64_t random_below(uint64_t bound)
{
    return random_bits() % bound;
}

/* A normal variate in units of 2^-16: the sum of twelve uniform variates minus its
 * mean has variance 1. */
static int64_t random_normal(void)
{
    int64_t sum = -6 * 65536;

    for (int draw = 0; draw < 3; draw++)
        for (uint64_t bits = random_bits(), part = 0; part < 4; part++, bits >>= 16)
            sum += (int64_t)(bits & 65535);
    return sum;
}

/* Returns median times 2^(spread z) for a normal z, at most `max`. The spread is in tenths of an
 * octave. A cubic that is exact at 0 and 1 computes 2^f for the fraction f of the exponent. */
static uint64_t random_length(uint64_t median, int64_t spread, uint64_t max)
{
    int64_t exponent = random_normal() * spread / 10 + 32 * 65536;
    uint64_t whole = (uint64_t)exponent >> 16;
    uint64_t f = (uint64_t)exponent & 65535;
    uint64_t cubic = 45554 + (f * (14916 + (f * 5066 >> 16)) >> 16);
    uint64_t mantissa = 65536 + (f * cubic >> 16);
    uint64_t scaled = median * mantissa; /* below 2^30, with 16 bits of fraction */
    uint64_t length = whole < 48 ? scaled >> (48 - whole) : max;

    return length < 1 ? 1 : length > max ? max : length;
}

/* ---- One conversation ---- */

struct conversation {
    unsigned number;
    unsigned turn;
    unsigned blocks;
    uint64_t now;
    uint64_t tokens;   /* stored in the KV */
    uint64_t reserved; /* capacity of the blocks in tokens */
    uint64_t kv[MAX_BLOCKS];
};

static void grow_kv(struct conversation *c, unsigned stream, uint64_t tokens, const char *what)
{
    if (tokens > CONTEXT - c->reserved)
        tokens = CONTEXT - c->reserved;
    c->kv[c->blocks++] =
        add_alloc(c->now, stream, tokens * KV_BYTES, "c%u.t%u.kv.%s", c->number, c->turn, what);
    c->reserved += tokens;
}

/* The activations of one layer, which all layers reuse in turn [LLAMA2]: the residual and its norm;
 * query, key and value; gate, up and their product. The logits are those of the last token, in
 * fp32. */
static void prefill(struct conversation *c, uint64_t tokens)
{
    const uint64_t piece = tokens < PIECE ? tokens : PIECE;
    const unsigned first_new = c->blocks;
    uint64_t room = c->reserved - c->tokens;
    uint64_t work[3], logits;

    for (unsigned i = 0; i < c->blocks; i++) /* attention reads the previous turns */
        add_use(c->now, PREFILL, c->kv[i]);
    if (tokens > room)
        grow_kv(c, PREFILL, (tokens - room + PAGE - 1) / PAGE * PAGE, "prompt");
    work[0] =
        add_alloc(c->now, PREFILL, piece * HALF * 2 * W, "c%u.t%u.hidden", c->number, c->turn);
    work[1] = add_alloc(c->now, PREFILL, piece * HALF * 3 * W, "c%u.t%u.qkv", c->number, c->turn);
    work[2] = add_alloc(c->now, PREFILL, piece * HALF * 3 * FF, "c%u.t%u.mlp", c->number, c->turn);
    c->now += PREFILL_NS(tokens);
    logits = add_alloc(c->now, PREFILL, SINGLE * VOCAB, "c%u.t%u.logits", c->number, c->turn);
    for (unsigned i = 3; i-- > 0;)
        add_free(c->now, PREFILL, work[i]);
    for (unsigned i = first_new; i < c->blocks; i++) /* decoding reads it from here on */
        add_use(c->now, DECODE, c->kv[i]);
    c->now += DECODE_NS;
    add_free(c->now, PREFILL, logits);
    c->tokens += tokens;
}

static void decode(struct conversation *c, uint64_t tokens)
{
    for (; tokens > 0 && c->tokens < CONTEXT; tokens--) {
        if (c->tokens == c->reserved)
            grow_kv(c, DECODE, CHUNK, "answer");
        c->tokens++;
        c->now += DECODE_NS;
    }
}

/* The first prompt contains context [SPLIT]; later prompts are short. A conversation ends when its
 * context is full, after its last turn, or with a probability of one half after each turn, when the
 * person stays away longer than KV is kept. One conversation in eight is closed at once. */
static void hold_conversation(unsigned number, uint64_t start)
{
    struct conversation c = {.number = number, .now = start};
    bool closed = random_below(8) == 0;

    for (;;) {
        uint64_t prompt = random_length(c.turn == 0 ? 1020 : 120, 13, CONTEXT - 1);
        uint64_t answer = random_length(129, 12, CONTEXT);

        if (prompt >= CONTEXT - c.tokens)
            break;
        prefill(&c, prompt);
        decode(&c, answer);
        if (++c.turn == MAX_TURNS || random_below(2) == 0)
            break;
        c.now += random_length(60, 15, KEEP / SECOND) * SECOND; /* reading and typing */
    }
    c.now += closed ? 0 : KEEP;
    for (unsigned i = 0; i < c.blocks; i++)
        add_free(c.now, DECODE, c.kv[i]);
}

/* ---- The day ---- */

static void load_weights(void)
{
    static const struct {
        const char *name;
        uint64_t elements;
    } shapes[] = {
        {"attn.q", W * W},
        {"attn.k", W * KV_HEADS * HEAD},
        {"attn.v", W * KV_HEADS * HEAD},
        {"attn.o", W * W},
        {"mlp.gate", W * FF},
        {"mlp.up", W * FF},
        {"mlp.down", W * FF},
        {"norm.attn", W},
        {"norm.mlp", W},
    };

    add_alloc(0, DECODE, HALF * VOCAB * W, "embed");
    for (unsigned layer = 0; layer < LAYERS; layer++)
        for (size_t i = 0; i < COUNT(shapes); i++)
            add_alloc(0, DECODE, HALF * shapes[i].elements, "h%u.%s", layer, shapes[i].name);
    add_alloc(0, DECODE, HALF * W, "norm");
    add_alloc(0, DECODE, HALF * VOCAB * W, "head");
    add_alloc(0, DECODE, CUBLAS_WORKSPACE, "decode.cublas.workspace");
    add_alloc(0, PREFILL, CUBLAS_WORKSPACE, "prefill.cublas.workspace");
}

uint64_t model_serving(void)
{
    unsigned conversations = 0;

    load_weights();
    for (uint64_t second = 0; second < DAY / SECOND; second++) {
        uint64_t hour = second / 3600, within = second % 3600;
        /* The rate is interpolated between two hours, in units of 1/3600 per hour. */
        uint64_t rate = arrivals[hour] * (3600 - within) + arrivals[(hour + 1) % 24] * within;

        if (second > 0 && within == 0)
            add_frame(second * SECOND);
        if (random_below(3600 * 3600) < rate)
            hold_conversation(conversations++, second * SECOND + random_below(SECOND));
    }
    add_frame(DAY);
    return DAY;
}
