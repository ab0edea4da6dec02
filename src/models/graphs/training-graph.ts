import { invalidArgument } from "../../core/errors.js";
import { compile, gradient, type Node } from "../../engine/graph/index.js";
import type { BufferView, Feeds, Session } from "../../engine/runtime/index.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { int32, tensor, type Tensor } from "../../engine/tensor/index.js";
import { checkTokens, packSequences } from "./sequence-batch.js";
import type { CausalLM } from "../causal-lm.js";
import { usesPackedWeights } from "../weights/estimate-model-memory.js";
import { chooseAdapterMode } from "../weights/micro-batch-memory.js";
import { policyNodes, vocabularyLogits, type EntropyMode, type PolicyNodes } from "./policy-nodes.js";
import {
  DROPOUT_NOISE,
  DROPOUT_NOISE_LENGTH,
  type BackwardPrecision,
  type ModelParameterScope,
} from "../model-parameter-scope.js";
import type { FrozenStates } from "./frozen-states.js";
import { FROZEN_STATES, sequenceGraph } from "./sequence-graph.js";
import { allowedTokenFeeds, getTokenAt, type TokenBatch } from "./token-batch.js";

/** Loss and statistics that a loss function returns. */
export interface LossResult {
  /** Scalar to minimize. */
  readonly loss: Node;
  /** Further outputs by name. */
  readonly statistics?: Readonly<Record<string, Node>>;
}

/** Nodes from which further outputs of a scoring graph are computed. */
export interface ScoringNodes extends PolicyNodes {
  /** Logits that predict each token: [selected, vocabulary]. */
  readonly logits: Node;
}

/** Options of training and scoring graphs. */
export interface GraphOptions {
  readonly entropy?: EntropyMode;
  /** Whether a scoring graph also returns the largest log-probability of each distribution. */
  readonly withMaxLogProbs?: boolean;
  /** Further outputs of a scoring graph by name, with one row for each selected token. */
  readonly outputs?: (nodes: ScoringNodes) => Readonly<Record<string, Node>>;
  /** Whether batches have shared prefixes (default); without, the graph is shorter. */
  readonly withPrefix?: boolean;
  /** Whether selected tokens have `allowedTokens`; without (default), the graph is shorter. */
  readonly withAllowedTokens?: boolean;
  /**
   * Whether batches have `headTokens`, among which log-probabilities are computed; default false.
   */
  readonly withHeadTokens?: boolean;
  /** How the adapter is applied; default: the faster mode at the default micro-batch size. */
  readonly adapterMode?: "merged" | "unmerged";
  /** Precision of gradients through frozen weights; default: that of the model. */
  readonly backwardPrecision?: BackwardPrecision;
  /** Whether gradients compute values inside of layers again; default: as the model does. */
  readonly gradientCheckpointing?: boolean;
  /**
   * The model's states below the lowest trained layer, opened by the caller; without, all layers
   * are computed each time.
   */
  readonly frozenStates?: FrozenStates | undefined;
}

const GRADIENT_PREFIX = "gradient of ";

/** Graph options that determine the inputs of batches. */
interface BatchFeatures {
  readonly withPrefix: boolean;
  readonly withAllowedTokens: boolean;
  readonly withHeadTokens: boolean;
  readonly frozenStates: FrozenStates | undefined;
}

/**
 * Runs a graph on a batch. @throws INVALID_ARGUMENT for a selected token that is the first of its
 * sequence.
 */
async function runBatch(
  model: CausalLM,
  session: Session,
  { groups, selected, headTokens, temperature = 1 }: TokenBatch,
  { withPrefix, withAllowedTokens, withHeadTokens, frozenStates }: BatchFeatures,
  inputs: Feeds,
  fetches: Readonly<Record<string, BufferView>> = {},
): Promise<Record<string, Tensor<"float32">>> {
  const packed = packSequences(model.config, groups, { withPrefix });
  const targets = selected.flatMap(({ target }) => (target === undefined ? [] : [target]));
  checkTokens(model.config, targets);
  const selection = packed.selectPredictingStates(selected);
  if (selection === undefined) {
    const problem = "The first token of a sequence has no log-probability. Do not select it.";
    throw invalidArgument(problem);
  }
  const columns = withHeadTokens ? new Map(headTokens!.map((token, i) => [token, i])) : undefined;
  const toColumn = (token: number) => columns?.get(token) ?? token;
  const feeds = {
    ...packed.feeds,
    ...selection.feeds,
    select: int32(selection.select),
    targets: int32(selected.map((token) => toColumn(token.target ?? getTokenAt(groups, token)))),
    inverse_temperature: tensor("float32", [], Float32Array.of(1 / temperature)),
    ...(withAllowedTokens ? allowedTokenFeeds(selected, columns?.size ?? model.config.vocabSize, toColumn) : {}),
    ...(withHeadTokens ? { head_tokens: int32(headTokens!) } : {}),
    ...inputs,
  };
  if (frozenStates === undefined) return session.run(feeds, { fetches });
  const { requests, states } = frozenStates.prepare(groups, packed);
  const run = session.request({ ...feeds, [FROZEN_STATES]: states }, { fetches });
  try {
    return (await model.runtime.sequence([...requests, run])) as Record<string, Tensor<"float32">>;
  } catch (error) {
    // Some of the states may not have been computed.
    frozenStates.clear();
    throw error;
  }
}

