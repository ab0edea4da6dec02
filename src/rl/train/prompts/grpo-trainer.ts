import type { PromptTrainerOptions } from "./prompt-trainer-options.js";
import { PromptTrainer } from "./prompt-trainer.js";

export type GrpoTrainerOptions = PromptTrainerOptions<"grpo">;
export type RlooTrainerOptions = PromptTrainerOptions<"rloo">;

/**
 * Trains a model on prompts by GRPO, as TRL's trainer of that name: completions of a prompt are scored by reward functions and
 * compared with one another.
 */
export class GrpoTrainer extends PromptTrainer<"grpo"> {
  /** Throws INVALID_ARGUMENT for options that cannot be. */
  constructor(options: GrpoTrainerOptions) {
    super("GrpoTrainer", "grpo", options);
  }
}

/** Trains a model on prompts by RLOO, as TRL's trainer of that name. */
export class RlooTrainer extends PromptTrainer<"rloo"> {
  /** Throws INVALID_ARGUMENT for options that cannot be. */
  constructor(options: RlooTrainerOptions) {
    super("RlooTrainer", "rloo", options);
  }
}
