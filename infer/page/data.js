// What infer wrote into the page: numbers as JSON, attention and position vectors as base64.

function decode(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

const floats = (base64) => new Float32Array(decode(base64 ?? "").buffer);

/** One text, or the means over a file of them, in one run of a model. */
class Run {
  #patterns;
  #textTokens;
  #profiles;
  #vectors;

  constructor({patterns, profiles, vectors, turns, apart, ...observed}, label, side) {
    this.label = label;
    this.side = side; // 0 or 1; 2 or 3: untrained
    this.observed = observed;
    this.missing = observed.missing ?? {}; // why a view that was asked for has no answer
    const {ids = [], pieces = [], position_ids = [], text_tokens = []} = observed; // a file has none
    this.numTokens = ids.length;
    this.positionIds = position_ids;
    this.pieces = pieces.length > 0 ? pieces : ids.map((id) => `#${id}`);
    this.cells = patterns?.cells ?? 0; // along an edge of a pattern; fewer than tokens for long texts
    this.offsets = profiles?.offsets ?? -1; // a profile goes from −offsets to offsets
    this.width = vectors?.columns ?? 0; // of a position vector
    this.#patterns = decode(patterns?.values ?? "");
    this.#textTokens = new Set(text_tokens);
    this.#profiles = floats(profiles?.values);
    this.#vectors = floats(vectors?.values);
    this.turns = floats(turns?.values); // [L + 1, numTokens] degrees
    this.apart = floats(apart?.values); // [2, L + 1] degrees from the first text, with positions and without
  }

  /** The rows of a view's table. */
  rows({name}) {
    return this.observed.views[name] ?? [];
  }

  get heads() {
    return this.rows({name: "heads"});
  }

  head({layer, head}) {
    return this.heads.find((row) => row.layer === layer && row.head === head);
  }

  /** Layers and heads count from 1. */
  #ofHead(values, {layer, head}, size) {
    const begin = ((layer - 1) * this.observed.num_heads + head - 1) * size;
    return values.subarray(begin, begin + size);
  }

  has({layer, head}) {
    return layer <= this.observed.num_layers && head <= this.observed.num_heads;
  }

  /** Whether the text has both special tokens and others. */
  get hasSpecial() {
    return this.#textTokens.size > 0 && this.#textTokens.size < this.numTokens;
  }

  /** What a head reads: [cells, cells] weights from 0 to 1; `words`: of the rest without special tokens. */
  pattern({words, ...head}) {
    const values = this.#ofHead(this.#patterns, head, this.cells ** 2);
    const weights = new Float64Array(values.length);
    values.forEach((q, i) => (weights[i] = (q / 255) ** 2));
    return words && this.hasSpecial ? this.#withoutSpecial(weights) : weights;
  }

  /** Empties rows and columns of cells that hold a special token; in other rows the others get 1 together. */
  #withoutSpecial(weights) {
    const tokens = Array.from({length: this.cells}, (_, cell) => {
      const begin = this.tokenOf(cell);
      const all = Array.from({length: this.tokenOf(cell + 1) - begin}, (_, i) => begin + i);
      return all.every((t) => this.#textTokens.has(t)) ? all.length : 0;
    });
    for (let row = 0; row < this.cells; ++row) {
      const some = weights.subarray(row * this.cells, (row + 1) * this.cells);
      const sum = some.reduce((sum, weight, cell) => sum + weight * tokens[cell], 0) || 1;
      some.forEach((weight, cell) => (some[cell] = tokens[row] && tokens[cell] ? weight / sum : 0));
    }
    return weights;
  }

  /** A head's mean weight at the offsets −offsets … offsets. */
  profile(head) {
    return [...this.#ofHead(this.#profiles, head, 2 * this.offsets + 1)];
  }

  /** The position vector that token `t` was given, [width]. */
  vector(t) {
    return this.#vectors.subarray(t * this.width, (t + 1) * this.width);
  }

  /** The columns of a sinusoidal layout's pairs (sine, cosine); none for other positions. */
  get pairs() {
    const layout = this.observed.positions.match(/^sinusoidal \((\w+)\)/)?.[1];
    const half = layout ? Math.floor(this.width / 2) : 0;
    return Array.from({length: half}, (_, i) => ({
      i,
      columns: layout === "paper" ? [2 * i, 2 * i + 1] : [i, i + half],
    }));
  }

  /** The first token of a pattern's cell; that of cell + 1 is where it ends. */
  tokenOf(cell) {
    return Math.floor((cell * this.numTokens) / this.cells);
  }

  name(t) {
    return `${this.pieces[t]} (${place(this.positionIds[t])})`;
  }

  /** "▁dog (4)", or "▁dog (4) … ▁cat (6)" where a cell holds several tokens. */
  cellName(cell) {
    const begin = this.tokenOf(cell),
      last = this.tokenOf(cell + 1) - 1;
    return begin === last ? this.name(begin) : `${this.name(begin)} … ${this.name(last)}`;
  }
}

/** A table of position vectors; its rows take the place of a run's tokens. */
class Table {
  constructor({name: _, ...table}, label, side) {
    Object.assign(this, {...table, label, side});
    this.numTokens = table.length;
    this.positionIds = table.values.map((_, p) => table.first_position + p);
    this.sines = table.pairs.map(({sine}) => sine); // columns
    this.pairs = table.pairs
      .map(({sine, cosine, frequency}, i) => ({
        i,
        columns: [sine, cosine],
        period: frequency === null ? null : (2 * Math.PI) / frequency,
      }))
      .filter(({columns, period}) => columns[1] !== null && period !== null);
  }

  vector(p) {
    return this.values[p];
  }

  name(p) {
    return `position ${this.positionIds[p]}`;
  }
}

/** Runs or tables that lie beside each other, told apart by their labels. */
function beside(Kind, all, labelOf) {
  const same = all.length > 1 && labelOf(all[0]) === labelOf(all[1]);
  const numTrained = all.filter(({untrained}) => !untrained).length;
  return all.map((each, i) => {
    const side = i < numTrained ? i : 2 + i - numTrained;
    return new Kind(each, labelOf(each) + (same ? ` (${i + 1})` : ""), side);
  });
}

/** [{runs: [Run, …one to four], conclusions: [{sentence, views: names}]}], from the JSON of each text: its only run, or {runs}. */
export function readTexts(texts) {
  return texts.map((text) => ({
    runs: beside(Run, text.runs ?? [text], ({label, name}) => label ?? name),
    conclusions: text.conclusions ?? [],
  }));
}

/**
 * {version, views, texts}, or {version, tables: [Table, …], against}; of a page that a server sends: {live:
 * true, key, version, views, models: [{name, num_layers}]}, and no texts yet.
 */
export function readReport() {
  const {texts, tables, ...report} = JSON.parse(document.getElementById("data").textContent);
  if (tables) {
    return {...report, tables: beside(Table, tables.tables, ({name}) => name), against: tables.against};
  }
  return {...report, texts: readTexts(texts ?? [])};
}

/** A number with its interval, where it has one: 0.157 (0.101 to 0.214). */
export const estimate = (value, low, high) =>
  number(value) + (low === undefined ? "" : ` (${number(low)} to ${number(high)})`);

/** A position: 3, or 3.50 where a table was interpolated. */
export function place(position) {
  return Number.isInteger(position) ? `${position}` : position.toFixed(2);
}

/** "1 token", "2 tokens". */
export const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

/** 0.157; where nothing but zeros would show, how small it is: 3e-4, and 0 for what may be rounding. */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size < 1e-9) return "0";
  if (size < 0.0005) return value.toExponential(0).replaceAll("-", "−");
  return value.toFixed(size < 100 ? 3 : 1).replace("-", "−");
}
