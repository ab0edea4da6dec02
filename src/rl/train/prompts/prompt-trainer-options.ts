import { invalidArgument } from "../../../core/errors.js";
import { suggestNames } from "../../../core/suggest.js";
import type { LanguageModel } from "../../../generation/language-model.js";
import type { PeftOptions } from "../../../models/adapters/get-peft-model.js";
import type { TrackerSource } from "../../tracking/index.js";
import type { PromptAlgorithm, GrpoTrainerConfig } from "./prompt-train-config.js";
import type { PromptRow } from "../../data/prompt-dataset.js";
import type { RewardFunction } from "./reward-scorer.js";

export interface PromptTrainerOptions<Algorithm extends PromptAlgorithm> {
  /** A model with trainable parameters (`getPeftModel`), or the name of a model, which gets an adapter. */
  readonly model: LanguageModel | string;
  /** Functions that score completions; their rewards are added. */
  readonly rewardFuncs: RewardFunction | readonly RewardFunction[];
  /** Weight of each function's rewards. Default 1. */
  readonly rewardWeights?: readonly number[];
  /** Rows with a prompt, or the path of a JSONL file of them. Other columns are passed to the reward functions. */
  readonly trainDataset: string | readonly PromptRow[];
  readonly args?: GrpoTrainerConfig<Algorithm>;
  /** Adapter of a model given by name. Default: rank 16 and alpha 32 on all linear layers. */
  readonly peftConfig?: PeftOptions;
  /** Trackers in addition to the files in outputDir. */
  readonly trackers?: readonly TrackerSource[];
  /** Receives warnings that do not stop the run. Default: written to standard error. */
  readonly onWarning?: (message: string) => void;
}

/** The options, and whether each is required. */
const required: Readonly<Record<keyof PromptTrainerOptions<PromptAlgorithm>, boolean>> = {
  model: true,
  rewardFuncs: true,
  rewardWeights: false,
  trainDataset: true,
  args: false,
  peftConfig: false,
  trackers: false,
  onWarning: false,
};

/** @throws INVALID_ARGUMENT for an unknown option, suggesting the nearest one, and for a missing one. */
export function checkTrainerOptions(trainer: string, given: PromptTrainerOptions<PromptAlgorithm>): void {
  const names = Object.keys(required) as (keyof typeof required)[];
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(required, name));
  if (unknown !== undefined) {
    const hint = suggestNames(unknown, names, "; settings go into args");
    throw invalidArgument(`${trainer} has no option "${unknown}". ${hint}`);
  }
  const missing = names.find((name) => required[name] && (given[name] ?? undefined) === undefined);
  if (missing !== undefined)
    throw invalidArgument(`${trainer} needs ${missing}: new ${trainer}({ model, rewardFuncs, trainDataset, args }).`);
  const { trainDataset } = given;
  if (typeof trainDataset !== "string" && !Array.isArray(trainDataset))
    throw invalidArgument(
      "trainDataset must be a list of rows with a prompt each, or the path of a JSONL file of them.",
    );
}
