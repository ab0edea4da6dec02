/** Maximum decimal places in NumPy's output. */
const MAX_DECIMALS = 8;
const LINE_WIDTH = 75;
/** NumPy prints only the edges of larger arrays. */
const MAX_PRINTED = 1000;
const EDGE_ITEMS = 3;

export type ArrayKind = "float32" | "float64" | "integer";

/** Returns the shortest decimal that parses to the same number of that type. */
function formatShortest(value: number, kind: ArrayKind): string {
  if (kind !== "float32") return String(value);
  for (let digits = 1; digits <= 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(value);
}

function formatNonFinite(value: number): string | undefined {
  if (Number.isNaN(value)) return "nan";
  return Number.isFinite(value) ? undefined : value > 0 ? "inf" : "-inf";
}

/** Formats a number as NumPy prints a scalar: 1 is "1" as an integer and "1.0" as a float. */
function formatScalar(value: number, kind: ArrayKind): string {
  if (kind === "integer") return String(value);
  const name = formatNonFinite(value);
  if (name !== undefined) return name;
  const magnitude = Math.abs(value);
  if (magnitude !== 0 && (magnitude < 1e-4 || magnitude >= 1e16))
    return formatExponent(Number(formatShortest(value, kind)).toExponential());
  const text = formatShortest(value, kind);
  return text.includes(".") ? text : `${text}.0`;
}

/** Formats an exponent as NumPy does: "1e-7" becomes "1e-07". */
function formatExponent(text: string): string {
  const [digits, exponent] = text.split("e");
  const sign = exponent.startsWith("-") ? "-" : "+";
  return `${digits}e${sign}${exponent.replace(/^[+-]/, "").padStart(2, "0")}`;
}

/** Formats a row-major array as NumPy prints it with its default options. */
export function formatArray(values: ArrayLike<number>, shape: readonly number[], kind: ArrayKind): string {
  const edge = values.length > MAX_PRINTED ? EDGE_ITEMS : Infinity;
  const numbers = listPrinted(shape, edge).map((offset) => values[offset]);
  const cells = kind === "integer" ? formatIntegers(numbers) : formatFloats(numbers, kind);
  return formatNested(cells, shape, edge, 0);
}

/**
 * Returns the positions along an axis that are printed; undefined for the dots in place of the
 * others.
 */
function listAxis(extent: number, edge: number): (number | undefined)[] {
  if (extent <= 2 * edge) return Array.from({ length: extent }, (_, i) => i);
  const first = Array.from({ length: edge }, (_, i) => i);
  return [...first, undefined, ...first.map((i) => extent - edge + i)];
}

/** Lists the offsets of the printed elements in row-major order. */
function listPrinted(shape: readonly number[], edge: number): number[] {
  return shape.reduce(
    (offsets, extent) => {
      const axis = listAxis(extent, edge).filter((i) => i !== undefined);
      return offsets.flatMap((offset) => axis.map((i) => offset * extent + i));
    },
    [0],
  );
}

/**
 * Formats bounds as Gymnasium does: one number when all elements are equal, otherwise the array.
 */
export function formatBounds(values: ArrayLike<number>, shape: readonly number[], kind: ArrayKind): string {
  const numbers = Array.from(values);
  const allEqual = numbers.length > 0 && numbers.every((value) => value === numbers[0]);
  return allEqual ? formatScalar(numbers[0], kind) : formatArray(numbers, shape, kind);
}

function formatIntegers(values: number[]): string[] {
  const texts = values.map(String);
  const width = Math.max(...texts.map((text) => text.length));
  return texts.map((text) => text.padStart(width));
}

function formatFloats(values: number[], kind: ArrayKind): string[] {
  const magnitudes = values.filter((value) => Number.isFinite(value) && value !== 0).map(Math.abs);
  const largest = Math.max(...magnitudes);
  const smallest = Math.min(...magnitudes);
  const scientific = magnitudes.length > 0 && (largest >= 1e8 || smallest < 1e-4 || largest / smallest > 1000);
  const parts = values.map((value) => {
    const name = formatNonFinite(value);
    if (name !== undefined) return { name, left: "", right: "", exponent: "" };
    return { name: undefined, ...(scientific ? splitScientific(value, kind) : splitFixed(value, kind)) };
  });
  const finite = parts.filter((part) => part.name === undefined);
  const right = Math.max(0, ...finite.map((part) => part.right.length));
  const left = Math.max(0, ...finite.map((part) => part.left.length));
  const exponentWidth = Math.max(0, ...finite.map((part) => part.exponent.length));
  const names = Math.max(0, ...parts.map((part) => part.name?.length ?? 0));
  const width = Math.max(finite.length > 0 ? left + 1 + right + exponentWidth : 0, names);
  return parts.map((part) => {
    if (part.name !== undefined) return part.name.padStart(width);
    const fraction = scientific ? part.right.padEnd(right, "0") + part.exponent : part.right.padEnd(right);
    return `${part.left}.${fraction}`.padStart(width);
  });
}

function splitFixed(value: number, kind: ArrayKind): { left: string; right: string; exponent: string } {
  const text = formatShortest(value, kind);
  const digits = text.split(".")[1] ?? "";
  const rounded = digits.length > MAX_DECIMALS ? value.toFixed(MAX_DECIMALS).replace(/0+$/, "") : text;
  const [left, right = ""] = rounded.split(".");
  return { left, right, exponent: "" };
}

function splitScientific(value: number, kind: ArrayKind): { left: string; right: string; exponent: string } {
  const exact = Number(formatShortest(value, kind)).toExponential();
  const digits = exact.split("e")[0].split(".")[1] ?? "";
  const rounded = digits.length > MAX_DECIMALS ? value.toExponential(MAX_DECIMALS) : exact;
  const [mantissa, exponent] = formatExponent(rounded).split("e");
  const [left, right = ""] = mantissa.split(".");
  return { left, right: right.replace(/0+$/, ""), exponent: `e${exponent}` };
}

/** Takes the cells from the front of the list. */
function formatNested(cells: string[], shape: readonly number[], edge: number, depth: number): string {
  if (shape.length === 0) return cells.shift() as string;
  const rest = shape.slice(1);
  const parts = listAxis(shape[0], edge).map((i) =>
    i === undefined ? "..." : formatNested(cells, rest, edge, depth + 1),
  );
  if (rest.length > 0) return `[${parts.join("\n".repeat(rest.length) + " ".repeat(depth + 1))}]`;
  return `[${wrapCells(parts, depth + 1)}]`;
}

/** Formats the elements of the last axis, with line breaks where they do not fit. */
function wrapCells(cells: readonly string[], indent: number): string {
  const lines: string[] = [];
  let line = "";
  for (const cell of cells) {
    if (line !== "" && indent + line.length + 1 + cell.length >= LINE_WIDTH) {
      lines.push(line);
      line = cell;
    } else {
      line = line === "" ? cell : `${line} ${cell}`;
    }
  }
  lines.push(line);
  return lines.join(`\n${" ".repeat(indent)}`);
}

/** Formats a shape as a Python tuple: (3,) and (2, 3). */
export function formatShape(shape: readonly number[]): string {
  return shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
}