function buildPolicy(
  model: CausalLM,
  scope: ModelParameterScope,
  options: BatchFeatures & {
    readonly entropy: EntropyMode;
    readonly dropout: boolean;
    readonly onLayerInput?: (hidden: Node) => void;
  },
): PolicyNodes {
  const { withPrefix, withAllowedTokens, withHeadTokens, frozenStates, entropy, dropout, onLayerInput } = options;
  const first = frozenStates?.layers;
  const states = sequenceGraph(model.config, scope, { withPrefix, states: "selected", first, onLayerInput });
  return policyNodes(model.config, scope, states, {
    entropy,
    isHeadTrained: model.isHeadTrained,
    withAllowedTokens,
    withHeadTokens,
    valueHead: (hidden) => model.computeValues(scope, hidden, { dropout }),
  });
}

/** Scores of a batch's selected tokens. */
export interface TokenScores {
  readonly logProbs: Float32Array;
  /** Largest log-probability in each token's distribution; undefined unless requested. */
  readonly maxLogProbs: Float32Array | undefined;
  /** Entropy of each token's distribution in nats; undefined unless requested. */
  readonly entropy: Float32Array | undefined;
  /** Value of the state before each token; undefined for a model without a value head. */
  readonly values: Float32Array | undefined;
  /** Further outputs by name. */
  readonly outputs: Readonly<Record<string, Float32Array>>;
}

const OUTPUT_PREFIX = "output ";

/**
 * Compiled graph of the log-probabilities, entropies and values of selected tokens, without
 * gradients.
 */
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
      withHeadTokens = false,
      adapterMode,
      frozenStates,
      outputs,
    }: GraphOptions = {},
  ): Promise<ScoringGraph> {
    const scope = model.scope(adapterMode ?? chooseAdapterMode(model.config));
    const features = { withPrefix, withAllowedTokens, withHeadTokens, frozenStates };
    const policy = buildPolicy(model, scope, { ...features, entropy, dropout: false });
    const others = outputs?.({ ...policy, logits: vocabularyLogits(model.config, scope, policy.hidden) }) ?? {};
    const graph = compile({
      ...Object.fromEntries(Object.entries(others).map(([name, node]) => [OUTPUT_PREFIX + name, node])),
      logProbs: policy.logProbs,
      ...(withMaxLogProbs ? { maxLogProbs: policy.maxLogProbs } : {}),
      ...(policy.entropy === undefined ? {} : { entropy: policy.entropy }),
      ...(policy.values === undefined ? {} : { values: policy.values }),
    });
    return new ScoringGraph(model, await model.createSession(graph, { packWeights: false }), features);
  }

  /**
   * Scores the selected tokens of a batch; `adapter: false` scores under the reference policy.
   * `model` is another version of the graph's model, from `withOwnValues`, whose values are used
   * instead.
   */
  async run(
    batch: TokenBatch,
    { adapter = true, model = this.model }: { adapter?: boolean; model?: CausalLM } = {},
  ): Promise<TokenScores> {
    const { session, features } = this;
    const parameters = model.getParameterViews(session.graph, { adapter });
    const results = await runBatch(model, session, batch, features, parameters);
    const { logProbs, maxLogProbs, entropy, values } = results;
    const outputs = Object.entries(results)
      .filter(([name]) => name.startsWith(OUTPUT_PREFIX))
      .map(([name, { data }]) => [name.slice(OUTPUT_PREFIX.length), data]);
    const scores = { maxLogProbs: maxLogProbs?.data, entropy: entropy?.data, values: values?.data };
    return { logProbs: logProbs.data, ...scores, outputs: Object.fromEntries(outputs) as TokenScores["outputs"] };
  }

  async release(): Promise<void> {
    await this.session.release();
  }
}

export interface TrainingRunOptions {
  /** Whether gradients are added to the existing ones. */
  readonly accumulate?: boolean;
  /** Random stream of dropout; required if the adapter or the value head has dropout. */
  readonly random?: RandomStream;
  /**
   * Another version of the graph's model, from `withOwnValues`, whose values and gradients are
   * used; runs must not overlap.
   */
  readonly model?: CausalLM;
}

