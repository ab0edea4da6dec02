import { mean } from "../../core/numbers.js";
import { LazyPromise } from "../../core/promise-cache.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { compile, input, mul, reduceSum } from "../../engine/graph/index.js";
import { float32, int32, tensor } from "../../engine/tensor/index.js";
import type { FrozenStates } from "../../models/graphs/index.js";
import type { LanguageModel } from "../../generation/index.js";
import type { TokenPair } from "./preference-example.js";
import { countLossTokens } from "../data/sft-example.js";
import {
  createFrozenStates,
  ExampleLearner,
  type StepMetrics,
  type ExampleEvaluator,
} from "../algorithms/shared/example-learner.js";
import { nameEvaluation, type EvaluationOf } from "../algorithms/shared/name-evaluation.js";
import { packItems, LossGraphs, type SequenceBatch } from "../algorithms/shared/sequence-batches.js";
import { dpoLoss, pairLosses, pairs } from "./dpo-loss.js";
import type { DpoConfig } from "./dpo-settings.js";
import { ReferencePolicy, sumLogProbs } from "./reference-policy.js";

/**
 * Loss and rewards of pairs, named as in TRL's DPOTrainer. Rewards are `beta` times the log-ratio
 * to the reference policy.
 */
export interface PairMetrics {
  readonly loss: number;
  readonly "rewards/chosen": number;
  readonly "rewards/rejected": number;
  /** Fraction of pairs whose chosen completion has the higher reward. */
  readonly "rewards/accuracies": number;
  readonly "rewards/margins": number;
  /** Mean log-probability of the chosen completions. */
  readonly "logps/chosen": number;
  readonly "logps/rejected": number;
  /** Fraction of the chosen completions' tokens that are the argmax of their distribution. */
  readonly mean_token_accuracy?: number;
}

/** Metrics of an update. */
export interface DpoMetrics extends StepMetrics, PairMetrics {}

/** Metrics of an evaluation: `eval_loss`, `eval_rewards/chosen`, ... */
export type DpoEvaluation = EvaluationOf<PairMetrics>;

/** Log-probabilities of one pair's completions under the policy and the reference policy. */
interface PairScores {
  readonly chosen: number;
  readonly rejected: number;
  readonly refChosen: number;
  readonly refRejected: number;
}

/**
 * Optimizes the DPO loss of pairs of completions, one batch at a time. The completions of a pair
 * are in the same micro-batch.
 */
