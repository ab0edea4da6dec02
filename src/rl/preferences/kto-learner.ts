import { mean } from "../../core/numbers.js";
import { LazyPromise } from "../../core/promise-cache.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { compile, input, reduceSum } from "../../engine/graph/index.js";
import { float32, int32, tensor } from "../../engine/tensor/index.js";
import type { FrozenStates } from "../../models/graphs/index.js";
import type { LanguageModel } from "../../generation/index.js";
import type { LabeledTokens } from "./preference-example.js";
import { countLossTokens, type TokenExample } from "../data/sft-example.js";
import {
  createFrozenStates,
  ExampleLearner,
  type StepMetrics,
  type ExampleEvaluator,
} from "../algorithms/shared/example-learner.js";
import { nameEvaluation, type EvaluationOf } from "../algorithms/shared/name-evaluation.js";
import { packItems, LossGraphs, type SequenceBatch } from "../algorithms/shared/sequence-batches.js";
import { completionLosses, completions, ktoLoss } from "./kto-loss.js";
import type { KtoConfig } from "./kto-settings.js";
import { ReferencePolicy, sumLogProbs } from "./reference-policy.js";

/**
 * Loss and rewards of completions, named as in TRL's KTOTrainer. Those of chosen or rejected ones
 * are absent where there are none.
 */
export interface CompletionMetrics {
  readonly loss: number;
  /**
   * Estimate of the KL divergence from the reference policy, on mismatched prompts and completions.
   */
  readonly kl: number;
  readonly "rewards/chosen"?: number;
  readonly "rewards/rejected"?: number;
  readonly "rewards/margins"?: number;
  readonly "logps/chosen"?: number;
  readonly "logps/rejected"?: number;
}

/** Metrics of an update. */
export interface KtoMetrics extends StepMetrics, CompletionMetrics {}

/** Metrics of an evaluation: `eval_loss`, `eval_kl`, ... */
export type KtoEvaluation = EvaluationOf<CompletionMetrics>;

interface CompletionScores {
  readonly label: boolean;
  readonly policy: number;
  readonly reference: number;
}

/** How a learner is created. */
interface KtoLearnerOptions {
  readonly totalSteps?: number | undefined;
  readonly refModel?: LanguageModel | undefined;
  /** Maximum number of tokens of a sequence. */
  readonly maxLength: number;
}

