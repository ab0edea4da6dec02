import { isJsonObject } from "../../../core/json.js";
import { type JsonSchema, isRestriction, schemaError } from "./keywords.js";

/** A schema or its negation, which a value must satisfy. */
export interface Term {
  /** A schema object or a boolean. */
  readonly schema: unknown;
  /** JSON pointer of the schema, for messages. */
  readonly path: string;
  readonly isNegated: boolean;
}

/** Base of references in a schema without an identifier. */
const DEFAULT_BASE = "schema:/root";

/** Keywords whose values are no schemas. */
const DATA_KEYWORDS = new Set(["const", "enum", "default", "examples", "example"]);

/** A parsed schema: its parts have numbers, and references to them are resolved. */
export class SchemaDocument {
  private readonly ids = new Map<unknown, number>();
  /** The base URI of each part that a reference may be in. */
  private readonly bases = new Map<JsonSchema, string>();
  /** Parts with an identifier or an anchor, by absolute URI. */
  private readonly parts = new Map<string, { schema: JsonSchema; path: string }>();

  constructor(readonly root: JsonSchema) {
    this.addPart(DEFAULT_BASE, root, "#");
    this.index(root, DEFAULT_BASE, "#", false);
  }

  /** Returns a key that equal lists of terms share. */
  key(terms: readonly Term[]): string {
    return terms.map((term) => this.termKey(term)).join(",");
  }

  termKey({ schema, isNegated }: Term): string {
    if (typeof schema === "boolean") return String(schema !== isNegated);
    let id = this.ids.get(schema);
    if (id === undefined) this.ids.set(schema, (id = this.ids.size));
    return `${isNegated ? "-" : ""}${id}`;
  }

  /**
   * Resolves the reference of a schema; one that its own resource lacks may be in the whole
   * document, because many schemas have identifiers that are no bases. @throws INVALID_ARGUMENT for
   * one that is not in this document.
   */
  resolve(reference: unknown, from: JsonSchema, path: string): Term {
    const outside = () =>
      schemaError(path, `"$ref" must point into this schema (#/$defs/...), got ${JSON.stringify(reference)}`);
    if (typeof reference !== "string") throw outside();
    const target = toUri(reference, this.bases.get(from) ?? DEFAULT_BASE);
    if (target === undefined) throw outside();
    const [base, fragment = ""] = target.split("#");
    const found = this.parts.get(`${base}#${fragment}`);
    if (found !== undefined) return { ...found, isNegated: false };
    const resource = this.parts.get(`${base}#`);
    if (resource === undefined || (fragment !== "" && !fragment.startsWith("/"))) throw outside();
    const schema = findPart(resource.schema, fragment, path) ?? findPart(this.root, fragment, path);
    if (schema === undefined) throw schemaError(path, `${JSON.stringify(reference)} does not exist`);
    return { schema, path: reference.startsWith("#") ? reference : `${resource.path}${fragment}`, isNegated: false };
  }

  /**
   * Returns the terms without those that any value satisfies and without copies, and targets
   * instead of mere references.
   */
  simplify(terms: readonly Term[]): Term[] {
    const simple = new Map<string, Term>();
    for (const term of terms.map((each) => this.dereference(each))) {
      const isEmpty = !isRestriction(term.schema);
      if (isEmpty && !term.isNegated) continue;
      const restricting = isEmpty ? { ...term, schema: true } : term;
      simple.set(this.termKey(restricting), restricting);
    }
    return [...simple.values()];
  }

  private dereference(term: Term): Term {
    let current = term;
    const seen = new Set<unknown>();
    while (isJsonObject(current.schema) && isMereReference(current.schema) && !seen.has(current.schema)) {
      seen.add(current.schema);
      const target = this.resolve(current.schema.$ref, current.schema, current.path);
      current = { ...target, isNegated: term.isNegated };
    }
    return current;
  }

  private addPart(uri: string, schema: JsonSchema, path: string): void {
    const key = uri.includes("#") ? uri : `${uri}#`;
    if (!this.parts.has(key)) this.parts.set(key, { schema, path });
  }

  /** Visits all parts, also those of unknown keywords, which references may point to. */
  private index(value: unknown, base: string, path: string, isMap: boolean): void {
    if (Array.isArray(value)) {
      value.forEach((item, i) => this.index(item, base, `${path}/${i}`, false));
      return;
    }
    if (!isJsonObject(value)) return;
    let inner = base;
    if (!isMap) {
      const id = value.$id ?? value.id;
      const uri = typeof id === "string" ? toUri(id, base) : undefined;
      // An identifier next to a reference, or one of a fragment only, names no resource.
      if (uri !== undefined && value.$ref === undefined) {
        this.addPart(uri, value, path);
        if (!/#./.test(uri)) inner = uri.replace(/#$/, "");
      }
      for (const anchor of [value.$anchor, value.$dynamicAnchor])
        if (typeof anchor === "string") this.addPart(`${inner}#${anchor}`, value, path);
      this.bases.set(value, inner);
    }
    for (const [name, member] of Object.entries(value)) {
      if (!isMap && DATA_KEYWORDS.has(name)) continue;
      const maps = !isMap && ["properties", "patternProperties", "$defs", "definitions", "dependencies"].includes(name);
      this.index(member, inner, `${path}/${escapePointerPart(name)}`, maps);
    }
  }
}

function isMereReference(schema: JsonSchema): boolean {
  return schema.$ref !== undefined && !isRestriction({ ...schema, $ref: undefined });
}

/** Writes a name as a part of a JSON pointer (RFC 6901). */
export function escapePointerPart(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** Returns the part of a schema at a JSON pointer; undefined if there is none. */
function findPart(root: unknown, pointer: string, path: string): unknown {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => decodePointerPart(part, path))
    .reduce((schema: unknown, name) => {
      const isContainer = typeof schema === "object" && schema !== null && Object.hasOwn(schema, name);
      return isContainer ? (schema as Record<string, unknown>)[name] : undefined;
    }, root);
}

/** Decodes a part of a JSON pointer in a URI fragment (RFC 6901). */
function decodePointerPart(part: string, path: string): string {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    throw schemaError(path, `"$ref" is not valid percent-encoding at ${JSON.stringify(part)}`);
  }
}

/** Resolves a reference against a base; undefined for one that is no URI. */
function toUri(reference: string, base: string): string | undefined {
  if (reference.startsWith("#")) return `${base}${reference}`;
  try {
    return new URL(reference, base).href;
  } catch {
    return undefined;
  }
}
