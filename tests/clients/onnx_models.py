# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the models that the tests run in ONNX Runtime: a perceptron, a residual network of convolutions,
and a transformer. Their weights are random; every run writes the same bytes.

usage: onnx_models.py FOLDER

The field numbers are those of onnx.proto, the data types and attribute types those of its enumerations.
"""

import array
import math
import pathlib
import random
import struct
import sys

FLOAT, INT64 = 1, 7
OPSET = 17  # the first with LayerNormalization
PERIOD = 65521  # weights repeat after so many


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def number_field(field, value):
    return varint(field << 3) + varint(value & (1 << 64) - 1)


def bytes_field(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    out = bytes_field(1, name)
    if isinstance(value, float):
        return out + varint(2 << 3 | 5) + struct.pack("<f", value) + number_field(20, 1)
    if isinstance(value, int):
        return out + number_field(3, value) + number_field(20, 2)
    return out + b"".join(number_field(8, item) for item in value) + number_field(20, 7)


def tensor(name, shape, data_type, raw):
    return b"".join(number_field(1, size) for size in shape) + number_field(2, data_type) + \
        bytes_field(8, name) + bytes_field(9, raw)


def value_info(name, shape, data_type):
    dims = b"".join(bytes_field(1, bytes_field(2, size) if isinstance(size, str) else number_field(1, size))
                    for size in shape)
    return bytes_field(1, name) + bytes_field(2, bytes_field(1, number_field(1, data_type) + bytes_field(2, dims)))


class Model:
    """A graph under construction. Values are named by strings."""

    def __init__(self, name, seed):
        self.name, self.count = name, 0
        self.nodes, self.initializers, self.inputs, self.outputs = [], [], [], []
        chance = random.Random(seed)
        self.noise = [chance.uniform(-1, 1) for _ in range(PERIOD)]

    def fresh(self):
        self.count += 1
        return f"v{self.count}"

    def input(self, name, shape, data_type=FLOAT):
        self.inputs.append(value_info(name, shape, data_type))
        return name

    def output(self, name, shape):
        self.outputs.append(value_info(name, shape, FLOAT))

    def weight(self, shape, fan_in):
        """Random numbers whose products with as many inputs as `fan_in` stay of the size of the inputs."""
        count, scale, name = math.prod(shape), math.sqrt(3 / fan_in), self.fresh()
        block = array.array("f", [scale * number for number in self.noise])
        repeated = block * (count // PERIOD + 1)
        self.initializers.append(tensor(name, shape, FLOAT, repeated[:count].tobytes()))
        return name

    def constant(self, shape, value):
        name = self.fresh()
        self.initializers.append(tensor(name, shape, FLOAT, array.array("f", [value]).tobytes() * math.prod(shape)))
        return name

    def integers(self, values):
        name = self.fresh()
        self.initializers.append(tensor(name, [len(values)], INT64, struct.pack(f"<{len(values)}q", *values)))
        return name

    def node(self, kind, *inputs, output=None, **attributes):
        output = output or self.fresh()
        self.nodes.append(b"".join(bytes_field(1, name) for name in inputs) + bytes_field(2, output) +
                          bytes_field(3, output) + bytes_field(4, kind) +
                          b"".join(bytes_field(5, attribute(name, value)) for name, value in attributes.items()))
        return output

    def write(self, folder):
        graph = b"".join(bytes_field(1, node) for node in self.nodes) + bytes_field(2, self.name)
        for field, values in ((5, self.initializers), (11, self.inputs), (12, self.outputs)):
            graph += b"".join(bytes_field(field, value) for value in values)
        (pathlib.Path(folder) / f"{self.name}.onnx").write_bytes(
            number_field(1, 8) + bytes_field(2, "quire") + bytes_field(7, graph) +
            bytes_field(8, bytes_field(1, "") + number_field(2, OPSET)))


def perceptron():
    model = Model("perceptron", 1)
    value, widths = model.input("input", ["batch", 784]), [784, 2048, 2048, 1000]
    for index, (wide, narrow) in enumerate(zip(widths, widths[1:])):
        value = model.node("Gemm", value, model.weight([wide, narrow], wide), model.constant([narrow], 0.01))
        if index + 2 < len(widths):
            value = model.node("Relu", value)
    model.node("Softmax", value, output="output", axis=1)
    model.output("output", ["batch", 1000])
    return model


def residual():
    """Stages of two residual blocks each, as in ResNet-18, half as wide."""
    model = Model("residual", 2)

    def convolution(value, taken, given, size, stride):
        return model.node("Conv", value, model.weight([given, taken, size, size], taken * size * size),
                          model.constant([given], 0.01), kernel_shape=[size, size], strides=[stride, stride],
                          pads=[size // 2] * 4)

    value = model.input("input", ["batch", 3, "height", "width"])
    value = model.node("Relu", convolution(value, 3, 32, 7, 2))
    value = model.node("MaxPool", value, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    wide = 32
    for stage, given in enumerate((32, 64, 128, 256)):
        for block in range(2):
            stride = 2 if stage and not block else 1
            inner = model.node("Relu", convolution(value, wide, given, 3, stride))
            inner = convolution(inner, given, given, 3, 1)
            if wide != given:
                value = convolution(value, wide, given, 1, stride)
            value, wide = model.node("Relu", model.node("Add", inner, value)), given
    value = model.node("Flatten", model.node("GlobalAveragePool", value))
    model.node("Gemm", value, model.weight([wide, 1000], wide), model.constant([1000], 0.01), output="output")
    model.output("output", ["batch", 1000])
    return model


def transformer(layers=4, width=256, heads=4):
    """Layers of attention and of a network of two matrices, each after a normalization."""
    model = Model("transformer", 3)

    def product(value, taken, given):
        return model.node("Add", model.node("MatMul", value, model.weight([taken, given], taken)),
                          model.constant([given], 0.01))

    def split_heads(value):
        shape = model.integers([0, 0, heads, width // heads])
        return model.node("Transpose", model.node("Reshape", value, shape), perm=[0, 2, 1, 3])

    def normalized(value):
        return model.node("LayerNormalization", value, model.constant([width], 1.0), model.constant([width], 0.0),
                          axis=-1, epsilon=1e-5)

    value = model.input("input", ["batch", "length", width])
    for _ in range(layers):
        query, key, values = (split_heads(product(normal, width, width))
                              for normal in [normalized(value)] for _ in range(3))
        scores = model.node("MatMul", query, model.node("Transpose", key, perm=[0, 1, 3, 2]))
        scores = model.node("Mul", scores, model.constant([1], 1 / math.sqrt(width / heads)))
        mixed = model.node("MatMul", model.node("Softmax", scores, axis=-1), values)
        mixed = model.node("Reshape", model.node("Transpose", mixed, perm=[0, 2, 1, 3]),
                           model.integers([0, 0, width]))
        value = model.node("Add", value, product(mixed, width, width))
        inner = product(normalized(value), width, 4 * width)
        gate = model.node("Add", model.node("Erf", model.node("Mul", inner, model.constant([1], math.sqrt(0.5)))),
                          model.constant([1], 1.0))
        inner = model.node("Mul", model.node("Mul", inner, gate), model.constant([1], 0.5))
        value = model.node("Add", value, product(inner, 4 * width, width))
    model.node("LayerNormalization", value, model.constant([width], 1.0), model.constant([width], 0.0),
               output="output", axis=-1, epsilon=1e-5)
    model.output("output", ["batch", "length", width])
    return model


def main():
    for model in (perceptron(), residual(), transformer()):
        model.write(sys.argv[1])


if __name__ == "__main__":
    main()