/** Optimizes the KTO loss of labeled completions, one batch at a time. */
export class KtoLearner
  extends ExampleLearner<LabeledTokens, CompletionMetrics>
  implements ExampleEvaluator<LabeledTokens, KtoEvaluation>
{
  private readonly graphs: LossGraphs;
  /** The loss as a function of log-probabilities, for evaluations. */
  private readonly lossSession = new LazyPromise(async () => {
    const loss = reduceSum(completionLosses(input("completion", "float32", [completions]), this.config));
    return this.model.policy.runtime.createSession(compile({ loss }));
  });

  private constructor(
    model: LanguageModel,
    protected override readonly config: KtoConfig,
    private readonly reference: ReferencePolicy,
    private readonly options: KtoLearnerOptions,
    frozenStates: FrozenStates | undefined,
  ) {
    super(model, config, options.totalSteps, frozenStates);
    this.graphs = new LossGraphs(model.policy, (policy) => ktoLoss(policy, config), frozenStates);
  }

  /**
   * @throws INVALID_STATE for a model without trainable parameters, and as `ReferencePolicy.create`
   */
  static async create(model: LanguageModel, config: KtoConfig, options: KtoLearnerOptions): Promise<KtoLearner> {
    const frozenStates = createFrozenStates(model);
    const reference = await ReferencePolicy.create(model, { refModel: options.refModel, frozenStates });
    await frozenStates?.open();
    return new KtoLearner(model, config, reference, options, frozenStates);
  }

  countTokens({ example }: LabeledTokens): number {
    return example.tokens.length;
  }

  async evaluate(examples: readonly LabeledTokens[]): Promise<KtoEvaluation> {
    const scores: CompletionScores[] = [];
    let loss = 0;
    const kl = await this.estimateKl(examples);
    for (const batch of this.pack(examples.map(({ example }) => example))) {
      const policy = sumLogProbs(batch, await this.graphs.score(batch.tokens)).map(([sum]) => sum);
      const reference = await this.scoreReference(batch);
      const session = await this.lossSession.get();
      const feeds = { completion: float32(policy), ...this.completionFeeds(batch, examples, reference, kl) };
      loss += (await session.run(feeds)).loss.data[0];
      scores.push(...joinScores(batch, examples, policy, reference));
    }
    return nameEvaluation(this.metrics(scores, loss, kl));
  }

  override async release(): Promise<void> {
    await (await this.lossSession.peek())?.release();
    await this.reference.release();
    await this.graphs.release();
    await super.release();
  }

  protected async computeGradients(
    examples: readonly LabeledTokens[],
    random: RandomStream,
  ): Promise<CompletionMetrics> {
    const scores: CompletionScores[] = [];
    let loss = 0;
    const kl = await this.estimateKl(examples);
    for (const batch of this.pack(examples.map(({ example }) => example))) {
      const reference = await this.scoreReference(batch);
      const feeds = {
        completionIndex: int32(batch.items),
        ...this.completionFeeds(batch, examples, reference, kl),
      };
      const graph = await this.graphs.training(batch.tokens);
      const outputs = await graph.run(batch.tokens, feeds, { accumulate: scores.length > 0, random });
      scores.push(...joinScores(batch, examples, outputs.completion.data, reference));
      loss += outputs.loss.data[0];
    }
    return this.metrics(scores, loss, kl);
  }

  private pack(examples: readonly TokenExample[]): readonly SequenceBatch[] {
    return packItems(
      examples.map((example) => [example]),
      this.packingOptions,
    );
  }

  private async scoreReference(batch: SequenceBatch): Promise<readonly number[]> {
    return (await this.reference.score(batch)).map(([sum]) => sum);
  }

  /**
   * Estimates the KL divergence from the reference policy: the mean log-ratio of each prompt with
   * the completion of the example before it, but at least 0, as TRL does. 0 for losses without it.
   */
  private async estimateKl(examples: readonly LabeledTokens[]): Promise<number> {
    if (this.config.lossType !== "kto") return 0;
    const mismatched = examples.map((example, i) => this.mismatch(example, examples.at(i - 1)!));
    let sum = 0;
    // A sequence without a token of the completion has a ratio of 1.
    for (const batch of this.pack(mismatched.filter((example) => countLossTokens(example) > 0))) {
      const policy = sumLogProbs(batch, await this.graphs.score(batch.tokens));
      const reference = await this.scoreReference(batch);
      policy.forEach(([logProb], i) => (sum += logProb - reference[i]));
    }
    return Math.max(0, sum / examples.length);
  }

  /** Returns an example's prompt with the completion of another one. */
  private mismatch({ example, promptLength }: LabeledTokens, other: LabeledTokens): TokenExample {
    const prompt = example.tokens.slice(0, promptLength);
    const tokens = [...prompt, ...other.completion].slice(0, this.options.maxLength);
    return { tokens, lossMask: new Uint8Array(tokens.length).fill(1, promptLength) };
  }

  private completionFeeds(
    { indices }: SequenceBatch,
    examples: readonly LabeledTokens[],
    reference: readonly number[],
    kl: number,
  ) {
    const { desirableWeight, undesirableWeight } = this.config;
    const labels = indices.map((index) => examples[index].label);
    return {
      reference: float32(reference),
      signs: float32(labels.map((label) => (label ? 1 : -1))),
      weights: float32(labels.map((label) => (label ? desirableWeight : undesirableWeight) / examples.length)),
      kl: tensor("float32", [], Float32Array.of(kl)),
    };
  }

  private metrics(scores: readonly CompletionScores[], loss: number, kl: number): CompletionMetrics {
    const meansOf = (label: boolean) => {
      const own = scores.filter((score) => score.label === label);
      return {
        reward: mean(own.map(({ policy, reference }) => this.config.beta * (policy - reference))),
        logProb: mean(own.map(({ policy }) => policy)),
      };
    };
    const [chosen, rejected] = [meansOf(true), meansOf(false)];
    const metrics = {
      loss,
      kl,
      "rewards/chosen": chosen.reward,
      "rewards/rejected": rejected.reward,
      "rewards/margins": chosen.reward - rejected.reward,
      "logps/chosen": chosen.logProb,
      "logps/rejected": rejected.logProb,
    };
    // The mean of no completions is NaN.
    return Object.fromEntries(Object.entries(metrics).filter(([, value]) => !Number.isNaN(value))) as never;
  }
}

function joinScores(
  { indices }: SequenceBatch,
  examples: readonly LabeledTokens[],
  policy: ArrayLike<number>,
  reference: readonly number[],
): CompletionScores[] {
  return indices.map((index, i) => ({ label: examples[index].label, policy: policy[i], reference: reference[i] }));
}
