import type { LanguageModel } from "../../generation/language-model.js";
import { TrainingGraph } from "../../models/training-graph.js";
import { Optimizer } from "../../optim/index.js";
import { RandomStream } from "../../tensor/random.js";
import { float32 } from "../../tensor/tensor.js";
import { SFT_DEFAULTS, type SftConfig } from "./config.js";
import { encodeExample, type SftExample } from "./example.js";
import { crossEntropy } from "./objective.js";
import { packExamples } from "./packing.js";

/** What an update did. */
export interface SftStats {
  /** Updates made so far, this one included. */
  readonly step: number;
  /** Mean cross-entropy of the learnt tokens in nats. */
  readonly loss: number;
  /** Share of the learnt tokens to which the model gave more than half of the probability. */
  readonly token_accuracy: number;
  /** Norm of the gradient before clipping. */
  readonly grad_norm: number;
  readonly learning_rate: number;
  /** Tokens of all examples so far. */
  readonly num_tokens: number;
  readonly tokens_per_second: number;
}

/** Supervised fine-tuning: makes what the assistant says in examples more likely. */
export class SftTrainer {
  private readonly graphs = new Map<boolean, Promise<TrainingGraph>>();
  private numTokens = 0;
  private readonly random: RandomStream;

  private constructor(
    readonly model: LanguageModel,
    readonly config: SftConfig,
    private readonly optimizer: Optimizer,
  ) {
    this.random = new RandomStream(config.seed);
  }

  /** Throws INVALID_STATE for a model of which nothing is trained. */
  static async create(model: LanguageModel, options: Partial<SftConfig> = {}): Promise<SftTrainer> {
    const config = { ...SFT_DEFAULTS, ...options };
    const { learningRate, weightDecay, beta2, maxGradNorm, schedule: kind, warmupSteps, maxSteps } = config;
    const optimizer = new Optimizer(model.causalLM.parameters, {
      learningRate,
      weightDecay,
      beta2,
      maxGradNorm,
      schedule: { kind, warmupSteps, totalSteps: maxSteps },
    });
    return new SftTrainer(model, config, optimizer);
  }

  /** One update from the given examples. */
  async step(examples: readonly SftExample[]): Promise<SftStats> {
    const started = performance.now();
    const encoded = examples.map((example) => encodeExample(example, () => this.model.tokenizer));
    const total = encoded.reduce((sum, { mask }) => sum + Array.from(mask).filter((bit) => bit !== 0).length, 0);
    let loss = 0;
    let confident = 0;
    const { maxTokensPerPass: maxTokens, sharePrefixes } = this.config;
    const passes = packExamples(encoded, { maxTokens, sharePrefixes });
    for (const [i, pass] of passes.entries()) {
      const weights = float32(pass.selected.map(() => 1 / total));
      const graph = await this.graph(pass.withPrefix);
      const outputs = await graph.run(pass, { weights }, { accumulate: i > 0, random: this.random });
      loss += outputs.loss.data[0];
      confident += outputs.confident.data[0];
    }
    const { gradNorm, learningRate } = await this.optimizer.update();
    this.model.causalLM.version++;
    const tokens = encoded.reduce((sum, example) => sum + example.tokens.length, 0);
    this.numTokens += tokens;
    return {
      step: this.optimizer.step,
      loss,
      token_accuracy: confident / total,
      grad_norm: gradNorm,
      learning_rate: learningRate,
      num_tokens: this.numTokens,
      tokens_per_second: tokens / ((performance.now() - started) / 1000),
    };
  }

  /** Groups without prefixes have a graph of their own, which is shorter. */
  private async graph(withPrefix: boolean): Promise<TrainingGraph> {
    let graph = this.graphs.get(withPrefix);
    if (graph === undefined) {
      graph = TrainingGraph.create(this.model.causalLM, crossEntropy, { withPrefix });
      this.graphs.set(withPrefix, graph);
    }
    return graph;
  }
}
