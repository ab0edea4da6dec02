import { LlamaGymError } from "../../core/errors.js";
import type { Action } from "./action.js";
import { parseLogic, type LogicText } from "./parse-logic.js";
import { compareStrings, Proposition } from "./proposition.js";
import { Rule } from "./rule.js";
import { TypeHierarchy } from "./type-hierarchy.js";

/** Limits for untrusted game files; TextWorld's have about 20 types and 20 conditions in a rule. */
const MAX_TYPES = 500;
const MAX_CONDITIONS = 1000;

type FailRules = (reason: string) => never;

/** The rules of a game in order of name, with its types and texts. */
export class KnowledgeBase {
  readonly types: TypeHierarchy;
  readonly rules: ReadonlyMap<string, Rule>;
  /** Command template by rule name: `take {o} from {c}`. */
  readonly commands: ReadonlyMap<string, string>;
  /** Event text by rule name: `removing the {o} from the {c}`. */
  readonly events: ReadonlyMap<string, string>;
  private readonly reverseNames: ReadonlyMap<string, string>;

  /** @throws FILE_CORRUPT, naming `fileName`, if the text is not a usable set of rules. */
  constructor(logicText: string, fileName: string) {
    const text = parseLogic(logicText, fileName);
    const fail: FailRules = (reason) => {
      throw new LlamaGymError("FILE_CORRUPT", `The rules (KB.logic) of ${fileName}: ${reason}.`);
    };
    this.types = buildTypes(text, fail);
    this.commands = new Map(text.commands.map(({ rule, command }) => [rule, command]));
    this.events = new Map(text.commands.map(({ rule, event }) => [rule, event]));
    this.reverseNames = new Map(text.reverseRules.flatMap(([a, b]) => [[a, b] as const, [b, a] as const]));
    this.rules = this.buildRules(text, fail);
  }

  /** Returns the action that reverses `action` by a reverse rule; undefined if there is none. */
  reverseAction(action: Action): Action | undefined {
    const name = this.reverseNames.get(action.name);
    return name === undefined ? undefined : action.inverse(name);
  }

  private buildRules({ aliases, rules: texts }: LogicText, fail: FailRules): Map<string, Rule> {
    const replacements = new Map(aliases.map((alias) => [alias.pattern.signature, alias]));
    const expand = (patterns: readonly Proposition[], used: readonly string[] = []): Proposition[] => {
      const expanded = patterns.flatMap((pattern) => {
        const alias = replacements.get(pattern.signature);
        if (alias === undefined) return [pattern];
        if (used.includes(pattern.signature)) return fail(`the alias ${pattern.signature} refers to itself`);
        return expand(applyAlias(alias, pattern), [...used, pattern.signature]);
      });
      return expanded.length > MAX_CONDITIONS ? fail(`a rule has more than ${MAX_CONDITIONS} conditions`) : expanded;
    };
    for (const { pattern } of aliases) expand([pattern]);
    const rules = new Map<string, Rule>();
    for (const { name, preconditions, kept, postconditions } of [...texts].sort((a, b) =>
      compareStrings(a.name, b.name),
    )) {
      if (rules.has(name)) fail(`rule ${name} is declared twice`);
      const rule = new Rule(name, expand(preconditions), expand([...kept, ...postconditions]));
      const unknown = rule.placeholders.find(({ type }) => !this.types.has(type));
      if (unknown !== undefined) fail(`rule ${name} uses type ${unknown.type}, which is not declared`);
      rule.commandTemplate = this.commands.get(name);
      rules.set(name, rule);
    }
    for (const [name, reverseName] of this.reverseNames) {
      const rule = rules.get(name);
      if (rule !== undefined) rule.reverse = rules.get(reverseName) ?? rule.reverse;
    }
    return rules;
  }
}

function buildTypes({ types }: LogicText, fail: FailRules): TypeHierarchy {
  if (types.length > MAX_TYPES) fail(`there are more than ${MAX_TYPES} types`);
  const parents = new Map(types.map((type) => [type.name, type.parents]));
  const twice = types.find((type) => parents.get(type.name) !== type.parents);
  if (twice !== undefined) fail(`type ${twice.name} is declared twice`);
  const checked = new Set<string>();
  const checkAncestors = (name: string, descendants: readonly string[]): void => {
    if (checked.has(name)) return;
    if (descendants.includes(name)) fail(`type ${name} extends itself`);
    const ancestors = parents.get(name) ?? fail(`type ${descendants.at(-1)} extends ${name}, which is not declared`);
    for (const parent of ancestors) checkAncestors(parent, [...descendants, name]);
    checked.add(name);
  };
  for (const { name } of types) checkAncestors(name, []);
  return new TypeHierarchy(parents);
}

function applyAlias({ pattern, replacement }: LogicText["aliases"][number], { variables }: Proposition): Proposition[] {
  const names = pattern.variables.map(({ name }) => name);
  return replacement.map(
    (each) =>
      new Proposition(
        each.name,
        each.variables.map((placeholder) => variables[names.indexOf(placeholder.name)] ?? placeholder),
      ),
  );
}
