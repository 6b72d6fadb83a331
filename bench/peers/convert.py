"""Makes what a peer loads of a BERT checkpoint, as the peer's users do.

    python3 convert.py PEER FOLDER      reads FOLDER/checkpoint, writes beside it

ONNX Runtime: exported by PyTorch and fused by ONNX Runtime's own optimizer; int8 by quantize_dynamic,
a scale for each channel. OpenVINO: convert_model(), int8 by NNCF, calibrated on
examples/sentences.txt. CTranslate2: its converter of transformers' models; it makes its int8 when it loads.
"""

import os
import sys

import torch
import transformers

import peer

TEXTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/sentences.txt")


class States(torch.nn.Module):
    """The last hidden states, of ids and mask [B, T]."""

    def __init__(self, checkpoint):
        super().__init__()
        self.bert = transformers.BertModel.from_pretrained(
            checkpoint, add_pooling_layer=False, attn_implementation="eager"
        ).eval()

    def forward(self, input_ids, attention_mask):
        return self.bert(input_ids, attention_mask).last_hidden_state


def example():
    return tuple(map(torch.from_numpy, peer.padded([[101, 7, 102], [101, 102]])))


def onnxruntime(folder):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers.optimizer import optimize_model

    exported, f32, int8 = (os.path.join(folder, f"{name}.onnx") for name in ("export", "f32", "int8"))
    model = States(os.path.join(folder, "checkpoint"))
    names = ["input_ids", "attention_mask"]
    axes = {name: {0: "B", 1: "T"} for name in (*names, "hidden")}
    torch.onnx.export(
        model, example(), exported, input_names=names, output_names=["hidden"],
        dynamic_axes=axes, opset_version=17, dynamo=False,
    )  # fmt: skip
    config = model.bert.config
    heads, width = config.num_attention_heads, config.hidden_size
    optimize_model(exported, "bert", num_heads=heads, hidden_size=width).save_model_to_file(f32)
    quantize_dynamic(exported, int8, per_channel=True, weight_type=QuantType.QInt8)


def calibration(folder):
    """[(ids, mask)] of one text each."""
    tokenize = peer.load_tokenizer(folder)
    with open(TEXTS, encoding="utf-8") as source:
        texts = [line.strip() for line in source if line.strip()]
    return [peer.padded([ids]) for ids in tokenize(texts)]


def openvino(folder):
    import nncf
    import openvino

    model = States(os.path.join(folder, "checkpoint"))
    converted = openvino.convert_model(model, example_input=example())
    for port, name in zip(converted.inputs, ("input_ids", "attention_mask")):
        port.get_tensor().set_names({name})
    openvino.save_model(converted, os.path.join(folder, "openvino-f32.xml"), compress_to_fp16=False)
    texts = nncf.Dataset(calibration(folder), lambda pair: list(pair))
    quantized = nncf.quantize(converted, texts, model_type=nncf.ModelType.TRANSFORMER)
    openvino.save_model(quantized, os.path.join(folder, "openvino-int8.xml"), compress_to_fp16=False)


def ctranslate2(folder):
    from ctranslate2.converters import TransformersConverter

    checkpoint = os.path.join(folder, "checkpoint")
    TransformersConverter(checkpoint).convert(os.path.join(folder, "ctranslate2"), force=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
