import {
  type AgentDemonstrationOptions,
  onlineSftSettings,
  agentSettings,
  textAgentSettings,
  TextAgent,
  type ActionMode,
} from "../../rl/agent/index.js";
import {
  findHiddenState,
  formatValue,
  getChoices,
  isChoices,
  randomAction,
  SEED_CAUSE,
  type Env,
  type HiddenState,
  type TextInterface,
} from "../../envs/index.js";
import type { TeacherOptions } from "../../rl/algorithms/index.js";
import { promptSettings, EpisodeRunner } from "../../rl/rollout/index.js";
import { invalidArgument, invalidEnv, LlamaGymError } from "../../core/errors.js";
import { selectSettings } from "../../core/settings.js";
import { policySamplingSettings, type LanguageModel } from "../../generation/index.js";
import { configureAlgorithm } from "./algorithm-settings.js";
import type { EnvTraits, TrainConfig } from "./run-settings.js";

/** The parts of an environment that a TextAgent needs. */
export interface TextEnv extends Pick<Env, "actionSpace">, EnvTraits {
  readonly text: TextInterface<unknown, unknown>;
}

/**
 * Share of new observations in random play up to which they recur. Of 45 tasks, 41 have 0.3 or less
 * and four 0.7 or more (docs/decisions/learning-defaults.md).
 */
const MAX_NEW_OBSERVATION_RATIO = 0.5;

type SelfTeacherConfig = Partial<Pick<TrainConfig, "teacher" | "teacherHint">>;

/**
 * Reads the text interface of an open environment. @throws ENV_INVALID for an environment without
 * one.
 */
export async function readTextEnv(env: Env, name: string): Promise<TextEnv> {
  const { text, actionSpace, spec } = env;
  if (text !== undefined) {
    const actionMode = await chooseActionMode(env, text, name);
    return {
      text,
      actionSpace,
      actionMode,
      hasListedSchema: text.jsonSchema !== undefined && listsAllValues(text.jsonSchema),
      historyTurns: text.historyTurns ?? promptSettings.historyTurns.default,
      maxEpisodeSteps: spec?.maxEpisodeSteps,
      playsAtRandom: false,
      observationsRecur: true,
    };
  }
  throw new LlamaGymError(
    "ENV_INVALID",
    `${name} has no text interface, which language models need. Give it a \`text\`, or write an Agent for it.`,
  );
}

/**
 * Returns "choices" for an environment that lists choices (in its first state, if they vary),
 * "schema" for one with a JSON schema. @throws ENV_INVALID for choices that are not non-empty
 * strings.
 */
async function chooseActionMode(env: Env, text: TextInterface<unknown, unknown>, name: string): Promise<ActionMode> {
  const otherwise = text.jsonSchema === undefined ? "free" : "schema";
  if (text.choices === undefined) return otherwise;
  let choices: unknown = text.choices;
  if (typeof text.choices === "function") {
    const runner = new EpisodeRunner(env);
    await runner.reset();
    choices = getChoices(text, runner.observation, runner.info) ?? [];
    if (Array.isArray(choices) && choices.length === 0) return otherwise;
  }
  if (isChoices(choices)) return "choices";
  throw invalidEnv(`${name}: text.choices must be a list of non-empty strings, got ${formatValue(choices)}.`);
}

/**
 * Whether a JSON schema, or a part of one, has only values that it lists: enums, constants and
 * booleans in objects.
 */
function listsAllValues(schema: unknown): boolean {
  if (typeof schema !== "object" || schema === null) return true;
  if ("enum" in schema || "const" in schema) return true;
  const { type } = schema as { type?: unknown };
  const isOpen = typeof type === "string" && !["object", "boolean", "null"].includes(type);
  return !isOpen && Object.values(schema).every(listsAllValues);
}

/**
 * Reads the text interface of a new run's environment. Where actions can be listed, it is played at
 * random, which shows whether that is fast, whether episodes follow from their seeds and, unless
 * the environment says it, how many earlier turns belong into prompts.
 * @throws as `readTextEnv`, ENV_FAILED, and INVALID_ARGUMENT for the teacher self without hints
 */
