import { invalidArgument } from "../../../core/settings.js";
import { suggestNames } from "../../../core/suggest.js";
import type { LanguageModel } from "../../../generation/language-model.js";
import type { PeftOptions } from "../../../models/adapters/get-peft-model.js";
import type { TrackerSource } from "../../tracking/index.js";
import type { PromptAlgorithm, GrpoTrainerConfig } from "./prompt-train-config.js";
import type { PromptRow } from "../../data/prompt-dataset.js";
import type { RewardFunction } from "./reward-scorer.js";

export interface PromptTrainerOptions<Algorithm extends PromptAlgorithm> {
  /** A model of which something is trained (`getPeftModel`), or the name of one that then gets an adapter. */
  readonly model: LanguageModel | string;
  /** What scores completions: one function or several, whose rewards are added. */
  readonly rewardFuncs: RewardFunction | readonly RewardFunction[];
  /** What each function's rewards are multiplied with; 1 by default. */
  readonly rewardWeights?: readonly number[];
  /** Rows with a prompt, or the path of a JSONL file of them. Other columns go to the reward functions. */
  readonly trainDataset: string | readonly PromptRow[];
  readonly args?: GrpoTrainerConfig<Algorithm>;
  /** The adapter of a model that was named; rank 16 and alpha 32 on all linear layers by default. */
  readonly peftConfig?: PeftOptions;
  /** More that watches the run, beside the files in outputDir. */
  readonly trackers?: readonly TrackerSource[];
  /** Told what is worth knowing and no error. Written to standard error by default. */
  readonly onWarning?: (message: string) => void;
}

/** A trainer's options, and whether it can do without. */
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

/** Throws INVALID_ARGUMENT for an option that there is not, with the nearest that there is, and for one that is missing. */
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
