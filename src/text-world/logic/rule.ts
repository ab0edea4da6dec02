import { Action } from "./action.js";
import { fillTemplate, Proposition, type Placeholder, type Predicate, type Variable } from "./proposition.js";

/** Which thing each placeholder of a rule stands for, by `placeholderKey`. */
export type Mapping = Map<string, Variable>;

/** Placeholders are identified by name and type. */
export function getPlaceholderKey({ name, type }: Placeholder): string {
  return `${name}:${type}`;
}

/** A template for actions: predicates with placeholders as pre- and postconditions. */
export class Rule {
  readonly name: string;
  readonly preconditions: readonly Predicate[];
  readonly postconditions: readonly Predicate[];
  /** In order of first mention. */
  readonly placeholders: readonly Placeholder[];
  commandTemplate: string | undefined;
  reverse: Rule | undefined;
  private readonly actions = new Map<string, Action>();
  private readonly mappings = new WeakMap<Action, Mapping | null>();

  constructor(name: string, preconditions: readonly Predicate[], postconditions: readonly Predicate[]) {
    this.name = name;
    this.preconditions = preconditions;
    this.postconditions = postconditions;
    const placeholders = new Map<string, Placeholder>();
    for (const predicate of [...preconditions, ...postconditions]) {
      for (const placeholder of predicate.placeholders) placeholders.set(getPlaceholderKey(placeholder), placeholder);
    }
    this.placeholders = [...placeholders.values()];
  }

  /** The action with each placeholder replaced by its thing; the same object for the same things. */
  instantiate(mapping: Mapping): Action {
    const variables = this.placeholders.map((placeholder) => lookUpVariable(mapping, placeholder));
    const key = variables.map(({ name, type }) => `${name}:${type}`).join(",");
    const cached = this.actions.get(key);
    if (cached !== undefined) return cached;
    const fill = (predicates: readonly Predicate[]) => predicates.map((predicate) => fillPredicate(predicate, mapping));
    const action = new Action(this.name, fill(this.preconditions), fill(this.postconditions), {
      command: this.commandFor(mapping),
      reverseName: this.reverse?.name,
      reverseCommand: this.reverse?.commandFor(mapping),
    });
    this.actions.set(key, action);
    return action;
  }

  /**
   * The first assignment, in order of the action's things, that turns this rule into that action; undefined if none.
   * The words of an event are filled from it.
   */
  match(action: Action): Mapping | undefined {
    let mapping = this.mappings.get(action);
    if (mapping === undefined) {
      mapping = this.findMapping(action, new Map(), new Set()) ?? null;
      this.mappings.set(action, mapping);
    }
    return mapping ?? undefined;
  }

  private findMapping(action: Action, mapping: Mapping, used: Set<Variable>): Mapping | undefined {
    const placeholder = this.placeholders[mapping.size];
    if (placeholder === undefined) return this.instantiate(mapping).key === action.key ? mapping : undefined;
    for (const variable of action.variables) {
      if (used.has(variable)) continue;
      mapping.set(getPlaceholderKey(placeholder), variable);
      if (this.fits(action, mapping)) {
        used.add(variable);
        const found = this.findMapping(action, mapping, used);
        if (found !== undefined) return found;
        used.delete(variable);
      }
      mapping.delete(getPlaceholderKey(placeholder));
    }
    return undefined;
  }

  /** Whether every precondition that is filled already is one of the action's. */
  private fits(action: Action, mapping: Mapping): boolean {
    return this.preconditions.every(
      (predicate) =>
        predicate.placeholders.some((placeholder) => !mapping.has(getPlaceholderKey(placeholder))) ||
        action.required.has(fillPredicate(predicate, mapping).key),
    );
  }

  private commandFor(mapping: Mapping): string | undefined {
    if (this.commandTemplate === undefined) return undefined;
    const things = new Map(
      this.placeholders.map(({ name, type }) => [name, mapping.get(getPlaceholderKey({ name, type }))]),
    );
    return fillTemplate(this.commandTemplate, (field) => `{${things.get(field)?.name ?? field}}`);
  }
}

function lookUpVariable(mapping: Mapping, placeholder: Placeholder): Variable {
  const variable = mapping.get(getPlaceholderKey(placeholder));
  if (variable === undefined) throw new Error(`Nothing stands for ${placeholder.name}`);
  return variable;
}

function fillPredicate(predicate: Predicate, mapping: Mapping): Proposition {
  return new Proposition(
    predicate.name,
    predicate.placeholders.map((placeholder) => lookUpVariable(mapping, placeholder)),
  );
}
