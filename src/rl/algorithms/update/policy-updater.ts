import type { CausalLM } from "../../../models/causal-lm.js";
import type { EntropyMode, PolicyNodes } from "../../../models/graphs/policy-nodes.js";
import { packSharedPrefixes } from "../../../models/graphs/prefix-packing.js";
import { TrainingGraph, type LossResult } from "../../../models/graphs/training-graph.js";
import { Optimizer, type OptimizerOptions, type OptimizerState } from "../../../engine/optim/index.js";
import type { RandomStream } from "../../../core/random/random-stream.js";
import type { Tensor } from "../../../engine/tensor/tensor.js";
import { constrainedPolicyNodes } from "./constrained-policy-nodes.js";
import { SkippedSteps } from "./skipped-steps.js";
import {
  buildTurnBatch,
  constraintFeeds,
  decisionsByTurn,
  decisionSequences,
  usesHeadTokens,
  type TurnBatch,
  type TurnTokens,
} from "./turn-batch.js";

export interface PolicyUpdaterOptions {
  /** Builds the loss, a weighted sum over decisions, so that the losses of micro-batches add up. */
  readonly loss: (policy: PolicyNodes) => LossResult;
  readonly entropy: EntropyMode;
  readonly optimizer: OptimizerOptions;
  /** Memory of a micro-batch, in tokens. A minibatch in several micro-batches has the same gradient. */
  readonly microBatchTokens: number;
}

/** Result of one optimizer step. */
export interface UpdateResult {
  /** The loss and its scalar statistics, summed over the minibatch. */
  readonly statistics: Readonly<Record<string, number>>;
  /** Other statistics per turn of the minibatch, with one entry per decision or one for the turn. */
  readonly perTurn: Readonly<Record<string, readonly Float32Array[]>>;
  readonly gradNorm: number;
  readonly learningRate: number;
  /** Whether the step was refused by `shouldStep`, or the loss or gradient was not finite. */
  readonly skipped: boolean;
}

interface GradientOptions {
  readonly temperature: number;
  readonly random: RandomStream;
}

/** Graphs for unconstrained turns, for decisions among alternatives, and for masked vocabularies. */
type GraphKind = "free" | "alternatives" | "masked";

/** Makes optimizer steps on turns: packs them, computes the loss and its gradient, and updates the trainable parameters. */
export class PolicyUpdater {
  /** By kind, and whether logits are computed of some tokens only. */
  private readonly graphs = new Map<`${GraphKind} ${boolean}`, TrainingGraph>();
  private readonly optimizer: Optimizer;
  private readonly skippedSteps = new SkippedSteps();

  constructor(
    private readonly model: CausalLM,
    private readonly options: PolicyUpdaterOptions,
  ) {
    this.optimizer = new Optimizer(model.parameters, options.optimizer);
  }

  /**
   * Makes one optimizer step on a minibatch. `inputs` returns the inputs of the loss for a micro-batch, given the
   * indices of its turns: one entry per decision, turn by turn. `shouldStep` may refuse the step for its statistics.
   * @throws TRAINING_DIVERGED after several consecutive steps whose gradient was not finite.
   */
  async step(
    turns: readonly TurnTokens[],
    inputs: (turnIndices: readonly number[]) => Readonly<Record<string, Tensor>>,
    {
      learningRateFactor,
      shouldStep = () => true,
      trainableFilter,
      ...options
    }: GradientOptions & {
      readonly learningRateFactor?: number;
      readonly shouldStep?: (statistics: Readonly<Record<string, number>>) => boolean;
      /** Selects the parameters to update; all by default. */
      readonly trainableFilter?: (parameter: string) => boolean;
    },
  ): Promise<UpdateResult> {
    const { statistics, perTurn } = await this.computeGradients(turns, inputs, options);
    if (!shouldStep(statistics))
      return { statistics, perTurn, gradNorm: 0, learningRate: this.optimizer.learningRate, skipped: true };
    const { learningRate } = this.optimizer;
    if (trainableFilter !== undefined) await this.model.parameters.zeroGradients((name) => !trainableFilter(name));
    const result = Number.isFinite(statistics.loss)
      ? await this.optimizer.update({ learningRateFactor })
      : { gradNorm: Number.NaN, learningRate, skipped: true };
    this.skippedSteps.record(result.skipped);
    if (!result.skipped) this.model.markParametersChanged();
    return { statistics, perTurn, ...result };
  }

  /** Computes the loss of a minibatch and leaves its gradients in the model's gradient buffer. */
  async computeGradients(
    turns: readonly TurnTokens[],
    inputs: (turnIndices: readonly number[]) => Readonly<Record<string, Tensor>>,
    { temperature, random }: GradientOptions,
  ): Promise<Pick<UpdateResult, "statistics" | "perTurn">> {
    const statistics: Record<string, number> = {};
    const perTurn: Record<string, Float32Array[]> = {};
    let accumulate = false;
    const packingOptions = { microBatchTokens: this.options.microBatchTokens, config: this.model.config };
    for (const microBatch of packSharedPrefixes(turns.map(decisionSequences), packingOptions)) {
      const { indices: turnIndices } = microBatch;
      const batchTurns = turnIndices.map((i) => turns[i]);
      const batch = buildTurnBatch(batchTurns, microBatch, temperature);
      const isConstrained = batchTurns.some(
        ({ allowedTokens, actionCandidates }) => allowedTokens !== undefined || actionCandidates !== undefined,
      );
      const graph = await this.graph(
        batch.hasAllowedTokens ? "masked" : isConstrained ? "alternatives" : "free",
        usesHeadTokens(batch, this.model.config.vocabSize),
      );
      const outputs = await graph.run(
        batch.tokens,
        { ...inputs(turnIndices), ...(isConstrained ? constraintFeeds(batch) : {}) },
        { accumulate, random },
      );
      for (const [name, { shape, data }] of Object.entries(outputs)) {
        if (shape.length === 0) statistics[name] = (statistics[name] ?? 0) + data[0];
        else splitByTurn(data, batch).forEach((turnValues, i) => ((perTurn[name] ??= [])[turnIndices[i]] = turnValues));
      }
      accumulate = true;
    }
    return { statistics, perTurn };
  }

  async state(): Promise<OptimizerState> {
    return this.optimizer.getState();
  }

  async restore(state: OptimizerState): Promise<void> {
    await this.optimizer.setState(state);
  }

  async release(): Promise<void> {
    for (const graph of this.graphs.values()) await graph.release();
    this.optimizer.release();
  }

  private async graph(kind: GraphKind, withHeadTokens: boolean): Promise<TrainingGraph> {
    const key = `${kind} ${withHeadTokens}` as const;
    let graph = this.graphs.get(key);
    if (graph === undefined) {
      const { loss, entropy } = this.options;
      const lossFn = (policy: PolicyNodes) => loss(kind === "free" ? policy : constrainedPolicyNodes(policy));
      const options = { entropy, withAllowedTokens: kind === "masked", withHeadTokens, keepsFrozenStates: true };
      graph = await TrainingGraph.create(this.model, lossFn, options);
      this.graphs.set(key, graph);
    }
    return graph;
  }
}

/** Splits a vector with one entry per decision or per turn by turns. */
function splitByTurn(data: Float32Array, batch: TurnBatch): Float32Array[] {
  const decisions = decisionsByTurn(batch);
  if (data.length === decisions.length) return Array.from(data, (value) => Float32Array.of(value));
  return decisions.map((decisionIndices) => Float32Array.from(decisionIndices, (decision) => data[decision]));
}
