import type { Info, ValueSchema } from "../../envs/index.js";
import type { Settings } from "../../core/settings.js";
import type { AlgorithmOptions } from "../algorithms/algorithms.js";
import type { GenerationOptions, policySamplingSettings } from "../../generation/index.js";
import type { TeacherOptions } from "../algorithms/teacher.js";
import type { AgentDemonstrationOptions } from "./demonstrations/demonstration-trainer.js";
import type { InvalidActionPolicy, rolloutSettings } from "../rollout/rollout-settings.js";
import type { ownAgentSettings } from "./agent-settings.js";

/** Generation options of an agent's completions. */
export type AgentGenerationOptions = Partial<Settings<typeof policySamplingSettings>> &
  Pick<GenerationOptions, "maxNewTokens" | "stop" | "ignoreEos">;

export interface AgentOptions<Observation = unknown, Action = unknown>
  extends
    Partial<Settings<typeof rolloutSettings>>,
    Partial<Settings<typeof ownAgentSettings>>,
    AlgorithmOptions,
    AgentDemonstrationOptions {
  readonly generation?: AgentGenerationOptions;
  /**
   * Actions as a zod schema or a JSON schema. Constrains completions to it (to its choices, for a
   * `z.enum` of strings; otherwise to its JSON) and reads the typed action from them, in place of
   * `getChoices`, `getSchema` and `extractAction`.
   */
  readonly actionSchema?: ValueSchema<Action>;
  /**
   * A teacher whose log-probabilities of the agent's decisions are part of their advantages
   * (on-policy distillation).
   */
  readonly teacher?: TeacherOptions;
  /** Handling of completions without an action. By default an error. */
  readonly invalidAction?: Partial<InvalidActionPolicy<Observation, Action>>;
  /**
   * Receives what keeps an agent in a loop of `act` and `terminateEpisode` from learning. By
   * default it is printed. A Trainer has its own.
   */
  readonly onWarning?: (message: string) => void;
}

/** Options of `terminateEpisode`. */
export interface TerminateOptions<Observation> {
  /**
   * False excludes the episode from training. True (the default) trains once a batch is full.
   * Episodes started after `eval()` are never trained.
   */
  readonly train?: boolean;
  /**
   * Last observation of a truncated episode; its value replaces the rewards that would have
   * followed.
   */
  readonly finalObservation?: Observation;
  readonly info?: Info;
}
