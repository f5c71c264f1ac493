/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The model transformer-training: three steps of training GPT-2 (124M parameters) on four sequences
 * of 1,024 tokens, mixed precision, dropout and fused attention. The tables below give the order in
 * which tensors are allocated and freed, one row per tensor, each size with its formula. The clock
 * advances by the work done: a launch and the written bytes for a tensor, the flops of a matrix
 * product.
 *
 * Sources, cited by tag:
 *   [GPT2]  Radford et al. 2019, Language Models are Unsupervised Multitask Learners, table 2,
 *           and hparams.json of the released 124M model; its 148 tensors: 124,439,808 numbers
 *   [MIXED] Micikevicius et al., ICLR 2018, Mixed Precision Training; Rajbhandari et al.,
 *           SC 2020, ZeRO: 16 bytes per parameter, 2 weight, 2 gradient, 4 each of master, m, v
 *   [ACT]   Korthikanti et al., MLSys 2023, Reducing Activation Recomputation in Large
 *           Transformer Models: 34 s b h bytes saved per layer besides what attention keeps
 *   [FLASH] Dao et al., NeurIPS 2022, FlashAttention; Dao 2023, FlashAttention-2: one fp32
 *           log-sum-exp per token and head is kept, backward sums dQ in fp32
 *   [DDP]   Li et al., VLDB 2020, PyTorch Distributed: gradients are reduced on a separate
 *           stream while backward continues
 *   [CLIP]  Pascanu et al., ICML 2013, On the Difficulty of Training Recurrent Neural Networks
 *   [ADAMW] Loshchilov and Hutter, ICLR 2019, Decoupled Weight Decay Regularization
 */
#include "trace_generator.h"

#include <stdio.h>

/* [GPT2]; W is the width, FF the width inside the MLP. This model chooses batch and steps. */
enum { VOCAB = 50257, CONTEXT = 1024, W = 768, FF = 4 * W, HEADS = 12, LAYERS = 12 };
enum { BATCH = 4, TOKENS = BATCH * CONTEXT, STEPS = 3 };

enum { COMPUTE, REDUCE, COPY }; /* streams */

/* The usual cost of one kernel launch. */
#define LAUNCH_NS UINT64_C(5000)

static uint64_t clock_ns;

/* ---- Parameters ---- */

/* clang-format off: tables with one entry per row */
enum {
    LN1_W,
    LN1_B,
    QKV_W,
    QKV_B,
    PROJ_W,
    PROJ_B,
    LN2_W,
    LN2_B,
    UP_W,
    UP_B,
    DOWN_W,
    DOWN_B,
    LAYER_PARAMS
};
enum { WTE, WPE, LNF_W, LNF_B, OUTER_PARAMS };
enum { PARAMS = OUTER_PARAMS + LAYERS * LAYER_PARAMS };

struct shape {
    const char *name;
    uint64_t elements;
};

static const struct shape outer_shapes[OUTER_PARAMS] = {
    [WTE] = {"wte", VOCAB *W},
    [WPE] = {"wpe", CONTEXT *W},
    [LNF_W] = {"lnf.weight", W},
    [LNF_B] = {"lnf.bias", W},
};

static const struct shape layer_shapes[LAYER_PARAMS] = {
    [LN1_W] = {"ln1.weight", W},
    [LN1_B] = {"ln1.bias", W},
    [QKV_W] = {"attn.qkv.weight", W * 3 * W},
    [QKV_B] = {"attn.qkv.bias", 3 * W},
    [PROJ_W] = {"attn.proj.weight", W *W},
    [PROJ_B] = {"attn.proj.bias", W},
    [LN2_W] = {"ln2.weight", W},
    [LN2_B] = {"ln2.bias", W},
    [UP_W] = {"mlp.up.weight", W *FF},
    [UP_B] = {"mlp.up.bias", FF},
    [DOWN_W] = {"mlp.down.weight", FF *W},
    [DOWN_B] = {"mlp.down.bias", W},
};

static struct param {
    char name[32];
    uint64_t elements;
    uint64_t weight, gradient; /* ids */
} params[PARAMS];

/* ---- Tables of a step. A stage is the embedding, a layer or the head. ---- */

