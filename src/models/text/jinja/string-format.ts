import { checkTextLength, spendSteps } from "./limits.js";
import { toAscii, toPythonRepr, toPythonString } from "./python-text.js";
import type { CallArguments, Value } from "./values.js";

/** Maximum depth of fields in format specifications, as in Python's string.Formatter. */
const MAX_NESTING = 2;

/** What fields of a format string read with a dot and with brackets. */
export interface MemberReader {
  getAttribute(object: Value, name: string): Value;
  getItem(object: Value, index: Value): Value;
}

/** Python's str.format; `format` formats a field. */
export function formatString(
  text: string,
  args: CallArguments,
  members: MemberReader,
  format: (value: Value, spec: string) => string,
): string {
  return new StringFormatter(args, members, format).format(text, MAX_NESTING);
}

class StringFormatter {
  /** Index of the next {}; null once fields are numbered by hand. */
  private next: number | null = 0;

  constructor(
    private readonly args: CallArguments,
    private readonly members: MemberReader,
    private readonly formatValue: (value: Value, spec: string) => string,
  ) {}

  format(text: string, depth: number): string {
    if (depth < 0) throw new Error("Max string recursion exceeded");
    let result = "";
    for (let i = 0; i < text.length; i++) {
      const character = text[i];
      if (character !== "{" && character !== "}") {
        const end = text.slice(i).search(/[{}]/);
        result += end < 0 ? text.slice(i) : text.slice(i, i + end);
        i = end < 0 ? text.length : i + end - 1;
      } else if (text[i + 1] === character) {
        result += character;
        i++;
      } else if (character === "}") {
        throw new Error("Single '}' encountered in format string");
      } else {
        const end = findFieldEnd(text, i + 1);
        result += this.formatField(text.slice(i + 1, end), depth);
        i = end;
      }
      checkTextLength(result.length);
    }
    return result;
  }

  private formatField(field: string, depth: number): string {
    spendSteps(1);
    const { name, conversion, spec } = splitField(field);
    let value = this.readField(name);
    if (conversion === "s") value = toPythonString(value);
    else if (conversion === "r") value = toPythonRepr(value);
    else if (conversion === "a") value = toAscii(value);
    else if (conversion !== undefined) throw new Error(`Unknown conversion specifier ${conversion}`);
    return this.formatValue(value, this.format(spec, depth - 1));
  }

  private readField(name: string): Value {
    const [, first, rest] = /^([^.[]*)(.*)$/su.exec(name) ?? ["", "", ""];
    let value = name === "" || /^\d+$/.test(name) ? this.readNumbered(name) : this.readArgument(first);
    let end = 0;
    for (const part of rest.matchAll(/\.([^.[]*)|\[([^\]]*)\]/gsu)) {
      if (part.index !== end) throw new Error("Only '.' or '[' may follow ']' in format field specifier");
      end = part.index + part[0].length;
      if (part[1] === "" || part[2] === "") throw new Error("Empty attribute in format string");
      if (part[1] !== undefined) value = this.members.getAttribute(value, part[1]);
      else value = this.members.getItem(value, /^\d+$/.test(part[2]) ? Number(part[2]) : part[2]);
    }
    if (end !== rest.length) throw new Error("expected '}' before end of string");
    return value;
  }

  /** Reads the field {} or {0}; a format string has one kind of them. */
  private readNumbered(name: string): Value {
    if (name === "" && this.next === null)
      throw new Error("cannot switch from manual field specification to automatic field numbering");
    if (name !== "" && this.next !== null && this.next > 0)
      throw new Error("cannot switch from automatic field numbering to manual field specification");
    const index = name === "" ? (this.next ?? 0) : Number(name);
    this.next = name === "" ? index + 1 : null;
    return this.readArgument(String(index));
  }

  private readArgument(name: string): Value {
    const { positional, named } = this.args;
    if (/^\d+$/.test(name) && Number(name) >= positional.length)
      throw new Error(`Replacement index ${name} out of range for positional args tuple`);
    const value = /^\d+$/.test(name) ? positional[Number(name)] : named.get(name);
    if (value === undefined) throw new Error(`'${name}'`);
    return value;
  }
}

function findFieldEnd(text: string, start: number): number {
  let depth = 1;
  let isIndex = false;
  for (let i = start; i < text.length; i++) {
    // Braces within an index, as in {a[}]}, are part of it.
    if (text[i] === "[" && depth === 1) isIndex = true;
    else if (text[i] === "]") isIndex = false;
    else if (isIndex) continue;
    else if (text[i] === "{") depth++;
    else if (text[i] === "}" && --depth === 0) return i;
  }
  throw new Error(
    start === text.length ? "Single '{' encountered in format string" : "expected '}' before end of string",
  );
}

function splitField(field: string): { name: string; conversion: string | undefined; spec: string } {
  const match = /^((?:[^[\]!:{]|\[[^\]]*\])*)(?:!([^:]*))?(?::(.*))?$/su.exec(field);
  if (!match) throw new Error("expected ':' after conversion specifier");
  const [, name, conversion, spec = ""] = match;
  if (conversion !== undefined && Array.from(conversion).length !== 1)
    throw new Error("expected ':' after conversion specifier");
  return { name, conversion, spec };
}