export class DpoLearner
  extends ExampleLearner<TokenPair, PairMetrics>
  implements ExampleEvaluator<TokenPair, DpoEvaluation>
{
  private readonly graphs: LossGraphs;
  /** The loss as a function of log-probabilities, for evaluations. */
  private readonly lossSession = new LazyPromise(async () => {
    const perPair = (name: string) => input(name, "float32", [pairs]);
    const nodes = { chosen: perPair("chosen"), rejected: perPair("rejected"), chosenSum: perPair("chosenSum") };
    const loss = reduceSum(mul(pairLosses(nodes, this.config), perPair("pairWeights")));
    return this.model.policy.runtime.createSession(compile({ loss }));
  });

  private constructor(
    model: LanguageModel,
    protected override readonly config: DpoConfig,
    totalSteps: number | undefined,
    private readonly reference: ReferencePolicy,
    frozenStates: FrozenStates | undefined,
  ) {
    super(model, config, totalSteps, frozenStates);
    this.graphs = new LossGraphs(model.policy, (policy) => dpoLoss(policy, config), frozenStates);
  }

  /**
   * @throws INVALID_STATE for a model without trainable parameters, and as `ReferencePolicy.create`
   */
  static async create(
    model: LanguageModel,
    config: DpoConfig,
    {
      totalSteps,
      refModel,
    }: { readonly totalSteps?: number | undefined; readonly refModel?: LanguageModel | undefined },
  ): Promise<DpoLearner> {
    const frozenStates = createFrozenStates(model);
    const reference = await ReferencePolicy.create(model, { refModel, frozenStates });
    await frozenStates?.open();
    return new DpoLearner(model, config, totalSteps, reference, frozenStates);
  }

  countTokens({ chosen, rejected }: TokenPair): number {
    return chosen.tokens.length + rejected.tokens.length;
  }

  async evaluate(examples: readonly TokenPair[]): Promise<DpoEvaluation> {
    const scores: PairScores[] = [];
    let loss = 0;
    let correct = 0;
    for (const batch of this.pack(examples)) {
      const tokens = await this.graphs.score(batch.tokens);
      const policy = sumLogProbs(batch, tokens, this.tokenWeights(batch, examples));
      const chosenSums = sumLogProbs(batch, tokens).map(([chosen]) => chosen);
      const reference = await this.scoreReference(batch, examples);
      scores.push(...policy.map(([chosen, rejected], i) => ({ chosen, rejected, ...reference[i] })));
      batch.sequences.forEach((sequence, i) => {
        if (sequence === 0 && tokens.logProbs[i] >= (tokens.maxLogProbs?.[i] ?? Infinity)) correct++;
      });
      const outputs = await (
        await this.lossSession.get()
      ).run({
        chosen: float32(policy.map(([chosen]) => chosen)),
        rejected: float32(policy.map(([, rejected]) => rejected)),
        chosenSum: float32(chosenSums),
        ...this.pairFeeds(batch, examples, reference),
      });
      loss += outputs.loss.data[0];
    }
    return nameEvaluation(this.metrics(scores, loss, correct, examples));
  }

  override async release(): Promise<void> {
    await (await this.lossSession.peek())?.release();
    await this.reference.release();
    await this.graphs.release();
    await super.release();
  }

  protected async computeGradients(examples: readonly TokenPair[], random: RandomStream): Promise<PairMetrics> {
    const scores: PairScores[] = [];
    let loss = 0;
    let correct = 0;
    for (const batch of this.pack(examples)) {
      const reference = await this.scoreReference(batch, examples);
      const weights = this.tokenWeights(batch, examples);
      const inputs = {
        pairIndex: int32(batch.items),
        chosenMask: float32(batch.sequences.map((sequence) => 1 - sequence)),
        ...(weights === undefined ? {} : { tokenWeights: float32(weights) }),
        ...this.pairFeeds(batch, examples, reference),
      };
      const graph = await this.graphs.training(batch.tokens);
      const outputs = await graph.run(batch.tokens, inputs, { accumulate: scores.length > 0, random });
      const [chosen, rejected] = [outputs.chosen.data, outputs.rejected.data];
      scores.push(...reference.map((pair, i) => ({ chosen: chosen[i], rejected: rejected[i], ...pair })));
      loss += outputs.loss.data[0];
      correct += outputs.correct.data[0];
    }
    return this.metrics(scores, loss, correct, examples);
  }

  private pack(examples: readonly TokenPair[]): readonly SequenceBatch[] {
    const items = examples.map(({ chosen, rejected }) => [chosen, rejected]);
    return packItems(items, this.packingOptions);
  }

  private async scoreReference(batch: SequenceBatch, examples: readonly TokenPair[]) {
    const scores = await this.reference.score(batch, this.tokenWeights(batch, examples));
    return scores.map(([refChosen, refRejected]) => ({ refChosen, refRejected }));
  }

  /**
   * Returns 1 for tokens up to the length of the shorter completion, and `ldAlpha` for the others;
   * undefined without it.
   */
  private tokenWeights({ indices, items, sequences }: SequenceBatch, examples: readonly TokenPair[]) {
    const { ldAlpha } = this.config;
    if (ldAlpha === undefined) return undefined;
    const shared = indices.map((index) =>
      Math.min(countLossTokens(examples[index].chosen), countLossTokens(examples[index].rejected)),
    );
    const seen = indices.map(() => [0, 0]);
    return items.map((item, i) => (seen[item][sequences[i]]++ < shared[item] ? 1 : ldAlpha));
  }

  /** Returns the inputs of `pairLosses` and the weights of the pairs. */
  private pairFeeds(
    { indices }: SequenceBatch,
    examples: readonly TokenPair[],
    reference: readonly Pick<PairScores, "refChosen" | "refRejected">[],
  ) {
    const chosenTokens = examples.reduce((sum, { chosen }) => sum + countLossTokens(chosen), 0);
    const lengths = (side: "chosen" | "rejected") =>
      float32(indices.map((index) => Array.from(examples[index][side].lossMask).filter((bit) => bit !== 0).length));
    return {
      refChosen: float32(reference.map(({ refChosen }) => refChosen)),
      refRejected: float32(reference.map(({ refRejected }) => refRejected)),
      chosenLengths: lengths("chosen"),
      rejectedLengths: lengths("rejected"),
      sftScale: tensor("float32", [], Float32Array.of(examples.length / chosenTokens)),
      pairWeights: float32(indices.map(() => 1 / examples.length)),
    };
  }

  private metrics(
    scores: readonly PairScores[],
    loss: number,
    correct: number,
    examples: readonly TokenPair[],
  ): PairMetrics {
    const { beta } = this.config;
    const chosen = scores.map((pair) => beta * (pair.chosen - pair.refChosen));
    const rejected = scores.map((pair) => beta * (pair.rejected - pair.refRejected));
    return {
      loss,
      "rewards/chosen": mean(chosen),
      "rewards/rejected": mean(rejected),
      "rewards/accuracies": mean(chosen.map((reward, i) => (reward > rejected[i] ? 1 : 0))),
      "rewards/margins": mean(chosen.map((reward, i) => reward - rejected[i])),
      "logps/chosen": mean(scores.map((pair) => pair.chosen)),
      "logps/rejected": mean(scores.map((pair) => pair.rejected)),
      // Absent where a service does not return it.
      ...(this.model.policy.hasDistributions ? { mean_token_accuracy: correct / countChosen(examples) } : {}),
    };
  }
}

function countChosen(examples: readonly TokenPair[]): number {
  return examples.reduce((sum, { chosen }) => sum + countLossTokens(chosen), 0);
}