enum { EMBED, FIRST_LAYER, HEAD = FIRST_LAYER + LAYERS, STAGES };

/* IN and OUT are the input and output of a stage, D_OUT and D_IN their gradients. */
enum {
    IN,
    OUT,
    D_OUT,
    D_IN,
    LN1,
    MEAN1,
    RSTD1,
    QKV,
    ATTN,
    LSE,
    SEED,
    MASK1,
    MID,
    LN2,
    MEAN2,
    RSTD2,
    UP,
    ACT,
    MASK2,
    LOGP,
    DIVISOR,
    IDS,
    T0,
    T1,
    T2,
    T3,
    T4,
    SLOTS
};

struct step {
    enum { DO_MAKE, DO_DROP, DO_WORK, DO_READ, DO_GRAD, DO_LIKE, DO_SEND } action;
    int target; /* a slot or a parameter of the stage */
    uint64_t amount;
    const char *name;
};

#define MAKE(slot, bytes, name)                                                                    \
    {                                                                                              \
        DO_MAKE, slot, bytes, name                                                                 \
    } /* allocate a tensor, bytes per token */
#define DROP(slot)                                                                                 \
    {                                                                                              \
        DO_DROP, slot, 0, ""                                                                       \
    } /* free it: its last reference is dropped */
#define WORK(flops)                                                                                \
    {                                                                                              \
        DO_WORK, 0, flops, ""                                                                      \
    } /* matrix products, flops per token */
#define READ(param)                                                                                \
    {                                                                                              \
        DO_READ, param, 0, ""                                                                      \
    } /* read the weight */
#define GRAD(param)                                                                                \
    {                                                                                              \
        DO_GRAD, param, 0, ""                                                                      \
    } /* allocate its gradient */
#define LIKE(slot, param, name)                                                                    \
    {                                                                                              \
        DO_LIKE, slot, param, name                                                                 \
    } /* allocate a temporary of that shape */
#define SEND(param)                                                                                \
    {                                                                                              \
        DO_SEND, param, 0, ""                                                                      \
    } /* reduce the gradient [DDP] */

/* Kept for backward, in bytes per token: IN 2W, LN1 2W, QKV 6W, ATTN 2W, MASK1 W, MID 2W, LN2 2W,
 * UP 8W, ACT 8W, MASK2 W: 34W in total, which is [ACT]. In addition LSE [FLASH], the seed of the
 * dropout inside attention, and the fp32 mean and deviation of the norms. A row of m numbers times
 * an m by n matrix takes 2mn flops; causal attention takes half of 4 CONTEXT W. */
static const struct step layer_forward[] = {
    MAKE(LN1, HALF *W, "ln1"),
    MAKE(MEAN1, SINGLE, "ln1.mean"),
    MAKE(RSTD1, SINGLE, "ln1.rstd"),
    READ(QKV_W),
    WORK(2 * W * 3 * W),
    MAKE(QKV, HALF * 3 * W, "attn.qkv"),
    WORK(2 * CONTEXT * W),
    MAKE(ATTN, HALF *W, "attn.out"),
    MAKE(LSE, SINGLE *HEADS, "attn.lse"),
    MAKE(SEED, 0, "attn.seed"),
    READ(PROJ_W),
    WORK(2 * W * W),
    MAKE(T0, HALF *W, "attn.proj"),
    MAKE(T1, HALF *W, "attn.drop"),
    MAKE(MASK1, W, "attn.drop.mask"),
    DROP(T0),
    MAKE(MID, HALF *W, "attn.residual"),
    DROP(T1),
    MAKE(LN2, HALF *W, "ln2"),
    MAKE(MEAN2, SINGLE, "ln2.mean"),
    MAKE(RSTD2, SINGLE, "ln2.rstd"),
    READ(UP_W),
    WORK(2 * W * FF),
    MAKE(UP, HALF *FF, "mlp.up"),
    MAKE(ACT, HALF *FF, "mlp.up.act"),
    READ(DOWN_W),
    WORK(2 * FF * W),
    MAKE(T0, HALF *W, "mlp.down"),
    MAKE(T1, HALF *W, "mlp.drop"),
    MAKE(MASK2, W, "mlp.drop.mask"),
    DROP(T0),
    MAKE(OUT, HALF *W, "mlp.residual"),
    DROP(T1),
};

