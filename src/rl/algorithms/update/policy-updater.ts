import type { CausalLM } from "../../../models/causal-lm.js";
import type { EntropyMode, PolicyNodes } from "../../../models/graphs/policy-nodes.js";
import { packSharedPrefixes } from "../../../models/graphs/prefix-packing.js";
import { TrainingGraph, type LossResult } from "../../../models/graphs/training-graph.js";
import { Optimizer, type OptimizerOptions, type OptimizerState } from "../../../engine/optim/index.js";
import { LlamaGymError } from "../../../core/errors.js";
import type { RandomStream } from "../../../core/random/random-stream.js";
import type { Tensor } from "../../../engine/tensor/tensor.js";
import { constrainedPolicyNodes } from "./constrained-policy-nodes.js";
import {
  buildTurnBatch,
  constraintFeeds,
  decisionsByTurn,
  decisionSequences,
  type TurnBatch,
  type TurnTokens,
} from "./turn-batch.js";

export interface PolicyUpdaterOptions {
  /** The loss, with weights that make it a sum over decisions, so that parts of a minibatch add up. */
  readonly loss: (policy: PolicyNodes) => LossResult;
  readonly entropy: EntropyMode;
  readonly optimizer: OptimizerOptions;
  /** Tokens of one forward and backward pass; a larger minibatch takes several, and gives the same gradient. */
  readonly microBatchTokens: number;
}

/** What one optimiser step gave. */
export interface UpdateResult {
  /** Sums over the minibatch of the loss and of the objective's statistics that are scalars. */
  readonly statistics: Readonly<Record<string, number>>;
  /** The objective's other statistics, for each turn of the minibatch: one entry for each of its decisions, or one for the turn. */
  readonly perTurn: Readonly<Record<string, readonly Float32Array[]>>;
  readonly gradNorm: number;
  readonly learningRate: number;
  /** True when the loss or the gradient was not finite and nothing was changed. */
  readonly skipped: boolean;
}

interface GradientOptions {
  readonly temperature: number;
  readonly random: RandomStream;
}

/** This many steps in a row without a finite gradient end a run. */
const MAX_SKIPPED_STEPS = 5;

/** Takes optimiser steps on turns: lays them out, computes loss and gradient, updates the model's trained parameters. */
export class PolicyUpdater {
  /** One graph for free replies, one for replies that were held, one for those with many tokens to choose from. */
  private readonly graphs = new Map<"free" | "held" | "sets", TrainingGraph>();
  private readonly optimizer: Optimizer;
  private skippedSteps = 0;

  constructor(
    private readonly model: CausalLM,
    private readonly options: PolicyUpdaterOptions,
  ) {
    this.optimizer = new Optimizer(model.parameters, options.optimizer);
  }

  /**
   * One optimiser step on a minibatch. `inputs` gives the objective's own inputs for a part of it, by the numbers of the turns
   * in it: entries for each turn's decisions in turn. `accept` may refuse the step when it has seen the statistics.
   * Throws TRAINING_DIVERGED after several steps in a row whose gradient was not finite.
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
      /** The parameters that are changed; all by default. */
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
    this.countSkippedSteps(result.skipped);
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
      const graph = await this.graph(batch.hasAllowedTokens ? "sets" : isConstrained ? "held" : "free");
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

  private async graph(kind: "free" | "held" | "sets"): Promise<TrainingGraph> {
    let graph = this.graphs.get(kind);
    if (graph === undefined) {
      const { loss, entropy } = this.options;
      const lossFn = (policy: PolicyNodes) => loss(kind === "free" ? policy : constrainedPolicyNodes(policy));
      const withAllowedTokens = kind === "sets";
      graph = await TrainingGraph.create(this.model, lossFn, { entropy, withAllowedTokens });
      this.graphs.set(kind, graph);
    }
    return graph;
  }

  private countSkippedSteps(skipped: boolean): void {
    this.skippedSteps = skipped ? this.skippedSteps + 1 : 0;
    if (this.skippedSteps < MAX_SKIPPED_STEPS) return;
    throw new LlamaGymError(
      "TRAINING_DIVERGED",
      `The loss or its gradient was not a finite number in ${this.skippedSteps} steps in a row, so training stopped; the parameters are ` +
        "those before these steps. Lower the learning rate or start from an earlier checkpoint.",
    );
  }
}

/** A vector's parts for each turn of a batch: it has an entry for each decision, or one for each turn. */
function splitByTurn(data: Float32Array, batch: TurnBatch): Float32Array[] {
  const decisions = decisionsByTurn(batch);
  if (data.length === decisions.length) return Array.from(data, (value) => Float32Array.of(value));
  return decisions.map((decisionIndices) => Float32Array.from(decisionIndices, (decision) => data[decision]));
}
