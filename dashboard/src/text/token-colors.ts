import type { EpisodeDetail, TurnDetail } from "../../../src/app/dashboard/api.js";

/** What the tokens are colored by. */
export type Measure = "logProb" | "entropy" | "advantage" | "ratio" | "reference" | "teacher" | "clipped" | "trained";

export const MEASURES: readonly (readonly [Measure, string])[] = [
  ["logProb", "Log-probability"],
  ["entropy", "Entropy"],
  ["advantage", "Advantage"],
  ["ratio", "Ratio new / old"],
  ["reference", "Distance to reference"],
  ["teacher", "Distance to teacher"],
  ["clipped", "Clipped"],
  ["trained", "Trained, masked, forced"],
];

/** Steps of a color scale: classes `seq-0` to `seq-6`, and `div--3` to `div-3`. */
const SEQUENTIAL_STEPS = 6;
const DIVERGING_STEPS = 3;

/** How a measure is colored: the ends of its scale, and the class of a token. */
export interface TokenColoring {
  readonly legend: readonly (readonly [className: string, text: string])[];
  /** Whether the run recorded the measure. */
  readonly isKnown: boolean;
  readonly classOf: (turn: TurnDetail, index: number) => string;
}

/** Creates the coloring of an episode's tokens. Scales end at the largest value of the episode. */
export function createColoring(detail: EpisodeDetail, measure: Measure): TokenColoring {
  if (measure === "trained") {
    return {
      isKnown: true,
      legend: [
        ["mark-t", "trained"],
        ["mark-m", "masked"],
        ["mark-f", "forced"],
      ],
      classOf: ({ marks }, i) => `mark-${marks[i] ?? "m"}`,
    };
  }
  if (measure === "clipped") {
    return {
      isKnown: detail.turns.some(({ clipped }) => clipped !== null),
      legend: [
        ["clipped", "clipped"],
        ["seq-0", "not clipped"],
      ],
      classOf: ({ clipped }, i) => (clipped?.[i] === 1 ? "clipped" : "seq-0"),
    };
  }
  const read = MEASURE_VALUES[measure];
  let largest = 0;
  let isKnown = false;
  for (const turn of detail.turns) {
    for (let i = 0; i < turn.tokens.length; i++) {
      const value = read(turn, i);
      if (value === null) continue;
      isKnown = true;
      largest = Math.max(largest, Math.abs(value));
    }
  }
  const isSequential = measure === "logProb" || measure === "entropy";
  const scale = largest === 0 ? 1 : largest;
  return {
    isKnown,
    legend: isSequential
      ? [0, 2, 4, 6].map(
          (step) =>
            [`seq-${step}`, step === 0 ? "0" : shorten(((measure === "logProb" ? -1 : 1) * scale * step) / 6)] as const,
        )
      : [-3, 0, 3].map((step) => [`div-${step}`, shorten((scale * step) / DIVERGING_STEPS)] as const),
    classOf: (turn, i) => {
      const value = read(turn, i);
      if (value === null) return "unknown";
      return isSequential
        ? `seq-${Math.round((Math.abs(value) / scale) * SEQUENTIAL_STEPS)}`
        : `div-${Math.round((value / scale) * DIVERGING_STEPS) + 0}`;
    },
  };
}

const MEASURE_VALUES: Record<
  Exclude<Measure, "trained" | "clipped">,
  (turn: TurnDetail, index: number) => number | null
> = {
  logProb: ({ logProbs }, i) => logProbs[i] ?? null,
  entropy: ({ entropies }, i) => entropies?.[i] ?? null,
  advantage: ({ advantages, advantage }, i) => advantages?.[i] ?? advantage,
  ratio: ({ ratios }, i) => {
    const ratio = ratios?.[i] ?? null;
    return ratio === null ? null : Math.log(ratio);
  },
  reference: ({ logProbs, refLogProbs }, i) => subtract(logProbs[i], refLogProbs?.[i]),
  teacher: ({ logProbs, teacherLogProbs }, i) => subtract(logProbs[i], teacherLogProbs?.[i]),
};

function subtract(own: number | null | undefined, other: number | null | undefined): number | null {
  return typeof own === "number" && typeof other === "number" ? own - other : null;
}

function shorten(value: number): string {
  return value === 0 ? "0" : Number(value.toPrecision(2)).toString().replace("-", "−");
}
