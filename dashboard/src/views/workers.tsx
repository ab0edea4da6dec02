import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Job, JobList, RunDetail } from "../../../src/app/dashboard/api.js";
import { seriesColor } from "../charts/colors.js";
import { Plot, type PlotSeries, type Zoom } from "../charts/plot.js";
import { useDashboard, useGet, useLiveEvent } from "../data/context.js";
import { runPath } from "../data/source.js";
import { formatDuration, showCompact, showNumber, showPercent } from "../format.js";
import { Banner, Empty, Facts, Panel } from "../parts/controls.js";
import { RunPicker } from "../parts/run-picker.js";
import { StateMark } from "../parts/state-mark.js";
import { stalenessOf, startOf, WorkerLanes } from "./worker-lanes.js";

/**
 * The workers of a run: their jobs over time, the queue, and how old the weights of the answers
 * were.
 */
export function WorkersView(): JSX.Element {
  const { selected } = useDashboard();
  const run = selected[0];
  const { data, error, reload } = useGet<JobList>(run === undefined ? undefined : runPath(run, "/jobs"));
  const detail = useGet<RunDetail>(run === undefined ? undefined : runPath(run));
  useLiveEvent("jobs", (event) => event.run === run && reload());
  useLiveEvent("metrics", (event) => event.run === run && detail.reload());
  return (
    <div class="view">
      <header class="view-header">
        <h1>Workers</h1>
        <RunPicker view="workers" />
        {detail.data && <StateMark row={detail.data.row} />}
      </header>
      {error && <Banner kind="error">{error.message}</Banner>}
      {data && data.numUnreadable > 0 && (
        <Banner kind="warning">Lines of jobs.jsonl that cannot be read: {data.numUnreadable}.</Banner>
      )}
      {data && data.jobs.length === 0 && (
        <Empty title="No answers of workers">Rollouts of this run are sampled in its own process.</Empty>
      )}
      {data && data.jobs.length > 0 && <Jobs jobs={data.jobs} detail={detail.data} />}
    </div>
  );
}

interface JobsProps {
  readonly jobs: readonly Job[];
  readonly detail: RunDetail | undefined;
}

function Jobs({ jobs, detail }: JobsProps): JSX.Element {
  const [zoom, setZoom] = useState<Zoom>();
  const start = useMemo(() => jobs.reduce((first, job) => Math.min(first, startOf(job), job.time), Infinity), [jobs]);
  const x = useMemo(() => jobs.map(({ time }) => (time - start) / 1000), [jobs]);
  const queue = useMemo(() => [line("Jobs in the queue", 0, jobs, ({ pending }) => pending)], [jobs]);
  const staleness = useMemo(() => [line("Staleness", 1, jobs, rolloutStaleness)], [jobs]);
  const end = Math.max(x[x.length - 1], 0.001);
  const plots = [
    ["Queue: jobs without an answer", "Queue length over time", queue],
    ["Staleness of answers, in updates", "Staleness over time", staleness],
  ] as const;
  return (
    <>
      <Panel>
        <JobFacts jobs={jobs} seconds={end} detail={detail} />
      </Panel>
      <Panel
        title="Jobs by worker"
        tools={
          zoom && (
            <button type="button" class="button" onClick={() => setZoom(undefined)}>
              Reset zoom
            </button>
          )
        }
      >
        <WorkerLanes jobs={jobs} start={start} range={zoom ?? { low: 0, high: end }} />
      </Panel>
      <div class="two-columns">
        {plots.map(([title, label, series]) => (
          <Panel key={title} title={title}>
            <Plot
              label={label}
              x={x}
              series={series}
              zoom={zoom}
              onZoom={setZoom}
              syncKey="workers"
              formatX={formatDuration}
            />
          </Panel>
        ))}
      </div>
    </>
  );
}

function line(name: string, color: number, jobs: readonly Job[], read: (job: Job) => number | null): PlotSeries {
  return { name, color: seriesColor(color), y: jobs.map(read), stepped: true };
}

/** Gradient jobs have the weights of the last optimizer step. */
const rolloutStaleness = (job: Job): number | null => (job.work === undefined ? stalenessOf(job) : null);

interface JobFactsProps extends JobsProps {
  /** Time between the first start and the last answer. */
  readonly seconds: number;
}

function JobFacts({ jobs, seconds, detail }: JobFactsProps): JSX.Element {
  const used = jobs.filter(({ outcome }) => outcome === "used");
  const { rollout, update, other } = detail?.phases ?? { rollout: 0, update: 0, other: 0 };
  const total = rollout + update + other;
  const ages = used.flatMap((job) => rolloutStaleness(job) ?? []);
  const mean = ages.length === 0 ? null : ages.reduce((sum, age) => sum + age, 0) / ages.length;
  return (
    <Facts
      facts={[
        ["Workers", showNumber(new Set(jobs.map(({ worker }) => worker)).size)],
        ["Newest answers", showCompact(jobs.length)],
        ["Answers per second", showNumber(Number((jobs.length / seconds).toPrecision(3)))],
        ["Not used", showCompact(jobs.length - used.length)],
        ["Mean staleness", showNumber(mean)],
        ["Learner waits", showPercent(total === 0 ? null : rollout / total)],
      ]}
    />
  );
}
