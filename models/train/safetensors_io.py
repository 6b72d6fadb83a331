"""Reads and writes safetensors files: a length, a JSON header, the tensors' bytes."""

import json
import os
import struct

import numpy as np

DTYPES = {"F16": np.dtype("<f2"), "F32": np.dtype("<f4")}


def save(file, tensors, metadata=None):
    """Writes {name: numpy array}, each as it is (float16 or float32), in the order given."""
    names = {dtype: name for name, dtype in DTYPES.items()}
    header = {"__metadata__": {k: str(v) for k, v in metadata.items()}} if metadata else {}
    offset = 0
    for name, array in tensors.items():
        end = offset + array.nbytes
        header[name] = {
            "dtype": names[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(file + ".tmp", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            out.write(array.tobytes())
    os.replace(file + ".tmp", file)


def load(file):
    """({name: numpy array}, metadata)."""
    with open(file, "rb") as source:
        content = source.read()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        array = np.frombuffer(content[begin:end], dtype=DTYPES[entry["dtype"]])
        tensors[name] = array.reshape(entry["shape"])
    return tensors, metadata
