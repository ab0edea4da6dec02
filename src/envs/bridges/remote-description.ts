import { type JsonValue, asJsonObject } from "../../core/json.js";
import { z } from "zod";
import { invalidEnv } from "../../core/errors.js";
import { describeIssue } from "../../core/schema-issue.js";
import type { RenderMode } from "../env.js";
import { Discrete, spaceFromJson, type Space } from "../spaces/index.js";
import { bridgeError, formatJson } from "./channel.js";
import { MAX_ACTION_NAMES, MAX_ACTION_NAME_LENGTH, MAX_SPACE_ELEMENTS, MAX_TEXT_LENGTH } from "./limits.js";

const descriptionSchema = z.object({
  observationSpace: z.unknown().optional(),
  actionSpace: z.unknown().optional(),
  systemPrompt: z.string().max(MAX_TEXT_LENGTH).nullish(),
  actionNames: z.array(z.string().max(MAX_ACTION_NAME_LENGTH)).max(MAX_ACTION_NAMES).nullish(),
  renderModes: z.array(z.enum(["ansi", "rgb_array"])).nullish(),
  renderFps: z.number().positive().nullish(),
});

/** Description of a remote environment, with its spaces. */
export interface RemoteDescription {
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  readonly renderModes: readonly RenderMode[];
  readonly renderFps: number | undefined;
  readonly systemPrompt: string | undefined;
  readonly actionNames: readonly string[] | undefined;
}

/**
 * Validates the description that the environment `name` sent of itself, and builds its spaces.
 * @throws ENV_FAILED for another protocol version, ENV_INVALID for an invalid or too large
 * description
 */
export function readDescription(
  name: string,
  json: JsonValue | undefined,
  { protocol, maxElements = MAX_SPACE_ELEMENTS }: { readonly protocol: number; readonly maxElements?: number },
): RemoteDescription {
  const invalidError = (problem: string) => invalidEnv(`${name} sent an invalid description: ${problem}`);
  const { protocol: theirs = null } = asJsonObject(json) ?? {};
  if (theirs !== protocol) {
    const problem = `uses protocol ${formatJson(theirs)}, but this client uses ${protocol}.`;
    throw bridgeError(name, `${problem} Install the same version at both ends.`);
  }
  const parsed = descriptionSchema.safeParse(json);
  if (!parsed.success) throw invalidError(`${describeIssue(parsed.error.issues)}.`);
  const { renderModes, renderFps, systemPrompt, actionNames, ...description } = parsed.data;
  const readSpace = (field: "observationSpace" | "actionSpace") => {
    try {
      return spaceFromJson((description[field] ?? null) as JsonValue, { maxElements });
    } catch (error) {
      throw invalidError(`${field}: ${(error as Error).message}`);
    }
  };
  const spaces = { observationSpace: readSpace("observationSpace"), actionSpace: readSpace("actionSpace") };
  const { actionSpace } = spaces;
  if (actionNames && !(actionSpace instanceof Discrete && actionSpace.n === actionNames.length))
    throw invalidError(`it has ${actionNames.length} actionNames for the action space ${actionSpace.toString()}.`);
  return {
    ...spaces,
    renderModes: renderModes ?? [],
    renderFps: renderFps ?? undefined,
    systemPrompt: systemPrompt ?? undefined,
    actionNames: actionNames ?? undefined,
  };
}
