import { LlamaGymError } from "../../core/errors.js";
import { Proposition, type Variable } from "./proposition.js";

/**
 * The rules of a game as its `KB.logic` text states them, without constraints and Inform 7 source.
 */
export interface LogicText {
  readonly types: { readonly name: string; readonly parents: readonly string[] }[];
  /** Shorthands: `south_of(r, r') = north_of(r', r)`. */
  readonly aliases: { readonly pattern: Proposition; readonly replacement: readonly Proposition[] }[];
  readonly rules: RuleText[];
  readonly reverseRules: (readonly [string, string])[];
  /** What a rule is called by the player and by the story file. */
  readonly commands: { readonly rule: string; readonly command: string; readonly event: string }[];
}

interface RuleText {
  readonly name: string;
  readonly preconditions: readonly Proposition[];
  /** Preconditions that stay true, marked with `$`. */
  readonly kept: readonly Proposition[];
  readonly postconditions: readonly Proposition[];
}

const TOKENS = {
  "a type name": /[\p{L}\p{N}_/-]+/uy,
  // A declaration may name a type whose characters a placeholder cannot have (a hyphen).
  "a placeholder": /[\p{L}\p{N}_']+(?:-[\p{L}\p{N}_/-]+)?/uy,
  "a predicate": /!?[\p{L}\p{N}_/]+/uy,
  "a rule name": /[\p{L}\p{N}_/]+/uy,
  "a quoted text": /"[^"]*"/uy,
  'a text between """': /"""[^]*?"""/uy,
} as const;
/** Contents of a block without inner blocks. */
const SKIPPED = /(?:"[^"]*"|#[^\n]*|[^"#{}])*/uy;
const SPACE = /(?:\s+|#[^\n]*)+/uy;

/**
 * Parses the rule language of TextWorld's game files.
 * @throws FILE_CORRUPT, with the file's name and the line, if the text does not follow the grammar
 */
export function parseLogic(text: string, fileName: string): LogicText {
  return new LogicParser(text, fileName).parseDocument();
}

class LogicParser {
  private position = 0;
  private readonly logic: LogicText = { types: [], aliases: [], rules: [], reverseRules: [], commands: [] };

  constructor(
    private readonly text: string,
    private readonly fileName: string,
  ) {}

  parseDocument(): LogicText {
    this.match(SPACE);
    while (this.position < this.text.length) this.parseType();
    return this.logic;
  }

  private parseType(): void {
    this.expect("type");
    const name = this.read("a type name");
    const parents = this.accept(":") ? this.parseList(",", () => this.read("a type name")) : [];
    this.logic.types.push({ name, parents });
    this.parseParts({
      predicates: () => this.parseItems(() => this.parseSignatureOrAlias()),
      rules: () => this.parseItems(() => this.logic.rules.push(this.parseRule())),
      reverse_rules: () => this.parseItems(() => this.logic.reverseRules.push(this.parsePair("a rule name"))),
      constraints: () => this.skipBlock(),
      inform7: () => this.parseInform7(),
    });
  }

  private parseInform7(): void {
    this.parseParts({
      type: () => this.skipBlock(),
      predicates: () => this.skipBlock(),
      commands: () => this.parseItems(() => this.parseCommand()),
      code: () => {
        this.expect("::");
        this.read('a text between """');
        this.expect(";");
      },
    });
  }

  private parseCommand(): void {
    const [rule, command] = this.parsePair("a quoted text");
    this.expect("::");
    const event = this.read("a quoted text");
    this.logic.commands.push({ rule, command: command.slice(1, -1), event: event.slice(1, -1) });
  }

  private parseSignatureOrAlias(): void {
    const pattern = this.parsePredicate();
    if (!this.accept("=")) return;
    this.logic.aliases.push({ pattern, replacement: this.parseList("&", () => this.parsePredicate()) });
  }

  private parseRule(): RuleText {
    const name = this.read("a rule name");
    this.expect("::");
    const kept: Proposition[] = [];
    const preconditions = this.parseList("&", () => {
      const isKept = this.accept("$");
      const predicate = this.parsePredicate();
      if (isKept) kept.push(predicate);
      return predicate;
    });
    this.expect("->");
    return { name, preconditions, kept, postconditions: this.parseList("&", () => this.parsePredicate()) };
  }

  private parsePredicate(): Proposition {
    const written = this.read("a predicate");
    const name = written.startsWith("!") ? negate(written.slice(1)) : written;
    this.expect("(");
    if (this.accept(")")) return new Proposition(name, []);
    const placeholders = this.parseList(",", () => this.parsePlaceholder());
    this.expect(")");
    return new Proposition(name, placeholders);
  }

  private parsePlaceholder(): Variable {
    const name = this.read("a placeholder");
    return { name, type: this.accept(":") ? this.read("a type name") : name.replace(/'+$/, "") };
  }

  private parsePair(second: keyof typeof TOKENS): readonly [string, string] {
    const first = this.read("a rule name");
    this.expect("::");
    return [first, this.read(second)];
  }

  /** Parses a block of parts, each introduced by its keyword. */
  private parseParts(parts: Readonly<Record<string, () => void>>): void {
    this.expect("{");
    while (!this.accept("}")) {
      const keyword = Object.keys(parts).find((word) => this.accept(word));
      if (keyword === undefined)
        this.fail(
          Object.keys(parts)
            .join(", ")
            .replace(/, (?=\w+$)/, " or "),
        );
      else parts[keyword]();
    }
  }

  /** Parses a block of items, each ended by a semicolon. */
  private parseItems(parseItem: () => void): void {
    this.expect("{");
    while (!this.accept("}")) {
      parseItem();
      this.expect(";");
    }
  }

  private skipBlock(): void {
    this.expect("{");
    this.match(SKIPPED);
    this.expect("}");
  }

  private parseList<T>(separator: string, parseItem: () => T): T[] {
    const items = [parseItem()];
    while (this.accept(separator)) items.push(parseItem());
    return items;
  }

  private accept(literal: string): boolean {
    if (!this.text.startsWith(literal, this.position)) return false;
    this.position += literal.length;
    this.match(SPACE);
    return true;
  }

  private expect(literal: string): void {
    if (!this.accept(literal)) this.fail(`"${literal}"`);
  }

  private read(token: keyof typeof TOKENS): string {
    const found = this.match(TOKENS[token]) ?? this.fail(token);
    this.match(SPACE);
    return found;
  }

  private match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.position;
    const found = pattern.exec(this.text)?.[0];
    this.position += found?.length ?? 0;
    return found;
  }

  private fail(expected: string): never {
    const line = this.text.slice(0, this.position).split("\n").length;
    const found = JSON.stringify(this.text.slice(this.position, this.position + 20));
    throw new LlamaGymError(
      "FILE_CORRUPT",
      `The rules (KB.logic) of ${this.fileName} are broken at line ${line}: expected ${expected}, found ${found}. ` +
        "Make the game again with tw-make.",
    );
  }
}

function negate(name: string): string {
  return name.startsWith("not_") ? name.slice("not_".length) : `not_${name}`;
}
