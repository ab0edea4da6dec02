import { invalidArgument, LlamaGymError } from "../core/errors.js";
import type { CompiledGraph, Node } from "../engine/graph/index.js";
import { type DecoderConfig, valueHead, type ValueHeadConfig } from "../engine/nn/index.js";
import {
  chooseDevice,
  type ChosenDevice,
  type Device,
  resolveDevice,
  Runtime,
  type SessionOptions,
  type Session,
  type BufferView,
} from "../engine/runtime/index.js";
import {
  findLayer,
  HEAD_MODULE,
  HEAD_WEIGHT,
  linearModules,
  matchWeights,
  parseModelConfig,
} from "./architectures/index.js";
import type { LoraConfig } from "./files/index.js";
import type { AdapterParts } from "./adapters/adapter-parts.js";
import { loraBiasName, loraBName } from "./adapters/lora-module.js";
import { ParameterBuffer } from "./weights/parameter-buffer.js";
import {
  baseValueName,
  ModelParameterScope,
  type BackwardPrecision,
  type ParameterScopeOptions,
} from "./model-parameter-scope.js";
import type { StoredParameter } from "./weights/stored-parameter.js";
import { readEosTokenIds } from "./text/special-tokens.js";
import { getConfigPath, openModelSource, type ModelSource } from "./weights/model-source.js";
import { countParameters } from "./weights/estimate-model-memory.js";
import { defaultMicroBatchTokens, usesGradientCheckpointing } from "./weights/micro-batch-memory.js";
import { ModelWeights } from "./weights/model-weights.js";

/** Options with which a model is opened. */
export interface ModelOptions {
  /**
   * Default "auto": the GPU if npm's webgpu is installed, it multiplies matrices at least twice as
   * fast as the CPU and the model has at least 20 million parameters; else the CPU.
   */
  readonly device?: Device;
  /** Threads per operation; default `OMP_NUM_THREADS`, or all cores. */
  readonly threads?: number;
  /**
   * Quantizes the layers' frozen matrices to 8 or 4 bits, and on CPUs the output matrix to 8 bits;
   * adapters on top train as usual (QLoRA). On CPUs, 8 bits are multiplied as whole numbers, in
   * sampling and in training.
   */
  readonly quantize?: 8 | 4;
  /**
   * "int8" computes gradients through the layers' frozen matrices in 8 bits: approximate and
   * faster, especially on CPUs with VNNI or AMX. The forward pass, and so sampling, does not
   * change. Not with `quantize` 4. Default "float32".
   */
  readonly backwardPrecision?: BackwardPrecision;
  /**
   * Whether training computes the values inside of a layer again for gradients instead of keeping
   * them: less memory, a forward pass more. The gradients are the same. Default: only where the
   * values of 256 tokens take over 2 GB, 1 GB with quantized weights, or an eighth of the machine's
   * memory.
   */
  readonly gradientCheckpointing?: boolean;
}

/** How gradients are computed; see ModelOptions. */
type GradientConfig = Required<Pick<ModelOptions, "backwardPrecision">> & Pick<ModelOptions, "gradientCheckpointing">;

/** A low-rank adapter of a model. */
export interface Adapter extends AdapterParts {
  readonly config: LoraConfig;
  /**
   * The base model's values of parameters that it has as well: whole weights, magnitudes and rows
   * of tokens.
   */
  readonly baseValues: ReadonlyMap<string, BufferView>;
}

/** Trainable parameters: an adapter's or the model's own. */
interface TrainableState {
  readonly adapter: Adapter | undefined;
  readonly valueHead: ValueHeadConfig | undefined;
  readonly parameters: ParameterBuffer;
}

/**
 * A decoder-only language model: configuration, frozen weights and trainable parameters. Adapted
 * and trainable variants share weights and runtime. Samplers and trainers build their own graphs
 * and get parameters here, so that all share one state.
 */
export class CausalLM {
  private version = 0;
  private clearedCaches = 0;

  constructor(
    readonly source: ModelSource,
    readonly config: DecoderConfig,
    readonly weights: ModelWeights,
    readonly runtime: Runtime,
    readonly gradientConfig: GradientConfig,
    private readonly trainable?: TrainableState,
  ) {}