/* The chain rule backward through the table above. A product takes twice its forward flops, once
 * for its input and once for its weight. Attention takes 2.5 times its forward flops [FLASH], plus
 * the row sums of dO times O (T3) and the fp32 sum of dQ (T4). */
static const struct step layer_backward[] = {
    MAKE(T0, HALF *W, "mlp.down.d"),
    DROP(MASK2),
    WORK(4 * FF * W),
    MAKE(T1, HALF *FF, "mlp.act.d"),
    GRAD(DOWN_W),
    GRAD(DOWN_B),
    DROP(T0),
    DROP(ACT),
    MAKE(T0, HALF *FF, "mlp.up.d"),
    DROP(T1),
    DROP(UP),
    WORK(4 * W * FF),
    MAKE(T1, HALF *W, "ln2.d"),
    GRAD(UP_W),
    GRAD(UP_B),
    DROP(T0),
    DROP(LN2),
    MAKE(T0, HALF *W, "ln2.in.d"),
    GRAD(LN2_W),
    GRAD(LN2_B),
    DROP(T1),
    DROP(MEAN2),
    DROP(RSTD2),
    DROP(MID),
    MAKE(T1, HALF *W, "attn.residual.d"),
    DROP(T0),
    DROP(D_OUT),
    MAKE(T0, HALF *W, "attn.proj.d"),
    DROP(MASK1),
    WORK(4 * W * W),
    MAKE(T2, HALF *W, "attn.out.d"),
    GRAD(PROJ_W),
    GRAD(PROJ_B),
    DROP(T0),
    MAKE(T3, SINGLE *HEADS, "attn.delta"),
    MAKE(T4, SINGLE *W, "attn.dq.sum"),
    WORK(5 * CONTEXT * W),
    MAKE(T0, HALF * 3 * W, "attn.qkv.d"),
    DROP(T4),
    DROP(T3),
    DROP(T2),
    DROP(QKV),
    DROP(ATTN),
    DROP(LSE),
    DROP(SEED),
    WORK(4 * W * 3 * W),
    MAKE(T2, HALF *W, "ln1.d"),
    GRAD(QKV_W),
    GRAD(QKV_B),
    DROP(T0),
    DROP(LN1),
    MAKE(T0, HALF *W, "ln1.in.d"),
    GRAD(LN1_W),
    GRAD(LN1_B),
    DROP(T2),
    DROP(MEAN1),
    DROP(RSTD1),
    DROP(IN),
    MAKE(D_IN, HALF *W, "residual.d"),
    DROP(T0),
    DROP(T1),
    SEND(DOWN_W),
    SEND(UP_W),
    SEND(PROJ_W),
    SEND(QKV_W),
};

/* All sequences share one tensor of positions, so the share of a token is 1/BATCH. */
static const struct step embed_forward[] = {
    READ(WTE),
    MAKE(T0, HALF *W, "embed.tokens"),
    READ(WPE),
    MAKE(T1, HALF *W / BATCH, "embed.positions"),
    MAKE(T2, HALF *W, "embed.sum"),
    DROP(T0),
    DROP(T1),
    MAKE(OUT, HALF *W, "embed.drop"),
    MAKE(MASK1, W, "embed.drop.mask"),
    DROP(T2),
};

/* The token embedding is also the matrix of the head [GPT2]: its gradient exists already, and this
 * part is a dense temporary that is added to it. */
static const struct step embed_backward[] = {
    MAKE(T0, HALF *W, "embed.sum.d"),
    DROP(D_OUT),
    DROP(MASK1),
    MAKE(T1, HALF *W / BATCH, "embed.positions.d"),
    GRAD(WPE),
    DROP(T1),
    LIKE(T1, WTE, "embed.tokens.d"),
    DROP(T0),
    DROP(T1),
    DROP(IDS),
    SEND(WPE),
    SEND(WTE),
};

