import { COUNT, oneOf, type OptionNames } from "../core/settings.js";
import { fs } from "#platform";
import { LlamaGymError } from "../core/errors.js";
import { isAllFinite } from "../core/numbers.js";
import {
  readAdapter,
  saveWeightFolder,
  SafetensorsFile,
  LORA_DEFAULTS,
  writeAdapter,
  writeSafetensors,
  type Adapter,
  type AdapterTensor,
  type LoraConfig,
  type TensorToSave,
} from "./files/index.js";
import { readJsonIfExists, writeJson } from "../core/files/json-file.js";
import { verifyChecksums, writeChecksums } from "../core/files/checksums.js";
import { writeFileAtomic } from "../core/files/write-file-atomic.js";
import type { JsonObject } from "../core/json.js";
import { JsonFields } from "../core/files/json-fields.js";
import { isValueHeadParameter, VALUE_HEAD_DEFAULTS, type ValueHeadConfig } from "../engine/nn/index.js";
import { getValueHeadShapes, withAdapterValues, type ParameterValues } from "./adapters/get-peft-model.js";
import { buildLegacyRope, HEAD_MODULE, HEAD_WEIGHT } from "./architectures/index.js";
import { formatAdapterReadme } from "./adapter-readme.js";
import type { CausalLM } from "./causal-lm.js";
import { EMBEDDED_MODEL } from "./embedded-model.js";
import { loraAName, loraBName, type LoraModule } from "./adapters/lora-module.js";
import { openModelSource } from "./weights/model-source.js";
import { requireFinite, WeightReader, type OnWeightsProgress } from "./weight-reader.js";

/** Options of `savePretrained`. */
export interface SaveOptions {
  /** Stored type of the weights. Default "F32". */
  readonly dtype?: "F32" | "F16" | "BF16";
  /**
   * Base model named in the adapter's config, a hub id or a path. Default the path the model was
   * opened from.
   */
  readonly baseModelName?: string;
  /** Larger models are split into shards. */
  readonly maxShardBytes?: number;
  /** Receives the share of a whole model's weights that were written, from 0 to 1. */
  readonly onProgress?: OnWeightsProgress;
}

/** The names of `SaveOptions`. */
export const saveOptionNames: OptionNames<SaveOptions> = {
  dtype: oneOf("F32", "F16", "BF16"),
  baseModelName: String,
  maxShardBytes: COUNT,
  onProgress: Function,
};

/** Files of the value head's tensors and configuration. */
const VALUE_HEAD_WEIGHTS = "value_head.safetensors";
const VALUE_HEAD_CONFIG = "value_head.json";

const TORCH_DTYPES = { F32: "float32", F16: "float16", BF16: "bfloat16" } as const;

/**
 * Saves a model in the formats of Transformers and PEFT: the adapter alone if there is one (merge
 * it first to save the whole model), else config.json, generation_config.json and safetensors; and
 * the value head, if any. SHA256SUMS lists the checksums of the files.
 * @throws FILE_WRITE_FAILED, TRAINING_DIVERGED for parameters that are not finite.
 */
export async function saveModel(model: CausalLM, folder: string, options: SaveOptions = {}): Promise<void> {
  await fs.makeFolder(folder).catch((error: unknown) => {
    throw new LlamaGymError("FILE_WRITE_FAILED", `Could not create the folder ${folder}: ${String(error)}`, {
      cause: error,
    });
  });
  const names = await (model.adapter === undefined ? saveWeights : saveAdapter)(model, folder, options);
  if (model.valueHead !== undefined) names.push(...(await saveValueHead(model, model.valueHead, folder)));
  await writeChecksums(folder, names);
}

async function saveWeights(
  model: CausalLM,
  folder: string,
  { dtype = "F32", maxShardBytes, onProgress }: SaveOptions,
): Promise<string[]> {
  const { generationConfig } = model.source;
  const names = ["config.json"];
  await writeFileAtomic(fs.join(folder, "config.json"), formatConfig(buildSavedConfig(model, dtype)));
  if (Object.keys(generationConfig).length > 0) {
    await writeJson(fs.join(folder, "generation_config.json"), generationConfig);
    names.push("generation_config.json");
  }
  const reader = new WeightReader(model, onProgress);
  const tensors: TensorToSave[] = [...model.weights.parameters.keys()].map((name) => ({
    name: name === HEAD_WEIGHT ? (model.config.names.storedHead ?? name) : name,
    shape: model.weights.shape(name),
    dtype,
    data: () => reader.readChunks(name),
  }));
  return [...names, ...(await saveWeightFolder(folder, tensors, { maxShardBytes }))];
}

