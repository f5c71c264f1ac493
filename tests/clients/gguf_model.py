# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a model of the Llama architecture for llama.cpp with random weights; every run writes the same bytes.

usage: gguf_model.py FILE

The layout is that of GGUF version 3: the metadata, the tensors' names and shapes, the tensors' data.
"""

import array
import pathlib
import random
import struct
import sys

UINT32, FLOAT32, STRING, ARRAY, INT32 = 4, 6, 8, 9, 5
F32 = 0  # the type of a tensor
ALIGNMENT = 32  # of the tensors' data
PERIOD = 65521  # weights repeat after so many

LAYERS, WIDTH, HEADS, HIDDEN, CONTEXT = 8, 256, 8, 704, 512
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6  # types of tokens


def text(value):
    value = value.encode()
    return struct.pack("<Q", len(value)) + value


def entry(key, kind, value):
    out = text(key) + struct.pack("<I", kind)
    if kind == STRING:
        return out + text(value)
    return out + struct.pack({UINT32: "<I", FLOAT32: "<f"}[kind], value)


def list_entry(key, kind, values):
    out = text(key) + struct.pack("<IIQ", ARRAY, kind, len(values))
    if kind == STRING:
        return out + b"".join(map(text, values))
    return out + struct.pack(f"<{len(values)}{'f' if kind == FLOAT32 else 'i'}", *values)


def vocabulary():
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + \
        ["\u2581"] + [chr(letter) for letter in range(ord("a"), ord("z") + 1)]
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * 27
    return tokens, [0.0] * len(tokens), types


def metadata():
    tokens, scores, types = vocabulary()
    return [
        entry("general.architecture", STRING, "llama"),
        entry("general.name", STRING, "random"),
        entry("llama.context_length", UINT32, CONTEXT),
        entry("llama.embedding_length", UINT32, WIDTH),
        entry("llama.block_count", UINT32, LAYERS),
        entry("llama.feed_forward_length", UINT32, HIDDEN),
        entry("llama.attention.head_count", UINT32, HEADS),
        entry("llama.attention.head_count_kv", UINT32, HEADS),
        entry("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5),
        entry("llama.rope.dimension_count", UINT32, WIDTH // HEADS),
        entry("llama.vocab_size", UINT32, len(tokens)),
        entry("tokenizer.ggml.model", STRING, "llama"),
        list_entry("tokenizer.ggml.tokens", STRING, tokens),
        list_entry("tokenizer.ggml.scores", FLOAT32, scores),
        list_entry("tokenizer.ggml.token_type", INT32, types),
        entry("tokenizer.ggml.unknown_token_id", UINT32, 0),
        entry("tokenizer.ggml.bos_token_id", UINT32, 1),
        entry("tokenizer.ggml.eos_token_id", UINT32, 2),
    ]


def shapes():
    """Names and shapes, the fastest dimension first."""
    words = len(vocabulary()[0])
    yield "token_embd.weight", [WIDTH, words]
    for layer in range(LAYERS):
        yield f"blk.{layer}.attn_norm.weight", [WIDTH]
        for part in ("q", "k", "v", "output"):
            yield f"blk.{layer}.attn_{part}.weight", [WIDTH, WIDTH]
        yield f"blk.{layer}.ffn_norm.weight", [WIDTH]
        yield f"blk.{layer}.ffn_gate.weight", [WIDTH, HIDDEN]
        yield f"blk.{layer}.ffn_up.weight", [WIDTH, HIDDEN]
        yield f"blk.{layer}.ffn_down.weight", [HIDDEN, WIDTH]
    yield "output_norm.weight", [WIDTH]
    yield "output.weight", [WIDTH, words]


def padded(data):
    return data + bytes(-len(data) % ALIGNMENT)


def write(path):
    chance = random.Random(4)
    noise = [chance.uniform(-1, 1) for _ in range(PERIOD)]
    infos, data, keys = [], b"", metadata()
    for name, shape in shapes():
        infos.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, F32, len(data)))
        if len(shape) == 1:
            values = array.array("f", [1.0]) * shape[0]
        else:
            scale, count = (3 / shape[0]) ** 0.5, shape[0] * shape[1]
            values = (array.array("f", [scale * number for number in noise]) * (count // PERIOD + 1))[:count]
            noise = noise[count % PERIOD:] + noise[:count % PERIOD]
        data = padded(data + values.tobytes())
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(keys)) + b"".join(keys) + b"".join(infos)
    pathlib.Path(path).write_bytes(padded(head) + data)


if __name__ == "__main__":
    write(sys.argv[1])
