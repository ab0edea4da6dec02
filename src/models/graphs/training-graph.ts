import { LlamaGymError } from "../../core/errors.js";
import { compile, gradient, type Node } from "../../engine/graph/index.js";
import type { BufferView } from "../../engine/runtime/buffer-view.js";
import type { Session } from "../../engine/runtime/session.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { int32, tensor, type Tensor } from "../../engine/tensor/tensor.js";
import { checkTokens, packSequences, type PrefixGroup } from "./sequence-batch.js";
import type { CausalLM } from "../causal-lm.js";
import { usesPackedWeights } from "../weights/estimate-model-memory.js";
import { chooseAdapterMode } from "../weights/micro-batch-memory.js";
import { policyNodes, type EntropyMode, type PolicyNodes } from "./policy-nodes.js";
import { DROPOUT_NOISE, DROPOUT_NOISE_LENGTH, type BackwardPrecision } from "../model-parameter-scope.js";
import { sequenceGraph } from "./sequence-graph.js";

/** A token of a batch whose log-probability is wanted: `index` counts from the prefix's end, below 0 within the prefix. */
export interface SelectedToken {
  readonly group: number;
  readonly row: number;
  readonly index: number;
  /**
   * The token itself, where it is not the row's own one at `index`: an alternative to it, or what follows the row's last one.
   */
  readonly target?: number;
  /** The token ids among which it was chosen; undefined for the whole vocabulary. Its log-probability is that among them. */
  readonly allowedTokens?: Int32Array;
}

export interface TokenBatch {
  readonly groups: readonly PrefixGroup[];
  readonly selected: readonly SelectedToken[];
  /** The temperature of the policy whose log-probabilities are meant; 1 by default. */
  readonly temperature?: number;
}

export interface LossResult {
  /** Scalar to minimise. */
  readonly loss: Node;
  /** More values that are wanted, by name. */
  readonly statistics?: Readonly<Record<string, Node>>;
}

export interface GraphOptions {
  readonly entropy?: EntropyMode;
  /** Whether a scoring graph also returns the largest log-probability of each distribution. */
  readonly withMaxLogProbs?: boolean;
  /** Batches come with shared prefixes; without, the graph is shorter. */
  readonly withPrefix?: boolean;
  /** Batches come with tokens that were chosen among some (`SelectedToken.among`); without, the graph is shorter. */
  readonly withAllowedTokens?: boolean;
  /** How the adapter is applied; by default what is faster with as many tokens as a pass of the model may have. */
  readonly adapterMode?: "merged" | "separate";
  /** How gradients flow back through frozen weights; by default as the model says (`ModelOptions`). */
  readonly backwardPrecision?: BackwardPrecision;
  readonly profile?: string;
}

const GRADIENT_PREFIX = "gradient of ";

/** What of a graph's options its batches depend on. */
interface BatchFeatures {
  readonly withPrefix: boolean;
  readonly withAllowedTokens: boolean;
}

/** The inputs of policyNodes and packSequences for a batch; throws INVALID_ARGUMENT for a token that nothing predicts. */
function batchFeeds(
  model: CausalLM,
  { groups, selected, temperature = 1 }: TokenBatch,
  { withPrefix, withAllowedTokens }: BatchFeatures,
): Record<string, Tensor> {
  const packed = packSequences(model.config, groups, { withPrefix });
  const targets = selected.flatMap(({ target }) => (target === undefined ? [] : [target]));
  checkTokens(model.config, targets);
  const selection = packed.selectPredictingStates(selected);
  if (selection === undefined) {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      "The first token of a sequence has no log-probability: nothing comes before it.",
    );
  }
  return {
    ...packed.feeds,
    ...selection.feeds,
    select: int32(selection.select),
    targets: int32(selected.map((token) => token.target ?? getTokenAt(groups, token))),
    inverse_temperature: tensor("float32", [], Float32Array.of(1 / temperature)),
    ...(withAllowedTokens ? allowedTokenFeeds(selected, model.config.vocabSize) : {}),
  };
}