/** Builds the config.json of a saved model, in the fields of Transformers 4 and 5. */
export function buildSavedConfig({ source, config }: CausalLM, dtype: "F32" | "F16" | "BF16" = "F32"): JsonObject {
  const { torch_dtype: _, ...rest } = source.config;
  return { ...rest, ...buildLegacyRope(source.config, config), dtype: TORCH_DTYPES[dtype] };
}

/** Fields that Transformers accepts only as floats: 8.0, not 8. */
const FLOAT_FIELDS =
  "final_logit_softcapping|attn_logit_softcapping|initializer_range|rms_norm_eps|layer_norm_eps|layer_norm_epsilon|" +
  "rope_theta|rope_local_base_freq|partial_rotary_factor|factor|low_freq_factor|high_freq_factor|beta_fast|beta_slow|" +
  "attention_factor";
const FLOAT_FIELD_PATTERN = new RegExp(
  String.raw`^( *"(?:${FLOAT_FIELDS})": -?\d+| *"time_step_limit": \[\s*-?\d+)(,?)$`,
  "gm",
);

/**
 * Formats a config.json with a fraction in float fields, which JavaScript omits and Transformers
 * requires.
 */
function formatConfig(config: JsonObject): string {
  return `${JSON.stringify(config, null, 2).replace(FLOAT_FIELD_PATTERN, "$1.0$2")}\n`;
}

async function saveAdapter(
  model: CausalLM,
  folder: string,
  { baseModelName = model.source.path }: SaveOptions,
): Promise<string[]> {
  const { config } = model.adapter!;
  const names = model.parameters.names.filter((name) => !isValueHeadParameter(name));
  const values = withTiedCopies(model, new Map([...(await readValues(model, names)), ...(await readTables(model))]));
  const files = await writeAdapter(
    folder,
    { ...config, fanInFanOut: model.config.transposedWeights, baseModelNameOrPath: baseModelName },
    values,
  );
  const readme = formatAdapterReadme(baseModelName, baseModelName === EMBEDDED_MODEL);
  const readmePath = fs.join(folder, "README.md");
  if (readme !== undefined && !(await fs.exists(readmePath))) await writeFileAtomic(readmePath, readme);
  return files;
}

/** Reads the tables that came with an adapter, less those that it trains. */
async function readTables({ weights, adapter, config }: CausalLM): Promise<Map<string, AdapterTensor>> {
  const values = new Map<string, AdapterTensor>();
  for (const name of weights.tables) {
    if (adapter?.ownParameters.includes(name) !== true)
      values.set(name, {
        shape: [config.vocabSize, config.hiddenSize],
        data: requireFinite(name, await weights.read(name)),
      });
  }
  return values;
}

/**
 * Adds the output matrix, or its adapter, where it is tied to the embedding's: PEFT saves both.
 */
function withTiedCopies({ adapter, config: { names } }: CausalLM, values: ParameterValues): ParameterValues {
  const tied = new Map(values);
  for (const lora of adapter!.modules.values()) {
    if (!lora.tiesHead) continue;
    for (const [from, to] of getTiedNames(lora)) tied.set(to, transposeMatrix(values.get(from)!));
  }
  const own = values.get(names.embedding);
  if (own !== undefined && names.head === names.embedding) tied.set(HEAD_WEIGHT, own);
  return tied;
}

/** Returns the names of an embedding's A and B, each with its transpose of the output matrix. */
function getTiedNames(lora: LoraModule): readonly (readonly [string, string])[] {
  const head = { module: HEAD_MODULE, kind: "head" } as const;
  return [
    [loraAName(lora), loraBName(head)],
    [loraBName(lora), loraAName(head)],
  ];
}

function transposeMatrix({ shape: [rows, columns], data }: AdapterTensor): AdapterTensor {
  const transposed = new Float32Array(data.length);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) transposed[column * rows + row] = data[row * columns + column];
  return { shape: [columns, rows], data: transposed };
}

