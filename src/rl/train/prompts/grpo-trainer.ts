import type { PromptTrainerOptions } from "./prompt-trainer-options.js";
import { PromptTrainer } from "./prompt-trainer.js";

/** Options of `GrpoTrainer`, named as TRL's. */
export type GrpoTrainerOptions = PromptTrainerOptions<"grpo">;
/** Options of `RlooTrainer`, named as TRL's. */
export type RlooTrainerOptions = PromptTrainerOptions<"rloo">;

/** Trains a model on prompts with reward functions by GRPO, like TRL's GRPOTrainer. */
export class GrpoTrainer extends PromptTrainer<"grpo"> {
  /** @throws INVALID_ARGUMENT for invalid options. */
  constructor(options: GrpoTrainerOptions) {
    super("GrpoTrainer", "grpo", options);
  }
}

/** Trains a model on prompts with reward functions by RLOO, like TRL's RLOOTrainer. */
export class RlooTrainer extends PromptTrainer<"rloo"> {
  /** @throws INVALID_ARGUMENT for invalid options. */
  constructor(options: RlooTrainerOptions) {
    super("RlooTrainer", "rloo", options);
  }
}
