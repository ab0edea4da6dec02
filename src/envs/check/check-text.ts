import { findHiddenState, formatLag } from "./hidden-state.js";
import { invalidEnv } from "../../core/errors.js";
import type { Env } from "../env.js";
import type { Info } from "../info.js";
import { describeLostValue, getChoices, type TextInterface } from "../text-interface.js";
import { formatValue } from "../spaces/space.js";
import { maxDifference } from "./check-space.js";
import type { EnvProbe } from "./env-probe.js";

const NUM_SAMPLES = 20;
/** Rounding allowed where an action is written with few decimals. */
const TOLERANCE = 0.01;

/**
 * Checks that observations are formatted as text, and that choices and formatted actions are parsed
 * back.
 */
export async function checkText(probe: EnvProbe): Promise<void> {
  const { env } = probe;
  const { text } = env;
  if (text === undefined) {
    probe.warn(
      "There is no text interface (`text`), so a language model needs an agent that formats its prompts and parses its completions.",
    );
    return;
  }
  env.actionSpace.seed(11);
  let { observation, info } = await probe.reset({ seed: 11 });
  for (let i = 0; i < NUM_SAMPLES; i++) {
    checkObservationText(probe, text, observation, info);
    for (const choice of getChoices(text, observation, info) ?? []) checkChoice(env, text, choice, observation, info);
    const action = env.actionSpace.sample();
    const completion = text.formatAction(action);
    checkParsed(text, action, completion, observation, info);
    const result = await probe.step(action);
    ({ observation, info } = result.terminated || result.truncated ? await probe.reset({}) : result);
  }
  await checkHistory(probe, text);
}

/** Warns if the next action depends on earlier observations and the environment does not say so. */
async function checkHistory(probe: EnvProbe, text: AnyText): Promise<void> {
  if (text.choices === undefined || text.historyTurns !== undefined) return;
  const { actionSpace } = probe.env;
  const calls = {
    reset: async (seed: number) => probe.reset({ seed }),
    step: async (action: unknown) => probe.step(action),
  };
  const { lag } = (await findHiddenState(calls, { actionSpace, text }, 11)) ?? {};
  if (lag === undefined) return;
  probe.warn(
    `What an action leads to depends on an observation ${formatLag(lag)} earlier. Say so with \`text.historyTurns\`: ${lag}, so that prompts contain the earlier turns, or state it in every observation.`,
  );
}

type AnyText = TextInterface<unknown, unknown>;

function checkObservationText(probe: EnvProbe, text: AnyText, observation: unknown, info: Info): void {
  const formatted: unknown = text.formatObservation(observation, info);
  if (typeof formatted !== "string" || formatted.trim() === "")
    throw invalidEnv(`text.formatObservation() must return non-empty text, got ${formatValue(formatted)}.`);
  const problem = describeLostValue(formatted);
  if (problem !== undefined) probe.warn(`text.formatObservation() returned ${problem}.`);
}

function checkChoice(env: Env, text: AnyText, choice: string, observation: unknown, info: Info): void {
  const action = text.parseAction(choice, observation, info);
  if (action === undefined || !env.actionSpace.contains(action))
    throw invalidEnv(
      `text.parseAction() does not parse the choice ${formatValue(choice)}: it returned ${formatValue(action)}.`,
    );
  checkParsed(text, action, text.formatAction(action), observation, info);
}

function checkParsed(text: AnyText, action: unknown, completion: string, observation: unknown, info: Info): void {
  const parsed = text.parseAction(completion, observation, info);
  if (parsed !== undefined && maxDifference(action, parsed) <= TOLERANCE) return;
  throw invalidEnv(
    `text.formatAction() formatted ${formatValue(action)} as ${formatValue(completion)}, which text.parseAction() parses as ${formatValue(parsed)}.`,
  );
}