  /** Opens a model folder or GGUF file. @throws LlamaGymError naming what is wrong with it. */
  static async open(
    path: string,
    { device = "auto", threads, quantize, backwardPrecision = "float32", gradientCheckpointing }: ModelOptions = {},
  ): Promise<CausalLM> {
    checkBackwardPrecision({ device, quantize, backwardPrecision });
    const source = await openModelSource(path);
    let runtime: Runtime | undefined;
    try {
      const { config, weights: file } = await matchWeights(
        parseModelConfig(source.config, getConfigPath(source)),
        source.weights,
      );
      const names = new Set(linearModules(config).map(({ name }) => `${name}.weight`));
      const chosen = await chooseModelDevice({ device, threads, backwardPrecision }, countParameters(config));
      const isCpu = chosen === "cpu";
      runtime = new Runtime({ device: chosen, threads });
      const quantization = quantize && {
        bits: quantize,
        scalesPerOutput: quantize === 8 && isCpu,
        codeType: await runtime.getCodeType(),
        names,
        head: isCpu ? config.names.head : undefined,
        transposed: config.transposedWeights,
      };
      const weights = await ModelWeights.open(file, quantization);
      return new CausalLM(source, config, weights, runtime, { backwardPrecision, gradientCheckpointing });
    } catch (error) {
      await Promise.all([source.close(), runtime?.close()]);
      throw error;
    }
  }

  /** Version of the trainable parameters, incremented by `markParametersChanged`. */
  get parametersVersion(): number {
    return this.version;
  }

  /**
   * Incremented by `markParametersChanged` and `clearCaches`. Caches discard the results of other
   * versions.
   */
  get cacheVersion(): number {
    return this.version + this.clearedCaches;
  }

  /**
   * Announces new parameters and invalidates all caches; must be called after every change of a
   * trainable parameter.
   */
  markParametersChanged(): void {
    this.version++;
  }

  /**
   * Makes samplers compute everything again although no parameter has changed. Rounding depends on
   * what is computed together, so the results after it do not depend, to the last bit, on what was
   * computed before.
   */
  clearCaches(): void {
    this.clearedCaches++;
  }

  get adapter(): Adapter | undefined {
    return this.trainable?.adapter;
  }

  get valueHead(): ValueHeadConfig | undefined {
    return this.trainable?.valueHead;
  }

  /**
   * The trainable parameters by their names in the model (or PEFT's without "base_model.model.").
   */
  get parameters(): ParameterBuffer {
    if (this.trainable === undefined) {
      throw new LlamaGymError(
        "INVALID_STATE",
        "This model has no trainable parameters. Add an adapter with getPeftModel() or call makeTrainable().",
      );
    }
    return this.trainable.parameters;
  }

  get isTrainable(): boolean {
    return this.trainable !== undefined;
  }

  /** Whether the output matrix or its adapter is trainable. */
  get isHeadTrained(): boolean {
    const { modules, trainedTokens } = this.adapter ?? { modules: new Map<string, never>(), trainedTokens: [] };
    if (modules.has(HEAD_MODULE) || trainedTokens.some(({ inHead }) => inHead)) return true;
    if ([...(this.adapter?.modules.values() ?? [])].some(({ tiesHead }) => tiesHead)) return true;
    const { head, headBias } = this.config.names;
    return [head, headBias].some((name) => name !== undefined && this.trainable?.parameters.has(name) === true);
  }

  /**
   * Number of layers below the lowest one with a trained parameter: their outputs do not change.
   */
  get frozenLayers(): number {
    const { config, adapter } = this;
    if (this.trainable === undefined) return config.layers.length;
    const trained =
      adapter === undefined
        ? this.trainable.parameters.names
        : [
            ...adapter.modules.keys(),
            ...adapter.ownParameters,
            ...adapter.trainedTokens.map(({ inEmbedding }) => (inEmbedding ? config.names.embedding : HEAD_WEIGHT)),
          ];
    return Math.min(...trained.map((name) => findLayer(config, name)));
  }

  /** Precision of gradients through frozen weights; see ModelOptions. */
  get backwardPrecision(): BackwardPrecision {
    return this.gradientConfig.backwardPrecision;
  }

