/** A template tag: kind, whitespace control ("-", "+" or ""), content and position [start, end). */
interface Tag {
  readonly kind: "%" | "{" | "#";
  readonly leftMark: string;
  readonly rightMark: string;
  readonly content: string;
  readonly start: number;
  readonly end: number;
}

/** Variables that print a marker at the start and end of {% generation %} blocks. */
export const generationMarks = { open: "generation_open", close: "generation_close" } as const;

const closingDelimiters = { "%": "%}", "{": "}}", "#": "#}" } as const;

/** Whether a template has {% generation %} blocks. */
export function hasGenerationTags(source: string): boolean {
  return findTags(source).some((tag) => getBlockName(tag) === "generation");
}

/**
 * Converts a template to plain Jinja for @huggingface/jinja's parser: normalizes line endings,
 * applies trim_blocks and lstrip_blocks, and converts raw blocks to strings and generation tags to
 * blocks that print markers.
 */
export function prepareSource(template: string): string {
  const source = template.replace(/\r\n|\r/g, "\n");
  let prepared = "";
  let position = 0;
  let rawStart: Tag | null = null;
  for (const tag of findTags(source)) {
    const name = getBlockName(tag);
    if (rawStart && name !== "endraw") continue;
    const text = getTextBefore(source, position, tag);
    if (rawStart) {
      prepared += formatRawBlock(rawStart, tag, text);
      rawStart = null;
    } else if (name === "raw") {
      prepared += text;
      rawStart = tag;
      // Raw blocks keep the newline after their start tag.
      position = tag.end;
      continue;
    } else {
      prepared += text + formatTag(tag, name);
    }
    const dropsNewline = tag.kind !== "{" && tag.rightMark === "" && source[tag.end] === "\n";
    position = dropsNewline ? tag.end + 1 : tag.end;
  }
  return prepared + source.slice(position);
}

/** Returns the text before a tag, without the line's indentation if the tag begins the line. */
function getTextBefore(source: string, position: number, tag: Tag): string {
  const text = source.slice(position, tag.start);
  if (tag.kind === "{" || tag.leftMark !== "") return text;
  const trimmed = text.replace(/[^\S\n]+$/, "");
  const lineStart = position + trimmed.length;
  return lineStart === 0 || source[lineStart - 1] === "\n" ? trimmed : text;
}

function formatTag({ kind, leftMark, rightMark, content }: Tag, name: string): string {
  const [open, close] = [leftMark === "-" ? "-" : "", rightMark === "-" ? "-" : ""];
  if (name === "generation" || name === "endgeneration") {
    const mark = name === "generation" ? generationMarks.open : generationMarks.close;
    return `{%${open} if true %}{{ ${mark} }}{% endif ${close}%}`;
  }
  return `{${kind}${open}${content}${close}${closingDelimiters[kind]}`;
}

/** Converts a raw block to an expression that prints its text. */
function formatRawBlock(start: Tag, end: Tag, text: string): string {
  let raw = start.rightMark === "-" ? text.trimStart() : text;
  if (end.leftMark === "-") raw = raw.trimEnd();
  const literal = JSON.stringify(raw);
  return `{{${start.leftMark === "-" ? "-" : ""} ${literal} ${end.rightMark === "-" ? "-" : ""}}}`;
}

function getBlockName({ kind, content }: Tag): string {
  return kind === "%" ? (/^\s*(\w+)/.exec(content)?.[1] ?? "") : "";
}

/** Finds the tags of a template, up to an unclosed one. */
function findTags(source: string): Tag[] {
  const tags: Tag[] = [];
  const opener = /\{[%{#]/g;
  for (let match = opener.exec(source); match; match = opener.exec(source)) {
    const start = match.index;
    const kind = source[start + 1] as Tag["kind"];
    const close =
      kind === "#" ? source.indexOf("#}", start + 2) : findClosingDelimiter(source, start + 2, closingDelimiters[kind]);
    if (close < 0) return tags;
    const inside = source.slice(start + 2, close);
    const leftMark = /^[-+]/.exec(inside)?.[0] ?? "";
    const rightMark = inside.length > leftMark.length ? (/[-+]$/.exec(inside)?.[0] ?? "") : "";
    const content = inside.slice(leftMark.length, inside.length - rightMark.length);
    const end = close + 2;
    tags.push({ kind, leftMark, rightMark, content, start, end });
    opener.lastIndex = end;
    if (kind === "%" && /^\s*raw\s*$/.test(content)) {
      // Inside a raw block only its end is a tag.
      const rawEnd = /\{%[-+]?\s*endraw\s*[-+]?%\}/.exec(source.slice(end));
      if (!rawEnd) return tags;
      opener.lastIndex = end + rawEnd.index;
    }
  }
  return tags;
}

/** Returns the index of a tag's closing mark outside strings and nested braces, or -1. */
function findClosingDelimiter(source: string, from: number, closer: string): number {
  let depth = 0;
  for (let i = from; i < source.length; i++) {
    const character = source[i];
    if (depth === 0 && source.startsWith(closer, i)) return i;
    if (character === '"' || character === "'") {
      for (i++; i < source.length && source[i] !== character; i++) if (source[i] === "\\") i++;
    } else if (character === "{") {
      depth++;
    } else if (character === "}") {
      depth--;
    }
  }
  return -1;
}
