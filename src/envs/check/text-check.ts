import { LlamaGymError } from "../../errors.js";
import { choicesFor } from "../text-form.js";
import { show } from "../spaces/space.js";
import { distance } from "./compare.js";
import type { EnvProbe } from "./probe.js";

const SAMPLES = 20;
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
  const written: unknown = text.formatObservation(observation, info);
  if (typeof written !== "string" || written.trim() === "") {
    throw new LlamaGymError("ENV_INVALID", `text.formatObservation() must give a text, got ${show(written)}.`);
  }
  for (const choice of choicesFor(text, observation, info) ?? []) {
    const action = text.parseAction(choice, observation, info);
    if (action === undefined || !env.actionSpace.contains(action)) {
      throw new LlamaGymError(
        "ENV_INVALID",
        `text.parseAction() does not understand the choice ${show(choice)}: it gave ${show(action)}.`,
      );
    }
  }
  env.actionSpace.seed(11);
  for (let i = 0; i < SAMPLES; i++) {
    const action = env.actionSpace.sample();
    const reply = text.formatAction(action);
    const parsed = text.parseAction(reply, observation, info);
    if (parsed === undefined || distance(action, parsed) > TOLERANCE) {
      throw new LlamaGymError(
        "ENV_INVALID",
        `text.formatAction() wrote ${show(action)} as ${show(reply)}, which text.parseAction() reads as ${show(parsed)}.`,
      );
    }
  }
}
