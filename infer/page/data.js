// What infer wrote into the page: numbers as JSON, attention patterns and position vectors as base64.

function decode(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** One text, or the means over a file of them, in one run of a model. */
class Run {
  #patterns;
  #vectors;

  constructor({label, observed, patterns, vectors}, side) {
    this.label = label;
    this.side = side; // 0 or 1
    this.observed = observed;
    this.layers = observed.layers;
    const {ids = [], pieces = []} = observed; // a file has none
    this.numTokens = ids.length;
    this.pieces = pieces.length > 0 ? pieces : ids.map((id) => `#${id}`);
    this.cells = patterns?.cells ?? 0; // along an edge of a pattern; fewer than tokens for long texts
    this.width = vectors?.columns ?? 0; // of a position vector
    this.#patterns = patterns?.values;
    this.#vectors = vectors?.values;
  }

  /** What block `layer` (from 1) and `head` (from 1) read: [cells, cells] weights from 0 to 1. */
  pattern(layer, head) {
    if (typeof this.#patterns === "string") this.#patterns = decode(this.#patterns);
    const size = this.cells * this.cells;
    const begin = ((layer - 1) * this.observed.num_heads + head - 1) * size;
    return Float64Array.from(this.#patterns.subarray(begin, begin + size), (q) => (q / 255) ** 2);
  }

  /** The position vector that token `t` was given, [width]. */
  vector(t) {
    if (typeof this.#vectors === "string") {
      this.#vectors = new Float32Array(decode(this.#vectors).buffer);
    }
    return this.#vectors.subarray(t * this.width, (t + 1) * this.width);
  }

  /** The first token of a pattern's cell; that of cell + 1 is where it ends. */
  tokenOf(cell) {
    return Math.floor((cell * this.numTokens) / this.cells);
  }

  /** "▁dog", or "▁dog … ▁cat" where a cell holds several tokens. */
  cellName(cell) {
    const begin = this.tokenOf(cell),
      last = this.tokenOf(cell + 1) - 1;
    const name = (t) => `${this.pieces[t]} (${place(this.observed.position_ids[t])})`;
    return begin === last ? name(begin) : `${name(begin)} … ${name(last)}`;
  }

  heads(layer) {
    return this.layers[layer]?.attention?.heads ?? [];
  }

  head({layer, head}) {
    return this.heads(layer)[head - 1];
  }

  /** Why a measure that was asked for has no answer. */
  reason(measure) {
    return this.observed.missing[measure];
  }
}

/** {version, texts: [{runs: [Run, …one or two], moved}]}; `moved`: from one run to the other. */
export function readReport() {
  const {version, texts} = JSON.parse(document.getElementById("data").textContent);
  return {
    version,
    texts: texts.map((text) => {
      const same = text.runs.length > 1 && text.runs[0].label === text.runs[1].label;
      return {
        ...text,
        runs: text.runs.map(
          (run, side) => new Run({...run, label: same ? `${run.label} (${side + 1})` : run.label}, side),
        ),
      };
    }),
  };
}

/** A position: 3, or 3.50 where a table was interpolated. */
export function place(position) {
  return Number.isInteger(position) ? `${position}` : position.toFixed(2);
}

/** 0.157; where nothing but zeros would show, how small it is: 3e-4, and 0 for what may be rounding. */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size < 1e-9) return "0";
  if (size < 0.0005) return value.toExponential(0).replace("-", "−").replace("e−", "e−");
  return value.toFixed(size < 100 ? 3 : 1).replace("-", "−");
}
