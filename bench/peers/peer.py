"""A peer's side of the comparison: loads a model that convert.py made, and answers requests.

    python3 peer.py PEER FOLDER --threads 1 --precision f32

It says {"version": …, "base_bytes": …}, and then answers requests in order, an object a line:

    {"batch": [[101, 7, 102], [101, 102]], "seconds": 0.5, "output": "FILE"}
    {"median_ms": …, "min_ms": …, "peak_bytes": …}

seconds: how long the batch is run again and again. output: where the last hidden states of the
tokens are written, float32, sequence after sequence. Either may be missing. With "texts" in place of
"batch", texts become mean vectors of length 1; the clock then counts the tokenizer as well. Bytes
are those of the most memory that was resident; base_bytes before the model was loaded.

With --serve it says {"port": …} as well, and answers POST /embed over HTTP, as infer serve does:
{"inputs": ["a text"]} gives [[…]]. What waits is run together, whenever the model is free.
"""

import argparse
import asyncio
import contextlib
import json
import os
import queue
import re
import sys
import threading
import time

import numpy as np

MAX_TEXTS = 32  # run at once, sorted by length, as in sentence-transformers
MAX_TOKENS = 256  # of a text, as MiniLM's files say
MAX_REQUESTS = 256  # that a server runs together


class PyTorch:
    """BertModel of transformers, run eagerly."""

    def __init__(self, folder, threads, precision):
        import torch
        import transformers

        transformers.logging.set_verbosity_error()

        self.torch, self.version = torch, f"PyTorch {torch.__version__}"
        torch.set_num_threads(threads)
        dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[precision]
        checkpoint = os.path.join(folder, "checkpoint")
        self.model = transformers.BertModel.from_pretrained(
            checkpoint, dtype=dtype, add_pooling_layer=False, attn_implementation="sdpa"
        ).eval()

    def __call__(self, ids, mask):
        with self.torch.inference_mode():
            ids, mask = map(self.torch.from_numpy, (ids, mask))
            return self.model(ids, mask).last_hidden_state.float().numpy()


class OnnxRuntime:
    def __init__(self, folder, threads, precision):
        import onnxruntime

        self.version = f"ONNX Runtime {onnxruntime.__version__}"
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        file = os.path.join(folder, f"{precision}.onnx")
        self.session = onnxruntime.InferenceSession(file, options, ["CPUExecutionProvider"])

    def __call__(self, ids, mask):
        return self.session.run(None, {"input_ids": ids, "attention_mask": mask})[0]


class OpenVino:
    """Compiled once for all shapes, or `static`: for each."""

    def __init__(self, folder, threads, precision, static=False):
        import openvino

        self.version = f"OpenVINO {openvino.__version__.split('-')[0]}"
        core = openvino.Core()
        config = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
        }
        kind = "int8" if precision == "int8" else "f32"
        file = os.path.join(folder, f"openvino-{kind}.xml")

        def compiled(shape):
            model = core.read_model(file)
            model.reshape({name: shape for name in ("input_ids", "attention_mask")})
            return core.compile_model(model, "CPU", config)

        self.static, self.compiled, self.compile = static, {}, compiled

    def __call__(self, ids, mask):
        shape = ids.shape if self.static else (-1, -1)
        if shape not in self.compiled:
            self.compiled[shape] = self.compile(shape)
        return self.compiled[shape]({"input_ids": ids, "attention_mask": mask})[0]


class OpenVinoStatic(OpenVino):
    def __init__(self, folder, threads, precision):
        super().__init__(folder, threads, precision, static=True)


class CTranslate2:
    def __init__(self, folder, threads, precision):
        import ctranslate2

        self.view, self.version = ctranslate2.StorageView, f"CTranslate2 {ctranslate2.__version__}"
        kind = {"f32": "float32", "int8": "int8"}[precision]
        file = os.path.join(folder, "ctranslate2")
        self.encoder = ctranslate2.Encoder(file, compute_type=kind, intra_threads=threads)

    def __call__(self, ids, mask):
        arrays = (ids.astype(np.int32), mask.sum(1).astype(np.int32))
        output = self.encoder.forward_batch(*map(self.view.from_array, arrays))
        return np.array(output.last_hidden_state)


PEERS = {
    "pytorch": PyTorch,
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
    "openvino-static": OpenVinoStatic,
    "ctranslate2": CTranslate2,
}


