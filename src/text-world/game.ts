import { Action } from "./logic/action.js";
import type { Facts } from "./logic/facts.js";
import type { KnowledgeBase } from "./logic/knowledge-base.js";
import { compareStrings, fillTemplate, Proposition } from "./logic/proposition.js";
import { GameProgress } from "./progress/game-progress.js";
import type { Quest } from "./progress/quest-progress.js";

const DIRECTIONS = ["north", "south", "east", "west"];
const ROOM = "r";
const PLAYER = "P";

/** Name and type of an object. */
export interface EntityInfo {
  readonly id: string;
  readonly type: string;
  readonly name: string | null;
}

/** Parts of a game. */
export interface GameParts {
  readonly knowledge: KnowledgeBase;
  readonly facts: Facts;
  readonly quests: readonly Quest[];
  readonly infos: readonly EntityInfo[];
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Defaults to the quests' descriptions. */
  readonly objective: string | undefined;
}

/** A text game's rules, world, quests and names: everything but its words. */
export class Game {
  readonly knowledge: KnowledgeBase;
  readonly facts: Facts;
  readonly quests: readonly Quest[];
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly objective: string;
  private readonly infos: ReadonlyMap<string, EntityInfo>;

  constructor({ knowledge, facts, quests, infos, metadata, objective }: GameParts) {
    this.knowledge = knowledge;
    this.facts = facts;
    this.quests = quests;
    this.metadata = metadata;
    this.infos = new Map(infos.map((info) => [info.id, info]));
    this.objective = objective ?? listDescriptions(quests).join("\nAND\n");
  }

  /** The sum of all quests' rewards, leaving out optional ones that take points away; Infinity with repeatable ones. */
  get maxScore(): number {
    if (this.quests.some((quest) => quest.repeatable && quest.reward > 0)) return Infinity;
    return this.quests
      .filter((quest) => !quest.optional || quest.reward > 0)
      .reduce((sum, quest) => sum + quest.reward, 0);
  }

  /** Names and types of all things that have a name, rooms left out. */
  get typedEntities(): [name: string, type: string][] {
    const named: [string, string][] = [];
    for (const { name, type } of this.infos.values()) if (name && type !== ROOM) named.push([name, type]);
    return named;
  }

  /** Names of all things, and the directions. */
  get entities(): string[] {
    return [...this.typedEntities.map(([name]) => name), ...DIRECTIONS];
  }

  /** Every form of command, such as `take {o} from {c}`. */
  get commandTemplates(): string[] {
    return [...new Set(this.knowledge.commands.values())].sort(compareStrings);
  }

  get verbs(): string[] {
    return [...new Set(this.commandTemplates.map((template) => template.trim().split(/\s+/)[0]))].sort(compareStrings);
  }

  /** The commands that win the game from its start; undefined when the game states none and none can be derived. */
  get walkthrough(): string[] | undefined {
    const stated = this.metadata["walkthrough"];
    if (Array.isArray(stated) && stated.length > 0) return stated.map(String);
    const policy = this.createProgress().winningPolicy();
    return policy === undefined || policy.length === 0 ? undefined : this.formatCommands(policy);
  }

  /** Every template filled with every thing of a fitting type, whether possible now or not. */
  get possibleAdmissibleCommands(): string[] {
    const { types } = this.knowledge;
    const entities = this.typedEntities;
    const listNames = (entityType: string) => entities.filter(([, type]) => type === entityType).map(([name]) => name);
    const templates = this.commandTemplates.flatMap((template) =>
      expandTemplate(template, (type) => [type, ...types.descendants(type)].map((narrower) => `{${narrower}}`)),
    );
    return [...new Set(templates)].flatMap((template) => expandTemplate(template, listNames)).sort(compareStrings);
  }

  /** A new run of the game's rules from its first facts; `track` leaves the quests out where they are not asked for. */
  createProgress(trackQuests = true): GameProgress {
    return new GameProgress(this.knowledge, this.facts, trackQuests ? this.quests : []);
  }

  /** What the player calls a thing. */
  getName(id: string): string {
    return this.infos.get(id)?.name || id;
  }

  /** The name of the room that the player is in. */
  getPlayerRoom(facts: Facts): string {
    for (const { name, variables } of facts) {
      if (name === "at" && variables[0].name === PLAYER) return this.getName(variables[1].name);
    }
    return "";
  }

  /** The commands that cause the actions; "None" for an action without one. */
  formatCommands(actions: readonly Action[]): string[] {
    return actions.map((action) => action.command((id) => this.getName(id)) ?? "None");
  }

  /** The fact with names instead of ids, in TextWorld's notation. */
  describeFact(fact: Proposition): string {
    return this.replaceIds(fact).toString();
  }

  /** The action with names instead of ids, called by the verb of its command, in TextWorld's notation. */
  describeAction(action: Action): string {
    const verb = (this.knowledge.commands.get(action.name) ?? action.name).split("{")[0].trim();
    const named = (facts: readonly Proposition[]) => facts.map((fact) => this.replaceIds(fact));
    return new Action(verb, named(action.preconditions), named(action.postconditions)).toString();
  }

  /** The action among `actions` whose event reads so; those with most preconditions are tried first. */
  findAction(event: string, actions: readonly Action[]): Action | undefined {
    const lowerCaseEvent = event.toLowerCase();
    const mostSpecificFirst = [...actions].sort((a, b) => b.preconditions.length - a.preconditions.length);
    return mostSpecificFirst.find((action) => this.formatEvent(action)?.toLowerCase() === lowerCaseEvent);
  }

  private formatEvent(action: Action): string | undefined {
    const template = this.knowledge.events.get(action.name);
    const mapping = this.knowledge.rules.get(action.name)?.match(action);
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

function listDescriptions(quests: readonly Quest[]): string[] {
  return quests.flatMap(({ description }) => (description ? [description] : []));
}

/** All ways to fill the template's fields, the last field changing fastest. */
function expandTemplate(template: string, options: (field: string) => readonly string[]): string[] {
  const field = /\{([^{}]*)\}/.exec(template);
  if (field === null) return [template];
  const head = template.slice(0, field.index);
  const tails = expandTemplate(template.slice(field.index + field[0].length), options);
  return options(field[1]).flatMap((option) => tails.map((tail) => head + option + tail));
}
