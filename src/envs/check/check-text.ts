import { LlamaGymError } from "../../core/errors.js";
import { getChoices } from "../text-interface.js";
import { formatValue } from "../spaces/space.js";
import { maxDifference } from "./compare-values.js";
import type { EnvProbe } from "./env-probe.js";

const NUM_SAMPLES = 20;
/** How much of a number may be lost where an action is written with few decimals. */
const TOLERANCE = 0.01;

/** That observations read as text, and that every reply which the form itself writes is understood. */
export async function checkText(probe: EnvProbe): Promise<void> {
  const { env } = probe;
  const { text } = env;
  if (text === undefined) {
    probe.warn(
      "There is no text form (`text`), so that a language model needs an agent that writes its prompts and reads its replies.",
    );
    return;
  }
  const { observation, info } = await probe.reset({ seed: 11 });
  const observationText: unknown = text.formatObservation(observation, info);
  if (typeof observationText !== "string" || observationText.trim() === "") {
    throw new LlamaGymError(
      "ENV_INVALID",
      `text.formatObservation() must give a text, got ${formatValue(observationText)}.`,
    );
  }
  for (const choice of getChoices(text, observation, info) ?? []) {
    const action = text.parseAction(choice, observation, info);
    if (action === undefined || !env.actionSpace.contains(action)) {
      throw new LlamaGymError(
        "ENV_INVALID",
        `text.parseAction() does not understand the choice ${formatValue(choice)}: it gave ${formatValue(action)}.`,
      );
    }
  }
  env.actionSpace.seed(11);
  for (let i = 0; i < NUM_SAMPLES; i++) {
    const action = env.actionSpace.sample();
    const completion = text.formatAction(action);
    const parsed = text.parseAction(completion, observation, info);
    if (parsed === undefined || maxDifference(action, parsed) > TOLERANCE) {
      throw new LlamaGymError(
        "ENV_INVALID",
        `text.formatAction() wrote ${formatValue(action)} as ${formatValue(completion)}, which text.parseAction() reads as ${formatValue(parsed)}.`,
      );
    }
  }
}