/** The sets that tokens were chosen from, each once, and which one is each token's. The first is the whole vocabulary. */
function allowedTokenFeeds(selected: readonly SelectedToken[], vocabSize: number): Record<string, Tensor> {
  const setIndices = new Map<Int32Array | undefined, number>([[undefined, 0]]);
  for (const { allowedTokens } of selected)
    if (!setIndices.has(allowedTokens)) setIndices.set(allowedTokens, setIndices.size);
  const mask = new Uint8Array(setIndices.size * vocabSize);
  for (const [ids, index] of setIndices) {
    const maskRow = mask.subarray(index * vocabSize, (index + 1) * vocabSize);
    if (ids === undefined) maskRow.fill(1);
    else for (const id of ids) maskRow[id] = 1;
  }
  return {
    token_sets: tensor("bool", [setIndices.size, vocabSize], mask),
    set_indices: int32(selected.map(({ allowedTokens }) => setIndices.get(allowedTokens)!)),
  };
}

/** The token that stands at a place of a row, or of the prefix before it. */
function getTokenAt(groups: readonly PrefixGroup[], { group, row, index }: SelectedToken): number {
  const { prefix, rows } = groups[group];
  return index < 0 ? prefix[prefix.length + index] : rows[row][index];
}

/** What a batch's chosen tokens score, in their order. */
export interface TokenScores {
  readonly logProbs: Float32Array;
  /** Largest log-probability in each token's distribution; undefined unless requested. */
  readonly maxLogProbs: Float32Array | undefined;
  /** Undefined unless requested. */
  readonly entropy: Float32Array | undefined;
  /** Where the model has a value head. */
  readonly values: Float32Array | undefined;
}

/** Log-probabilities (and entropies and values) of chosen tokens, without gradients. */
export class ScoringGraph {
  private constructor(
    private readonly model: CausalLM,
    private readonly session: Session,
    private readonly features: BatchFeatures,
  ) {}

  static async create(
    model: CausalLM,
    {
      entropy = "none",
      withMaxLogProbs = false,
      withPrefix = true,
      withAllowedTokens = false,
      adapterMode,
      profile,
    }: GraphOptions = {},
  ): Promise<ScoringGraph> {
    const scope = model.scope(adapterMode ?? chooseAdapterMode(model.config));
    const hidden = sequenceGraph(model.config, scope, { withPrefix, states: "read" });
    const policy = policyNodes(model.config, scope, hidden, {
      entropy,
      isHeadTrained: model.isHeadTrained,
      withAllowedTokens,
      valueHead: (states) => model.computeValues(scope, states),
    });
    const graph = compile({
      logProbs: policy.logProbs,
      ...(withMaxLogProbs ? { maxLogProbs: policy.maxLogProbs } : {}),
      ...(policy.entropy === undefined ? {} : { entropy: policy.entropy }),
      ...(policy.values === undefined ? {} : { values: policy.values }),
    });
    return new ScoringGraph(model, await model.createSession(graph, { profile, packWeights: false }), {
      withPrefix,
      withAllowedTokens,
    });
  }

  /** One entry for each selected token; `adapter: false` gives the reference policy's. */
  async run(batch: TokenBatch, { adapter = true }: { adapter?: boolean } = {}): Promise<TokenScores> {
    const { graph } = this.session;
    const { logProbs, maxLogProbs, entropy, values } = await this.session.run({
      ...batchFeeds(this.model, batch, this.features),
      ...this.model.getParameterViews(graph, { adapter }),
    });
    return { logProbs: logProbs.data, maxLogProbs: maxLogProbs?.data, entropy: entropy?.data, values: values?.data };
  }

  async release(): Promise<void> {
    await this.session.release();
  }
}

export interface TrainingRunOptions {
  /** Adds to the gradients that are there. */
  readonly accumulate?: boolean;
  /** Decides what dropout drops; needed where the adapter or the value head has dropout. */
  readonly random?: RandomStream;
}

/** One compiled graph that gives a loss, its statistics and the gradients of all trained parameters. */
export class TrainingGraph {
  private accumulationBuffer: BufferView | undefined;

  private constructor(
    private readonly model: CausalLM,
    private readonly session: Session,
    private readonly features: BatchFeatures,
  ) {}

