/**
 * Three significant digits, without an exponent where one can do without: 0.0123, -12.3, 4,567,
 * 1.2e-5.
 */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const magnitude = Math.abs(value);
  if (magnitude !== 0 && (magnitude < 1e-4 || magnitude >= 1e9)) {
    const [digits, exponent] = value.toExponential(1).split("e");
    return `${digits.replace(/\.0$/, "")}e${Number(exponent)}`;
  }
  const rounded = Number(value.toPrecision(3));
  return Math.abs(rounded) >= 1000 ? formatCount(value) : String(rounded);
}

/** A whole number with a comma before each three digits. */
export function formatCount(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
}

/** Seconds as 0:07, 12:34 or 1:02:03. */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const pad = (value: number): string => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(whole % 60)}` : `${minutes}:${pad(whole % 60)}`;
}

/** Describes a value for an error message, on one line. */
export function describeValue(value: unknown): string {
  if (typeof value === "function") return "a function";
  if (value instanceof Promise) return "a promise: await it";
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "symbol") return String(value);
  try {
    return excerpt(JSON.stringify(value) ?? "undefined");
  } catch {
    return "an object";
  }
}

/** Shortens a text for a message, whose rest it would hide. */
export function excerpt(text: string, maxLength = 200): string {
  return text.length > maxLength ? `${text.slice(0, maxLength)}...` : text;
}

/** Formats bytes in powers of ten: "1.5 GB". */
export function formatBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : value.toFixed(0)} ${units[unit]}`;
}
