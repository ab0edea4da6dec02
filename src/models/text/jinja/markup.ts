import { marked, replaceMarked, unmarked } from "./content-marks.js";
import { spendText } from "./limits.js";
import { toPythonString } from "./python-text.js";
import { split } from "./text-functions.js";
import { Markup, type Value } from "./values.js";

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
  "'": "&#39;",
};

/** MarkupSafe's escape: Markup stays as it is. */
export function escapeMarkup(value: Value): Markup {
  return value instanceof Markup ? value : forceEscape(value);
}

export function forceEscape(value: Value): Markup {
  const text = toPythonString(value);
  spendText(text.length);
  return new Markup(replaceMarked(text, /[&<>"']/g, (character) => entities[character]));
}

const names: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

/**
 * MarkupSafe's striptags: removes tags and comments, joins words with single spaces and resolves
 * entities.
 */
export function stripTags(text: string): string {
  const plain = unmarked(text)
    .replace(/<!--[\s\S]*?-->/g, "")
    .replace(/<[^>]*>/g, "");
  const stripped = split(plain, undefined, Infinity)
    .join(" ")
    .replace(/&(?:#(\d+)|#[xX]([\da-fA-F]+)|(\w+));?/g, (entity, decimal, hexadecimal, name: string) => {
      if (name === undefined) return String.fromCodePoint(decimal ? Number(decimal) : Number.parseInt(hexadecimal, 16));
      if (!Object.hasOwn(names, name)) throw new Error(`the entity ${entity} is not supported`);
      return names[name];
    });
  // An entity of content may stand for a marked character.
  return marked(stripped);
}
