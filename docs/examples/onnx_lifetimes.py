#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lifetimes of the tensors of an ONNX graph, as ranges for `quire plan`.

    python3 onnx_lifetimes.py model.onnx > model.csv
    quire plan model.csv --html model.html

The nodes of an ONNX graph are in an order in which they can run; their numbers are the times. A tensor is in use from
the node that writes it to the last node that reads it, an input from the beginning, an output to the end. Weights are
left out; --weights adds them, in use all the time. --dim batch=8 sets a dimension that the graph names; others are 1.

Needs the package onnx (Debian: python3-onnx). It infers shapes; a tensor without a shape is reported and left out.
"""

import argparse
import csv
import sys

import onnx
from onnx import TensorProto

BYTES = {TensorProto.FLOAT16: 2, TensorProto.BFLOAT16: 2, TensorProto.FLOAT: 4, TensorProto.DOUBLE: 8,
         TensorProto.INT8: 1, TensorProto.UINT8: 1, TensorProto.INT16: 2, TensorProto.UINT16: 2, TensorProto.INT32: 4,
         TensorProto.UINT32: 4, TensorProto.INT64: 8, TensorProto.UINT64: 8, TensorProto.BOOL: 1}


def size_of(value, dims):
    """Bytes of a tensor, or None if its type or shape is unknown."""
    tensor = value.type.tensor_type
    if tensor.elem_type not in BYTES or not tensor.HasField("shape"):
        return None
    count = 1
    for dim in tensor.shape.dim:
        count *= dim.dim_value or dims.get(dim.dim_param, 1)
    return count * BYTES[tensor.elem_type]


def names_read(node):
    """What a node reads, and what the graphs inside it read."""
    yield from node.input
    for attribute in node.attribute:
        for graph in [attribute.g, *attribute.graphs]:
            for inner in graph.node:
                yield from names_read(inner)


def lifetimes(graph):
    """The first and the last node that uses each tensor, by name."""
    end = max(len(graph.node) - 1, 0)
    uses = {value.name: [0, 0] for value in graph.input}
    for time, node in enumerate(graph.node):
        for name in names_read(node):
            if name in uses:
                uses[name][1] = time
        uses.update({name: [time, time] for name in node.output if name})
    for value in graph.output:
        if value.name in uses:
            uses[value.name][1] = end
    return uses


def rows(model, dims, with_weights):
    graph = onnx.shape_inference.infer_shapes(model).graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    values = {value.name: value for value in [*graph.input, *graph.value_info, *graph.output]}
    for name, (first, last) in lifetimes(graph).items():
        if name in weights:
            continue
        size = size_of(values[name], dims) if name in values else None
        if size:
            yield name, first, last + 1, size
        else:
            print(f"{name}: no shape, left out", file=sys.stderr)
    for name, tensor in weights.items() if with_weights else ():
        count = 1
        for dim in tensor.dims:
            count *= dim
        if count and tensor.data_type in BYTES:
            yield name, 0, max(len(graph.node), 1), count * BYTES[tensor.data_type]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("model")
    parser.add_argument("--weights", action="store_true", help="add the weights")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="set a dimension")
    args = parser.parse_args()
    dims = {name: int(number) for name, _, number in (text.partition("=") for text in args.dim)}
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["id", "lower", "upper", "size"])
    for name, *numbers in rows(onnx.load(args.model), dims, args.weights):
        out.writerow([name.replace(",", "_").replace('"', "_"), *numbers])


if __name__ == "__main__":
    main()
