import { fillTemplate, type Proposition, type Variable } from "./proposition.js";

/** The texts of an action and of the action that takes it back. */
export interface ActionTemplates {
  readonly command?: string | null;
  readonly reverseName?: string | null;
  readonly reverseCommand?: string | null;
}

/** A change of the world: it replaces its preconditions by its postconditions. */
export class Action {
  readonly name: string;
  readonly preconditions: readonly Proposition[];
  readonly postconditions: readonly Proposition[];
  readonly templates: ActionTemplates;
  /** Equal for actions of one name whose sets of pre- and postconditions are equal. */
  readonly key: string;
  readonly required: ReadonlySet<string>;
  readonly added: readonly Proposition[];
  readonly removed: readonly Proposition[];
  private cachedVariables: readonly Variable[] | undefined;

  constructor(
    name: string,
    preconditions: readonly Proposition[],
    postconditions: readonly Proposition[],
    templates: ActionTemplates = {},
  ) {
    this.name = name;
    this.preconditions = preconditions;
    this.postconditions = postconditions;
    this.templates = templates;
    this.required = new Set(preconditions.map((proposition) => proposition.key));
    const results = new Set(postconditions.map((proposition) => proposition.key));
    this.added = removeDuplicates(postconditions.filter((proposition) => !this.required.has(proposition.key)));
    this.removed = removeDuplicates(preconditions.filter((proposition) => !results.has(proposition.key)));
    this.key = [name, [...this.required].sort().join("&"), [...results].sort().join("&")].join("|");
  }

  /** The things it speaks of, in order of first mention. */
  get variables(): readonly Variable[] {
    if (this.cachedVariables === undefined) {
      const seen = new Map<string, Variable>();
      for (const proposition of [...this.preconditions, ...this.postconditions]) {
        for (const variable of proposition.variables) {
          const key = `${variable.name}:${variable.type}`;
          if (!seen.has(key)) seen.set(key, variable);
        }
      }
      this.cachedVariables = [...seen.values()];
    }
    return this.cachedVariables;
  }

  /** The action that takes this one back; `name` defaults to the reverse rule's. */
  inverse(name?: string): Action {
    return new Action(name ?? this.templates.reverseName ?? `r_${this.name}`, this.postconditions, this.preconditions, {
      command: this.templates.reverseCommand,
      reverseCommand: this.templates.command,
    });
  }

  /** The command that causes it, with `nameOf` giving the words for a thing's id; undefined when it has none. */
  command(nameOf: (id: string) => string): string | undefined {
    const template = this.templates.command;
    return template === undefined || template === null ? undefined : fillTemplate(template, nameOf);
  }

  /** TextWorld's notation: `name :: $kept & removed -> added`. */
  toString(): string {
    const removed = new Set(this.removed.map((proposition) => proposition.key));
    const before = this.preconditions.map(
      (proposition) => `${removed.has(proposition.key) ? "" : "$"}${proposition.toString()}`,
    );
    const after = this.postconditions.filter((proposition) => !this.required.has(proposition.key));
    return `${this.name} :: ${before.join(" & ")} -> ${after.join(" & ")}`;
  }
}

function removeDuplicates(propositions: readonly Proposition[]): Proposition[] {
  return [...new Map(propositions.map((proposition) => [proposition.key, proposition])).values()];
}
