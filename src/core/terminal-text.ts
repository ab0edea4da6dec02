const ESCAPE = String.fromCodePoint(0x1b);

/** Control characters except line feed and tab, and those that reorder the text after them. */
const CONTROLS = /(?![\n\t])[\p{Cc}\u202A-\u202E\u2066-\u2069]/gu;

/** Colors and styles of text (SGR). */
const STYLE = new RegExp(`(${ESCAPE}\\[[\\d;:]{0,40}m)`);

/**
 * Shows control characters as escapes, so that text of environments, models and servers can neither
 * move the cursor, change the terminal nor hide other text: \x1b, and \u009b from 7f on, which JSON
 * allows as well. Line feeds and tabs remain; those of Windows (CR LF) become line feeds.
 */
export function escapeControls(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(CONTROLS, (character) => {
    const code = character.codePointAt(0)!;
    return code < 0x7f ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** Escapes control characters of a rendering, but not its colors, which end with it. */
export function escapeRendering(text: string): string {
  const parts = text.split(STYLE);
  if (parts.length === 1) return escapeControls(text);
  return `${parts.map((part, i) => (i % 2 === 1 ? part : escapeControls(part))).join("")}${ESCAPE}[0m`;
}

/** Prints a warning of the library where no other receiver was given. */
export function printWarning(message: string): void {
  console.warn(escapeControls(message));
}

const printed = new Set<string>();

/**
 * Prints a warning unless this process has printed it, or one of the same kind. Default: a message
 * is a kind.
 */
export function printWarningOnce(message: string, kind = message): void {
  if (printed.has(kind)) return;
  printed.add(kind);
  printWarning(message);
}
