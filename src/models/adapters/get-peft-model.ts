import { checkOptions } from "../../core/settings.js";
import { LlamaGymError } from "../../core/errors.js";
import { getValueHeadLayers, isValueHeadParameter, type ValueHeadConfig } from "../../engine/nn/index.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { countElements } from "../../core/numbers.js";
import type { CausalLM } from "../causal-lm.js";
import { LORA_DEFAULTS, type LoraConfig } from "../files/index.js";
import { compile } from "../../engine/graph/index.js";
import type { BufferView } from "../../engine/runtime/index.js";
import { getAdapterShapes, selectAdapterParts, type AdapterParts } from "./adapter-parts.js";
import { HEAD_MODULE } from "../architectures/index.js";
import { loraAName, loraBName, loraMagnitudeName } from "./lora-module.js";
import { ParameterBuffer } from "../weights/parameter-buffer.js";

/** Options of `getPeftModel`, named as PEFT's LoraConfig. */
export interface PeftOptions extends Partial<LoraConfig> {
  /** Seed of the adapter's initialization. */
  readonly seed?: number;
  /** Adds a trainable value head for algorithms with a critic. */
  readonly valueHead?: ValueHeadConfig;
}

/**
 * Adds a new low-rank adapter, initialized as in PEFT so that it does not change the model: A
 * uniform within 1 / sqrt(in) and B zero; for the embedding A zero and B normal. Weights and
 * runtime are shared with the base model.
 * @throws INVALID_ARGUMENT for invalid values and for targets that match nothing.
 */
export async function getPeftModel(model: CausalLM, peftOptions: PeftOptions = {}): Promise<CausalLM> {
  checkOptions("getPeftModel", peftOptions, { ...LORA_DEFAULTS, seed: true, valueHead: true });
  const { seed = 0, valueHead, ...options } = peftOptions;
  const given = { ...LORA_DEFAULTS, ...options };
  const config = {
    ...given,
    layersToTransform: countFromStart(given.layersToTransform, model.config.layers.length),
  };
  const parts = selectAdapterParts(model.config, config);
  const shapes = getAdapterShapes(model.config, parts);
  const parameters = new ParameterBuffer(model.runtime, new Map([...shapes, ...getValueHeadShapes(model, valueHead)]));
  const baseValues = await readBaseValues(model, parts, shapes);
  for (const [name, view] of baseValues)
    await parameters.write(name, (await model.runtime.read(view)).data as Float32Array);
  const random = new RandomStream(seed);
  for (const lora of parts.modules.values()) {
    if (lora.kind === "embedding") await fillParameter(parameters, loraBName(lora), () => random.normal());
    else await fillParameter(parameters, loraAName(lora), createUniformSampler(random, lora.inFeatures));
  }
  await initializeValueHead(model, parameters, valueHead, random);
  return model.withTrainable(parameters, { adapter: { config, ...parts, baseValues }, valueHead });
}

/**
 * Reads the base model's values of an adapter's parameters that the base model has as well: whole
 * weights, rows of tokens, and magnitudes, which are the norms of its weights.
 */
async function readBaseValues(
  model: CausalLM,
  { modules, trainedTokens, ownParameters }: AdapterParts,
  shapes: ReadonlyMap<string, readonly number[]>,
): Promise<Map<string, BufferView>> {
  const { runtime, weights, config } = model;
  const views = new Map<string, BufferView>();
  const add = async (name: string, values: Float32Array) => {
    const view = runtime.allocate("float32", shapes.get(name)!);
    await runtime.write(view, values);
    views.set(name, view);
  };
  // The output matrix of a model that ties it has the embedding's values.
  const stored = (name: string) => (weights.parameters.has(name) ? name : config.names.embedding);
  for (const name of ownParameters) await add(name, await weights.read(stored(name)));
  for (const { name, tokens, inEmbedding } of trainedTokens)
    await add(name, await readRows(model, inEmbedding ? config.names.embedding : config.names.head, tokens));
  const scaled = [...modules.values()].filter(({ useDora }) => useDora);
  if (scaled.length === 0) return views;
  const scope = model.scope("unmerged");
  const graph = compile(Object.fromEntries(scaled.map((lora) => [loraMagnitudeName(lora), scope.computeNorms(lora)])));
  const session = await model.createSession(graph, { packWeights: false });
  for (const [name, { data }] of Object.entries(await session.run({}))) await add(name, data);
  await session.release();
  return views;
}

/** Reads some rows of a matrix. */
async function readRows({ weights }: CausalLM, name: string, rows: readonly number[]): Promise<Float32Array> {
  const width = weights.shape(name)[1];
  const values = new Float32Array(rows.length * width);
  let start = 0;
  for await (const chunk of weights.readChunks(name)) {
    const end = start + chunk.length / width;
    rows.forEach((row, i) => {
      if (row >= start && row < end)
        values.set(chunk.subarray((row - start) * width, (row - start + 1) * width), i * width);
    });
    start = end;
  }
  return values;
}

/**
 * Replaces negative layers, which count from the end: adapter files have none. Those before the
 * first layer are left out.
 */
function countFromStart(given: LoraConfig["layersToTransform"], layerCount: number): readonly number[] {
  const layers = [given].flat();
  const counted = layers.map((layer) => (layer < 0 ? layer + layerCount : layer)).filter((layer) => !(layer < 0));
  // None would select all; the error names what was given.
  return counted.length === 0 ? layers : counted;
}

/** Fills a parameter with drawn values. */
async function fillParameter(parameters: ParameterBuffer, name: string, draw: () => number): Promise<void> {
  const length = countElements(parameters.shape(name));
  await parameters.write(name, new Float32Array(length).map(draw));
}

