import type { CausalLM } from "../../models/causal-lm.js";
import type { EntropyUse, PolicyNodes } from "../../models/policy.js";
import { TrainingGraph, type Objective } from "../../models/training-graph.js";
import { Optimizer, type OptimizerOptions, type OptimizerState } from "../../optim/index.js";
import { LlamaGymError } from "../../errors.js";
import type { RandomStream } from "../../tensor/random.js";
import type { Tensor } from "../../tensor/tensor.js";
import { budgetBatches } from "./batches.js";
import { decisionNodes } from "./decision-nodes.js";
import { choiceFeeds, decisionsByTurn, layTurns, type TurnBatch, type TurnTokens } from "./turn-batch.js";

export interface UpdaterOptions {
  /** The loss, with weights that make it a sum over decisions, so that parts of a minibatch add up. */
  readonly objective: (policy: PolicyNodes) => Objective;
  readonly entropy: EntropyUse;
  readonly optimizer: OptimizerOptions;
  /** Tokens of one forward and backward pass; a larger minibatch takes several, and gives the same gradient. */
  readonly maxTokens: number;
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

/** This many steps in a row without a finite gradient end a run. */
const MOST_SKIPS = 5;

/** Takes optimiser steps on turns: lays them out, computes loss and gradient, updates the model's trained parameters. */
export class PolicyUpdater {
  /** One graph for free replies, one for replies that were held, one for those with many tokens to choose from. */
  private readonly graphs = new Map<"free" | "held" | "sets", TrainingGraph>();
  private readonly optimizer: Optimizer;
  private skips = 0;

  constructor(
    private readonly model: CausalLM,
    private readonly options: UpdaterOptions,
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
    inputs: (numbers: readonly number[]) => Readonly<Record<string, Tensor>>,
    {
      temperature,
      random,
      learningRateFactor,
      accept = () => true,
      only,
    }: {
      readonly temperature: number;
      readonly random: RandomStream;
      readonly learningRateFactor?: number;
      readonly accept?: (statistics: Readonly<Record<string, number>>) => boolean;
      /** The parameters that are changed; all by default. */
      readonly only?: (parameter: string) => boolean;
    },
  ): Promise<UpdateResult> {
    const statistics: Record<string, number> = {};
    const perTurn: Record<string, Float32Array[]> = {};
    let accumulate = false;
    for (const { numbers, laid } of budgetBatches(turns, this.options.maxTokens, this.model.config)) {
      const part = numbers.map((i) => turns[i]);
      const batch = layTurns(part, laid, temperature);
      const isHeld = part.some(({ allowed, scored }) => allowed !== undefined || scored !== undefined);
      const graph = await this.graph(batch.hasSets ? "sets" : isHeld ? "held" : "free");
      const outputs = await graph.run(
        batch.tokens,
        { ...inputs(numbers), ...(isHeld ? choiceFeeds(batch) : {}) },
        { accumulate, random },
      );
      for (const [name, { shape, data }] of Object.entries(outputs)) {
        if (shape.length === 0) statistics[name] = (statistics[name] ?? 0) + data[0];
        else divide(data, batch).forEach((own, i) => ((perTurn[name] ??= [])[numbers[i]] = own));
      }
      accumulate = true;
    }
    if (!accept(statistics))
      return { statistics, perTurn, gradNorm: 0, learningRate: this.optimizer.learningRate, skipped: true };
    const { learningRate } = this.optimizer;
    if (only !== undefined) await this.model.parameters.dropGradients((name) => !only(name));
    const result = Number.isFinite(statistics.loss)
      ? await this.optimizer.update({ learningRateFactor })
      : { gradNorm: Number.NaN, learningRate, skipped: true };
    this.countSkips(result.skipped);
    if (!result.skipped) this.model.version++;
    return { statistics, perTurn, ...result };
  }

  async state(): Promise<OptimizerState> {
    return this.optimizer.state();
  }

  async restore(state: OptimizerState): Promise<void> {
    await this.optimizer.restore(state);
  }

  async release(): Promise<void> {
    for (const graph of this.graphs.values()) await graph.release();
    this.optimizer.free();
  }

  private async graph(kind: "free" | "held" | "sets"): Promise<TrainingGraph> {
    let graph = this.graphs.get(kind);
    if (graph === undefined) {
      const { objective, entropy } = this.options;
      const written = (policy: PolicyNodes) => objective(kind === "free" ? policy : decisionNodes(policy));
      const withSets = kind === "sets";
      graph = await TrainingGraph.create(this.model, written, { entropy, withSets });
      this.graphs.set(kind, graph);
    }
    return graph;
  }

  private countSkips(skipped: boolean): void {
    this.skips = skipped ? this.skips + 1 : 0;
    if (this.skips < MOST_SKIPS) return;
    throw new LlamaGymError(
      "TRAINING_DIVERGED",
      `The loss or its gradient was not a finite number in ${this.skips} steps in a row, so training stopped; the parameters are ` +
        "those before these steps. Lower the learning rate or start from an earlier checkpoint.",
    );
  }
}

/** A vector's parts for each turn of a batch: it has an entry for each decision, or one for each turn. */
function divide(data: Float32Array, batch: TurnBatch): Float32Array[] {
  const decisions = decisionsByTurn(batch);
  if (data.length === decisions.length) return Array.from(data, (value) => Float32Array.of(value));
  return decisions.map((numbers) => Float32Array.from(numbers, (decision) => data[decision]));
}