async function saveValueHead(model: CausalLM, config: ValueHeadConfig, folder: string): Promise<string[]> {
  const values = await readValues(model, getValueHeadShapes(model, config).keys());
  await writeSafetensors(
    fs.join(folder, VALUE_HEAD_WEIGHTS),
    [...values].map(([name, { shape, data }]) => ({ name, shape, data })),
  );
  await writeJson(fs.join(folder, VALUE_HEAD_CONFIG), config);
  return [VALUE_HEAD_WEIGHTS, VALUE_HEAD_CONFIG];
}

async function readValues(model: CausalLM, names: Iterable<string>): Promise<ParameterValues> {
  const values = new Map<string, { shape: readonly number[]; data: Float32Array }>();
  for (const name of names)
    values.set(name, {
      shape: model.parameters.shape(name),
      data: requireFinite(name, await model.parameters.read(name)),
    });
  return values;
}

/**
 * Loads an adapter saved by this library or PEFT, with its value head, if any. @throws
 * FILE_NOT_FOUND, FILE_CORRUPT, MODEL_UNSUPPORTED for features beyond LoRA, WEIGHTS_MISMATCH for
 * another model's adapter.
 */
export async function loadAdapter(model: CausalLM, folder: string): Promise<CausalLM> {
  await verifyChecksums(folder);
  const { config, tensors, baseWeights } = await readAdapter(folder);
  const base = await withBaseWeights(model, folder, { config, tensors, baseWeights });
  const lora = Object.fromEntries(
    Object.keys(LORA_DEFAULTS).map((name) => [name, config[name as keyof LoraConfig]]),
  ) as unknown as LoraConfig;
  const head = await loadValueHead(folder);
  const diverged = [...tensors, ...(head?.values ?? [])].find(([, { data }]) => !isAllFinite(data));
  if (diverged !== undefined) throw nonFiniteError(folder, diverged[0]);
  return withAdapterValues(base, lora, new Map([...tensors, ...(head?.values ?? [])]), head?.config);
}

const MERGE_ADVICE =
  "Merge it into its base model in PEFT, merge_and_unload().save_pretrained(FOLDER), and open that folder.";

/**
 * Largest relative difference of a base weight that another floating-point type explains: that of
 * BF16.
 */
const MAX_ROUNDING = 2 ** -8;

/**
 * Returns the model with the weights that an adapter's file has of its base model. PEFT saves the
 * embedding and the output matrix with an adapter of them; they differ from the model's where the
 * vocabulary was resized or they were trained before. @throws MODEL_UNSUPPORTED for other ones,
 * WEIGHTS_MISMATCH for a resized matrix without the other.
 */
async function withBaseWeights(
  model: CausalLM,
  folder: string,
  { config: adapterConfig, tensors, baseWeights }: Adapter,
): Promise<CausalLM> {
  const { weights, config } = model;
  const { embedding, head } = config.names;
  const changed = new Map<string, AdapterTensor>();
  // Trained tables of a resized vocabulary have no other values of the base model.
  for (const name of [embedding, HEAD_WEIGHT]) {
    const tensor = tensors.get(name);
    if (tensor !== undefined && tensor.shape[0] !== config.vocabSize) changed.set(name, tensor);
  }
  for (const [name, tensor] of baseWeights) {
    const trained = tensors.get(embedding);
    const isCopy = name === HEAD_WEIGHT && adapterConfig.ensureWeightTying && trained !== undefined;
    if (isCopy && isClose(trained.data, tensor.data)) continue;
    const own = weights.parameters.has(name) || name !== HEAD_WEIGHT ? name : head;
    const shape = weights.parameters.get(own)?.shape;
    const isSame = shape?.join() === tensor.shape.join() && isClose(await weights.read(own), tensor.data);
    if (isSame) continue;
    const isTable = (name === embedding || name === HEAD_WEIGHT) && tensor.shape[1] === config.hiddenSize;
    if (!isTable)
      throw new LlamaGymError(
        "MODEL_UNSUPPORTED",
        `The adapter in ${folder} comes with ${name} [${tensor.shape.join(", ")}], which differs from the base model's${shape === undefined ? "" : ` [${shape.join(", ")}]`}. ` +
          `Only the embedding and the output matrix may. ${MERGE_ADVICE}`,
      );
    changed.set(name, tensor);
  }
  // A tied output matrix is saved as well.
  const [newEmbedding, newHead] = [changed.get(embedding), changed.get(HEAD_WEIGHT)];
  const isTied = head === embedding && newEmbedding !== undefined;
  if (isTied && newHead !== undefined && isClose(newEmbedding.data, newHead.data)) changed.delete(HEAD_WEIGHT);
  if (changed.size === 0) return model;
  const vocabSize = [...changed.values()][0].shape[0];
  for (const name of isTied ? [...changed.keys()] : [embedding, HEAD_WEIGHT]) {
    const rows = changed.get(name)?.shape[0] ?? config.vocabSize;
    if (rows !== vocabSize)
      throw new LlamaGymError(
        "WEIGHTS_MISMATCH",
        `The adapter in ${folder} was trained with a vocabulary of ${Math.max(rows, vocabSize)} tokens, but its file has no ${name} of that size. ` +
          "Save it again in PEFT with save_embedding_layers=True.",
      );
  }
  return model.withTables(changed);
}