def peak_bytes():
    with open("/proc/self/status", encoding="utf-8") as source:
        return 1024 * int(re.search(r"VmHWM:\s+(\d+)", source.read()).group(1))


def padded(sequences):
    """ids and mask, [B, T] int64; the mask is 1 for a token and 0 for padding."""
    lengths = np.array([len(sequence) for sequence in sequences])
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    ids = np.zeros_like(mask)
    ids[mask == 1] = np.concatenate(sequences)
    return ids, mask


def batches(sequences):
    """[(the places of its sequences, ids, mask)]: sorted by length, at most MAX_TEXTS each."""
    order = sorted(range(len(sequences)), key=lambda i: -len(sequences[i]))
    chunks = [order[i : i + MAX_TEXTS] for i in range(0, len(order), MAX_TEXTS)]
    return [(chunk, *padded([sequences[i] for i in chunk])) for chunk in chunks]


def states(model, sequences):
    """The last hidden states of the tokens of each sequence, [T, C] float32."""
    found = [None] * len(sequences)
    for chunk, ids, mask in batches(sequences):
        for i, rows in zip(chunk, model(ids, mask)):
            found[i] = rows[: len(sequences[i])]
    return found


def mean_vectors(model, sequences):
    vectors = []
    for rows in states(model, sequences):
        mean = rows.mean(0)
        vectors.append(mean / np.linalg.norm(mean))
    return vectors


def load_tokenizer(folder):
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(os.path.join(folder, "checkpoint/vocab.txt"))
    tokenizer.enable_truncation(MAX_TOKENS)
    return lambda texts: [each.ids for each in tokenizer.encode_batch(texts)]


def measure(run, seconds):
    """The first run finds cold caches and does not count."""
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 2 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    times = sorted(times[1:])
    return {"median_ms": times[len(times) // 2], "min_ms": times[0]}


def answer(model, tokenize, batch=None, texts=None, seconds=0, output=None):
    if output:
        rows = mean_vectors(model, tokenize(texts)) if texts else states(model, batch)
        np.concatenate(rows, axis=None).astype("<f4").tofile(output)
    result = {}
    if seconds and texts:
        result = measure(lambda: mean_vectors(model, tokenize(texts)), seconds)
    elif seconds:
        inputs = [pair for _, *pair in batches(batch)]  # padded before the clock starts
        result = measure(lambda: [model(*pair) for pair in inputs], seconds)
    return {**result, "peak_bytes": peak_bytes()}


class Server:
    """A thread takes requests, another runs what waits."""

    def __init__(self, model, tokenize):
        self.model, self.tokenize, self.waiting = model, tokenize, queue.Queue()

    def start(self):
        loop = asyncio.new_event_loop()
        server = loop.run_until_complete(asyncio.start_server(self.connection, "127.0.0.1", 0))
        for run in (loop.run_forever, lambda: self.run_all(loop)):
            threading.Thread(target=run, daemon=True).start()
        return server.sockets[0].getsockname()[1]

    async def connection(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError):  # the client has gone
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(re.search(rb"(?i)content-length: *(\d+)", head).group(1))
                texts = json.loads(await reader.readexactly(length))["inputs"]
                vectors = asyncio.get_running_loop().create_future()
                self.waiting.put((self.tokenize(texts), vectors))
                body = json.dumps(await vectors).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        writer.close()

    def run_all(self, loop):
        while True:
            requests = [self.waiting.get()]
            with contextlib.suppress(queue.Empty):
                while len(requests) < MAX_REQUESTS:
                    requests.append(self.waiting.get_nowait())
            vectors = iter(mean_vectors(self.model, [ids for each, _ in requests for ids in each]))
            for sequences, result in requests:
                rows = [next(vectors).tolist() for _ in sequences]
                loop.call_soon_threadsafe(result.set_result, rows)


def say(**values):
    print(json.dumps(values), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--serve", action="store_true")
    arguments = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(arguments.threads)  # the tokenizer's
    base = peak_bytes()
    model = PEERS[arguments.peer](arguments.folder, arguments.threads, arguments.precision)
    tokenize = load_tokenizer(arguments.folder)
    port = Server(model, tokenize).start() if arguments.serve else None
    say(version=model.version, base_bytes=base, port=port)
    for line in sys.stdin:
        say(**answer(model, tokenize, **json.loads(line)))


if __name__ == "__main__":
    main()
