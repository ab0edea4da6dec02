import { existsSync, rmSync } from "node:fs";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { countElements } from "../src/core/numbers.js";
import { RandomStream } from "../src/core/random/random-stream.js";
import { parameterShapes, parseModelConfig } from "../src/models/architectures/index.js";
import { saveWeightFolder } from "../src/models/files/index.js";
import { writeJson } from "../src/core/files/json-file.js";
import { modelList } from "../src/models/registry/model-list.js";
import { runMeasured } from "./peak-memory.js";

/**
 * Models of known shapes with random weights: memory and processor time of each kind of work, a
 * JSON object per line.
 */
const { values: options } = parseArgs({
  options: {
    /** Hub ids or parts of them, separated by commas; those that `llamagym models` lists. */
    shapes: { type: "string", default: "Qwen2.5-0.5B" },
    bits: { type: "string", default: "4" },
    /** open, sample, train, merge; each in a new process. */
    work: { type: "string", default: "sample,train" },
    /** Layers with an adapter: all, or a number of last ones. */
    layers: { type: "string", default: "all" },
    /** Rows and tokens of a training step. */
    rows: { type: "string", default: "8" },
    tokens: { type: "string", default: "100" },
    threads: { type: "string", default: "2" },
    /** Gradient checkpointing: auto, true or false. */
    checkpointing: { type: "string", default: "auto" },
    /** Folder of the models, which are then kept; default a temporary one. */
    folder: { type: "string" },
    /** Only writes the models. */
    write: { type: "boolean", default: false },
  },
});

const root = fileURLToPath(new URL("../../..", import.meta.url));
const RANDOM_VALUES = 2 ** 20 - 3;
const WEIGHT_SCALE = 0.02;

/** Writes a model of random bfloat16 weights, with a small tokenizer. */
async function writeShape(folder: string, config: Readonly<Record<string, unknown>>): Promise<void> {
  const random = new RandomStream(7);
  const drawn = Float32Array.from({ length: RANDOM_VALUES }, () => random.normal(0, WEIGHT_SCALE));
  // ONNX Runtime stores equal matrices once, so each begins elsewhere in the drawn values.
  let first = 0;
  const fill = (name: string, length: number): Float32Array => {
    const values = new Float32Array(length);
    if (/norm|ln_/u.test(name)) return values.fill(1);
    for (let start = 0; start < length;) {
      const piece = drawn.subarray(first, first + length - start);
      values.set(piece, start);
      start += piece.length;
      first = (first + piece.length + 1) % RANDOM_VALUES;
    }
    return values;
  };
  const tensors = [...parameterShapes(parseModelConfig(config as never, "config.json"))].map(([name, shape]) => ({
    name,
    shape,
    dtype: "BF16" as const,
    data: () => fill(name, countElements(shape)),
  }));
  await saveWeightFolder(folder, tensors);
  await writeJson(join(folder, "config.json"), { ...config, eos_token_id: 2 });
  await cp(join(root, "test", "fixtures", "text", "model"), folder, { recursive: true });
}

const base = options.folder === undefined ? await mkdtemp(join(tmpdir(), "llamagym-shapes-")) : resolve(options.folder);
// Also after a signal, which ends the process without running what comes last.
if (options.folder === undefined) process.once("exit", () => rmSync(base, { recursive: true, force: true }));
for (const wanted of options.shapes.split(",")) {
  const entry = modelList.find(({ id }) => id.toLowerCase().includes(wanted.toLowerCase()));
  if (entry === undefined) throw new Error(`no listed model's id contains "${wanted}"`);
  const folder = join(base, entry.id.replaceAll("/", "--"));
  if (!existsSync(join(folder, "config.json"))) await writeShape(folder, entry.config);
  if (options.write) continue;
  for (const bits of options.bits.split(","))
    for (const work of options.work.split(",")) {
      const { layers, rows, tokens, threads, checkpointing } = options;
      const child = join(root, "bench", ".build", "bench", "ours", "shape.js");
      const args = {
        model: folder,
        bits,
        work,
        layers,
        rows,
        tokens,
        threads,
        checkpointing,
        output: join(base, "merged"),
      };
      const flags = Object.entries(args).map(([name, value]) => `--${name}=${value}`);
      const print = (value: object) =>
        console.log(JSON.stringify({ shape: entry.id, bits: Number(bits), work, ...value }));
      const gigabytes = (bytes: number) => Number((bytes / 1e9).toFixed(3));
      await runMeasured(process.execPath, [child, ...flags], (line, { peakPss, peakRss }) =>
        print({ ...(JSON.parse(line) as object), pss: gigabytes(peakPss), rss: gigabytes(peakRss) }),
      ).then(
        ({ peakPss, peakRss }) => print({ phase: "all", pss: gigabytes(peakPss), rss: gigabytes(peakRss) }),
        (error: unknown) => print({ error: String(error) }),
      );
      await rm(args.output, { recursive: true, force: true });
    }
  if (options.folder === undefined) await rm(folder, { recursive: true });
}