function isClose(values: Float32Array, others: Float32Array): boolean {
  return (
    values.length === others.length &&
    values.every((value, i) => Math.abs(value - others[i]) <= MAX_ROUNDING * Math.abs(value))
  );
}

/**
 * Restores trainable parameters that `saveModel` wrote for a model of the same form, without the
 * value head if `valueHead` is false. @throws FILE_NOT_FOUND, FILE_CORRUPT, and WEIGHTS_MISMATCH,
 * before changing anything, for values of another form.
 */
export async function loadTrainedValues(
  model: CausalLM,
  folder: string,
  { valueHead = true }: { readonly valueHead?: boolean } = {},
): Promise<void> {
  await verifyChecksums(folder);
  const trainedTensors =
    model.adapter === undefined ? await readTrainedWeights(model, folder) : (await readAdapter(folder)).tensors;
  const savedValues: ParameterValues = new Map([...trainedTensors, ...((await loadValueHead(folder))?.values ?? [])]);
  const { parameters } = model;
  const names = parameters.names.filter((name) => valueHead || !isValueHeadParameter(name));
  for (const name of names) {
    const { shape, data } = savedValues.get(name) ?? {};
    if (data !== undefined && !isAllFinite(data)) throw nonFiniteError(folder, name);
    if (shape?.join() === parameters.shape(name).join()) continue;
    const found = shape === undefined ? "missing" : `[${shape.join(", ")}]`;
    throw new LlamaGymError(
      "WEIGHTS_MISMATCH",
      `${name} in ${folder} must be [${parameters.shape(name).join(", ")}], but is ${found}. Check that it was saved from the same form of model.`,
    );
  }
  for (const name of names) await parameters.write(name, savedValues.get(name)!.data);
  model.markParametersChanged();
}

const nonFiniteError = (folder: string, name: string): LlamaGymError =>
  new LlamaGymError(
    "FILE_CORRUPT",
    `${name} in ${folder} contains NaN or infinite values: its training diverged. Use an earlier checkpoint.`,
  );

/** Reads the tensors of a saved model that this one trains. */
async function readTrainedWeights(model: CausalLM, folder: string): Promise<ParameterValues> {
  const source = await openModelSource(folder);
  const { weights } = source;
  const values = new Map<string, { shape: readonly number[]; data: Float32Array }>();
  for (const name of model.parameters.names) {
    const entry = weights.entries.get(name);
    if (entry !== undefined) values.set(name, { shape: entry.shape, data: await weights.readFloat32(name) });
  }
  await source.close();
  return values;
}

async function loadValueHead(
  folder: string,
): Promise<{ config: ValueHeadConfig; values: ParameterValues } | undefined> {
  const saved = await readJsonIfExists(fs.join(folder, VALUE_HEAD_CONFIG));
  if (saved === undefined) return undefined;
  const fields = new JsonFields(saved, fs.join(folder, VALUE_HEAD_CONFIG));
  const kind = fields.text("kind") ?? VALUE_HEAD_DEFAULTS.kind;
  if (kind !== "linear" && kind !== "mlp") throw fields.unsupportedFieldError("kind", "Supported: linear, mlp.");
  const isProbability = (value: number): boolean => value >= 0 && value < 1;
  const dropout = fields.number("dropout", VALUE_HEAD_DEFAULTS.dropout, isProbability, "a number in [0, 1)");
  const config: ValueHeadConfig = { kind, dropout };
  const file = await SafetensorsFile.open(fs.join(folder, VALUE_HEAD_WEIGHTS));
  const values = new Map<string, { shape: readonly number[]; data: Float32Array }>();
  for (const [name, { shape }] of file.entries) values.set(name, { shape, data: await file.readFloat32(name) });
  await file.close();
  return { config, values };
}
