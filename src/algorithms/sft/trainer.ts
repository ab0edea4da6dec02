import { LlamaGymError } from "../../errors.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { affordableTokens } from "../../models/pass-memory.js";
import { ScoringGraph, TrainingGraph } from "../../models/training-graph.js";
import { Optimizer, scheduleFactor, type OptimizerState } from "../../optim/index.js";
import { RandomStream } from "../../tensor/random.js";
import { float32 } from "../../tensor/tensor.js";
import { BatchPlan } from "./batches.js";
import { resolveSftConfig, type SftConfig, type SftOptions } from "./config.js";
import { encodeDataset, type EncodedDataset } from "./dataset.js";
import { encodeExample, learntTokens, type SftExample, type TokenExample } from "./example.js";
import { CONFIDENT, crossEntropy } from "./objective.js";
import { packExamples, type Pass } from "./packing.js";

/** What an update did, by names that the field knows. */
export interface SftStats {
  /** Updates made so far, this one included. */
  readonly step: number;
  /** Epochs gone through so far; absent for examples that were given by hand. */
  readonly epoch?: number;
  /** Mean cross-entropy of the learnt tokens in nats, before the update. */
  readonly loss: number;
  /** Share of the learnt tokens that had more than half of the probability: greedy decoding gets at least these right. */
  readonly token_accuracy: number;
  /** Norm of the gradient before clipping. */
  readonly grad_norm: number;
  readonly learning_rate: number;
  /** Tokens of all examples so far, learnt or not. */
  readonly num_tokens: number;
  readonly tokens_per_second: number;
}

/** What a model makes of examples without learning them. */
export interface SftEvaluation {
  readonly eval_loss: number;
  readonly eval_token_accuracy: number;
}

export interface SftTrainerOptions extends SftOptions {
  /** What is learnt; without it, give examples to `update`. */
  readonly train?: readonly SftExample[];
  /** Examples that are kept apart, for `evaluate`. */
  readonly evaluation?: readonly SftExample[];
}

export interface SftWatch {
  /** Told of each update; what it returns is waited for. */
  readonly onStep?: (stats: SftStats) => void | Promise<void>;
  /** Ends the training after the update that is on its way. */
  readonly signal?: AbortSignal;
}

/** Everything that a resumed run needs besides the trained parameters. */
export interface SftState {
  readonly step: number;
  readonly numTokens: number;
  readonly optimizer: OptimizerState;
}

/** Decides what dropout drops, a child of the run's seed for each update. */
const DROPOUT_STREAM = 2;
/** This many updates in a row without a finite gradient end a run. */
const MOST_SKIPS = 5;

/**
 * Supervised fine-tuning: makes the assistant's words in examples more likely. The model is one of which something is
 * trained: an adapter (getPeftModel) or its weights (trainWeights).
 */
export class SftTrainer {
  private readonly graphs = new Map<boolean, Promise<TrainingGraph>>();
  private readonly scorers = new Map<boolean, Promise<ScoringGraph>>();
  private updates = 0;
  private numTokens = 0;
  private skips = 0;

  private constructor(
    readonly model: LanguageModel,
    readonly config: SftConfig,
    /** The examples that `train` learns from; undefined when none were given. */
    readonly dataset: EncodedDataset | undefined,
    private readonly evaluation: readonly TokenExample[],
    private readonly plan: BatchPlan | undefined,
    private readonly optimizer: Optimizer,
  ) {}

  /**
   * Throws INVALID_STATE for a model of which nothing is trained, INVALID_ARGUMENT for settings and examples that cannot be,
   * with their names and numbers, and TEMPLATE_FAILED.
   */
  static async create(
    model: LanguageModel,
    { train, evaluation = [], ...options }: SftTrainerOptions = {},
  ): Promise<SftTrainer> {
    const config = resolveSftConfig(options);
    const { maxPositions } = model.causalLM.config;
    const encoding = { ...config, maxLength: Math.min(config.maxLength ?? Infinity, maxPositions) };
    const encode = (examples: readonly SftExample[]) => encodeDataset(examples, () => model.tokenizer, encoding);
    const dataset = train && encode(train);
    const kept = evaluation.length === 0 ? [] : encode(evaluation).examples;
    const plan = dataset && new BatchPlan(dataset.examples, config);
    const { learningRate, weightDecay, beta1, beta2, maxGradNorm } = config;
    const { parameters } = model.causalLM;
    const optimizer = new Optimizer(parameters, { learningRate, weightDecay, beta1, beta2, maxGradNorm });
    return new SftTrainer(model, config, dataset, kept, plan, optimizer);
  }

  /** Updates made so far, with those that were skipped because their gradient was not finite. */
  get step(): number {
    return this.updates;
  }

  /** All updates of the run; undefined where neither examples nor maxSteps say. */
  get totalSteps(): number | undefined {
    return this.plan?.totalSteps ?? this.config.maxSteps;
  }

