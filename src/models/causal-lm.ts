import { LlamaGymError } from "../core/errors.js";
import type { CompiledGraph, Node } from "../engine/graph/index.js";
import type { DecoderConfig } from "../engine/nn/decoder-config.js";
import { valueHead, type ValueHeadConfig } from "../engine/nn/value-head.js";
import { resolveProviders, type Device } from "../engine/runtime/device.js";
import { Runtime, type SessionOptions } from "../engine/runtime/runtime.js";
import type { Session } from "../engine/runtime/session.js";
import type { BufferView } from "../engine/runtime/buffer-view.js";
import { HEAD_MODULE, linearModules, matchWeights, parseModelConfig } from "./architectures/index.js";
import { loraBName, type LoraConfig, type LoraModule } from "./adapters/lora-config.js";
import type { ParameterBuffer } from "./weights/parameter-buffer.js";
import {
  ModelParameterScope,
  type BackwardPrecision,
  type ParameterScopeOptions,
  type StoredParameter,
} from "./model-parameter-scope.js";
import { getConfigPath, openModelSource, type ModelSource } from "./weights/model-source.js";
import { ModelWeights } from "./weights/model-weights.js";

export interface ModelOptions {
  readonly device?: Device;
  /** Threads of one operation; all cores by default. */
  readonly threads?: number;
  /** Holds the layers' matrices in 8 or 4 bits, frozen: less memory, less exact; adapters on top train as ever (QLoRA). */
  readonly quantize?: 8 | 4;
  /**
   * "int8" computes the gradients that flow back through the layers' frozen matrices in 8 bits: faster, most of all on processors with
   * instructions for it, and not exact. Values, and so what is sampled, stay as they are. Not with `quantize`. Default "float32".
   */
  readonly backwardPrecision?: BackwardPrecision;
}

/** A low-rank adapter on a model: where it sits and how it was configured. */
export interface Adapter {
  readonly config: LoraConfig;
  readonly modules: ReadonlyMap<string, LoraModule>;
}

/** What is trained, if anything: an adapter, or the weights themselves. */
interface TrainableState {
  readonly adapter: Adapter | undefined;
  readonly valueHead: ValueHeadConfig | undefined;
  readonly parameters: ParameterBuffer;
}

/**
 * A decoder-only language model: its configuration, its frozen weights and what of it is trained. Adapted or trained forms of
 * a model share its weights and its runtime. Graphs are made by those who use the model (sampler, trainer) and get their
 * parameters here, so that all of them see one state.
 */
export class CausalLM {
  /** Grows with every change of a trained value; what was computed before (caches) no longer holds. */
  parametersVersion = 0;

  constructor(
    readonly source: ModelSource,
    readonly config: DecoderConfig,
    readonly weights: ModelWeights,
    readonly runtime: Runtime,
    readonly backwardPrecision: BackwardPrecision,
    private readonly trainable?: TrainableState,
  ) {}

  /** Opens a model folder or GGUF file; throws a LlamaGymError that names what is wrong with it. */
  static async open(
    path: string,
    { device = "auto", threads, quantize, backwardPrecision = "float32" }: ModelOptions = {},
  ): Promise<CausalLM> {
    checkBackwardPrecision({ device, quantize, backwardPrecision });
    const source = await openModelSource(path);
    try {
      const { config, weights: file } = await matchWeights(
        parseModelConfig(source.config, getConfigPath(source)),
        source.weights,
      );
      const names = new Set(linearModules(config).map(({ name }) => `${name}.weight`));
      const quantization = quantize && { bits: quantize, names, transposed: config.transposedWeights };
      const weights = await ModelWeights.open(file, quantization);
      return new CausalLM(source, config, weights, new Runtime({ device, threads }), backwardPrecision);
    } catch (error) {
      await source.close();
      throw error;
    }
  }

  get adapter(): Adapter | undefined {
    return this.trainable?.adapter;
  }

  get valueHead(): ValueHeadConfig | undefined {
    return this.trainable?.valueHead;
  }

  /** The trained parameters, by their names in the model (or PEFT's names less "base_model.model."). */
  get parameters(): ParameterBuffer {
    if (this.trainable === undefined) {
      throw new LlamaGymError(
        "INVALID_STATE",
        "Nothing of this model is trained; add an adapter with getPeftModel, or call trainWeights.",
      );
    }
    return this.trainable.parameters;
  }

  get isTrainable(): boolean {
    return this.trainable !== undefined;
  }

