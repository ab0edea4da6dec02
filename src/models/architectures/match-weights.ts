import { LlamaGymError } from "../../core/errors.js";
import type { RawWeight, WeightEntry, WeightFile } from "../files/weight-file.js";
import type { DecoderConfig } from "../../engine/nn/decoder-config.js";
import { parameterShapes } from "./parameter-shapes.js";

/** The output matrix of every architecture whose output is not tied to its embedding. */
const HEAD_WEIGHT = "lm_head.weight";

/** Tensors that older checkpoints keep although they are no parameters: causal masks and rotary frequencies. */
const BUFFER_PATTERN = /(^|\.)(attn\.(bias|masked_bias)|rotary_emb\.inv_freq)$/;

/** At most this many tensors are named in a message. */
const MAX_LISTED = 6;

/** A model's weights under the names of its config. */
export interface MatchedWeights {
  /** As given, but untied where the file holds an output matrix that differs from the embedding. */
  readonly config: DecoderConfig;
  /** Exactly the config's parameters, by the config's names. */
  readonly weights: WeightFile;
}

/**
 * Finds each parameter of a model in its weight file, which may leave out the prefix of the base model ("model.",
 * "transformer."; as openai-community/gpt2 does) and hold buffers besides. The result closes the given file.
 * Throws one WEIGHTS_MISMATCH that names all missing, unexpected and wrongly shaped tensors.
 */
export async function matchWeights(config: DecoderConfig, file: WeightFile): Promise<MatchedWeights> {
  const untied = await untieIfDifferent(config, file);
  const names = findNames(untied, file);
  return { config: untied, weights: new RenamedWeights(file, names) };
}

/** The parameters' names in the file. */
function findNames(config: DecoderConfig, file: WeightFile): Map<string, string> {
  const shapes = parameterShapes(config);
  const names = new Map<string, string>();
  const missing: string[] = [];
  const wrongShapes: string[] = [];
  const used = new Set<string>();
  for (const [name, shape] of shapes) {
    const stored = findStoredName(config, file, name);
    if (stored === undefined) {
      missing.push(`${name} [${shape.join(", ")}]`);
      continue;
    }
    used.add(stored);
    names.set(name, stored);
    const found = file.entries.get(stored)!.shape;
    if (!isSameShape(found, shape))
      wrongShapes.push(`${stored} is [${found.join(", ")}], expected [${shape.join(", ")}]`);
  }
  const head = findStoredName(config, file, HEAD_WEIGHT);
  if (head !== undefined) used.add(head);
  const unexpected = [...file.entries.keys()].filter((name) => !used.has(name) && !BUFFER_PATTERN.test(name));
  if (missing.length + unexpected.length + wrongShapes.length === 0) return names;
  throw new LlamaGymError(
    "WEIGHTS_MISMATCH",
    `The tensors in ${file.path} are not those of the ${config.modelType} model that its config describes` +
      `${formatList("missing", missing)}${formatList("unexpected", unexpected)}${formatList("of another shape", wrongShapes)}. ` +
      "Check that config and weights belong together.",
  );
}

/** A parameter's name in the file: as it is, without the base model's prefix, or, for a tied embedding, the output's. */
function findStoredName(config: DecoderConfig, file: WeightFile, name: string): string | undefined {
  const { embedding, head } = config.names;
  const prefix = embedding.slice(0, embedding.indexOf(".") + 1);
  const candidates = [name];
  if (name.startsWith(prefix)) candidates.push(name.slice(prefix.length));
  if (name === embedding && head === embedding) candidates.push(HEAD_WEIGHT);
  return candidates.find((candidate) => file.entries.has(candidate));
}

/**
 * A file may hold an output matrix although its config says that it is tied to the embedding. As in Transformers, the
 * two are tied only where they are equal.
 */
async function untieIfDifferent(config: DecoderConfig, file: WeightFile): Promise<DecoderConfig> {
  const { embedding, head } = config.names;
  const stored = findStoredName(config, file, embedding);
  if (head !== embedding || stored === undefined || stored === HEAD_WEIGHT || !file.entries.has(HEAD_WEIGHT))
    return config;
  if (await isSameTensor(file, stored, HEAD_WEIGHT)) return config;
  return { ...config, names: { ...config.names, head: HEAD_WEIGHT } };
}

async function isSameTensor(file: WeightFile, one: string, other: string): Promise<boolean> {
  const [a, b] = [file.entries.get(one)!, file.entries.get(other)!];
  if (a.dtype !== b.dtype || !isSameShape(a.shape, b.shape)) return false;
  if (a.file === b.file && a.offset === b.offset) return true;
  const [left, right] = [await file.readRaw(one), await file.readRaw(other)];
  return Buffer.compare(left.bytes, right.bytes) === 0;
}

function isSameShape(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((size, i) => size === other[i]);
}

function formatList(kind: string, items: readonly string[]): string {
  if (items.length === 0) return "";
  const omitted = items.length > MAX_LISTED ? ` and ${items.length - MAX_LISTED} more` : "";
  return `; ${kind}: ${items.slice(0, MAX_LISTED).join(", ")}${omitted}`;
}

/** A weight file seen under other names, and without the tensors that have none. */
class RenamedWeights implements WeightFile {
  readonly path: string;
  readonly entries: ReadonlyMap<string, WeightEntry>;

  constructor(
    private readonly file: WeightFile,
    private readonly names: ReadonlyMap<string, string>,
  ) {
    this.path = file.path;
    this.entries = new Map([...names].map(([name, stored]) => [name, { ...file.entries.get(stored)!, name }]));
  }

  async readFloat32(name: string, target?: Float32Array): Promise<Float32Array> {
    return this.file.readFloat32(this.names.get(name) ?? name, target);
  }

  async readRaw(name: string): Promise<RawWeight> {
    return this.file.readRaw(this.names.get(name) ?? name);
  }

  async close(): Promise<void> {
    await this.file.close();
  }
}