export async function readNewTextEnv(
  env: Env,
  name: string,
  config: Pick<TrainConfig, "seed" | "callTimeoutSeconds"> & SelfTeacherConfig,
  onWarning: (message: string) => void,
): Promise<TextEnv> {
  const textEnv = await readTextEnv(env, name);
  const { text, actionMode, hasListedSchema, historyTurns } = textEnv;
  const { seed, callTimeoutSeconds } = config;
  const runner = new EpisodeRunner(env, { settings: { callTimeoutSeconds } });
  await checkSelfTeacher(config, runner, name);
  if (actionMode !== "choices" && !hasListedSchema) return textEnv;
  const played = await playAtRandom(runner, textEnv, seed);
  if (played?.followsSeed === false && env.spec?.nondeterministic !== true)
    onWarning(
      `${name}: two episodes with the same seed and actions differ: it ${SEED_CAUSE}. Until then, this run cannot be reproduced, and episodes of a group (grpo, rloo) start differently. ` +
        "If it must be so, register it with `nondeterministic: true`.",
    );
  const lag = actionMode === "choices" && text.historyTurns === undefined ? played?.lag : undefined;
  return {
    ...textEnv,
    historyTurns: lag ?? historyTurns,
    playsAtRandom: played !== undefined,
    observationsRecur: played === undefined || played.newObservationRatio <= MAX_NEW_OBSERVATION_RATIO,
  };
}

/**
 * @throws INVALID_ARGUMENT for the teacher self, if neither the run nor the environment's first
 * state has a hint for it.
 */
async function checkSelfTeacher(
  { teacher, teacherHint, seed }: Pick<TrainConfig, "seed"> & SelfTeacherConfig,
  runner: EpisodeRunner,
  name: string,
): Promise<void> {
  if (teacher !== "self" || teacherHint !== undefined) return;
  await runner.reset(seed);
  const { hint } = runner.info;
  if (typeof hint === "string" && hint !== "") return;
  const found = hint === undefined ? "no" : `${formatValue(hint)} as`;
  throw invalidArgument(
    `\`teacher\` is self, which needs hints: without them, the teacher is the student. Set \`teacherHint\`; ${name} has ${found} \`info.hint\`.`,
  );
}

/**
 * Looks for hidden state; an error of the text interface is left to training, which names the
 * method. @throws ENV_FAILED
 */
async function playAtRandom(runner: EpisodeRunner, textEnv: TextEnv, seed: number): Promise<HiddenState | undefined> {
  const reset = async (episodeSeed: number) => runner.reset(episodeSeed).then(() => runner);
  try {
    return await findHiddenState({ reset, step: async (action) => runner.step(action) }, textEnv, seed);
  } catch (error) {
    if (error instanceof LlamaGymError) throw error;
    return undefined;
  }
}

/** Creates the agent of a run, which takes a random action for an invalid completion. */
export function makeTextAgent(
  model: LanguageModel,
  env: Pick<TextEnv, "text" | "actionSpace">,
  config: Omit<TrainConfig, "sftWarmStart"> & Pick<AgentDemonstrationOptions, "sftWarmStart">,
  teacher?: TeacherOptions,
): TextAgent {
  const { maxCompletionLength, maxContextLength, actionMode, actionScoring } = config;
  const context = Math.min(maxContextLength ?? Infinity, model.policy.config.maxPositions);
  if (maxCompletionLength >= context)
    throw invalidArgument(
      `\`maxCompletionLength\` is ${maxCompletionLength}, which leaves no room for a prompt in a context of ${context} tokens. Lower it.`,
    );
  const { invalidActionRetries: retries, invalidActionPenalty: penalty } = config;
  return new TextAgent(model, env.text, {
    ...selectSettings({ ...agentSettings, ...textAgentSettings, ...onlineSftSettings }, config),
    actionScoring: actionMode === "scored" ? actionScoring : undefined,
    generation: { ...selectSettings(policySamplingSettings, config), maxNewTokens: maxCompletionLength },
    invalidAction: { retries, penalty, fallback: randomAction(env) },
    sftWarmStart: config.sftWarmStart,
    teacher,
    ...configureAlgorithm(config),
  });
}
