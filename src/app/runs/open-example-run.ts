import type { LanguageModel } from "../../generation/index.js";
import type { InvalidLine } from "../../rl/data/index.js";
import type { ExampleTrainOptions, TrainResult } from "../../rl/train/index.js";
import { checkService } from "./check-service.js";
import type { exampleRunSettings } from "./example-run-settings.js";
import { hashExamples, type ExampleFiles } from "./load-examples.js";
import type { BaseRunConfig, OpenedRun, RunContext, RunHooks } from "./open-run.js";
import type { Settings } from "../../core/settings.js";

type ExampleRunConfig = BaseRunConfig &
  ExampleFiles &
  Pick<
    Settings<typeof exampleRunSettings>,
    "saveSteps" | "evalSteps" | "earlyStoppingPatience" | "earlyStoppingThreshold"
  >;

/** A trainer on examples, as far as a run uses it. */
interface RunTrainer<Metrics, Evaluation> {
  resume(checkpointDir: string, onWarning?: (message: string) => void): Promise<number>;
  train(options: ExampleTrainOptions<Metrics, Evaluation>): Promise<TrainResult>;
  release(): Promise<void>;
}

type ExampleRunCallbacks<Metrics, Evaluation> = Pick<
  ExampleTrainOptions<Metrics, Evaluation>,
  "onStep" | "onEvaluation" | "signal"
>;

/** What is read of the files of a run's examples. */
interface ReadExamples {
  readonly invalidLines: readonly InvalidLine[];
  /** Columns of the data that are not part of any example. */
  readonly unusedColumns: readonly string[];
}

/** The open trainer of a run on a file of examples. */
export interface OpenedExampleRun<Config extends BaseRunConfig, Trainer, Metrics, Evaluation>
  extends OpenedRun<Config, ExampleRunCallbacks<Metrics, Evaluation>>, ReadExamples {
  readonly trainer: Trainer;
}

/**
 * Opens the model of a run on a file of examples and the trainer, and resumes it.
 * @throws as `hashExamples`, `checkService`, `createTrainer` and the trainer's `resume`.
 */
export async function openExampleRun<
  Config extends ExampleRunConfig,
  Metrics,
  Evaluation,
  Trainer extends RunTrainer<Metrics, Evaluation>,
>(
  context: RunContext<object, Config, RunHooks>,
  createTrainer: (config: Config, model: LanguageModel) => Promise<ReadExamples & { readonly trainer: Trainer }>,
): Promise<OpenedExampleRun<Config, Trainer, Metrics, Evaluation>> {
  const { saved, checkpointDir, lock, hooks } = context;
  checkService(context.config);
  const config = await hashExamples(context);
  const model = await context.openModel(config, "saved");
  // The reference policy is a copy of the parameters before a checkpoint replaces them.
  const { trainer, invalidLines, unusedColumns } = await createTrainer(config, model);
  context.defer(async () => trainer.release());
  const resumedAt = saved !== undefined ? await trainer.resume(checkpointDir, hooks.onWarning) : 0;
  const { saveSteps, evalSteps, earlyStoppingPatience, earlyStoppingThreshold } = config;
  const evaluations = { evalSteps, earlyStoppingPatience, earlyStoppingThreshold };
  return {
    config,
    model,
    trainer,
    invalidLines,
    unusedColumns,
    resumedAt,
    hasCheckpoint: resumedAt > 0,
    train: async (callbacks) => trainer.train({ checkpointDir, lock, saveSteps, ...evaluations, ...callbacks }),
  };
}
