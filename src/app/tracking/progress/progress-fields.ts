/** A part of a progress line. */
export interface ProgressField {
  readonly text: string;
  /** ANSI color code. */
  readonly color?: number;
  /** Fields with the highest value are dropped first when the line is too narrow. */
  readonly priority: number;
  /** Left out of log lines: bars and curves. */
  readonly isGraphic?: boolean;
}

const SEPARATOR = "  ";
const BAR_WIDTH = 20;
const CYAN = 36;

/** Renders fields as one terminal line of at most `width` columns. */
export function renderFields(fields: readonly ProgressField[], width: number, useColor: boolean): string {
  return fitToWidth(fields, width)
    .map((field) => colorize(field, useColor))
    .join(SEPARATOR);
}

/** Renders fields as a log line: complete and without color. */
export function renderLogFields(fields: readonly ProgressField[]): string {
  return fields
    .filter(({ isGraphic = false }) => !isGraphic)
    .map(({ text }) => text)
    .join(SEPARATOR);
}

/** Returns a bar and a percentage for a fraction from 0 to 1. */
export function fractionFields(fraction: number): readonly [bar: ProgressField, percentage: ProgressField] {
  const clamped = Math.min(1, Math.max(0, fraction));
  const filled = Math.round(clamped * BAR_WIDTH);
  return [
    { text: "█".repeat(filled) + "░".repeat(BAR_WIDTH - filled), color: CYAN, priority: 5, isGraphic: true },
    { text: `${Math.floor(clamped * 100)}%`, priority: 0 },
  ];
}

function fitToWidth(fields: readonly ProgressField[], width: number): readonly ProgressField[] {
  const totalWidth = fields.reduce((sum, { text }) => sum + text.length, SEPARATOR.length * (fields.length - 1));
  if (totalWidth <= width || fields.length <= 1) return fields.map((field) => truncate(field, width));
  const lowestPriority = Math.max(...fields.map(({ priority }) => priority));
  return fitToWidth(
    fields.filter(({ priority }) => priority !== lowestPriority),
    width,
  );
}

function truncate(field: ProgressField, width: number): ProgressField {
  return field.text.length > width ? { ...field, text: field.text.slice(0, width) } : field;
}

function colorize({ text, color }: ProgressField, useColor: boolean): string {
  return color === undefined || !useColor ? text : `\u001B[${color}m${text}\u001B[0m`;
}
