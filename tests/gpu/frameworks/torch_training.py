# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch on quire: a small transformer and a residual network train with PyTorch's allocator, with expandable
segments, and with quire. The losses must be equal; reserved bytes and the time of a step are figures.

Each allocator has a process of its own. The residual network copies its data on a second stream and is then
captured as a graph. README.md of this folder has the environment.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
LIBRARY = pathlib.Path(os.environ.get("QUIRE_BUILD", "build")) / "src/adapters/torch/libquire_torch.so"
STEPS = 5 if os.environ.get("QUIRE_QUICK") == "yes" else 30
MIB = 1 << 20
KINDS = {
    "PyTorch": {"PYTORCH_ALLOC_CONF": "expandable_segments:False"},
    "expandable segments": {"PYTORCH_ALLOC_CONF": "expandable_segments:True"},
    "quire": {"PYTORCH_ALLOC_CONF": ""},
}


# ---- the workloads, in a process for each allocator --------------------------------------------------------------


def transformer(torch, device):
    """Returns the losses and the seconds of the steps."""
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.0, batch_first=True)
    model = torch.nn.Sequential(torch.nn.Embedding(1000, 256), torch.nn.TransformerEncoder(layer, 4),
                                torch.nn.Linear(256, 1000)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses, seconds = [], []
    for _ in range(STEPS):
        words = torch.randint(0, 1000, (16, int(torch.randint(32, 129, ()))))  # lengths differ
        begin = time.perf_counter()
        words = words.to(device)
        loss = torch.nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    return losses, seconds


def residual_network(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels),
                                      nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1, bias=False),
                                      nn.BatchNorm2d(channels))

        def forward(self, x):
            return torch.relu(x + self.body(x))

    return nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), Block(64), Block(64), nn.MaxPool2d(2), Block(64), Block(64),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class ResidualTraining:
    def __init__(self, torch, device):
        torch.manual_seed(2)
        self.torch, self.device = torch, device
        self.model = residual_network(torch).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)

    def batch(self):
        torch = self.torch
        return torch.randn(32, 3, 32, 32).pin_memory(), torch.randint(0, 10, (32,)).pin_memory()

    def step(self, images, labels):
        loss = self.torch.nn.functional.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss

    def with_two_streams(self):
        """The copy to the device runs on a stream of its own; record_stream keeps its memory."""
        torch, losses, seconds = self.torch, [], []
        copies = torch.cuda.Stream()
        for _ in range(STEPS):
            images, labels = self.batch()
            begin = time.perf_counter()
            with torch.cuda.stream(copies):
                images, labels = (t.to(self.device, non_blocking=True) for t in (images, labels))
            main = torch.cuda.current_stream()
            main.wait_stream(copies)
            for tensor in (images, labels):
                tensor.record_stream(main)
            losses.append(self.step(images, labels).item())
            seconds.append(time.perf_counter() - begin)
        return losses, seconds

    def as_graph(self):
        torch, losses, seconds = self.torch, [], []
        images, labels = (t.to(self.device) for t in self.batch())
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step(images, labels)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            loss = self.step(images, labels)
        for _ in range(STEPS):
            fresh = self.batch()
            begin = time.perf_counter()
            images.copy_(fresh[0])
            labels.copy_(fresh[1])
            pressure = torch.empty(8 * MIB, device=self.device).fill_(1)  # must not hit the graph's memory
            graph.replay()
            losses.append(loss.item())
            seconds.append(time.perf_counter() - begin)
            del pressure
        return losses, seconds


def pair_ms(torch, device):
    """The time of a tensor's allocation and free, with 64 live tensors of up to 1 MiB."""
    numbers, count = random.Random(4), 200 * STEPS
    choices = [(numbers.randrange(64), numbers.randrange(512, MIB)) for _ in range(count)]
    torch.use_deterministic_algorithms(False)  # which fills every new tensor
    held = [torch.empty(size, dtype=torch.uint8, device=device) for _, size in choices[:64]]
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for at, size in choices:
        held[at] = None
        held[at] = torch.empty(size, dtype=torch.uint8, device=device)
    return 1000 * (time.perf_counter() - begin) / count


def memory_of(torch, quire_torch):
    if quire_torch:
        found = quire_torch.device_statistics(torch.cuda.current_device())
        memories = [found["memory"], *found["pools"]]  # their peaks need not be at one time
        return sum(memory["peak_requested_bytes"] for memory in memories), found["peak_reserved_bytes"]
    stats = torch.cuda.memory_stats()
    return stats["requested_bytes.all.peak"], stats["reserved_bytes.all.peak"]


def refusal_of(torch):
    """What the program gets for more memory than there is."""
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    except RuntimeError as error:
        return str(error)
    return "none"


