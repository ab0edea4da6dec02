import { formatNumber } from "../../src/core/format.js";

export { formatCount, formatDuration } from "../../src/core/format.js";

/** A number with a minus sign, or a dash where there is none. */
export function showNumber(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : formatNumber(value).replace("-", "\u2212");
}

/** A number with its sign. */
export function showSigned(value: number | null | undefined): string {
  return typeof value === "number" && value > 0 ? `+${showNumber(value)}` : showNumber(value);
}

/** A fraction as a percentage. */
export function showPercent(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const percent = value * 100;
  if (percent > 0 && percent < 0.05) return "< 0.1 %";
  return `${percent >= 99.95 || percent < 0.05 ? Math.round(percent) : percent.toFixed(1)} %`;
}

/** Counts in three digits: 950, 12.5k, 3.1M. */
export function showCompact(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) < 10_000) return showNumber(value);
  const [unit, suffix] = Math.abs(value) >= 1e6 ? [1e6, "M"] : [1e3, "k"];
  return `${Number((value / unit).toPrecision(3))}${suffix}`;
}

/** Time since a moment: "now", "5 min ago", "3 days ago". */
export function showAge(timeMs: number | null, nowMs = Date.now()): string {
  if (timeMs === null) return "–";
  const seconds = (nowMs - timeMs) / 1000;
  const units = [
    [86_400, "day"],
    [3600, "h"],
    [60, "min"],
  ] as const;
  for (const [size, name] of units) {
    const count = Math.floor(seconds / size);
    if (count >= 1) return `${count} ${name === "day" && count > 1 ? "days" : name} ago`;
  }
  return "now";
}

/** Bytes as MB or GB. */
export function showBytes(bytes: number | null): string {
  if (bytes === null) return "–";
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(2)} GB` : `${Math.round(bytes / 1e6)} MB`;
}

/** Shortens an environment from a file to its id, or to the name of the file. */
export function showEnvName(env: string | null): string | null {
  const [, file, id] = /^(?:.*[/\\])?([^/\\]+\.[cm]?[jt]s)(?::(.+))?$/u.exec(env ?? "") ?? [];
  return id ?? file ?? env;
}