  /** Whether training computes the values inside of a layer again; see ModelOptions. */
  get gradientCheckpointing(): boolean {
    return this.gradientConfig.gradientCheckpointing ?? usesGradientCheckpointing(this.config, this.passOptions);
  }

  /** Default number of tokens per forward and backward pass. */
  get microBatchTokens(): number {
    const { gradientCheckpointing } = this;
    return defaultMicroBatchTokens(this.config, { ...this.passOptions, gradientCheckpointing });
  }

  private get passOptions() {
    const trainedLayers = Math.max(1, this.config.layers.length - (this.isTrainable ? this.frozenLayers : 0));
    return { isQuantized: this.weights.bits !== 32, trainedLayers };
  }

  /** End-of-sequence tokens from the model's configuration files. */
  get eosTokenIds(): readonly number[] {
    return readEosTokenIds({ ...this.source.config, ...this.source.generationConfig });
  }

  /** Reads the current values of a tensor, trainable or frozen. */
  async readWeight(name: string): Promise<Float32Array> {
    return this.trainable?.parameters.has(name) === true
      ? this.trainable.parameters.read(name)
      : this.weights.read(name);
  }

  /**
   * Reads the current values of a tensor in consecutive chunks of whole rows; a trainable one at
   * once.
   */
  async *readWeightChunks(name: string): AsyncGenerator<Float32Array> {
    if (this.trainable?.parameters.has(name) === true) yield await this.trainable.parameters.read(name);
    else yield* this.weights.readChunks(name);
  }

  /** Creates the parameter scope of a graph; see ModelParameterScope. */
  scope(
    adapterMode: ParameterScopeOptions["adapterMode"],
    {
      dropout = false,
      ...options
    }: { dropout?: boolean } & Pick<
      ParameterScopeOptions,
      "backwardPrecision" | "forDecoding" | "withDerivedInputs"
    > = {},
  ): ModelParameterScope {
    const stored = new Map<string, StoredParameter>(this.weights.parameters);
    const { embedding, head } = this.config.names;
    // The output matrix keeps its values where the embedding alone is trained.
    if (!stored.has(head)) stored.set(head, { kind: "base", shape: stored.get(embedding)!.shape, of: embedding });
    for (const name of this.trainable?.parameters.names ?? [])
      if (stored.has(name)) stored.set(name, { kind: "trainable", shape: this.trainable!.parameters.shape(name) });
    return new ModelParameterScope({
      parameters: stored,
      transposedWeights: this.config.transposedWeights,
      adapter: this.adapter?.modules ?? new Map(),
      trainedTokens: this.adapter?.trainedTokens,
      head,
      adapterMode,
      ...options,
      adapterDropout: dropout ? this.trainable?.adapter?.config.loraDropout : 0,
    });
  }

  /** Computes values [rows] of hidden states [rows, width]; undefined without a value head. */
  computeValues(
    scope: ModelParameterScope,
    hidden: Node,
    { dropout = false }: { dropout?: boolean } = {},
  ): Node | undefined {
    const head = this.trainable?.valueHead;
    if (head === undefined) return undefined;
    const input = dropout ? scope.applyDropout(hidden, head.dropout) : hidden;
    return valueHead(head, input, (name, shape) => scope.getTrainableInput(name, shape));
  }

  /** Creates a session for a graph of this model; see SessionOptions. */
  async createSession(graph: CompiledGraph, options: Pick<SessionOptions, "packWeights"> = {}): Promise<Session> {
    return this.runtime.createSession(graph, {
      ...(await this.weights.getSessionOptions(graph, this.runtime)),
      ...options,
    });
  }

  /**
   * Returns views of the trainable parameters a graph reads; without the adapter (the reference
   * policy), zeros replace its B matrices, and the base model's values all that it also has.
   */
  getParameterViews(
    graph: CompiledGraph,
    { adapter = true }: { readonly adapter?: boolean } = {},
  ): Record<string, BufferView> {
    const views: Record<string, BufferView> = {};
    if (this.trainable === undefined) return views;
    const { parameters, adapter: lora } = this.trainable;
    const modules = adapter ? [] : [...(lora?.modules.values() ?? [])];
    const zeroed = new Set(modules.flatMap((module) => [loraBName(module), loraBiasName(module)]));
    for (const { name } of graph.inputs) {
      const base = adapter ? undefined : lora?.baseValues.get(name);
      if (base !== undefined) views[name] = base;
      else if (zeroed.has(name)) views[name] = parameters.zeros(name);
      else if (parameters.has(name)) views[name] = parameters.view(name);
    }
    const inputs = new Set(graph.inputs.map(({ name }) => name));
    for (const [name, view] of lora?.baseValues ?? [])
      if (inputs.has(baseValueName(name))) views[baseValueName(name)] = view;
    return views;
  }

