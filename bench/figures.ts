import type { BenchCase, Figures, Measurement, Metric } from "./framework.js";

/** A figure's name, how it is read from answers, and which way is better. */
export type FigureRule = {
  name: string;
  unit: string;
  better: "higher" | "lower";
  ratio: boolean;
  /** What one answer contributes: seconds, bytes, or a value of the side's own. */
  samples: (answer: Measurement) => number[];
  /** The figure from all samples. */
  reduce: (samples: number[], count: number) => number;
};

/** The middle value, or the mean of the two middle ones. */
function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function getValue(answer: Measurement, name: string): number {
  const value = answer.values?.[name];
  if (value === undefined) throw new Error(`an answer lacks the value "${name}"`);
  return value;
}

function figureRule(name: string, metric: Metric, ratio: boolean): FigureRule {
  switch (metric.kind) {
    case "rate": {
      const scale = metric.scale ?? 1;
      const reduce = (samples: number[], count: number) => (count * scale) / median(samples);
      return { name, unit: metric.unit, better: "higher", ratio, samples: ({ seconds }) => seconds, reduce };
    }
    case "seconds":
      return { name, unit: "s", better: "lower", ratio, samples: ({ seconds }) => seconds, reduce: median };
    case "peak_bytes":
      return { name, unit: "bytes", better: "lower", ratio, samples: (answer) => [answer.peak_rss], reduce: median };
  }
}

/** The figures that a case gives: its own, then its parts'. */
export function figureRules({ name, metric, parts, ratio }: BenchCase): FigureRule[] {
  const partRules = (parts ?? []).map((part) => ({
    ...part,
    ratio: true,
    samples: (answer: Measurement) => [getValue(answer, part.name)],
    reduce: median,
  }));
  return [figureRule(name, metric, ratio ?? true), ...partRules];
}

/**
 * Ours over the best peer's, turned round where less is better, so that above 1 is always better
 * for us.
 */
export function computeRatios(rules: FigureRule[], ours: Figures, peers: Record<string, Figures>): Figures {
  const ratios: Figures = {};
  for (const { name, better, ratio } of rules) {
    const peerFigures = Object.values(peers).flatMap((figures) => (name in figures ? [figures[name]] : []));
    if (!ratio || peerFigures.length === 0 || !(name in ours)) continue;
    ratios[name] = better === "higher" ? ours[name] / Math.max(...peerFigures) : Math.min(...peerFigures) / ours[name];
  }
  return ratios;
}