  /** `objective` writes the loss with the policy's nodes and inputs of its own (graph.input). */
  static async create(
    model: CausalLM,
    lossFn: (policy: PolicyNodes) => LossResult,
    {
      entropy = "none",
      withPrefix = true,
      withAllowedTokens = false,
      adapterMode,
      backwardPrecision = model.backwardPrecision,
      profile,
    }: GraphOptions = {},
  ): Promise<TrainingGraph> {
    // Dropout sits on the adapter's path alone, and only weights that are constants are rounded to 8 bits.
    const hasAdapterDropout = (model.adapter?.config.loraDropout ?? 0) > 0;
    const mustBeUnmerged = hasAdapterDropout || backwardPrecision === "int8";
    const resolvedMode = mustBeUnmerged ? "separate" : (adapterMode ?? chooseAdapterMode(model.config));
    const scope = model.scope(resolvedMode, { dropout: true, backwardPrecision });
    const hidden = sequenceGraph(model.config, scope, { withPrefix, states: "read" });
    const policy = policyNodes(model.config, scope, hidden, {
      entropy,
      isHeadTrained: model.isHeadTrained,
      withAllowedTokens,
      valueHead: (states) => model.computeValues(scope, states, { dropout: true }),
    });
    const { loss, statistics = {} } = lossFn(policy);
    const names = [...scope.trainableInputs.keys()];
    const gradients = gradient(
      loss,
      names.map((name) => scope.trainableInputs.get(name)!),
    );
    const graph = compile({
      loss,
      ...statistics,
      ...Object.fromEntries(names.map((name, i) => [GRADIENT_PREFIX + name, gradients[i]])),
    });
    const packWeights = usesPackedWeights(model.config, model.weights.bits);
    const session = await model.createSession(graph, { profile, packWeights });
    return new TrainingGraph(model, session, { withPrefix, withAllowedTokens });
  }

  /**
   * Computes the loss of a batch and leaves the gradients in the model's gradient buffer, in place of what was there or, with
   * `accumulate`, added to it. `inputs` are the objective's own.
   * Throws INVALID_ARGUMENT when the model drops values and no random stream is given.
   */
  async run(
    batch: TokenBatch,
    inputs: Readonly<Record<string, Tensor>> = {},
    { accumulate = false, random }: TrainingRunOptions = {},
  ): Promise<Record<string, Tensor<"float32">>> {
    const { model, session } = this;
    const { parameters, runtime } = { parameters: model.parameters, runtime: model.runtime };
    if (accumulate) this.accumulationBuffer ??= runtime.allocate("float32", [parameters.count]);
    const target = accumulate ? this.accumulationBuffer! : parameters.gradients;
    const fetches: Record<string, BufferView> = {};
    for (const { name } of session.graph.outputs) {
      if (name.startsWith(GRADIENT_PREFIX)) fetches[name] = parameters.view(name.slice(GRADIENT_PREFIX.length), target);
    }
    const outputs = await session.run(
      {
        ...batchFeeds(model, batch, this.features),
        ...model.getParameterViews(session.graph),
        ...drawDropoutNoise(session, random),
        ...inputs,
      },
      { fetches },
    );
    if (accumulate) await runtime.kernel({ name: "addScaled", target: parameters.gradients, source: target, scale: 1 });
    return outputs;
  }

  async release(): Promise<void> {
    if (this.accumulationBuffer !== undefined) this.model.runtime.free(this.accumulationBuffer);
    await this.session.release();
  }
}

/** Uniform noise for this step's dropout, for a graph that drops. */
function drawDropoutNoise({ graph }: Session, random: RandomStream | undefined): Record<string, Tensor> {
  if (!graph.inputs.some(({ name }) => name === DROPOUT_NOISE)) return {};
  if (random === undefined) {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      "This model trains with dropout, which needs a random stream for each step.",
    );
  }
  const noise = Float32Array.from({ length: DROPOUT_NOISE_LENGTH }, () => random.random());
  return { [DROPOUT_NOISE]: tensor("float32", [DROPOUT_NOISE_LENGTH], noise) };
}