  /** Whether the output matrix itself or an adapter of it is trained. */
  get isHeadTrained(): boolean {
    if (this.adapter?.modules.has(HEAD_MODULE) === true) return true;
    const { head, headBias } = this.config.names;
    return [head, headBias].some((name) => name !== undefined && this.trainable?.parameters.has(name) === true);
  }

  /** The tokens that end a reply, from the model's own files. */
  get eosTokenIds(): readonly number[] {
    const { eos_token_id: eos } = { ...this.source.config, ...this.source.generationConfig };
    return Array.isArray(eos) ? (eos as number[]) : typeof eos === "number" ? [eos] : [];
  }

  /** The present values of one of the model's own tensors, trained or frozen. */
  async readWeight(name: string): Promise<Float32Array> {
    return this.trainable?.parameters.has(name) === true
      ? this.trainable.parameters.read(name)
      : this.weights.read(name);
  }

  /** Parameters for a network's layers; see ModelScope. */
  scope(
    adapterMode: ParameterScopeOptions["adapterMode"],
    { dropout = false, backwardPrecision }: { dropout?: boolean; backwardPrecision?: BackwardPrecision } = {},
  ): ModelParameterScope {
    const stored = new Map<string, StoredParameter>(this.weights.parameters);
    if (this.trainable !== undefined && this.trainable.adapter === undefined) {
      for (const name of this.trainable.parameters.names)
        stored.set(name, { kind: "trained", shape: this.trainable.parameters.shape(name) });
    }
    return new ModelParameterScope({
      parameters: stored,
      transposedWeights: this.config.transposedWeights,
      adapter: this.trainable?.adapter?.modules ?? new Map(),
      adapterMode,
      backwardPrecision,
      adapterDropout: dropout ? this.trainable?.adapter?.config.loraDropout : 0,
    });
  }

  /** The value head's values [rows] of hidden states [rows, width]; undefined without a value head. */
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

  /** Loads a graph of this model; see SessionOptions. */
  async createSession(
    graph: CompiledGraph,
    options: Pick<SessionOptions, "profile" | "packWeights"> = {},
  ): Promise<Session> {
    return this.runtime.createSession(graph, { ...(await this.weights.getSessionOptions(graph)), ...options });
  }

  /** The trained values that a graph reads; without the adapter (the reference policy) zeros stand for every B of it. */
  getParameterViews(
    graph: CompiledGraph,
    { adapter = true }: { readonly adapter?: boolean } = {},
  ): Record<string, BufferView> {
    const views: Record<string, BufferView> = {};
    if (this.trainable === undefined) return views;
    const { parameters, adapter: lora } = this.trainable;
    const zeroed = new Set(adapter ? [] : [...(lora?.modules.values() ?? [])].map(loraBName));
    for (const { name } of graph.inputs) {
      if (zeroed.has(name)) views[name] = parameters.zeros(name);
      else if (parameters.has(name)) views[name] = parameters.view(name);
    }
    return views;
  }

  /** The same model with something of it trained; weights and runtime are shared. */
  withTrainable(
    parameters: ParameterBuffer,
    { adapter, valueHead }: Partial<Omit<TrainableState, "parameters">> = {},
  ): CausalLM {
    if (this.trainable !== undefined) {
      throw new LlamaGymError(
        "INVALID_STATE",
        "This model is trained already; start from the base model, or merge its adapter first.",
      );
    }
    const { source, config, weights, runtime, backwardPrecision } = this;
    return new CausalLM(source, config, weights, runtime, backwardPrecision, { adapter, valueHead, parameters });
  }

  /** Ends the runtime, and with it every form of this model, and closes its files. */
  async close(): Promise<void> {
    await this.runtime.close();
    await this.weights.close();
  }
}

/** Throws INVALID_ARGUMENT where gradients in 8 bits are asked for and cannot be had. */
export function checkBackwardPrecision({ device = "auto", quantize, backwardPrecision }: ModelOptions): void {
  if (backwardPrecision !== "int8") return;
  const resolvedDevice = device === "auto" ? resolveProviders(device).device : device;
  const problem =
    quantize !== undefined
      ? `is for weights in full precision, and quantize ${quantize} holds them in ${quantize} bits`
      : resolvedDevice !== "cpu"
        ? `is for the processor, and the device is ${resolvedDevice}`
        : undefined;
  if (problem !== undefined)
    throw new LlamaGymError("INVALID_ARGUMENT", `backwardPrecision "int8" ${problem}. Leave one of them out.`);
}
