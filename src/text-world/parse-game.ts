import { parseBoundedJson } from "../core/json.js";
import { z } from "zod";
import { errorMessage, LlamaGymError } from "../core/errors.js";
import { describeIssue } from "../core/schema-issue.js";
import { TextWorldGame, type EntityInfo } from "./game.js";
import { Action } from "./logic/action.js";
import { Facts } from "./logic/facts.js";
import { KnowledgeBase } from "./logic/knowledge-base.js";
import { Proposition } from "./logic/proposition.js";
import { type GameEvent, type Quest, TRIGGER } from "./progress/quest-progress.js";

const FORMAT_VERSION = 1;

const variableSchema = z.object({ name: z.string(), type: z.string() });
const propositionSchema = z
  .object({ name: z.string(), arguments: z.array(variableSchema) })
  .transform((data) => new Proposition(data.name, data.arguments));
const actionSchema = z
  .object({
    name: z.string(),
    preconditions: z.array(propositionSchema),
    postconditions: z.array(propositionSchema),
    command_template: z.string().nullish(),
    reverse_name: z.string().nullish(),
    reverse_command_template: z.string().nullish(),
  })
  .transform(({ name, preconditions, postconditions, ...data }) => {
    const reverse = { reverseName: data.reverse_name, reverseCommand: data.reverse_command_template };
    return new Action(name, preconditions, postconditions, { command: data.command_template, ...reverse });
  });
const eventSchema = z
  .object({ actions: z.array(actionSchema), condition: actionSchema })
  .transform(({ actions, condition: { preconditions } }, context): GameEvent => {
    const conditions = preconditions.length > 0 ? preconditions : actions.at(-1)?.postconditions;
    if (conditions === undefined) context.addIssue("an event has neither actions nor conditions");
    return { actions, condition: createTrigger(conditions ?? []) };
  });
const questSchema = z
  .object({
    desc: z.string().nullish(),
    reward: z.number(),
    optional: z.boolean().default(false),
    repeatable: z.boolean().default(false),
    win_events: z.array(eventSchema),
    fail_events: z.array(eventSchema),
  })
  .transform(({ desc, win_events: winEvents, fail_events: failEvents, ...flags }): Quest => {
    return { description: desc ?? null, ...flags, winEvents, failEvents };
  });
const infoSchema = z
  .tuple([z.string(), z.object({ id: z.string(), type: z.string(), name: z.string().nullish() })])
  .transform(([id, { type, name }]): EntityInfo => ({ id, type, name: name ?? null }));
const gameSchema = z.object({
  version: z.number().default(FORMAT_VERSION),
  world: z.array(propositionSchema),
  quests: z.array(questSchema),
  infos: z.array(infoSchema),
  KB: z.object({ logic: z.string() }),
  metadata: z.record(z.string(), z.unknown()).default({}),
  objective: z.string().nullish(),
});

/**
 * Reads the .json that TextWorld (1.x) writes next to a story file.
 * @throws FILE_CORRUPT, naming the file and what is wrong in it; FORMAT_UNSUPPORTED for another
 * version of the format
 */
export function parseGame(text: string, fileName: string): TextWorldGame {
  const checked = gameSchema.safeParse(parseJson(text, fileName));
  if (!checked.success) {
    const fault = describeIssue(checked.error.issues);
    throw new LlamaGymError("FILE_CORRUPT", `${fileName} is not a TextWorld game (${fault}). Make it again.`);
  }
  const { version, world, KB, objective, ...parts } = checked.data;
  if (version !== FORMAT_VERSION)
    throw new LlamaGymError(
      "FORMAT_UNSUPPORTED",
      `${fileName} has format version ${version}, expected ${FORMAT_VERSION}.`,
    );
  const knowledge = new KnowledgeBase(KB.logic, fileName);
  return new TextWorldGame({ ...parts, knowledge, facts: new Facts(world), objective: objective ?? undefined });
}

/** Arrays, objects and strings of a game; the largest of tw-make has 100,000. */
const MAX_NODES = 4_000_000;

/** Python writes NaN and Infinity, which JSON does not have; they come in as null. */
function parseJson(text: string, fileName: string): unknown {
  try {
    return parseBoundedJson(text, MAX_NODES);
  } catch (first) {
    try {
      return parseBoundedJson(
        text.replace(/("(?:[^"\\]|\\.)*")|-?Infinity|NaN/g, (_, string?: string) => string ?? "null"),
        MAX_NODES,
      );
    } catch {
      const reason = errorMessage(first);
      throw new LlamaGymError("FILE_CORRUPT", `${fileName} is not JSON (${reason}). Make the game again with tw-make.`);
    }
  }
}

/** The action that becomes applicable when all conditions hold. */
export function createTrigger(conditions: readonly Proposition[]): Action {
  const variables = new Map(conditions.flatMap((fact) => fact.variables.map((variable) => [variable.name, variable])));
  const event = new Proposition("event", [...variables.values()]);
  return new Action(TRIGGER, conditions, [...conditions, event]);
}
