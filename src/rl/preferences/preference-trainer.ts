import type { LanguageModel } from "../../generation/index.js";
import type { BatchSchedule } from "../algorithms/shared/batch-schedule.js";
import type { ExampleConfig } from "../algorithms/shared/example-settings.js";
import type { ExampleEvaluator, ExampleLearner } from "../algorithms/shared/example-learner.js";
import type { EncodedPreferences } from "./preference-example.js";
import { ExampleTrainer } from "../train/example-trainer.js";

type AnyLoss = { readonly loss: number };

/** What the trainers of preferences differ in. */
export interface PreferenceTrainerParts<Example, Encoded, Loss extends AnyLoss, Evaluation> {
  readonly name: string;
  readonly metricPrefix: string;
  readonly learner: ExampleLearner<Encoded, Loss> & ExampleEvaluator<Encoded, Evaluation>;
  readonly schedule: BatchSchedule<Encoded> | undefined;
  readonly dataset: EncodedPreferences<Encoded> | undefined;
  readonly evalExamples: readonly Encoded[];
  readonly encode: (examples: readonly Example[]) => readonly Encoded[];
}

/** Trains on preferences between completions. */
export abstract class PreferenceTrainer<
  Example,
  Encoded,
  Loss extends AnyLoss,
  Evaluation extends object,
> extends ExampleTrainer<Encoded, Loss, Evaluation> {
  protected constructor(private readonly own: PreferenceTrainerParts<Example, Encoded, Loss, Evaluation>) {
    const { schedule } = own;
    super({ ...own, getBatch: schedule && ((step) => schedule.batch(step)) });
  }

  /** The encoded training examples; undefined without them. */
  get dataset(): EncodedPreferences<Encoded> | undefined {
    return this.own.dataset;
  }

  /** Makes one update on the given examples. @throws as `create`, and TRAINING_DIVERGED. */
  async update(examples: readonly Example[]) {
    return this.own.learner.update(this.own.encode(examples));
  }

  /** Computes loss and rewards on the evaluation examples, or on others. */
  async evaluate(examples?: readonly Example[]): Promise<Evaluation> {
    const { learner, evalExamples, encode } = this.own;
    return learner.evaluate(examples === undefined ? evalExamples : encode(examples));
  }
}

/** Options of encoding that depend on the model. */
export function getEncodingOptions(
  { policy }: LanguageModel,
  { maxLength, overlong, toolCalls }: Pick<ExampleConfig, "maxLength" | "overlong" | "toolCalls">,
) {
  return { maxLength: Math.min(maxLength ?? Infinity, policy.config.maxPositions), overlong, toolCalls };
}
