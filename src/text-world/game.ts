import { LlamaGymError } from "../core/errors.js";
import { Action } from "./logic/action.js";
import type { Facts } from "./logic/facts.js";
import type { KnowledgeBase } from "./logic/knowledge-base.js";
import { compareStrings, fillTemplate, Proposition } from "./logic/proposition.js";
import { GameProgress } from "./progress/game-progress.js";
import type { Quest } from "./progress/quest-progress.js";

const DIRECTIONS = ["north", "south", "east", "west"];
const ROOM = "r";
const PLAYER = "P";
/** Limit for untrusted game files; TextWorld's have some thousands. */
const MAX_COMMANDS = 100_000;

/** Name and type of an object. */
export interface EntityInfo {
  readonly id: string;
  readonly type: string;
  readonly name: string | null;
}

export interface GameParts {
  readonly knowledge: KnowledgeBase;
  readonly facts: Facts;
  readonly quests: readonly Quest[];
  readonly infos: readonly EntityInfo[];
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Default: the quests' descriptions. */
  readonly objective: string | undefined;
}

/** A text game's rules, world, quests and names. */
export class TextWorldGame {
  readonly objective: string;
  private readonly infos: ReadonlyMap<string, EntityInfo>;

  constructor(private readonly parts: GameParts) {
    this.infos = new Map(parts.infos.map((info) => [info.id, info]));
    const descriptions = parts.quests.map(({ description }) => description).filter(Boolean);
    this.objective = parts.objective ?? descriptions.join("\nAND\n");
  }

  get facts(): Facts {
    return this.parts.facts;
  }

  get quests(): readonly Quest[] {
    return this.parts.quests;
  }

  /** Sum of the quests' rewards without optional penalties; Infinity with repeatable rewards. */
  get maxScore(): number {
    if (this.quests.some((quest) => quest.repeatable && quest.reward > 0)) return Infinity;
    return this.quests
      .filter((quest) => !quest.optional || quest.reward > 0)
      .reduce((sum, quest) => sum + quest.reward, 0);
  }

  /** Names and types of all named objects except rooms. */
  get typedEntities(): [name: string, type: string][] {
    return [...this.infos.values()].flatMap(({ name, type }) => (name && type !== ROOM ? [[name, type]] : []));
  }

  /** Names of all objects, and the directions. */
  get entities(): string[] {
    return [...this.typedEntities.map(([name]) => name), ...DIRECTIONS];
  }

  /** All forms of commands, such as `take {o} from {c}`. */
  get commandTemplates(): string[] {
    return [...new Set(this.parts.knowledge.commands.values())].sort(compareStrings);
  }

  get verbs(): string[] {
    return [...new Set(this.commandTemplates.map((template) => template.trim().split(/\s+/)[0]))].sort(compareStrings);
  }

  /** The commands that win the game from its start; undefined if none are known. */
  get walkthrough(): string[] | undefined {
    const stated = this.parts.metadata["walkthrough"];
    if (Array.isArray(stated) && stated.length > 0) return stated.map(String);
    const policy = this.createProgress().winningPolicy();
    return policy === undefined || policy.length === 0 ? undefined : this.formatCommands(policy);
  }

  /**
   * All templates filled with all objects of fitting types, whether possible now or not.
   * @throws ENV_FAILED if there are too many
   */
  get possibleAdmissibleCommands(): string[] {
    const { types } = this.parts.knowledge;
    const entities = this.typedEntities;
    const listNames = (entityType: string) => entities.filter(([, type]) => type === entityType).map(([name]) => name);
    const templates = this.commandTemplates.flatMap((template) =>
      expandTemplate(template, (type) => [type, ...types.descendants(type)].map((narrower) => `{${narrower}}`)),
    );
    return [...new Set(templates)].flatMap((template) => expandTemplate(template, listNames)).sort(compareStrings);
  }

  /** Starts the game's rules; quests are optional. */
  createProgress(trackQuests = true): GameProgress {
    const { knowledge, facts, quests } = this.parts;
    return new GameProgress(knowledge, facts, trackQuests ? quests : []);
  }

  /** Returns the name of an object. */
  getName(id: string): string {
    return this.infos.get(id)?.name || id;
  }

  /** Returns the name of the room that the player is in. */
  getPlayerRoom(facts: Facts): string {
    const location = [...facts].find(
      ({ name, variables }) => name === "at" && variables.length === 2 && variables[0].name === PLAYER,
    );
    return location === undefined ? "" : this.getName(location.variables[1].name);
  }

  /** Formats the commands that cause actions; "None" for an action without one. */
  formatCommands(actions: readonly Action[]): string[] {
    return actions.map((action) => action.command((id) => this.getName(id)) ?? "None");
  }

  /** Formats a fact with names instead of ids, in TextWorld's notation. */
  describeFact(fact: Proposition): string {
    return this.replaceIds(fact).toString();
  }

  /**
   * Formats an action with names instead of ids and the verb of its command, in TextWorld's
   * notation.
   */
  describeAction(action: Action): string {
    const verb = (this.parts.knowledge.commands.get(action.name) ?? action.name).split("{")[0].trim();
    const named = (facts: readonly Proposition[]) => facts.map((fact) => this.replaceIds(fact));
    return new Action(verb, named(action.preconditions), named(action.postconditions)).toString();
  }

  /** Finds the action with an event text; actions with more preconditions are tried first. */
  findAction(event: string, actions: readonly Action[]): Action | undefined {
    const lowerCaseEvent = event.toLowerCase();
    const mostSpecificFirst = [...actions].sort((a, b) => b.preconditions.length - a.preconditions.length);
    return mostSpecificFirst.find((action) => this.formatEvent(action)?.toLowerCase() === lowerCaseEvent);
  }

  private formatEvent(action: Action): string | undefined {
    const template = this.parts.knowledge.events.get(action.name);
    const mapping = this.parts.knowledge.rules.get(action.name)?.match(action);
    if (template === undefined || mapping === undefined) return undefined;
    const ids = new Map([...mapping].map(([key, variable]) => [key.slice(0, key.lastIndexOf(":")), variable.name]));
    return fillTemplate(template, (field) => this.getName(ids.get(field) ?? field));
  }

  private replaceIds(fact: Proposition): Proposition {
    return new Proposition(
      fact.name,
      fact.variables.map(({ name, type }) => ({ name: this.getName(name), type })),
    );
  }
}

/** Lists all ways to fill a template's fields, the last field changing fastest. */
function expandTemplate(template: string, getOptions: (field: string) => readonly string[]): string[] {
  const field = /\{([^{}]*)\}/.exec(template);
  if (field === null) return [template];
  const head = template.slice(0, field.index);
  const tails = expandTemplate(template.slice(field.index + field[0].length), getOptions);
  const options = getOptions(field[1]);
  if (options.length * tails.length > MAX_COMMANDS)
    throw new LlamaGymError("ENV_FAILED", `The game has more than ${MAX_COMMANDS} commands of the form ${template}.`);
  return options.flatMap((option) => tails.map((tail) => head + option + tail));
}