def train(kind):
    import torch

    quire_torch = None
    if kind == "quire":
        import quire_torch

        quire_torch.use()
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    device = torch.device("cuda")
    training = ResidualTraining(torch, device)
    results = {"transformer": transformer(torch, device), "two streams": training.with_two_streams(),
               "graph": training.as_graph()}
    requested, reserved = memory_of(torch, quire_torch)
    result = {"losses": {name: pair[0] for name, pair in results.items()},
              "ms": {name: 1000 * sorted(pair[1])[len(pair[1]) // 2] for name, pair in results.items()},
              "pair_us": 1000 * pair_ms(torch, device),
              "requested": requested, "reserved": reserved, "refusal": refusal_of(torch)}
    if quire_torch:
        del training, results
        torch.cuda.empty_cache()
        result["after"] = quire_torch.device_statistics(0)
    print(json.dumps(result))


def pool():
    """Segments of quire under PyTorch's allocator."""
    import quire_torch
    import torch

    torch.manual_seed(3)
    expected = torch.randn(1000, 1000)
    segments = quire_torch.mem_pool()
    with torch.cuda.use_mem_pool(segments):
        inside = expected.cuda()
        try:
            torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
            refusal = "none"
        except torch.OutOfMemoryError:
            refusal = "OutOfMemoryError"
    statistics = quire_torch.device_statistics(torch.cuda.current_device())
    print(json.dumps({"equal": bool(torch.equal(inside.cpu(), expected)), "refusal": refusal,
                      "requested": statistics["memory"]["requested_bytes"]}))


# ---- the cases ---------------------------------------------------------------------------------------------------


def run(*words, **variables):
    """Returns what a process of this script printed, or the reason why there is nothing."""
    path = os.pathsep.join([str(ROOT / "src/adapters/torch"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, **variables, "PYTHONPATH": path, "QUIRE_TORCH_LIBRARY": str(LIBRARY.resolve()),
                   "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    environment["PYTORCH_CUDA_ALLOC_CONF"] = environment.get("PYTORCH_ALLOC_CONF", "")
    done = subprocess.run([sys.executable, __file__, *words], text=True, capture_output=True, check=False,
                          env=environment)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return None, [f"status {done.returncode}", *done.stderr.splitlines()[-15:]]
    return json.loads(lines[-1]), []


def reason_to_skip():
    if os.environ.get("QUIRE_EMULATED") == "yes":
        return "PyTorch does not run on the emulated driver"
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed"
    if not torch.version.cuda or not torch.cuda.is_available():
        return "PyTorch has no CUDA device"
    return "" if LIBRARY.exists() else f"{LIBRARY} was not built: it needs a C++ compiler and meson"


def check_losses(tap, found, name):
    case = f"the losses are those of PyTorch alone: {name}"
    alone, with_quire = found["PyTorch"]["losses"][name], found["quire"]["losses"][name]
    if alone == with_quire:
        tap.case(case)
        return
    expandable = found["expandable segments"]
    if expandable and expandable["losses"][name] != alone:
        tap.skip(case, "the kernels are not deterministic: PyTorch's own losses differ with expandable segments")
        return
    first = next(i for i, pair in enumerate(zip(alone, with_quire)) if pair[0] != pair[1])
    tap.case(case, [f"step {first}: {alone[first]!r} with PyTorch's allocator, {with_quire[first]!r} with quire"])


def figures(found):
    """The ratio is that of the reserved bytes to the requested ones of PyTorch."""
    least = found["PyTorch"]["requested"]
    print(f"{'allocator':22} {'requested MiB':>14} {'reserved MiB':>14} {'ratio':>7} {'pair us':>8}   ms of a step")
    for kind, result in found.items():
        if result:
            times = ", ".join(f"{name} {value:.2f}" for name, value in result["ms"].items())
            print(f"{kind:22} {result['requested'] / MIB:14.1f} {result['reserved'] / MIB:14.1f} "
                  f"{result['reserved'] / least:7.3f} {result['pair_us']:8.2f}   {times}")


def end_problems(after):
    for left in after["pools"]:  # a workspace of cuBLAS may live in it
        if left["users"] or left["begun"]:
            yield f"a pool is in use: {left}"
    if after["late_count"]:
        yield f"{after['late_count']} frees are put off"


def main():
    from tap import Tap

    tap = Tap()
    reason = reason_to_skip()
    if reason:
        tap.skip("PyTorch on quire", reason)
        tap.end()
    found = {}
    for kind, variables in KINDS.items():
        found[kind], problems = run("train", kind, **variables)
        tap.case(f"training with {kind}", problems)
    if found["PyTorch"] and found["quire"]:
        for name in found["quire"]["losses"]:
            check_losses(tap, found, name)
        refusal = found["quire"]["refusal"]
        tap.case("exhausted memory is an error that programs know",
                 [] if refusal.startswith("CUDA out of memory. ") else [refusal])
        tap.case("a graph that ends releases its pool, and no free is put off", end_problems(found["quire"]["after"]))
        figures(found)
    result, problems = run("pool", PYTORCH_ALLOC_CONF="")
    if result and (not result["equal"] or result["refusal"] != "OutOfMemoryError" or result["requested"] < 4000000):
        problems = [str(result)]
    tap.case("segments of a MemPool", problems)
    tap.end()


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        train(sys.argv[2])
    elif sys.argv[1:] == ["pool"]:
        pool()
    else:
        main()
