import { LlamaGymError } from "../../core/errors.js";
import type { Action } from "./action.js";
import type { KnowledgeBase } from "./knowledge-base.js";
import { type Mapping, getPlaceholderKey, type Rule } from "./rule.js";
import {
  compareArguments,
  compareVariables,
  type Placeholder,
  type Proposition,
  formatSignature,
  type Variable,
} from "./proposition.js";

/** Partial matches of rules after which a game file counts as made to waste time; TextWorld's need some hundreds. */
const MAX_MATCHES = 1_000_000;

/** Everything that is true of the world now. */
export class Facts {
  private readonly bySignature = new Map<string, Map<string, Proposition>>();
  private matches = 0;
  private readonly sorted = new Map<string, readonly Proposition[]>();

  constructor(propositions: Iterable<Proposition>) {
    for (const proposition of propositions) this.add(proposition);
  }

  [Symbol.iterator](): IterableIterator<Proposition> {
    return this.all().values();
  }

  all(): Proposition[] {
    return [...this.bySignature.values()].flatMap((facts) => [...facts.values()]);
  }

  has(proposition: Proposition): boolean {
    return this.bySignature.get(proposition.signature)?.has(proposition.key) ?? false;
  }

  copy(): Facts {
    return new Facts(this);
  }

  isApplicable(action: Action): boolean {
    return action.preconditions.every((proposition) => this.has(proposition));
  }

  /** Carries the action out; false, and nothing changes, where it is not applicable. */
  apply(action: Action): boolean {
    if (!this.isApplicable(action)) return false;
    for (const proposition of action.added) this.add(proposition);
    for (const proposition of action.removed) this.remove(proposition);
    return true;
  }

  /** Whether the actions can be carried out one after the other from here. Nothing changes. */
  isSequenceApplicable(actions: readonly Action[]): boolean {
    const changed = new Map<string, boolean>();
    for (const action of actions) {
      for (const proposition of action.preconditions) {
        if (!(changed.get(proposition.key) ?? this.has(proposition))) return false;
        changed.set(proposition.key, false);
      }
      for (const proposition of action.postconditions) changed.set(proposition.key, true);
    }
    return true;
  }

  /**
   * Every action that the rules allow here, rule by rule in order of name, and for each in order of the facts matched.
   * Different placeholders stand for different things.
   */
  applicableActions({ rules, types }: KnowledgeBase): Action[] {
    this.matches = 0;
    const actions: Action[] = [];
    for (const rule of rules.values()) {
      const mapping: Mapping = new Map(
        types.constants.map((name) => [getPlaceholderKey({ name, type: name }), { name, type: name }]),
      );
      const used = new Set([...mapping.values()].map(getVariableKey));
      this.matchPreconditions(0, rule, types, mapping, used, actions);
    }
    return actions;
  }

  private matchPreconditions(
    depth: number,
    rule: Rule,
    types: KnowledgeBase["types"],
    mapping: Mapping,
    used: Set<string>,
    actions: Action[],
  ): void {
    if (++this.matches > MAX_MATCHES) {
      throw new LlamaGymError("ENV_FAILED", `The rule ${rule.name} of the game matches its facts in too many ways.`);
    }
    const predicate = rule.preconditions[depth];
    if (predicate === undefined) {
      this.assignFreePlaceholders(rule.placeholders, rule, types, mapping, used, actions);
      return;
    }
    const declared = predicate.placeholders.map(({ type }) => type);
    for (const narrowed of types.subtypeTuples(declared)) {
      for (const fact of this.sortedFacts(formatSignature(predicate.name, narrowed))) {
        const bound: [string, string][] = [];
        if (bindPlaceholders(predicate.placeholders, fact, mapping, used, bound)) {
          this.matchPreconditions(depth + 1, rule, types, mapping, used, actions);
        }
        for (const [placeholder, variable] of bound) {
          mapping.delete(placeholder);
          used.delete(variable);
        }
      }
    }
  }

  /** Placeholders that no precondition speaks of may stand for any thing of their type. */
  private assignFreePlaceholders(
    placeholders: readonly Placeholder[],
    rule: Rule,
    types: KnowledgeBase["types"],
    mapping: Mapping,
    used: Set<string>,
    actions: Action[],
  ): void {
    const free = placeholders.find((placeholder) => !mapping.has(getPlaceholderKey(placeholder)));
    if (free === undefined) {
      actions.push(rule.instantiate(mapping));
      return;
    }
    for (const variable of this.findVariables(types.subtypes(free.type))) {
      const key = getVariableKey(variable);
      if (used.has(key)) continue;
      mapping.set(getPlaceholderKey(free), variable);
      used.add(key);
      this.assignFreePlaceholders(placeholders, rule, types, mapping, used, actions);
      used.delete(key);
      mapping.delete(getPlaceholderKey(free));
    }
  }

  private findVariables(types: readonly string[]): Variable[] {
    const found = new Map<string, Variable>();
    for (const { variables } of this) {
      for (const variable of variables)
        if (types.includes(variable.type)) found.set(getVariableKey(variable), variable);
    }
    return [...found.values()].sort(compareVariables);
  }

  private sortedFacts(signature: string): readonly Proposition[] {
    let facts = this.sorted.get(signature);
    if (facts === undefined) {
      facts = [...(this.bySignature.get(signature)?.values() ?? [])].sort(compareArguments);
      this.sorted.set(signature, facts);
    }
    return facts;
  }

  private add(proposition: Proposition): void {
    let facts = this.bySignature.get(proposition.signature);
    if (facts === undefined) {
      facts = new Map();
      this.bySignature.set(proposition.signature, facts);
    }
    facts.set(proposition.key, proposition);
    this.sorted.delete(proposition.signature);
  }

  private remove(proposition: Proposition): void {
    this.bySignature.get(proposition.signature)?.delete(proposition.key);
    this.sorted.delete(proposition.signature);
  }
}

function getVariableKey({ name, type }: Variable): string {
  return `${name}:${type}`;
}

/** Lets the placeholders stand for the fact's things where that contradicts nothing; `bound` collects what was new. */
function bindPlaceholders(
  placeholders: readonly Placeholder[],
  fact: Proposition,
  mapping: Mapping,
  used: Set<string>,
  bound: [string, string][],
): boolean {
  for (const [i, placeholder] of placeholders.entries()) {
    const key = getPlaceholderKey(placeholder);
    const variable = fact.variables[i];
    const existing = mapping.get(key);
    if (existing === undefined) {
      const variableId = getVariableKey(variable);
      if (used.has(variableId)) return false;
      mapping.set(key, variable);
      used.add(variableId);
      bound.push([key, variableId]);
    } else if (existing.name !== variable.name || existing.type !== variable.type) {
      return false;
    }
  }
  return true;
}
