"""ONNX Runtime's fused graph of a BERT checkpoint, in float32 or dynamically quantised to int8.

The operators are those into which ONNX Runtime's own optimizer and quantizer turn an exported BERT:
EmbedLayerNormalization, Attention, SkipLayerNormalization and BiasGelu; in int8 QAttention and
DynamicQuantizeMatMul with a scale for each column of the weights.

    inputs   input_ids, segment_ids, mask [B, T] int32 (mask: 1 for a token, 0 for padding)
    output   hidden [B, T, C] float32
"""

import json
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/train"))
import safetensors_io  # noqa: E402

FUSED = "com.microsoft"


class Graph:
    """Nodes and initializers; every node has one output that anybody reads, and returns its name."""

    def __init__(self):
        self.nodes, self.initializers = [], []

    def constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, kind, inputs, output, domain=FUSED, extra=(), **attributes):
        outputs = [output, *extra]
        self.nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **attributes))
        return output


def quantize_columns(weight):
    """int8 [in, out] and a scale for each column: w ≈ scale · q, symmetric."""
    scale = np.maximum(np.abs(weight).max(0), 1e-12).astype(np.float32) / 127
    return np.clip(np.rint(weight / scale), -127, 127).astype(np.int8), scale


class Bert:
    def __init__(self, folder, int8):
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as source:
            self.config = json.load(source)
        self.weights, _ = safetensors_io.load(os.path.join(folder, "model.safetensors"))
        self.int8, self.graph = int8, Graph()
        self.epsilon = self.config["layer_norm_eps"]

    def constant(self, name):
        return self.graph.constant(name, self.weights[name])

    def linear(self, x, name, output):
        """x·Wᵀ; in int8 with the bias, else without (the next operator adds it)."""
        weight = self.weights[name + ".weight"].T  # [in, out]
        if not self.int8:
            matrix = self.graph.constant(name + ".weight", weight)
            return self.graph.node("MatMul", [x, matrix], output, domain="")
        quantized, scale = quantize_columns(weight)
        inputs = [
            x,
            self.graph.constant(name + ".q", quantized),
            self.graph.constant(name + ".scale", scale),
            self.graph.constant(name + ".zero", np.zeros(len(scale), dtype=np.int8)),
            self.constant(name + ".bias"),
        ]
        return self.graph.node("DynamicQuantizeMatMul", inputs, output)

    def attention(self, x, mask_index, block, output):
        parts = [f"{block}attention.self.{part}" for part in ("query", "key", "value")]
        weight = np.concatenate([self.weights[part + ".weight"].T for part in parts], 1)  # [C, 3C]
        bias = np.concatenate([self.weights[part + ".bias"] for part in parts])
        heads = {"num_heads": self.config["num_attention_heads"]}
        name, graph = block + "qkv", self.graph
        if not self.int8:
            inputs = [x, graph.constant(name, weight), graph.constant(name + ".bias", bias)]
            return graph.node("Attention", [*inputs, mask_index], output, **heads)
        quantized, scale = quantize_columns(weight)
        graph.node(
            "DynamicQuantizeLinear",
            [x],
            name + ".x",
            domain="",
            extra=[name + ".x_scale", name + ".x_zero"],
        )
        inputs = [
            name + ".x",
            graph.constant(name, quantized),
            graph.constant(name + ".bias", bias),
            name + ".x_scale",
            graph.constant(name + ".scale", scale),
            mask_index,
            name + ".x_zero",
            graph.constant(name + ".zero", np.zeros(len(scale), dtype=np.int8)),
        ]
        return graph.node("QAttention", inputs, output, **heads)

    def add_norm(self, x, skip, bias_of, norm, output):
        inputs = [x, skip, self.constant(norm + ".weight"), self.constant(norm + ".bias")]
        if not self.int8:
            inputs.append(self.constant(bias_of + ".bias"))
        return self.graph.node("SkipLayerNormalization", inputs, output, epsilon=self.epsilon)

    def activated(self, x, bias_of, output):
        if self.int8:
            return self.graph.node("Gelu", [x], output)
        return self.graph.node("BiasGelu", [x, self.constant(bias_of + ".bias")], output)

    def embed(self):
        tables = [f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")]
        norm = ["embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias"]
        return self.graph.node(
            "EmbedLayerNormalization",
            ["input_ids", "segment_ids", *map(self.constant, tables + norm), "mask"],
            "h0",
            extra=["mask_index"],
            epsilon=self.epsilon,
        )

    def block(self, x, layer):
        name = f"encoder.layer.{layer}."
        z = self.attention(x, "mask_index", name, name + "z")
        out = self.linear(z, name + "attention.output.dense", name + "out")
        x = self.add_norm(
            out, x, name + "attention.output.dense", name + "attention.output.LayerNorm", name + "mid"
        )
        up = self.linear(x, name + "intermediate.dense", name + "up")
        active = self.activated(up, name + "intermediate.dense", name + "active")
        down = self.linear(active, name + "output.dense", name + "down")
        last = layer + 1 == self.config["num_hidden_layers"]
        post = "hidden" if last else name + "post"
        return self.add_norm(down, x, name + "output.dense", name + "output.LayerNorm", post)

    def model(self):
        x = self.embed()
        for layer in range(self.config["num_hidden_layers"]):
            x = self.block(x, layer)
        names = ("input_ids", "segment_ids", "mask")
        inputs = [helper.make_tensor_value_info(n, TensorProto.INT32, ["B", "T"]) for n in names]
        shape = ["B", "T", self.config["hidden_size"]]
        output = helper.make_tensor_value_info("hidden", TensorProto.FLOAT, shape)
        graph = helper.make_graph(
            self.graph.nodes, "bert", inputs, [output], initializer=self.graph.initializers
        )
        opsets = [helper.make_opsetid("", 13), helper.make_opsetid(FUSED, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def write(folder, out, int8):
    """`folder`: a BERT checkpoint in float32; `out`: the .onnx to write."""
    onnx.save(Bert(folder, int8).model(), out)