/* Computes the loss in fp32 from a copy of the half-precision logits [MIXED]. */
static const struct step head_forward[] = {
    MAKE(LN1, HALF *W, "lnf"),
    MAKE(MEAN1, SINGLE, "lnf.mean"),
    MAKE(RSTD1, SINGLE, "lnf.rstd"),
    READ(WTE),
    WORK(2 * W * VOCAB),
    MAKE(T0, HALF *VOCAB, "logits"),
    MAKE(T1, SINGLE *VOCAB, "logits.fp32"),
    DROP(T0),
    MAKE(LOGP, SINGLE *VOCAB, "log.softmax"),
    DROP(T1),
    MAKE(OUT, 0, "loss"),
    MAKE(DIVISOR, 0, "loss.divisor"),
};

static const struct step head_backward[] = {
    MAKE(D_OUT, 0, "loss.d"),
    MAKE(T0, SINGLE *VOCAB, "log.softmax.d"),
    DROP(D_OUT),
    DROP(DIVISOR),
    DROP(IDS),
    MAKE(T1, SINGLE *VOCAB, "logits.fp32.d"),
    DROP(T0),
    DROP(LOGP),
    MAKE(T0, HALF *VOCAB, "logits.d"),
    DROP(T1),
    WORK(4 * W * VOCAB),
    MAKE(T1, HALF *W, "lnf.d"),
    GRAD(WTE),
    DROP(T0),
    DROP(LN1),
    MAKE(D_IN, HALF *W, "lnf.in.d"),
    GRAD(LNF_W),
    GRAD(LNF_B),
    SEND(LNF_W),
    DROP(T1),
    DROP(MEAN1),
    DROP(RSTD1),
    DROP(IN),
    DROP(OUT),
};

/* clang-format on */

/* ---- Running the tables ---- */

static uint64_t kept[STAGES][SLOTS]; /* ids */

/* Allocates a tensor that one kernel writes. `bytes` 0 stands for a scalar, which is one number. */
static uint64_t make_tensor(uint64_t bytes, const char *scope, const char *name)
{
    uint64_t id = add_alloc(clock_ns, COMPUTE, bytes > 0 ? bytes : SINGLE, "%s%s", scope, name);

    clock_ns += LAUNCH_NS + bytes / BYTES_A_NS;
    return id;
}

static void drop_tensor(uint64_t id)
{
    add_free(clock_ns, COMPUTE, id);
}

static void make_gradient(struct param *param)
{
    param->gradient = make_tensor(HALF * param->elements, param->name, ".grad");
}

static void run_step(const struct step *step, uint64_t *slots, struct param *stage_params,
                     const char *scope)
{
    const int target = step->target;

    switch (step->action) {
    case DO_MAKE:
        slots[target] = make_tensor(step->amount * TOKENS, scope, step->name);
        break;
    case DO_DROP:
        drop_tensor(slots[target]);
        break;
    case DO_WORK:
        clock_ns += step->amount * TOKENS / FLOPS_A_NS;
        break;
    case DO_READ:
        add_use(clock_ns, COMPUTE, stage_params[target].weight);
        break;
    case DO_GRAD:
        make_gradient(&stage_params[target]);
        break;
    case DO_LIKE:
        slots[target] = make_tensor(HALF * stage_params[step->amount].elements, scope, step->name);
        break;
    case DO_SEND:
        add_use(clock_ns, REDUCE, stage_params[target].gradient);
        break;
    }
}

static void run_stage(int stage, const struct step *steps, size_t count)
{
    struct param *stage_params = params;
    char scope[16] = "";

    if (stage >= FIRST_LAYER && stage < HEAD) {
        int layer = stage - FIRST_LAYER;

        stage_params = &params[OUTER_PARAMS + layer * LAYER_PARAMS];
        snprintf(scope, sizeof(scope), "h%d.", layer);
    }
    for (size_t i = 0; i < count; i++)
        run_step(&steps[i], kept[stage], stage_params, scope);
}
#define RUN(stage, table) run_stage(stage, table, COUNT(table))

/* ---- The trace ---- */

static void name_params(void)
{
    for (int i = 0; i < PARAMS; i++) {
        int inner = i - OUTER_PARAMS;
        const struct shape *shape = &outer_shapes[i % OUTER_PARAMS];
        char scope[16] = "";

        if (inner >= 0) {
            shape = &layer_shapes[inner % LAYER_PARAMS];
            snprintf(scope, sizeof(scope), "h%d.", inner / LAYER_PARAMS);
        }
        params[i].elements = shape->elements;
        snprintf(params[i].name, sizeof(params[i].name), "%s%s", scope, shape->name);
    }
}

