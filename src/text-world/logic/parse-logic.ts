import { LlamaGymError } from "../../core/errors.js";
import type { Placeholder, Predicate } from "./proposition.js";

/** A rule as written: what must hold, what of it stays true (`$`), and what becomes true. */
interface RuleText {
  readonly name: string;
  readonly preconditions: readonly { readonly predicate: Predicate; readonly isKept: boolean }[];
  readonly postconditions: readonly Predicate[];
}

/** A shorthand: `south_of(r, r') = north_of(r', r)`. */
export interface AliasText {
  readonly pattern: Predicate;
  readonly replacement: readonly Predicate[];
}

/** What a rule is called by the player and by the story file. */
interface CommandText {
  readonly rule: string;
  readonly command: string;
  readonly event: string;
}

/** The rules of a game, as its `KB.logic` text states them; constraints and Inform 7 source are left out. */
export interface LogicText {
  readonly types: { name: string; parents: string[] }[];
  readonly aliases: AliasText[];
  readonly rules: RuleText[];
  readonly reverseRules: [string, string][];
  readonly commands: CommandText[];
}

const NAME = /[\p{L}\p{N}_/-]+/uy;
const PLACEHOLDER = /[\p{L}\p{N}_']+/uy;
const PREDICATE = /!?[\p{L}\p{N}_/]+/uy;
const RULE = /[\p{L}\p{N}_/]+/uy;
const STRING = /"[^"]*"/uy;
const BLOCK = /"""[^]*?"""/uy;
const SPACE = /(?:\s+|#[^\n]*)+/uy;

/**
 * Reads the rule language of TextWorld's game files.
 * Throws FILE_CORRUPT, with the file's name and the line, where the text does not follow the grammar.
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
    this.skipSpace();
    while (this.position < this.text.length) this.type();
    return this.logic;
  }

  private type(): void {
    this.expect("type");
    const name = this.match(NAME, "a type name");
    const parents = this.accept(":") ? this.parseSeparated(",", () => this.match(NAME, "a type name")) : [];
    this.logic.types.push({ name, parents });
    this.parseBlock(() => this.parseTypePart());
  }

  private parseTypePart(): void {
    if (this.accept("predicates")) this.parseBlock(() => this.parseSignatureOrAlias());
    else if (this.accept("rules")) this.parseBlock(() => this.logic.rules.push(this.rule()));
    else if (this.accept("reverse_rules")) this.parseBlock(() => this.parseReverseRule());
    else if (this.accept("constraints")) this.parseBlock(() => this.rule());
    else if (this.accept("inform7")) this.parseBlock(() => this.parseInform7Part());
    else this.fail("predicates, rules, reverse_rules, constraints or inform7");
  }

  private parseInform7Part(): void {
    if (this.accept("type")) {
      this.parseBlock(() => {
        this.match(NAME, "kind or definition");
        this.expect("::");
        this.match(STRING, "a quoted text");
        this.expect(";");
      });
    } else if (this.accept("predicates")) {
      this.parseBlock(() => {
        this.predicate();
        this.expect("::");
        this.match(STRING, "a quoted text");
        this.expect(";");
      });
    } else if (this.accept("commands")) {
      this.parseBlock(() => this.command());
    } else if (this.accept("code")) {
      this.expect("::");
      this.match(BLOCK, 'a text between """');
      this.expect(";");
    } else {
      this.fail("type, predicates, commands or code");
    }
  }

  private command(): void {
    const rule = this.match(RULE, "a rule name");
    this.expect("::");
    const command = this.match(STRING, "a quoted command").slice(1, -1);
    this.expect("::");
    const event = this.match(STRING, "a quoted event").slice(1, -1);
    this.expect(";");
    this.logic.commands.push({ rule, command, event });
  }

  private parseSignatureOrAlias(): void {
    const pattern = this.predicate();
    if (this.accept("="))
      this.logic.aliases.push({ pattern, replacement: this.parseSeparated("&", () => this.predicate()) });
    this.expect(";");
  }

  private parseReverseRule(): void {
    const rule = this.match(RULE, "a rule name");
    this.expect("::");
    this.logic.reverseRules.push([rule, this.match(RULE, "a rule name")]);
    this.expect(";");
  }

  private rule(): RuleText {
    const name = this.match(RULE, "a rule name");
    this.expect("::");
    const preconditions = this.parseSeparated("&", () => ({ isKept: this.accept("$"), predicate: this.predicate() }));
    this.expect("->");
    const postconditions = this.parseSeparated("&", () => this.predicate());
    this.expect(";");
    return { name, preconditions, postconditions };
  }

  private predicate(): Predicate {
    const written = this.match(PREDICATE, "a predicate");
    const name = written.startsWith("!") ? negate(written.slice(1)) : written;
    this.expect("(");
    const placeholders = this.accept(")") ? [] : this.parseSeparated(",", () => this.placeholder());
    if (placeholders.length > 0) this.expect(")");
    return { name, placeholders };
  }

  private placeholder(): Placeholder {
    // A declaration may name a type whose characters a placeholder cannot have (a hyphen).
    const name = this.match(PLACEHOLDER, "a placeholder") + (this.tryMatch(/-[\p{L}\p{N}_/-]+/uy) ?? "");
    this.skipSpace();
    return { name, type: this.accept(":") ? this.match(NAME, "a type name") : name.replace(/'+$/, "") };
  }

  private parseBlock(item: () => void): void {
    this.expect("{");
    while (!this.accept("}")) item();
  }

  private parseSeparated<T>(separator: string, item: () => T): T[] {
    const items = [item()];
    while (this.accept(separator)) items.push(item());
    return items;
  }

  private accept(literal: string): boolean {
    if (!this.text.startsWith(literal, this.position)) return false;
    this.position += literal.length;
    this.skipSpace();
    return true;
  }

  private expect(literal: string): void {
    if (!this.accept(literal)) this.fail(`"${literal}"`);
  }

  private match(pattern: RegExp, what: string): string {
    const found = this.tryMatch(pattern);
    if (found === undefined) return this.fail(what);
    this.skipSpace();
    return found;
  }

  private tryMatch(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.position;
    const found = pattern.exec(this.text)?.[0];
    if (found !== undefined) this.position += found.length;
    return found;
  }

  private skipSpace(): void {
    this.tryMatch(SPACE);
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