  /** Makes the updates that are left. Throws INVALID_STATE without examples, TRAINING_DIVERGED. */
  async train({ onStep, signal }: SftWatch = {}): Promise<void> {
    const { plan } = this;
    if (plan === undefined)
      throw new LlamaGymError(
        "INVALID_STATE",
        "There is nothing to train on: give SftTrainer.create examples (train).",
      );
    while (this.step < plan.totalSteps) {
      if (signal?.aborted === true) return;
      const { examples, epoch } = plan.batch(this.step);
      const stats = await this.learn(examples);
      await onStep?.({ ...stats, epoch });
    }
  }

  /** One update from examples that are given by hand. Throws as `create` does, and TRAINING_DIVERGED. */
  async update(examples: readonly SftExample[]): Promise<SftStats> {
    return this.learn(examples.map((example) => encodeExample(example, () => this.model.tokenizer)));
  }

  /** Loss and accuracy on the examples that were kept apart, or on others. */
  async evaluate(examples?: readonly SftExample[]): Promise<SftEvaluation> {
    const encoded = examples?.map((example) => encodeExample(example, () => this.model.tokenizer)) ?? this.evaluation;
    let sum = 0;
    let confident = 0;
    let count = 0;
    for (const pass of this.passes(encoded)) {
      const { logProbs } = await (await this.scorer(pass.withPrefix)).run(pass);
      for (const logProb of logProbs) {
        sum -= logProb;
        if (logProb > CONFIDENT) confident++;
      }
      count += logProbs.length;
    }
    return { eval_loss: sum / count, eval_token_accuracy: confident / count };
  }

  async getState(): Promise<SftState> {
    return { step: this.updates, numTokens: this.numTokens, optimizer: await this.optimizer.state() };
  }

  /** Goes on where `getState` was taken; the trained parameters are the model's. Throws INVALID_ARGUMENT. */
  async setState({ step, numTokens, optimizer }: SftState): Promise<void> {
    await this.optimizer.restore(optimizer);
    this.updates = step;
    this.numTokens = numTokens;
  }

  async release(): Promise<void> {
    for (const graph of [...this.graphs.values(), ...this.scorers.values()]) await (await graph).release();
    this.optimizer.free();
  }

  private async learn(examples: readonly TokenExample[]): Promise<SftStats> {
    const started = performance.now();
    const total = examples.reduce((sum, example) => sum + learntTokens(example), 0);
    if (total === 0) throw new LlamaGymError("INVALID_ARGUMENT", "These examples have no token to learn.");
    const { seed } = this.config;
    const random = new RandomStream(seed, [DROPOUT_STREAM, this.step]);
    let loss = 0;
    let confident = 0;
    let accumulate = false;
    for (const pass of this.passes(examples)) {
      const weights = float32(pass.selected.map(() => 1 / total));
      const graph = await this.graph(pass.withPrefix);
      const outputs = await graph.run(pass, { weights }, { accumulate, random });
      loss += outputs.loss.data[0];
      confident += outputs.confident.data[0];
      accumulate = true;
    }
    const { gradNorm, learningRate, skipped } = await this.optimizer.update({ learningRateFactor: this.rateFactor() });
    this.model.causalLM.version++;
    this.updates++;
    this.countSkips(skipped);
    const tokens = examples.reduce((sum, example) => sum + example.tokens.length, 0);
    this.numTokens += tokens;
    return {
      step: this.step,
      loss,
      token_accuracy: confident / total,
      grad_norm: gradNorm,
      learning_rate: learningRate,
      num_tokens: this.numTokens,
      tokens_per_second: tokens / ((performance.now() - started) / 1000),
    };
  }

  /** The factor on the learning rate of the next update; without an end it does not fall. */
  private rateFactor(): number {
    const { totalSteps } = this;
    const { warmupSteps, lrSchedulerType } = this.config;
    const kind = totalSteps === undefined ? "constant" : lrSchedulerType;
    return scheduleFactor({ kind, warmupSteps, totalSteps }, this.step);
  }

  private passes(examples: readonly TokenExample[]): readonly Pass[] {
    const { sharePrefixes, maxTokens = affordableTokens(this.model.causalLM.config) } = this.config;
    return packExamples(examples, { sharePrefixes, maxTokens, network: this.model.causalLM.config });
  }

  /** Groups without prefixes have a graph of their own, which is shorter. */
  private async graph(withPrefix: boolean): Promise<TrainingGraph> {
    const { causalLM } = this.model;
    return cached(this.graphs, withPrefix, async () => TrainingGraph.create(causalLM, crossEntropy, { withPrefix }));
  }

  private async scorer(withPrefix: boolean): Promise<ScoringGraph> {
    return cached(this.scorers, withPrefix, async () => ScoringGraph.create(this.model.causalLM, { withPrefix }));
  }

  private countSkips(skipped: boolean): void {
    this.skips = skipped ? this.skips + 1 : 0;
    if (this.skips < MOST_SKIPS) return;
    throw new LlamaGymError(
      "TRAINING_DIVERGED",
      `The gradient was not a finite number in ${this.skips} updates in a row; the parameters are those before them. ` +
        "Lower the learning rate.",
    );
  }
}

async function cached<Key, Value>(
  found: Map<Key, Promise<Value>>,
  key: Key,
  make: () => Promise<Value>,
): Promise<Value> {
  let value = found.get(key);
  if (value === undefined) {
    value = make();
    found.set(key, value);
  }
  return value;
}
