import { LlamaGymError } from "../../core/errors.js";
import type { Action } from "./action.js";
import { parseLogic, type AliasText, type LogicText } from "./parse-logic.js";
import { Rule } from "./rule.js";
import { compareStrings, formatPredicateSignature, type Predicate } from "./proposition.js";
import { TypeHierarchy } from "./type-hierarchy.js";

/** The rules of a game in order of name, their types and their texts. */
export class KnowledgeBase {
  readonly types: TypeHierarchy;
  readonly rules: ReadonlyMap<string, Rule>;
  /** Command template by rule name: `take {o} from {c}`. */
  readonly commands: ReadonlyMap<string, string>;
  /** Event text by rule name: `removing the {o} from the {c}`. */
  readonly events: ReadonlyMap<string, string>;
  private readonly reverseNames: ReadonlyMap<string, string>;

  /** Throws FILE_CORRUPT, naming `fileName`, where the text is not a usable set of rules. */
  constructor(logicText: string, fileName: string) {
    const text = parseLogic(logicText, fileName);
    const createRulesError = (what: string) =>
      new LlamaGymError("FILE_CORRUPT", `The rules (KB.logic) of ${fileName}: ${what}.`);
    this.types = buildTypes(text, createRulesError);
    this.commands = new Map(text.commands.map(({ rule, command }) => [rule, command]));
    this.events = new Map(text.commands.map(({ rule, event }) => [rule, event]));
    this.reverseNames = new Map(text.reverseRules.flatMap(([a, b]) => [[a, b] as const, [b, a] as const]));
    this.rules = this.buildRules(text, createRulesError);
  }

  /** The action that takes `action` back by a reverse rule; undefined when there is no such rule. */
  reverseAction(action: Action): Action | undefined {
    const name = this.reverseNames.get(action.name);
    return name === undefined ? undefined : action.inverse(name);
  }

  private buildRules(text: LogicText, createRulesError: (what: string) => LlamaGymError): Map<string, Rule> {
    const aliases = expandAliases(text.aliases, createRulesError);
    const expand = (predicates: readonly Predicate[]) =>
      predicates.flatMap((predicate) => applyAlias(aliases, predicate) ?? [predicate]);
    const rules = new Map<string, Rule>();
    for (const rule of [...text.rules].sort((a, b) => compareStrings(a.name, b.name))) {
      if (rules.has(rule.name)) throw createRulesError(`rule ${rule.name} is there twice`);
      const kept = rule.preconditions.filter(({ isKept }) => isKept);
      const builtRule = new Rule(
        rule.name,
        expand(rule.preconditions.map(({ predicate }) => predicate)),
        expand([...kept.map(({ predicate }) => predicate), ...rule.postconditions]),
      );
      for (const { type } of builtRule.placeholders) {
        if (!this.types.has(type))
          throw createRulesError(`rule ${rule.name} speaks of type ${type}, which is not declared`);
      }
      builtRule.commandTemplate = this.commands.get(rule.name);
      rules.set(rule.name, builtRule);
    }
    for (const [name, reverseName] of this.reverseNames) {
      const rule = rules.get(name);
      const reverse = rules.get(reverseName);
      if (rule !== undefined && reverse !== undefined) rule.reverse = reverse;
    }
    return rules;
  }
}

function buildTypes(text: LogicText, createRulesError: (what: string) => LlamaGymError): TypeHierarchy {
  const types = new TypeHierarchy();
  for (const { name, parents } of text.types) {
    if (!types.add(name, parents)) throw createRulesError(`type ${name} is there twice`);
  }
  const parentsOf = new Map(text.types.map(({ name, parents }) => [name, parents]));
  const checked = new Set<string>();
  const checkAncestors = (name: string, descendants: readonly string[]): void => {
    if (checked.has(name)) return;
    if (descendants.includes(name)) throw createRulesError(`type ${name} extends itself`);
    const parents = parentsOf.get(name);
    if (parents === undefined)
      throw createRulesError(`type ${descendants.at(-1)} extends ${name}, which is not declared`);
    for (const parent of parents) checkAncestors(parent, [...descendants, name]);
    checked.add(name);
  };
  for (const { name } of text.types) checkAncestors(name, []);
  return types;
}

type Aliases = Map<string, { pattern: Predicate; replacement: readonly Predicate[] }>;

function expandAliases(texts: readonly AliasText[], createRulesError: (what: string) => LlamaGymError): Aliases {
  const aliases: Aliases = new Map(texts.map((alias) => [formatPredicateSignature(alias.pattern), alias]));
  const expand = (predicates: readonly Predicate[], used: readonly string[]): Predicate[] =>
    predicates.flatMap((predicate) => {
      const signature = formatPredicateSignature(predicate);
      if (used.includes(signature)) throw createRulesError(`the alias ${signature} stands for itself`);
      const replacement = applyAlias(aliases, predicate);
      return replacement === undefined ? [predicate] : expand(replacement, [...used, signature]);
    });
  return new Map(
    [...aliases].map(([signature, { pattern, replacement }]) => [
      signature,
      { pattern, replacement: expand(replacement, [signature]) },
    ]),
  );
}

function applyAlias(aliases: Aliases, predicate: Predicate): Predicate[] | undefined {
  const alias = aliases.get(formatPredicateSignature(predicate));
  if (alias === undefined) return undefined;
  const names = alias.pattern.placeholders.map(({ name }) => name);
  return alias.replacement.map((replacement) => ({
    name: replacement.name,
    placeholders: replacement.placeholders.map(
      (placeholder) => predicate.placeholders[names.indexOf(placeholder.name)] ?? placeholder,
    ),
  }));
}
