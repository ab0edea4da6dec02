import type { PolicyBackend } from "../../../generation/index.js";
import { packSharedPrefixes, type GraphOptions, type MicroBatch } from "../../../models/graphs/index.js";
import type { RandomStream } from "../../../core/random/random-stream.js";
import type { Tensor } from "../../../engine/tensor/index.js";
import { RemoteGradients, type GradientTransport, type SizedGradientJob } from "./gradient-transport.js";
import { MicroBatchGraphs, type MicroBatchLoss, type MicroBatchOutputs } from "./micro-batch-graphs.js";
import {
  buildTurnBatch,
  constraintFeeds,
  decisionsByTurn,
  decisionSequences,
  usesHeadTokens,
  type TurnBatch,
  type TurnTokens,
} from "./turn-batch.js";

export interface TurnGradientsOptions extends MicroBatchLoss {
  /**
   * Memory of a micro-batch, in tokens. A minibatch in several micro-batches has the same gradient.
   */
  readonly microBatchTokens: number;
  readonly frozenStates?: GraphOptions["frozenStates"];
}

/** Statistics of a minibatch. */
export interface TurnStatistics {
  /** The loss and its scalar statistics, summed over the minibatch. */
  readonly statistics: Readonly<Record<string, number>>;
  /**
   * Other statistics per turn of the minibatch, with one entry per decision or one for the turn.
   */
  readonly perTurn: Readonly<Record<string, readonly Float32Array[]>>;
}

/**
 * Returns the inputs of the loss for a micro-batch, given the indices of its turns: one entry per
 * decision, turn by turn.
 */
export type InputsOf = (turnIndices: readonly number[]) => Readonly<Record<string, Tensor>>;

export interface MinibatchOptions {
  /** Turns by unit, which are in one micro-batch; by default each turn is one. */
  readonly units?: readonly (readonly number[])[] | undefined;
  readonly temperature: number;
  readonly random: RandomStream;
}

/** A micro-batch with its turns laid out. */
interface BuiltMicroBatch extends SizedGradientJob {
  readonly turnIndices: readonly number[];
  readonly batch: TurnBatch;
}

/** Packs turns, and computes a loss of their decisions and its gradient. */
export class TurnGradients {
  private readonly graphs: MicroBatchGraphs;
  private remote: RemoteGradients | undefined;

  constructor(
    private readonly policy: PolicyBackend,
    private readonly options: TurnGradientsOptions,
  ) {
    this.graphs = new MicroBatchGraphs(policy, options, { frozenStates: options.frozenStates });
  }

  /** Computes gradients on workers from now on. */
  useTransport(transport: GradientTransport): void {
    this.remote = new RemoteGradients(this.policy.causalLM!, transport, this.graphs.describeOutputs());
  }

  /** Computes the loss of a minibatch and leaves its gradients in the model's gradient buffer. */
  async compute(
    turns: readonly TurnTokens[],
    inputs: InputsOf,
    { temperature, random, units = turns.map((_, i) => [i]) }: MinibatchOptions,
  ): Promise<TurnStatistics> {
    const statistics: Record<string, number> = {};
    const perTurn: Record<string, Float32Array[]> = {};
    const packingOptions = { microBatchTokens: this.options.microBatchTokens, config: this.policy.config };
    const built: BuiltMicroBatch[] = [];
    const items = units.map((unit) =>
      unit.length === 1 ? decisionSequences(turns[unit[0]]) : unit.flatMap((i) => decisionSequences(turns[i])),
    );
    const jobs = buildEach(packSharedPrefixes(items, packingOptions), ({ indices, ...layout }) => {
      const microBatch = { indices: indices.flatMap((i) => units[i]), ...layout };
      built.push(this.build(turns, microBatch, inputs, temperature));
      return built.at(-1)!;
    });
    for await (const outputs of this.remote?.compute(jobs) ?? this.computeHere(jobs, random)) {
      const { turnIndices, batch } = built.shift()!;
      for (const [name, { shape, data }] of Object.entries(outputs)) {
        if (shape.length === 0) statistics[name] = (statistics[name] ?? 0) + data[0];
        else splitByTurn(data, batch).forEach((turnValues, i) => ((perTurn[name] ??= [])[turnIndices[i]] = turnValues));
      }
    }
    return { statistics, perTurn };
  }

  async release(): Promise<void> {
    await this.graphs.release();
    this.remote?.release();
  }

  /** Yields the outputs of micro-batches computed in this process. */
  private async *computeHere(jobs: Iterable<BuiltMicroBatch>, random: RandomStream): AsyncGenerator<MicroBatchOutputs> {
    let accumulate = false;
    for (const { job } of jobs) {
      yield await this.graphs.run(job, { accumulate, random });
      accumulate = true;
    }
  }

  private build(
    turns: readonly TurnTokens[],
    microBatch: MicroBatch,
    inputs: InputsOf,
    temperature: number,
  ): BuiltMicroBatch {
    const { indices: turnIndices } = microBatch;
    const { config, maxAlternatives } = this.policy;
    const batchTurns = turnIndices.map((i) => turns[i]);
    const batch = buildTurnBatch(batchTurns, microBatch, temperature, maxAlternatives);
    // Otherwise each decision is one selected token, in the same order.
    const hasAlternatives =
      batch.tokens.selected.length < batch.decisions.length ||
      batchTurns.some(
        ({ allowedTokens, actionCandidates }) => allowedTokens !== undefined || actionCandidates !== undefined,
      );
    const job = {
      kind: batch.hasAllowedTokens
        ? ("masked" as const)
        : hasAlternatives
          ? ("alternatives" as const)
          : ("free" as const),
      withHeadTokens: usesHeadTokens(batch, config.vocabSize),
      tokens: batch.tokens,
      inputs: { ...inputs(turnIndices), ...(hasAlternatives ? constraintFeeds(batch) : {}) },
    };
    return { turnIndices, batch, job, lengths: [batch.decisions.length, batchTurns.length] };
  }
}

/** Builds values one at a time, when they are needed. */
function* buildEach<Item, Value>(items: readonly Item[], build: (item: Item) => Value): Generator<Value> {
  for (const item of items) yield build(item);
}

/** Splits a vector with one entry per decision or per turn by turns. */
function splitByTurn(data: Float32Array, batch: TurnBatch): Float32Array[] {
  const decisions = decisionsByTurn(batch);
  if (data.length === decisions.length) return Array.from(data, (value) => Float32Array.of(value));
  return decisions.map((decisionIndices) => Float32Array.from(decisionIndices, (decision) => data[decision]));
}