/* The trace starts in the middle of a training: all 16 bytes per parameter [MIXED] are live, with
 * the gradients of the previous step. Master weights were allocated with the optimizer, m and v at
 * its first step. */
static void make_state(void)
{
    add_alloc(0, COMPUTE, CUBLAS_WORKSPACE, "cublas.workspace");
    for (int i = 0; i < PARAMS; i++)
        params[i].weight = add_alloc(0, COMPUTE, HALF * params[i].elements, "%s", params[i].name);
    for (int i = 0; i < PARAMS; i++)
        add_alloc(0, COMPUTE, SINGLE * params[i].elements, "%s.master", params[i].name);
    for (int i = PARAMS - 1; i >= 0; i--)
        params[i].gradient =
            add_alloc(0, COMPUTE, HALF * params[i].elements, "%s.grad", params[i].name);
    for (int i = 0; i < PARAMS; i++) {
        add_alloc(0, COMPUTE, SINGLE * params[i].elements, "%s.adam.m", params[i].name);
        add_alloc(0, COMPUTE, SINGLE * params[i].elements, "%s.adam.v", params[i].name);
    }
}

/* The copy stream brings tokens and targets, 64 bits each. Then the gradients are freed. */
static void begin_step(void)
{
    const uint64_t bytes = UINT64_C(8) * TOKENS;

    kept[EMBED][IDS] = add_alloc(clock_ns, COPY, bytes, "tokens");
    kept[HEAD][IDS] = add_alloc(clock_ns, COPY, bytes, "targets");
    clock_ns += LAUNCH_NS;
    add_use(clock_ns, COMPUTE, kept[EMBED][IDS]);
    add_use(clock_ns, COMPUTE, kept[HEAD][IDS]);
    for (int i = 0; i < PARAMS; i++)
        drop_tensor(params[i].gradient);
}

static void forward_and_backward(void)
{
    RUN(EMBED, embed_forward);
    for (int stage = FIRST_LAYER; stage < HEAD; stage++) {
        kept[stage][IN] = kept[stage - 1][OUT];
        RUN(stage, layer_forward);
    }
    kept[HEAD][IN] = kept[HEAD - 1][OUT];
    RUN(HEAD, head_forward);
    RUN(HEAD, head_backward);
    for (int stage = HEAD - 1; stage >= FIRST_LAYER; stage--) {
        kept[stage][D_OUT] = kept[stage + 1][D_IN];
        RUN(stage, layer_backward);
    }
    kept[EMBED][D_OUT] = kept[FIRST_LAYER][D_IN];
    RUN(EMBED, embed_backward);
}

/* One norm per gradient, and the norm of these norms [CLIP]. */
static void clip_gradients(void)
{
    uint64_t norms[PARAMS];
    uint64_t all;

    for (int i = 0; i < PARAMS; i++)
        norms[i] = make_tensor(0, params[i].name, ".grad.norm");
    all = make_tensor(SINGLE * PARAMS, "", "grad.norms");
    for (int i = 0; i < PARAMS; i++)
        drop_tensor(norms[i]);
    drop_tensor(all);
}

/* Allocates an fp32 copy of each gradient and the root of v [ADAMW]. The master weight, m, v and
 * the half-precision weight change in place: 4 + 4 + 4 bytes read and written, 2 written. */
static void update_weights(void)
{
    for (int i = 0; i < PARAMS; i++) {
        uint64_t bytes = SINGLE * params[i].elements;
        uint64_t gradient = make_tensor(bytes, params[i].name, ".adam.grad");
        uint64_t root = make_tensor(bytes, params[i].name, ".adam.root");

        clock_ns += LAUNCH_NS + 26 * params[i].elements / BYTES_A_NS;
        drop_tensor(root);
        drop_tensor(gradient);
    }
}

uint64_t model_training(void)
{
    name_params();
    make_state();
    for (int step = 0; step < STEPS; step++) {
        begin_step();
        forward_and_backward();
        clip_gradients();
        update_weights();
        add_frame(clock_ns);
    }
    return clock_ns;
}