/** Compiled graph of a loss, its statistics and the gradients of all trainable parameters. */
export class TrainingGraph {
  private accumulationBuffer: BufferView | undefined;

  private constructor(
    private readonly model: CausalLM,
    private readonly session: Session,
    private readonly features: BatchFeatures,
  ) {}

  /** Compiles the graph; `lossFn` builds the loss from the policy's nodes and its own inputs. */
  static async create(
    model: CausalLM,
    lossFn: (policy: PolicyNodes) => LossResult,
    {
      entropy = "none",
      withPrefix = true,
      withAllowedTokens = false,
      withHeadTokens = false,
      adapterMode,
      backwardPrecision = model.backwardPrecision,
      gradientCheckpointing = model.gradientCheckpointing,
      frozenStates,
    }: GraphOptions = {},
  ): Promise<TrainingGraph> {
    // Dropout applies to the adapter's path alone, and only constant weights are rounded to 8 bits.
    const hasAdapterDropout = (model.adapter?.config.loraDropout ?? 0) > 0;
    const mustBeUnmerged = hasAdapterDropout || backwardPrecision === "int8";
    const resolvedMode = mustBeUnmerged ? "unmerged" : (adapterMode ?? chooseAdapterMode(model.config));
    const scope = model.scope(resolvedMode, { dropout: true, backwardPrecision });
    const features = { withPrefix, withAllowedTokens, withHeadTokens, frozenStates };
    const checkpoints: Node[] = [];
    const onLayerInput = (hidden: Node) => void checkpoints.push(hidden);
    const policy = buildPolicy(model, scope, { ...features, entropy, dropout: true, onLayerInput });
    const { loss, statistics = {} } = lossFn(policy);
    const trainableInputs = scope.trainableInputs;
    const gradients = gradient(loss, [...trainableInputs.values()], gradientCheckpointing ? { checkpoints } : {});
    const namedGradients = [...trainableInputs.keys()].map(
      (name, i) => [GRADIENT_PREFIX + name, gradients[i]] as const,
    );
    const graph = compile({ loss, ...statistics, ...Object.fromEntries(namedGradients) });
    const packWeights = usesPackedWeights(model.config, model.weights.bits);
    return new TrainingGraph(model, await model.createSession(graph, { packWeights }), features);
  }

  /**
   * Computes the loss of a batch and writes its gradients to the model's gradient buffer or, with
   * `accumulate`, adds them. `inputs` are the inputs of the loss.
   *
   * @throws INVALID_ARGUMENT for a model with dropout without a random stream.
   */
  async run(
    batch: TokenBatch,
    inputs: Readonly<Record<string, Tensor>> = {},
    { accumulate = false, random, model = this.model }: TrainingRunOptions = {},
  ): Promise<Record<string, Tensor<"float32">>> {
    const { session } = this;
    const { parameters, runtime } = model;
    if (accumulate) this.accumulationBuffer ??= runtime.allocate("float32", [parameters.count]);
    const target = accumulate ? this.accumulationBuffer! : parameters.gradients;
    const fetches: Record<string, BufferView> = {};
    for (const { name } of session.graph.outputs) {
      if (name.startsWith(GRADIENT_PREFIX)) fetches[name] = parameters.view(name.slice(GRADIENT_PREFIX.length), target);
    }
    const parametersAndNoise = { ...model.getParameterViews(session.graph), ...drawDropoutNoise(session, random) };
    const outputs = await runBatch(model, session, batch, this.features, { ...parametersAndNoise, ...inputs }, fetches);
    if (accumulate) await runtime.kernel({ name: "addScaled", target: parameters.gradients, source: target, scale: 1 });
    return outputs;
  }

  async release(): Promise<void> {
    if (this.accumulationBuffer !== undefined) this.model.runtime.free(this.accumulationBuffer);
    await this.session.release();
  }
}

/** Draws the uniform noise of a step's dropout, for a graph with dropout. */
function drawDropoutNoise({ graph }: Session, random: RandomStream | undefined): Record<string, Tensor> {
  if (!graph.inputs.some(({ name }) => name === DROPOUT_NOISE)) return {};
  if (random === undefined) throw invalidArgument("The model has dropout. Pass `random`.");
  // A loop takes a quarter of the time of `Float32Array.from`.
  const noise = new Float32Array(DROPOUT_NOISE_LENGTH);
  for (let i = 0; i < noise.length; i++) noise[i] = random.random();
  return { [DROPOUT_NOISE]: tensor("float32", [DROPOUT_NOISE_LENGTH], noise) };
}