  /** Returns a variant with trainable parameters that shares weights and runtime. */
  withTrainable(
    parameters: ParameterBuffer,
    { adapter, valueHead }: Partial<Omit<TrainableState, "parameters">> = {},
  ): CausalLM {
    if (this.trainable !== undefined) {
      throw new LlamaGymError(
        "INVALID_STATE",
        "This model already has trainable parameters. Start from the base model, or merge its adapter first.",
      );
    }
    const { source, weights, runtime, gradientConfig } = this;
    const config = adapter?.untiesHead === true ? withHead(this.config, HEAD_WEIGHT) : this.config;
    return new CausalLM(source, config, weights, runtime, gradientConfig, { adapter, valueHead, parameters });
  }

  /**
   * Returns a variant with another buffer of trainable values, 0 at first, for another version of
   * the trained ones.
   */
  withOwnValues(): CausalLM {
    const { parameters, adapter, valueHead: head } = { ...this.trainable!, parameters: this.parameters };
    const shapes = new Map(parameters.names.map((name) => [name, parameters.shape(name)]));
    const own = new ParameterBuffer(this.runtime, shapes);
    return this.withoutTrainable().withTrainable(own, { adapter, valueHead: head });
  }

  /**
   * Returns a variant with another embedding, another output matrix or both, of any number of
   * tokens.
   */
  withTables(
    tables: ReadonlyMap<string, { readonly shape: readonly number[]; readonly data: Float32Array }>,
  ): CausalLM {
    const { source, weights, runtime, gradientConfig } = this;
    const vocabSize = [...tables.values()][0].shape[0];
    const config = { ...(tables.has(HEAD_WEIGHT) ? withHead(this.config, HEAD_WEIGHT) : this.config), vocabSize };
    return new CausalLM(
      { ...source, config: { ...source.config, vocab_size: vocabSize } },
      config,
      weights.withTables(tables),
      runtime,
      gradientConfig,
    );
  }

  /** Returns the base model, which shares weights and runtime. */
  withoutTrainable(): CausalLM {
    const { source, weights, runtime, gradientConfig } = this;
    const { embedding, head } = this.config.names;
    const config = weights.parameters.has(head) ? this.config : withHead(this.config, embedding);
    return new CausalLM(source, config, weights, runtime, gradientConfig);
  }

  /** Closes the runtime, shared by all variants of this model, and the files. */
  async close(): Promise<void> {
    await this.runtime.close();
    await this.weights.close();
  }
}

/** Returns a configuration with another output matrix. */
export function withHead(config: DecoderConfig, head: string): DecoderConfig {
  return { ...config, names: { ...config.names, head } };
}

/** Returns the device on which a model with these options and this many parameters is opened. */
export async function chooseModelDevice(
  { device = "auto", threads, backwardPrecision }: Pick<ModelOptions, "device" | "threads" | "backwardPrecision">,
  parameters: number,
): Promise<ChosenDevice> {
  const isMeasured = device === "auto" && backwardPrecision !== "int8";
  return isMeasured ? chooseDevice(parameters, threads) : resolveDevice(device);
}

/** @throws INVALID_ARGUMENT where gradients in 8 bits are not available. */
export function checkBackwardPrecision({ device = "auto", quantize, backwardPrecision }: ModelOptions): void {
  if (backwardPrecision !== "int8") return;
  const resolvedDevice = resolveDevice(device);
  const problem =
    quantize === 4
      ? "does not apply to the weights of quantize 4"
      : resolvedDevice !== "cpu"
        ? `is for the processor, and the device is ${resolvedDevice}`
        : undefined;
  if (problem !== undefined) throw invalidArgument(`backwardPrecision "int8" ${problem}. Leave one of them out.`);
}
