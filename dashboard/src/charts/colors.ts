import { COLORS } from "../../../src/app/tracking/charts/svg-chart.js";

/**
 * Returns the color of the series at `index`, as in the SVG charts of runs; distinguishable by the
 * color-blind.
 */
export function seriesColor(index: number): string {
  return COLORS[index % COLORS.length];
}

/** Reads a color of the theme, for drawing on a canvas. */
export function themeColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
