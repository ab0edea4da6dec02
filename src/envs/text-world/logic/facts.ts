import { LlamaGymError } from "../../../errors.js";
import type { Action } from "./action.js";
import type { KnowledgeBase } from "./knowledge.js";
import { type Mapping, placeholderKey, type Rule } from "./rule.js";
import {
  compareArguments,
  compareVariables,
  type Placeholder,
  type Proposition,
  signatureOf,
  type Variable,
} from "./terms.js";

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
        types.constants.map((name) => [placeholderKey({ name, type: name }), { name, type: name }]),
      );
      const used = new Set([...mapping.values()].map(variableKey));
      this.matchFrom(0, rule, types, mapping, used, actions);
    }
    return actions;
  }

  private matchFrom(
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
      this.assignFree(rule.placeholders, rule, types, mapping, used, actions);
      return;
    }
    const declared = predicate.placeholders.map(({ type }) => type);
    for (const narrowed of types.subtypeTuples(declared)) {
      for (const fact of this.sortedFacts(signatureOf(predicate.name, narrowed))) {
        const bound: [string, string][] = [];
        if (bind(predicate.placeholders, fact, mapping, used, bound)) {
          this.matchFrom(depth + 1, rule, types, mapping, used, actions);
        }
        for (const [placeholder, variable] of bound) {
          mapping.delete(placeholder);
          used.delete(variable);
        }
      }
    }
  }

  /** Placeholders that no precondition speaks of may stand for any thing of their type. */
  private assignFree(
    placeholders: readonly Placeholder[],
    rule: Rule,
    types: KnowledgeBase["types"],
    mapping: Mapping,
    used: Set<string>,
    actions: Action[],
  ): void {
    const free = placeholders.find((placeholder) => !mapping.has(placeholderKey(placeholder)));
    if (free === undefined) {
      actions.push(rule.instantiate(mapping));
      return;
    }
    for (const variable of this.variablesOf(types.subtypes(free.type))) {
      const key = variableKey(variable);
      if (used.has(key)) continue;
      mapping.set(placeholderKey(free), variable);
      used.add(key);
      this.assignFree(placeholders, rule, types, mapping, used, actions);
      used.delete(key);
      mapping.delete(placeholderKey(free));
    }
  }

  private variablesOf(types: readonly string[]): Variable[] {
    const found = new Map<string, Variable>();
    for (const { variables } of this) {
      for (const variable of variables) if (types.includes(variable.type)) found.set(variableKey(variable), variable);
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

function variableKey({ name, type }: Variable): string {
  return `${name}:${type}`;
}

/** Lets the placeholders stand for the fact's things where that contradicts nothing; `bound` collects what was new. */
function bind(
  placeholders: readonly Placeholder[],
  fact: Proposition,
  mapping: Mapping,
  used: Set<string>,
  bound: [string, string][],
): boolean {
  for (const [i, placeholder] of placeholders.entries()) {
    const key = placeholderKey(placeholder);
    const variable = fact.variables[i];
    const existing = mapping.get(key);
    if (existing === undefined) {
      const thing = variableKey(variable);
      if (used.has(thing)) return false;
      mapping.set(key, variable);
      used.add(thing);
      bound.push([key, thing]);
    } else if (existing.name !== variable.name || existing.type !== variable.type) {
      return false;
    }
  }
  return true;
}
