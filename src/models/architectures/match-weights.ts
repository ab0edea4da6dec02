import { compareBytes } from "../../core/bytes.js";
import { LlamaGymError } from "../../core/errors.js";
import type { WeightEntry, WeightFile } from "../files/weight-file.js";
import type { DecoderConfig } from "../../engine/nn/index.js";
import { HEAD_WEIGHT, parameterShapes } from "./parameter-shapes.js";

/** Buffers that older checkpoints contain: causal masks and rotary frequencies. */
const BUFFER_PATTERN = /(^|\.)((attn|attention)\.(bias|masked_bias)|rotary_emb\.inv_freq)$/;

/** Maximum number of tensors named in a message. */
const MAX_LISTED = 6;

/** A model's weights under its config's parameter names. */
export interface MatchedWeights {
  /**
   * The given config, untied where the file has an output matrix that differs from the embedding.
   */
  readonly config: DecoderConfig;
  /** Exactly the config's parameters, by the config's names. */
  readonly weights: WeightFile;
}

/**
 * Finds each parameter of a model in its weight file, whose names may lack the base model's prefix
 * ("model.", "transformer.", as in openai-community/gpt2). Known buffers are ignored. Closing the
 * result closes the file. @throws WEIGHTS_MISMATCH naming all missing, unexpected and wrongly
 * shaped tensors.
 */
export async function matchWeights(config: DecoderConfig, file: WeightFile): Promise<MatchedWeights> {
  const untied = await untieIfDifferent(config, file);
  const names = findNames(untied, file);
  return { config: untied, weights: new RenamedWeights(file, names) };
}

/** Maps parameters to their names in the file. */
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

/**
 * Returns a parameter's name in the file: as is, without the base model's prefix, or the output
 * matrix for a tied embedding.
 */
function findStoredName(config: DecoderConfig, file: WeightFile, name: string): string | undefined {
  const { embedding, head, storedHead } = config.names;
  const prefix = embedding.slice(0, embedding.indexOf(".") + 1);
  const candidates = [name];
  if (name.startsWith(prefix)) candidates.push(name.slice(prefix.length));
  const isTiedEmbedding = name === embedding && head === embedding;
  if (isTiedEmbedding) candidates.push(HEAD_WEIGHT);
  if (storedHead !== undefined && (isTiedEmbedding || name === HEAD_WEIGHT)) candidates.push(storedHead);
  return candidates.find((candidate) => file.entries.has(candidate));
}

/**
 * Unties the output matrix where the file has one that differs from the embedding, as Transformers
 * does.
 */
async function untieIfDifferent(config: DecoderConfig, file: WeightFile): Promise<DecoderConfig> {
  const { embedding, head } = config.names;
  const stored = findStoredName(config, file, embedding);
  const storedHead = findStoredName(config, file, HEAD_WEIGHT);
  if (head !== embedding || stored === undefined || storedHead === undefined || stored === storedHead) return config;
  if (await isSameTensor(file, stored, storedHead)) return config;
  return { ...config, names: { ...config.names, head: HEAD_WEIGHT } };
}

async function isSameTensor(file: WeightFile, one: string, other: string): Promise<boolean> {
  const [a, b] = [file.entries.get(one)!, file.entries.get(other)!];
  if (a.dtype !== b.dtype || !isSameShape(a.shape, b.shape)) return false;
  if (a.file === b.file && a.offset === b.offset) return true;
  return compareBytes(await file.readBytes(one), await file.readBytes(other)) === 0;
}

function isSameShape(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((size, i) => size === other[i]);
}

function formatList(kind: string, items: readonly string[]): string {
  if (items.length === 0) return "";
  const omitted = items.length > MAX_LISTED ? ` and ${items.length - MAX_LISTED} more` : "";
  return `; ${kind}: ${items.slice(0, MAX_LISTED).join(", ")}${omitted}`;
}

/** A weight file restricted to given tensors under new names. */
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

  readChunks(name: string): AsyncIterable<Float32Array<ArrayBuffer>> {
    return this.file.readChunks(this.names.get(name) ?? name);
  }

  async readBytes(name: string): Promise<Uint8Array<ArrayBuffer>> {
    return this.file.readBytes(this.names.get(name) ?? name);
  }

  async close(): Promise<void> {
    await this.file.close();
  }
}
