import { collectVariables, fillTemplate, type Proposition, type Variable } from "./proposition.js";

/** The texts of an action and of its reverse. */
export interface ActionTemplates {
  readonly command?: string | null;
  readonly reverseName?: string | null;
  readonly reverseCommand?: string | null;
}

/** A change of the world, which replaces its preconditions by its postconditions. */
export class Action {
  /** Equal for actions of one name with equal sets of pre- and postconditions. */
  readonly key: string;
  readonly required: ReadonlySet<string>;
  readonly added: readonly Proposition[];
  readonly removed: readonly Proposition[];
  private cachedVariables: readonly Variable[] | undefined;

  constructor(
    readonly name: string,
    readonly preconditions: readonly Proposition[],
    readonly postconditions: readonly Proposition[],
    readonly templates: ActionTemplates = {},
  ) {
    this.required = new Set(preconditions.map(({ key }) => key));
    const results = new Set(postconditions.map(({ key }) => key));
    this.added = removeDuplicates(postconditions.filter(({ key }) => !this.required.has(key)));
    this.removed = removeDuplicates(preconditions.filter(({ key }) => !results.has(key)));
    this.key = [name, [...this.required].sort().join("&"), [...results].sort().join("&")].join("|");
  }

  get variables(): readonly Variable[] {
    return (this.cachedVariables ??= collectVariables([...this.preconditions, ...this.postconditions]));
  }

  /** Returns the action that reverses this one; `name` defaults to the reverse rule's. */
  inverse(name?: string): Action {
    return new Action(name ?? this.templates.reverseName ?? `r_${this.name}`, this.postconditions, this.preconditions, {
      command: this.templates.reverseCommand,
      reverseCommand: this.templates.command,
    });
  }

  /** Formats the command that causes the action; undefined if there is none. */
  command(getName: (id: string) => string): string | undefined {
    const { command } = this.templates;
    return command === undefined || command === null ? undefined : fillTemplate(command, getName);
  }

  /** Formats in TextWorld's notation: `name :: $kept & removed -> added`. */
  toString(): string {
    const removed = new Set(this.removed.map(({ key }) => key));
    const before = this.preconditions.map((fact) => `${removed.has(fact.key) ? "" : "$"}${fact.toString()}`);
    const after = this.postconditions.filter(({ key }) => !this.required.has(key));
    return `${this.name} :: ${before.join(" & ")} -> ${after.join(" & ")}`;
  }
}

function removeDuplicates(propositions: readonly Proposition[]): Proposition[] {
  return [...new Map(propositions.map((proposition) => [proposition.key, proposition])).values()];
}