/** PyTorch's initialization of linear layers: uniform within 1 / sqrt(in). */
function createUniformSampler(random: RandomStream, inFeatures: number): () => number {
  const bound = 1 / Math.sqrt(inFeatures);
  return () => random.uniform(-bound, bound);
}

/** Returns the shapes of a value head's parameters; empty without one. */
export function getValueHeadShapes(
  model: CausalLM,
  valueHead: ValueHeadConfig | undefined,
): Map<string, readonly number[]> {
  const layers = valueHead === undefined ? [] : getValueHeadLayers(valueHead, model.config.hiddenSize);
  return new Map<string, readonly number[]>(
    layers.flatMap(({ name, inFeatures, outFeatures }) => [
      [`${name}.weight`, [outFeatures, inFeatures]] as [string, number[]],
      [`${name}.bias`, [outFeatures]] as [string, number[]],
    ]),
  );
}

async function initializeValueHead(
  model: CausalLM,
  parameters: ParameterBuffer,
  valueHead: ValueHeadConfig | undefined,
  random: RandomStream,
): Promise<void> {
  for (const { name, inFeatures } of valueHead === undefined
    ? []
    : getValueHeadLayers(valueHead, model.config.hiddenSize)) {
    for (const part of ["weight", "bias"])
      await fillParameter(parameters, `${name}.${part}`, createUniformSampler(random, inFeatures));
  }
}

/**
 * Replaces an adapted or trainable model's value head by a newly initialized one, or removes it.
 * The other parameters are copied, and `model`'s buffers are freed.
 */
export async function replaceValueHead(
  model: CausalLM,
  valueHead: ValueHeadConfig | undefined,
  { seed = 0 }: { seed?: number } = {},
): Promise<CausalLM> {
  const { parameters: previous, adapter } = model;
  const names = previous.names.filter((name) => !isValueHeadParameter(name));
  const shapes = names.map((name) => [name, previous.shape(name)] as const);
  const parameters = new ParameterBuffer(model.runtime, new Map([...shapes, ...getValueHeadShapes(model, valueHead)]));
  for (const name of names) await parameters.write(name, await previous.read(name));
  await initializeValueHead(model, parameters, valueHead, new RandomStream(seed));
  previous.free();
  return model.withoutTrainable().withTrainable(parameters, { adapter, valueHead });
}

/** Values of trainable parameters by name. */
export type ParameterValues = ReadonlyMap<string, { readonly shape: readonly number[]; readonly data: Float32Array }>;

/**
 * Adds an adapter (and value head) with given values. @throws WEIGHTS_MISMATCH when a value is
 * missing or has the wrong shape, MODEL_UNSUPPORTED when one belongs to a module that cannot be
 * adapted.
 */
export async function withAdapterValues(
  model: CausalLM,
  config: LoraConfig,
  values: ParameterValues,
  valueHead?: ValueHeadConfig,
): Promise<CausalLM> {
  const parts = selectAdapterParts(model.config, config);
  const adapterShapes = getAdapterShapes(model.config, parts);
  const shapes = new Map([...adapterShapes, ...getValueHeadShapes(model, valueHead)]);
  for (const [name, shape] of shapes) {
    const foundShape = values.get(name)?.shape;
    if (foundShape?.join() === shape.join()) continue;
    throw new LlamaGymError(
      "WEIGHTS_MISMATCH",
      `The adapter's ${name} must have shape [${shape.join(", ")}], but is ${foundShape === undefined ? "missing" : `[${foundShape.join(", ")}]`}. ` +
        "Check that it was trained for this model.",
    );
  }
  // The output matrix that is tied to the embedding has copies of its values.
  const isCopy = (name: string) =>
    name.startsWith(`${HEAD_MODULE}.lora_`) && [...parts.modules.values()].some(({ tiesHead }) => tiesHead);
  const unused = [...values.keys()].filter((name) => !shapes.has(name) && !isCopy(name));
  if (unused.length > 0) {
    throw new LlamaGymError(
      "MODEL_UNSUPPORTED",
      `The adapter contains ${unused.slice(0, 3).join(", ")}, which is not supported: only the linear modules of the ` +
        "layers, the output matrix and the embedding that its targetModules name can be adapted.",
    );
  }
  const parameters = new ParameterBuffer(model.runtime, shapes);
  for (const name of shapes.keys()) await parameters.write(name, values.get(name)!.data);
  const baseValues = await readBaseValues(model, parts, adapterShapes);
  return model.withTrainable(parameters, { adapter: { config, ...parts, baseValues }, valueHead });
}

/**
 * Makes the model's own weights trainable: all of them, or those whose names match. They are copied
 * to a parameter buffer; the rest stays frozen. @throws INVALID_ARGUMENT when nothing matches.
 */
export async function makeTrainable(
  model: CausalLM,
  selection: "all" | RegExp = "all",
  { valueHead, seed = 0 }: { valueHead?: ValueHeadConfig; seed?: number } = {},
): Promise<CausalLM> {
  const selected = [...model.weights.parameters].filter(([name]) => selection === "all" || selection.test(name));
  if (selected.length === 0)
    throw new LlamaGymError("INVALID_ARGUMENT", `${String(selection)} matches none of the model's tensors.`);
  const parameters = new ParameterBuffer(
    model.runtime,
    new Map<string, readonly number[]>([
      ...selected.map(([name, { shape }]) => [name, shape] as const),
      ...getValueHeadShapes(model, valueHead),
    ]),
  );
  for (const [name] of selected) await parameters.write(name, await model.weights.file.readFloat32(name));
  await initializeValueHead(model, parameters, valueHead, new RandomStream(seed));
  return model.withTrainable(parameters, { valueHead });
}
