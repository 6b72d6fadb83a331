// Runs a graph of make_graph.py in ONNX Runtime and prints one JSON object a line.
//
//   node onnxruntime.mjs GRAPH --threads 1 --seconds 2 --batch '[[101,7,102],[101,102]]' …
//
// Sequences are padded to the longest of their batch, as ONNX Runtime needs them; a mask tells it
// which tokens are real. With --dump FILE the hidden states of the first batch's real tokens are
// written as float32, sequence after sequence.
import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    threads: { type: "string", default: "1" },
    seconds: { type: "string", default: "2" },
    batch: { type: "string", multiple: true, default: [] },
    dump: { type: "string" },
  },
});
const ort = createRequire(join(process.cwd(), "package.json"))("onnxruntime-node");

function feeds(sequences) {
  const width = Math.max(...sequences.map((ids) => ids.length));
  const shape = [sequences.length, width];
  const ids = new Int32Array(sequences.length * width);
  const mask = new Int32Array(ids.length);
  sequences.forEach((sequence, row) =>
    sequence.forEach((id, t) => {
      ids[row * width + t] = id;
      mask[row * width + t] = 1;
    }),
  );
  return {
    input_ids: new ort.Tensor("int32", ids, shape),
    segment_ids: new ort.Tensor("int32", new Int32Array(ids.length), shape),
    mask: new ort.Tensor("int32", mask, shape),
  };
}

function realRows(hidden, sequences) {
  const [, width, columns] = hidden.dims;
  return sequences.map((ids, row) =>
    hidden.data.slice(row * width * columns, (row * width + ids.length) * columns),
  );
}

async function measure(session, input, seconds) {
  const milliseconds = [];
  await session.run(input);
  const end = performance.now() + 1000 * seconds;
  while (performance.now() < end || milliseconds.length < 3) {
    const start = performance.now();
    await session.run(input);
    milliseconds.push(performance.now() - start);
  }
  milliseconds.sort((a, b) => a - b);
  return { median_ms: milliseconds[milliseconds.length >> 1], min_ms: milliseconds[0] };
}

const session = await ort.InferenceSession.create(positionals[0], {
  graphOptimizationLevel: "all",
  executionMode: "sequential",
  intraOpNumThreads: Number(values.threads),
});
for (const [index, text] of values.batch.entries()) {
  const sequences = JSON.parse(text);
  const input = feeds(sequences);
  if (index === 0 && values.dump) {
    const { hidden } = await session.run(input);
    writeFileSync(values.dump, Buffer.concat(realRows(hidden, sequences).map((rows) => Buffer.from(rows.buffer))));
  }
  const result = await measure(session, input, Number(values.seconds));
  console.log(JSON.stringify({ ...result, rss_bytes: process.resourceUsage().maxRSS * 1024 }));
}
