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
// Sequences are padded to the longest of their batch, as ONNX Runtime needs them, before the clock
// starts; a mask tells it which tokens are real.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { threads: { type: "string", default: "1" } },
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

const baseBytes = peakBytes();
const session = await ort.InferenceSession.create(positionals[0], {
  graphOptimizationLevel: "all",
  executionMode: "sequential",
  intraOpNumThreads: Number(values.threads),
});
const versions = `ONNX Runtime ${require("onnxruntime-node/package.json").version}, Node ${process.version}`;
say({ version: versions, base_bytes: baseBytes });
for await (const line of createInterface({ input: process.stdin })) {
  say(await answer(session, JSON.parse(line)));
}
