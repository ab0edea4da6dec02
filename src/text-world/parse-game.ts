import { z } from "zod";
import { LlamaGymError } from "../core/errors.js";
import { Game, type EntityInfo } from "./game.js";
import { Action } from "./logic/action.js";
import { Facts } from "./logic/facts.js";
import { KnowledgeBase } from "./logic/knowledge-base.js";
import { Proposition } from "./logic/proposition.js";
import { type GameEvent, type Quest, TRIGGER } from "./progress/quest-progress.js";

const FORMAT_VERSION = 1;

const variableSchema = z.object({ name: z.string(), type: z.string() });
const propositionSchema = z.object({ name: z.string(), arguments: z.array(variableSchema) });
const actionSchema = z.object({
  name: z.string(),
  preconditions: z.array(propositionSchema),
  postconditions: z.array(propositionSchema),
  command_template: z.string().nullish(),
  reverse_name: z.string().nullish(),
  reverse_command_template: z.string().nullish(),
});
const eventSchema = z.object({ actions: z.array(actionSchema), condition: actionSchema });
const questSchema = z.object({
  desc: z.string().nullish(),
  reward: z.number(),
  optional: z.boolean().optional(),
  repeatable: z.boolean().optional(),
  win_events: z.array(eventSchema),
  fail_events: z.array(eventSchema),
});
const infoSchema = z.object({ id: z.string(), type: z.string(), name: z.string().nullish() });
const gameSchema = z.object({
  version: z.number().optional(),
  world: z.array(propositionSchema),
  quests: z.array(questSchema),
  infos: z.array(z.tuple([z.string(), infoSchema])),
  KB: z.object({ logic: z.string() }),
  metadata: z.record(z.string(), z.unknown()).optional(),
  objective: z.string().nullish(),
});

type PropositionData = z.infer<typeof propositionSchema>;
type ActionData = z.infer<typeof actionSchema>;

/**
 * Reads the .json that TextWorld (1.x) writes beside a story file.
 * Throws FILE_CORRUPT, naming the file and what is wrong in it; FORMAT_UNSUPPORTED for another version of the format.
 */
export function parseGame(text: string, fileName: string): Game {
  const checked = gameSchema.safeParse(parseJson(text, fileName));
  if (!checked.success) {
    const { path, message } = checked.error.issues[0];
    const where = path.length > 0 ? `${path.join(".")}: ` : "";
    throw new LlamaGymError("FILE_CORRUPT", `${fileName} is not a TextWorld game (${where}${message}). Make it again.`);
  }
  const data = checked.data;
  if ((data.version ?? FORMAT_VERSION) !== FORMAT_VERSION) {
    throw new LlamaGymError(
      "FORMAT_UNSUPPORTED",
      `${fileName} has format version ${data.version}, expected ${FORMAT_VERSION}.`,
    );
  }
  const quests = data.quests.map((quest, index): Quest => {
    const events = (list: typeof quest.win_events) =>
      list.map((event) => readEvent(event, `${fileName}, quest ${index}`));
    return {
      description: quest.desc ?? null,
      reward: quest.reward,
      optional: quest.optional ?? false,
      repeatable: quest.repeatable ?? false,
      winEvents: events(quest.win_events),
      failEvents: events(quest.fail_events),
    };
  });
  return new Game({
    knowledge: new KnowledgeBase(data.KB.logic, fileName),
    facts: new Facts(data.world.map(readProposition)),
    quests,
    infos: data.infos.map(([key, info]): EntityInfo => ({ id: key, type: info.type, name: info.name ?? null })),
    metadata: data.metadata ?? {},
    objective: data.objective ?? undefined,
  });
}

/** Python writes NaN and Infinity, which JSON does not have; they come in as null. */
function parseJson(text: string, fileName: string): unknown {
  try {
    return JSON.parse(text);
  } catch (first) {
    try {
      return JSON.parse(text.replace(/("(?:[^"\\]|\\.)*")|-?Infinity|NaN/g, (_, string?: string) => string ?? "null"));
    } catch {
      const reason = first instanceof Error ? first.message : String(first);
      throw new LlamaGymError("FILE_CORRUPT", `${fileName} is not JSON (${reason}). Make the game again with tw-make.`);
    }
  }
}

function readProposition(data: PropositionData): Proposition {
  return new Proposition(data.name, data.arguments);
}

function readAction(data: ActionData): Action {
  return new Action(data.name, data.preconditions.map(readProposition), data.postconditions.map(readProposition), {
    command: data.command_template,
    reverseName: data.reverse_name,
    reverseCommand: data.reverse_command_template,
  });
}

function readEvent(data: z.infer<typeof eventSchema>, location: string): GameEvent {
  const actions = data.actions.map(readAction);
  const explicitConditions = data.condition.preconditions.map(readProposition);
  const conditions = explicitConditions.length > 0 ? explicitConditions : actions.at(-1)?.postconditions;
  if (conditions === undefined) {
    throw new LlamaGymError("FILE_CORRUPT", `${location}: an event has neither actions nor conditions.`);
  }
  return { actions, condition: createTrigger(conditions) };
}

/** The action that becomes applicable when all conditions hold. */
export function createTrigger(conditions: readonly Proposition[]): Action {
  const variables = new Map(conditions.flatMap((fact) => fact.variables.map((variable) => [variable.name, variable])));
  const event = new Proposition("event", [...variables.values()]);
  return new Action(TRIGGER, conditions, [...conditions, event]);
}
