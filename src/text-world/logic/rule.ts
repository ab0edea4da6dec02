import { LlamaGymError } from "../../core/errors.js";
import { Action } from "./action.js";
import { collectVariables, fillTemplate, formatVariableKey, Proposition, type Variable } from "./proposition.js";

/** Objects by the keys of the placeholders that they replace. */
export type Mapping = Map<string, Variable>;

/** Limit for untrusted game files on partial matches of a rule; TextWorld's need some hundreds. */
export const MAX_MATCHES = 1_000_000;

/** Returns the error for a rule that exceeds MAX_MATCHES. */
export function tooManyMatchesError(rule: Rule): LlamaGymError {
  return new LlamaGymError("ENV_FAILED", `The rule ${rule.name} of the game matches its facts in too many ways.`);
}

/** A template for actions, with placeholders in its pre- and postconditions. */
export class Rule {
  /** In order of first mention. */
  readonly placeholders: readonly Variable[];
  commandTemplate: string | undefined;
  reverse: Rule | undefined;
  private readonly actions = new Map<string, Action>();
  private readonly mappings = new WeakMap<Action, Mapping | null>();

  constructor(
    readonly name: string,
    readonly preconditions: readonly Proposition[],
    readonly postconditions: readonly Proposition[],
  ) {
    this.placeholders = collectVariables([...preconditions, ...postconditions]);
  }

  /** Replaces the placeholders by objects; returns the same action for the same objects. */
  instantiate(mapping: Mapping): Action {
    const key = this.placeholders
      .map((placeholder) => formatVariableKey(mapping.get(formatVariableKey(placeholder))!))
      .join(",");
    const cached = this.actions.get(key);
    if (cached !== undefined) return cached;
    const fillAll = (patterns: readonly Proposition[]) => patterns.map((pattern) => fillPattern(pattern, mapping));
    const action = new Action(this.name, fillAll(this.preconditions), fillAll(this.postconditions), {
      command: this.formatCommand(mapping),
      reverseName: this.reverse?.name,
      reverseCommand: this.reverse?.formatCommand(mapping),
    });
    this.actions.set(key, action);
    return action;
  }

  /**
   * Finds the first mapping, in order of the action's objects, that makes this rule the action;
   * undefined if none.
   */
  match(action: Action): Mapping | undefined {
    let mapping = this.mappings.get(action);
    if (mapping === undefined) {
      mapping = this.findMapping(action) ?? null;
      this.mappings.set(action, mapping);
    }
    return mapping ?? undefined;
  }

  private findMapping(action: Action): Mapping | undefined {
    let matches = 0;
    const mapping: Mapping = new Map();
    const used = new Set<Variable>();
    const extend = (): boolean => {
      if (++matches > MAX_MATCHES) throw tooManyMatchesError(this);
      const placeholder = this.placeholders[mapping.size];
      if (placeholder === undefined) return this.instantiate(mapping).key === action.key;
      const key = formatVariableKey(placeholder);
      for (const variable of action.variables) {
        if (used.has(variable)) continue;
        mapping.set(key, variable);
        used.add(variable);
        if (this.fits(action, mapping) && extend()) return true;
        used.delete(variable);
        mapping.delete(key);
      }
      return false;
    };
    return extend() ? mapping : undefined;
  }

  /**
   * Returns whether all preconditions without free placeholders are preconditions of the action.
   */
  private fits(action: Action, mapping: Mapping): boolean {
    return this.preconditions.every(
      (pattern) =>
        pattern.variables.some((placeholder) => !mapping.has(formatVariableKey(placeholder))) ||
        action.required.has(fillPattern(pattern, mapping).key),
    );
  }

  private formatCommand(mapping: Mapping): string | undefined {
    if (this.commandTemplate === undefined) return undefined;
    const ids = new Map(this.placeholders.map((each) => [each.name, mapping.get(formatVariableKey(each))?.name]));
    return fillTemplate(this.commandTemplate, (field) => `{${ids.get(field) ?? field}}`);
  }
}

function fillPattern({ name, variables }: Proposition, mapping: Mapping): Proposition {
  return new Proposition(
    name,
    variables.map((placeholder) => mapping.get(formatVariableKey(placeholder))!),
  );
}
