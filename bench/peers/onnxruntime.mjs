// ONNX Runtime's side of the comparison: runs batches that it reads from stdin, one JSON object a
// line, in a graph of make_graph.py. Started in the folder that has node_modules.
//
//   node onnxruntime.mjs GRAPH --threads 1
//
// It says {"version": …, "base_bytes": …}, and then answers requests in order:
//
//   {"batch": [[101, 7, 102], [101, 102]], "seconds": 0.5, "hidden": "FILE"}
//   {"median_ms": …, "mean_ms": …, "min_ms": …, "peak_bytes": …}
//
// seconds: how long the batch is run again and again. hidden: where the last hidden states of the
// tokens are written, float32, sequence after sequence. Either may be missing. Bytes are those of
// the most memory that was resident; base_bytes before the graph was loaded.
//
// With --serve VOCABULARY (a vocab.txt) it says {"port": …} as well, and answers POST /embed over HTTP,
// as infer serve does: {"inputs": ["w7 w8"]} gives [[…]], mean vectors of length 1, for words of the
// vocabulary. What waits is run together, whenever it is free.
//
// Sequences are padded to the longest of their batch, as ONNX Runtime needs them, before the clock
// starts; a mask tells it which tokens are real.
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { threads: { type: "string", default: "1" }, serve: { type: "string" } },
});
const require = createRequire(join(process.cwd(), "package.json"));
const ort = require("onnxruntime-node");

const say = (object) => process.stdout.write(JSON.stringify(object) + "\n");

function peakBytes() {
  return 1024 * Number(readFileSync("/proc/self/status", "utf8").match(/VmHWM:\s+(\d+)/)[1]);
}

function feeds(sequences) {
  const width = Math.max(...sequences.map((ids) => ids.length));
  const shape = [sequences.length, width];
  const ids = new Int32Array(sequences.length * width);
  const mask = new Int32Array(ids.length);
  sequences.forEach((sequence, row) => {
    ids.set(sequence, row * width);
    mask.fill(1, row * width, row * width + sequence.length);
  });
  return {
    input_ids: new ort.Tensor("int32", ids, shape),
    segment_ids: new ort.Tensor("int32", new Int32Array(ids.length), shape),
    mask: new ort.Tensor("int32", mask, shape),
  };
}

function realRows(hidden, sequences) {
  const [, width, columns] = hidden.dims;
  return sequences.map((ids, row) =>
    Buffer.from(hidden.data.slice(row * width * columns, (row * width + ids.length) * columns).buffer),
  );
}

// The first run finds cold caches: it counts only if it is alone.
async function measure(session, input, seconds) {
  const times = [];
  const end = performance.now() + 1000 * seconds;
  while (times.length === 0 || performance.now() < end) {
    const start = performance.now();
    await session.run(input);
    times.push(performance.now() - start);
  }
  if (times.length > 1) times.shift();
  times.sort((a, b) => a - b);
  const mean = times.reduce((a, b) => a + b) / times.length;
  return { median_ms: times[times.length >> 1], mean_ms: mean, min_ms: times[0] };
}

async function answer(session, { batch, seconds, hidden }) {
  const input = feeds(batch);
  if (hidden) writeFileSync(hidden, Buffer.concat(realRows((await session.run(input)).hidden, batch)));
  const result = seconds ? await measure(session, input, seconds) : {};
  return { ...result, peak_bytes: peakBytes() };
}

const MAX_BATCH_TOKENS = 16384; // padding included; as infer serve has it

function meanVector(hidden, row, length) {
  const [, width, columns] = hidden.dims;
  const mean = new Float32Array(columns);
  for (let t = 0; t < length; ++t) {
    const begin = (row * width + t) * columns;
    for (let c = 0; c < columns; ++c) mean[c] += hidden.data[begin + c];
  }
  const norm = Math.hypot(...mean);
  return Array.from(mean, (x) => x / norm);
}

// Requests of as many texts as are run at once; the first, however large it is.
function nextBatch(waiting) {
  let longest = 0;
  let texts = 0;
  const count = waiting.findIndex(({ sequences }) => {
    longest = Math.max(longest, ...sequences.map((ids) => ids.length));
    texts += sequences.length;
    return texts * longest > MAX_BATCH_TOKENS;
  });
  return waiting.splice(0, count < 0 ? waiting.length : Math.max(count, 1));
}

async function serve(session, vocabulary) {
  const lines = readFileSync(vocabulary, "utf8").split("\n");
  const ids = new Map(lines.map((word, id) => [word, id]));
  const [cls, sep, unk] = ["[CLS]", "[SEP]", "[UNK]"].map((word) => ids.get(word));
  const tokenize = (text) => [cls, ...text.split(" ").map((word) => ids.get(word) ?? unk), sep];
  const waiting = [];
  let running = false;
  async function runAll() {
    if (running) return;
    running = true;
    while (waiting.length > 0) {
      const batch = nextBatch(waiting);
      const sequences = batch.flatMap((request) => request.sequences);
      const { hidden } = await session.run(feeds(sequences));
      let row = 0;
      for (const { sequences, reply } of batch) {
        const vectors = sequences.map((ids) => meanVector(hidden, row++, ids.length));
        reply.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(vectors));
      }
    }
    running = false;
  }
  const server = createServer(async (request, reply) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const { inputs } = JSON.parse(Buffer.concat(parts).toString());
    waiting.push({ sequences: inputs.map(tokenize), reply });
    runAll();
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  server.unref(); // the end of stdin ends the program
  return server.address().port;
}

const baseBytes = peakBytes();
const session = await ort.InferenceSession.create(positionals[0], {
  graphOptimizationLevel: "all",
  executionMode: "sequential",
  intraOpNumThreads: Number(values.threads),
});
const versions = `ONNX Runtime ${require("onnxruntime-node/package.json").version}, Node ${process.version}`;
const port = values.serve && (await serve(session, values.serve));
say({ version: versions, base_bytes: baseBytes, port });
for await (const line of createInterface({ input: process.stdin })) {
  say(await answer(session, JSON.parse(line)));
}
