import type { JSX } from "preact";
import type { Job } from "../../../src/app/dashboard/api.js";
import type { Zoom } from "../charts/plot.js";
import { formatDuration, showNumber, showPercent } from "../format.js";
import { stripControls } from "../text/ansi.js";
import { VirtualList } from "../text/virtual-list.js";

const ROW_HEIGHT = 30;
/** Lanes visible without scrolling. */
const MAX_VISIBLE_LANES = 16;
/** Staleness from which all bars have one color. */
const MAX_STALENESS = 3;

/** The jobs of a worker. */
interface Lane {
  readonly worker: string;
  readonly jobs: readonly Job[];
}

interface WorkerLanesProps {
  readonly jobs: readonly Job[];
  /** Time in milliseconds that the range counts from, in seconds. */
  readonly start: number;
  readonly range: Zoom;
}

/** Returns the updates between a job's weights and the newest ones when its answer was received. */
export function stalenessOf({ step, version }: Job): number {
  return Math.max(0, step - version);
}

/** Returns when a worker began a job, in milliseconds. */
export function startOf({ time, seconds }: Job): number {
  return time - 1000 * (seconds ?? 0);
}

/** A lane per worker with a bar per job, and what the worker did in the range. */
export function WorkerLanes({ jobs, start, range }: WorkerLanesProps): JSX.Element {
  const lanes = groupByWorker(jobs);
  return (
    <div class="lanes">
      <div class="lane lane-head" aria-hidden="true">
        <span>Worker</span>
        <span class="lane-axis number">
          <span>{formatDuration(range.low)}</span>
          <span>{formatDuration(range.high)}</span>
        </span>
        {["Answers", "Busy", "Job", "Stale"].map((name) => (
          <span class="right" key={name}>
            {name}
          </span>
        ))}
      </div>
      <div style={{ height: `${Math.min(lanes.length, MAX_VISIBLE_LANES) * ROW_HEIGHT}px` }}>
        <VirtualList
          count={lanes.length}
          rowHeight={ROW_HEIGHT}
          label="Jobs by worker"
          row={(index) => <LaneRow key={lanes[index].worker} lane={lanes[index]} start={start} range={range} />}
        />
      </div>
      <p class="lane-legend soft" aria-hidden="true">
        {["Newest weights", "1 update older", "2", `${MAX_STALENESS} or more`].map((name, staleness) => (
          <span key={name}>
            <i class={`swatch stale-${staleness}`} /> {name}
          </span>
        ))}
        <span>
          <i class="swatch refused" /> Refused, or an error
        </span>
      </p>
    </div>
  );
}

function groupByWorker(jobs: readonly Job[]): Lane[] {
  const lanes = new Map<string, Job[]>();
  for (const job of jobs) {
    const lane = lanes.get(job.worker);
    if (lane === undefined) lanes.set(job.worker, [job]);
    else lane.push(job);
  }
  return Array.from(lanes, ([worker, own]) => ({ worker, jobs: own })).sort((a, b) =>
    a.worker.localeCompare(b.worker, undefined, { numeric: true }),
  );
}

interface LaneRowProps extends Omit<WorkerLanesProps, "jobs"> {
  readonly lane: Lane;
}

function LaneRow({ lane, start, range }: LaneRowProps): JSX.Element {
  const length = range.high - range.low;
  /** Position in the range, 0 to 1. */
  const place = (ms: number): number => Math.min(1, Math.max(0, ((ms - start) / 1000 - range.low) / length));
  const bars = lane.jobs.flatMap((job) => {
    const [left, right] = [place(startOf(job)), place(job.time)];
    const isOutside = (job.time - start) / 1000 < range.low || (startOf(job) - start) / 1000 > range.high;
    return isOutside ? [] : [{ job, left, width: right - left }];
  });
  const done = bars.filter(({ job }) => job.seconds !== undefined);
  const mean = (read: (job: Job) => number): number | null =>
    done.length === 0 ? null : done.reduce((sum, { job }) => sum + read(job), 0) / done.length;
  const busy = Math.min(
    1,
    bars.reduce((sum, { width }) => sum + width, 0),
  );
  const seconds = mean((job) => job.seconds!);
  const name = stripControls(lane.worker);
  return (
    <div class="lane" role="listitem" style={{ height: `${ROW_HEIGHT}px` }}>
      <span class="lane-name" title={name}>
        {name}
      </span>
      <span class="lane-bars" role="img" aria-label={`${bars.length} answers, busy ${showPercent(busy)}`}>
        {bars.map(({ job, left, width }, i) => (
          <i
            key={i}
            class={job.outcome === "used" ? `stale-${Math.min(MAX_STALENESS, stalenessOf(job))}` : "refused"}
            style={{ left: `${100 * left}%`, width: `${100 * width}%` }}
            title={describe(job)}
          />
        ))}
      </span>
      <span class="right number">{bars.length}</span>
      <span class="right number">{showPercent(busy)}</span>
      <span class="right number">{seconds === null ? "–" : `${showNumber(Number(seconds.toPrecision(3)))} s`}</span>
      <span class="right number">{showNumber(mean(stalenessOf))}</span>
    </div>
  );
}

function describe(job: Job): string {
  const waited = Math.max(0, (startOf(job) - job.queued) / 1000);
  const facts = [
    job.outcome,
    ...(job.seconds === undefined ? [] : [`${showNumber(job.seconds)} s, after ${showNumber(waited)} s in the queue`]),
    `weights of update ${job.version}, newest ${job.step}`,
    ...(job.reason === undefined ? [] : [stripControls(job.reason)]),
  ];
  return facts.join("; ");
}
