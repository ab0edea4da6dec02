import type { JSX } from "preact";
import type { SweepRow, TrialRow } from "../../../src/app/dashboard/api.js";
import { showNumber } from "../format.js";
import { stripControls } from "../text/ansi.js";

const [WIDTH, HEIGHT, TOP, BOTTOM, SIDE] = [960, 300, 40, 28, 70];

/** Lines beyond this number of trials would cover each other. */
const MAX_LINES = 400;

/** An axis with the position of each value, 0 at the bottom to 1 at the top. */
interface ValueAxis {
  readonly title: string;
  readonly place: (trial: TrialRow) => number | undefined;
  readonly labels: readonly (readonly [position: number, text: string])[];
}

interface ParallelCoordinatesProps {
  readonly sweep: SweepRow;
  readonly marked: number | undefined;
  readonly onMark: (trial: number | undefined) => void;
}

/**
 * A line per trial through its settings to its result; the best trials are dark, the marked one is
 * orange.
 */
export function ParallelCoordinates({ sweep, marked, onMark }: ParallelCoordinatesProps): JSX.Element {
  const trials = sweep.trials.slice(0, MAX_LINES);
  const axes = [
    ...sweep.settings.map((name) => createAxis(name, trials, ({ settings }) => settings[name])),
    createAxis(sweep.metric ?? "result", trials, ({ value }) => value),
  ];
  const x = (index: number): number => SIDE + (index * (WIDTH - 2 * SIDE)) / Math.max(1, axes.length - 1);
  const y = (position: number): number => HEIGHT - BOTTOM - position * (HEIGHT - TOP - BOTTOM);
  const lines = trials.map((trial, rank) => {
    const points = axes.flatMap(({ place }, index) => {
      const position = place(trial);
      return position === undefined ? [] : [`${x(index).toFixed(1)},${y(position).toFixed(1)}`];
    });
    const strength = 1 - rank / Math.max(1, trials.length);
    return { trial: trial.trial, points: points.join(" "), strength };
  });
  // SVG paints in order: the best and the marked trial come last.
  lines.reverse().sort((a, b) => Number(a.trial === marked) - Number(b.trial === marked));
  return (
    <svg class="parallel" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label="Trials as parallel coordinates">
      {lines.map(({ trial, points, strength }) => (
        <polyline
          key={trial}
          class={trial === marked ? "trial marked" : "trial"}
          points={points}
          stroke-opacity={trial === marked ? 1 : 0.15 + 0.75 * strength}
          onMouseEnter={() => onMark(trial)}
          onMouseLeave={() => onMark(undefined)}
        />
      ))}
      {axes.map(({ title, labels }, index) => (
        <g key={title}>
          <line class="axis" x1={x(index)} x2={x(index)} y1={TOP} y2={HEIGHT - BOTTOM} />
          <text class="title" x={x(index)} y={TOP - 18} text-anchor="middle">
            {stripControls(title)}
          </text>
          {labels.map(([position, text]) => (
            <text key={text} x={x(index) + 7} y={y(position) + 4}>
              {text}
            </text>
          ))}
        </g>
      ))}
    </svg>
  );
}

type Value = string | number | boolean | null | undefined;

function createAxis(title: string, trials: readonly TrialRow[], read: (trial: TrialRow) => Value): ValueAxis {
  const values = trials.map(read).filter((value) => value !== null && value !== undefined);
  return values.every((value) => typeof value === "number")
    ? createNumberAxis(title, values, read)
    : createCategoryAxis(title, values, read);
}

/** Logarithmic if the values are positive and span more than a factor of 20. */
function createNumberAxis(title: string, values: readonly number[], read: (trial: TrialRow) => Value): ValueAxis {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const isLog = low > 0 && high / low > 20;
  const scale = (value: number): number => {
    if (!(high > low)) return 0.5;
    return isLog ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  };
  const ends = values.length === 0 ? [] : [...new Set([low, high])];
  return {
    title: isLog ? `${title} (log)` : title,
    place: (trial) => {
      const value = read(trial);
      return typeof value === "number" ? scale(value) : undefined;
    },
    labels: ends.map((value) => [scale(value), showNumber(value)]),
  };
}

function createCategoryAxis(title: string, values: readonly Value[], read: (trial: TrialRow) => Value): ValueAxis {
  const names = [...new Set(values.map(String))].sort();
  const scale = (name: string): number => (names.length === 1 ? 0.5 : names.indexOf(name) / (names.length - 1));
  return {
    title,
    place: (trial) => {
      const value = read(trial);
      return value === null || value === undefined ? undefined : scale(String(value));
    },
    labels: names.map((name) => [scale(name), stripControls(name).slice(0, 24)]),
  };
}
