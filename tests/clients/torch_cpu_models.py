# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains or serves a small model with PyTorch on one CPU thread, and prints what came out.

usage: torch_cpu_models.py LIBRARY|- gpt|resnet|serving [TRACE]

Writes a JSON object: a hash of all outputs, the CPU seconds, and with libquire_torch_cpu.so as LIBRARY
the statistics. - leaves PyTorch's own allocator. TRACE records the allocations of the model to a file.
"""

import hashlib
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional

GPT = {"width": 192, "heads": 6, "layers": 6, "context": 128, "words": 2048, "batch": 8, "steps": 3}
RESNET = {"channels": (32, 64, 128), "size": 64, "batch": 16, "steps": 4}
SERVING = {"requests": 8, "longest_prompt": 96, "longest_answer": 12}


class Block(nn.Module):
    """Attention and a perceptron, each behind a norm."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attend = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x, past=None):
        batch, length, width = x.shape
        parts = self.attend(self.norms[0](x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        if past is not None:
            key, value = (torch.cat(pair, 2) for pair in zip(past, (key, value)))
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=past is None)
        x = x + self.project(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(functional.gelu(self.widen(self.norms[1](x)))), (key, value)


class Gpt(nn.Module):
    """A decoder of the shape in GPT."""

    def __init__(self, width, heads, layers, context, words, **_):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, words, bias=False)

    def forward(self, tokens, past=None):
        start = past[0][0].shape[2] if past else 0
        x = self.words(tokens) + self.places(torch.arange(start, start + tokens.shape[1]))
        keys = []
        for i, block in enumerate(self.blocks):
            x, key = block(x, past[i] if past else None)
            keys.append(key)
        return self.out(self.norm(x)), keys


class Residual(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, inner, outer, stride):
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outer) for _ in range(2))
        self.around = nn.Conv2d(inner, outer, 1, stride, bias=False)

    def forward(self, x):
        inner = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(inner)) + self.around(x))


def resnet(channels, **_):
    parts, inner = [], 3
    for outer in channels:
        parts += [Residual(inner, outer, 2), Residual(outer, outer, 1)]
        inner = outer
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, 10))


def train(model, steps, batch, loss):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        error = loss(model, *batch())
        error.backward()
        optimizer.step()
        yield error.detach()
    yield from (parameter.detach() for parameter in model.parameters())


def train_gpt():
    shape = (GPT["batch"], GPT["context"] + 1)
    words = GPT["words"]

    def loss(model, tokens):
        return functional.cross_entropy(model(tokens[:, :-1])[0].reshape(-1, words), tokens[:, 1:].reshape(-1))
    return train(Gpt(**GPT), GPT["steps"], lambda: [torch.randint(words, shape)], loss)


def train_resnet():
    batch, size = RESNET["batch"], RESNET["size"]

    def pictures():
        return torch.randn(batch, 3, size, size), torch.randint(10, (batch,))
    return train(resnet(**RESNET), RESNET["steps"], pictures,
                 lambda model, images, labels: functional.cross_entropy(model(images), labels))


@torch.no_grad()
def serve():
    """Prompts of different lengths; each keeps its keys until its answer is complete. Three at a time."""
    model = Gpt(**GPT).eval()
    running = []
    for _ in range(SERVING["requests"]):
        prompt = torch.randint(GPT["words"], (1, 1 + int(torch.randint(SERVING["longest_prompt"], ()))))
        running.append([prompt, None, 1 + int(torch.randint(SERVING["longest_answer"], ()))])
        while len(running) == 3:
            for request in running:
                scores, request[1] = model(request[0], request[1])
                request[0] = scores[:, -1:].argmax(-1)
                request[2] -= 1
                yield scores[:, -1]
            running = [request for request in running if request[2]]


def digest(outputs):
    total = hashlib.sha256()
    for output in outputs:
        total.update(output.contiguous().numpy().tobytes())
    return total.hexdigest()


def main():
    library, name, trace = (*sys.argv[1:], None)[:3]
    torch.set_num_threads(1)
    quire = None
    if library != "-":
        torch.ops.load_library(library)
        quire = torch.ops.quire_cpu
        assert quire.is_active()
    if trace:
        quire.start_trace(trace)
    torch.manual_seed(1)
    start = time.process_time()
    result = {"hash": digest({"gpt": train_gpt, "resnet": train_resnet, "serving": serve}[name]()),
              "seconds": time.process_time() - start}
    if trace:
        quire.stop_trace()
    if quire:
        result["stats"] = json.loads(quire.stats())
    print(json.dumps(result))


if __name__ == "__main__":
    main()
