/** A stretch of text with the classes of its colors. */
export interface AnsiSpan {
  readonly text: string;
  readonly className: string;
}

const COLOR_NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/**
 * Escape sequences: CSI, OSC (to its terminator or the end of the line), and two-character ones.
 */
const SEQUENCE = new RegExp(
  [
    "\u001b\\[([0-9;:?<=>]*)[ -/]*([@-~])",
    "\u001b\\][^\u0007\u001b\\n]*(?:\u0007|\u001b\\\\)?",
    "\u001b[PX^_][^\u001b\\n]*(?:\u001b\\\\)?",
    "\u001b[ -/]*[0-~]?",
  ].join("|"),
  "g",
);

/** Control codes except tab and newline, and marks that reorder text (bidirectional overrides). */
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** Removes escape sequences and control codes; tabs and newlines stay. */
export function stripControls(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(SEQUENCE, "").replace(CONTROL, "");
}

interface Style {
  foreground?: string;
  background?: string;
  bold?: boolean;
  inverse?: boolean;
}

/**
 * Splits a rendering into spans by its SGR colors; all other escape sequences and control codes are
 * dropped.
 */
export function parseAnsi(text: string): AnsiSpan[] {
  const spans: AnsiSpan[] = [];
  let style: Style = {};
  let start = 0;
  const push = (end: number): void => {
    const piece = text.slice(start, end).replaceAll("\r\n", "\n").replace(CONTROL, "");
    if (piece !== "") spans.push({ text: piece, className: classOf(style) });
  };
  for (const match of text.matchAll(SEQUENCE)) {
    push(match.index);
    start = match.index + match[0].length;
    if (match[2] === "m") style = applyCodes(style, match[1]);
  }
  push(text.length);
  return spans;
}

function applyCodes(style: Style, codes: string): Style {
  let next = { ...style };
  for (const code of codes.split(";").map(Number)) {
    if (code === 0) next = {};
    else if (code === 1) next.bold = true;
    else if (code === 7) next.inverse = true;
    else if (code === 22) next.bold = false;
    else if (code === 27) next.inverse = false;
    else if (code >= 30 && code <= 37) next.foreground = COLOR_NAMES[code - 30];
    else if (code === 39) delete next.foreground;
    else if (code >= 40 && code <= 47) next.background = COLOR_NAMES[code - 40];
    else if (code === 49) delete next.background;
    else if (code >= 90 && code <= 97) next.foreground = COLOR_NAMES[code - 90];
    else if (code >= 100 && code <= 107) next.background = COLOR_NAMES[code - 100];
  }
  return next;
}

function classOf({ foreground, background, bold, inverse }: Style): string {
  return [
    foreground !== undefined && `ansi-fg-${foreground}`,
    background !== undefined && `ansi-bg-${background}`,
    bold === true && "ansi-bold",
    inverse === true && "ansi-inverse",
  ]
    .filter((name) => name !== false)
    .join(" ");
}
