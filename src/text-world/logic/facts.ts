import type { Action } from "./action.js";
import type { KnowledgeBase } from "./knowledge-base.js";
import {
  compareVariables,
  collectVariables,
  formatSignature,
  formatVariableKey,
  getTypes,
  type Proposition,
} from "./proposition.js";
import { type Mapping, MAX_MATCHES, type Rule, tooManyMatchesError } from "./rule.js";
import type { TypeHierarchy } from "./type-hierarchy.js";

/** The propositions that are true of the world. */
export class Facts {
  private readonly bySignature = new Map<string, Map<string, Proposition>>();
  private readonly sorted = new Map<string, readonly Proposition[]>();

  constructor(propositions: Iterable<Proposition>) {
    for (const proposition of propositions) this.add(proposition);
  }

  *[Symbol.iterator](): IterableIterator<Proposition> {
    for (const facts of this.bySignature.values()) yield* facts.values();
  }

  has(proposition: Proposition): boolean {
    return this.bySignature.get(proposition.signature)?.has(proposition.key) ?? false;
  }

  isApplicable(action: Action): boolean {
    return action.preconditions.every((proposition) => this.has(proposition));
  }

  /** Carries out an action; an inapplicable one changes nothing. */
  apply(action: Action): void {
    if (!this.isApplicable(action)) return;
    for (const proposition of action.added) this.add(proposition);
    for (const proposition of action.removed) {
      this.bySignature.get(proposition.signature)?.delete(proposition.key);
      this.sorted.delete(proposition.signature);
    }
  }

  /** Returns whether the actions could be carried out one after the other. */
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
   * Lists the actions that the rules allow, by rule name, then in order of the matched facts.
   * Different placeholders of a rule are different objects.
   * @throws ENV_FAILED for rules with too many matches
   */
  applicableActions({ rules, types }: KnowledgeBase): Action[] {
    const matcher = new RuleMatcher(this, types);
    for (const rule of rules.values()) matcher.match(rule);
    return matcher.actions;
  }

  listSorted(signature: string): readonly Proposition[] {
    let facts = this.sorted.get(signature);
    if (facts === undefined) {
      const unsorted = [...(this.bySignature.get(signature)?.values() ?? [])];
      facts = unsorted.sort((a, b) => compareVariables(a.variables, b.variables));
      this.sorted.set(signature, facts);
    }
    return facts;
  }

  private add(proposition: Proposition): void {
    const facts = this.bySignature.get(proposition.signature);
    if (facts === undefined) this.bySignature.set(proposition.signature, new Map([[proposition.key, proposition]]));
    else facts.set(proposition.key, proposition);
    this.sorted.delete(proposition.signature);
  }
}

/** Matches rules with facts by backtracking. */
class RuleMatcher {
  readonly actions: Action[] = [];
  private readonly mapping: Mapping;
  private readonly used: Set<string>;
  private matches = 0;

  constructor(
    private readonly facts: Facts,
    private readonly types: TypeHierarchy,
  ) {
    this.mapping = new Map(types.constants.map((name) => [`${name}:${name}`, { name, type: name }]));
    this.used = new Set(this.mapping.keys());
  }

  match(rule: Rule, depth = 0): void {
    const pattern = rule.preconditions[depth];
    if (pattern === undefined) return this.assignFreePlaceholders(rule);
    for (const types of this.types.subtypeTuples(getTypes(pattern.variables))) {
      for (const fact of this.facts.listSorted(formatSignature(pattern.name, types)))
        this.bind(rule, pattern.variableKeys, fact, () => this.match(rule, depth + 1));
    }
  }

  /** Placeholders that occur in no precondition may be any object of their type. */
  private assignFreePlaceholders(rule: Rule): void {
    const free = rule.placeholders.find((placeholder) => !this.mapping.has(formatVariableKey(placeholder)));
    if (free === undefined) {
      this.actions.push(rule.instantiate(this.mapping));
      return;
    }
    const types = new Set(this.types.subtypeTuples([free.type]).map(([type]) => type));
    const objects = collectVariables([...this.facts]).filter(({ type }) => types.has(type));
    for (const object of objects.sort((a, b) => compareVariables([a], [b]))) {
      const fact = { variables: [object], variableKeys: [formatVariableKey(object)] };
      this.bind(rule, [formatVariableKey(free)], fact, () => this.assignFreePlaceholders(rule));
    }
  }

  /**
   * Calls `proceed` with the placeholders bound to the fact's objects, unless that contradicts
   * another binding.
   */
  private bind(
    rule: Rule,
    placeholders: readonly string[],
    fact: Pick<Proposition, "variables" | "variableKeys">,
    proceed: () => void,
  ): void {
    const bound: string[] = [];
    const canBind = placeholders.every((placeholder, i) => {
      const key = fact.variableKeys[i];
      const existing = this.mapping.get(placeholder);
      if (existing !== undefined)
        return existing.name === fact.variables[i].name && existing.type === fact.variables[i].type;
      if (this.used.has(key)) return false;
      this.mapping.set(placeholder, fact.variables[i]);
      this.used.add(key);
      bound.push(placeholder);
      return true;
    });
    if (canBind && ++this.matches > MAX_MATCHES) throw tooManyMatchesError(rule);
    if (canBind) proceed();
    for (const placeholder of bound) {
      this.used.delete(formatVariableKey(this.mapping.get(placeholder)!));
      this.mapping.delete(placeholder);
    }
  }
}
