import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { MetricGroup, RunDetail, SeriesResponse, XAxis } from "../../../src/app/dashboard/api.js";
import type { ViewProps } from "../route.js";
import type { Zoom } from "../charts/plot.js";
import { useDashboard, useGet, useLiveEvent, useLoad } from "../data/context.js";
import { runPath } from "../data/source.js";
import { Banner, Empty, Segments } from "../parts/controls.js";
import { RunChips } from "../parts/run-picker.js";
import { linkTo, navigate } from "../route.js";
import { ChartCard, type CurveSettings } from "./chart-card.js";
import { groupMetrics, groupSeeds } from "./curve-groups.js";

const X_AXES: readonly (readonly [XAxis, string])[] = [
  ["turns", "Turns"],
  ["updates", "Updates"],
  ["seconds", "Time"],
  ["episodes", "Episodes"],
];

/** Points of a curve; more than a wide screen has pixels for. */
const POINTS = 800;

/** Every metric of the selected runs. */
export function CurvesView({ route }: ViewProps): JSX.Element {
  const { source, live, selected } = useDashboard();
  const x = (route.params.get("x") ?? "turns") as XAxis;
  const [weight, setWeight] = useState(0);
  const [zoom, setZoom] = useState<Zoom>();
  const [isAveraged, setAveraged] = useState(false);
  const [visible, setVisible] = useState<readonly string[]>([]);
  const catalog = useGet<readonly MetricGroup[]>("/api/metrics");
  const details = useLoad(live, selected.join("\n"), () =>
    Promise.all(selected.map((run) => source.get<RunDetail>(runPath(run)))),
  );
  const names = useMemo(() => [...new Set((details.data ?? []).flatMap(({ metrics }) => metrics))], [details.data]);
  const groups = useMemo(() => groupMetrics(names, catalog.data ?? []), [names, catalog.data]);
  const seeds = useMemo(() => groupSeeds(details.data ?? []), [details.data]);
  const hasSeeds = seeds.some(({ runs }) => runs.length > 1);
  const focus = route.params.get("metric") ?? names.find((name) => name === "rollout/ep_rew_mean") ?? names[0];
  const query = new URLSearchParams({ x, points: String(POINTS) });
  if (zoom)
    for (const [name, value] of [
      ["from", zoom.low],
      ["to", zoom.high],
    ] as const)
      query.set(name, String(value));
  const wanted = [...new Set([...(focus === undefined ? [] : [focus]), ...visible])];
  for (const name of wanted) query.append("name", name);
  const series = useLoad(live, wanted.length === 0 ? undefined : `${selected.join("\n")}?${query}`, () =>
    Promise.all(selected.map((run) => source.get<SeriesResponse>(runPath(run, `/series?${query}`)))),
  );
  const known = useMemo(() => new Set<string>(), [selected.join("\n")]);
  useLiveEvent("metrics", ({ run, records }) => {
    if (!selected.includes(run)) return;
    series.reload();
    // The first record brings the names of the metrics, and so does a first update after a warm
    // start.
    const names = records.flatMap((record) => Object.keys(record).map((name) => `${run} ${name}`));
    if (names.every((name) => known.has(name))) return;
    for (const name of names) known.add(name);
    details.reload();
  });

  const open = (changes: Record<string, string>): void =>
    navigate(linkTo("curves", { run: selected, x, metric: route.params.get("metric") ?? undefined, ...changes }), {
      replace: true,
    });
  const show = (name: string, isVisible: boolean): void =>
    setVisible((old) =>
      old.includes(name) === isVisible ? old : isVisible ? [...old, name] : old.filter((n) => n !== name),
    );
  const settings: CurveSettings = {
    x,
    weight,
    zoom,
    onZoom: setZoom,
    responses: series.data ?? [],
    references: details.data?.[0]?.references ?? [],
    seeds: isAveraged && hasSeeds ? seeds : undefined,
    show,
    onFocus: (metric) => open({ metric }),
  };
  const error = details.error ?? series.error ?? catalog.error;

  return (
    <div class="view">
      <header class="view-header">
        <h1>Curves</h1>
        <RunChips view="curves" />
      </header>
      <div class="toolbar">
        <Segments
          label="Horizontal axis"
          value={x}
          options={X_AXES}
          onChange={(value) => {
            setZoom(undefined);
            open({ x: value });
          }}
        />
        <label class="field">
          Smoothing
          <input
            type="range"
            min="0"
            max="0.99"
            step="0.01"
            value={weight}
            onInput={(event) => setWeight(event.currentTarget.valueAsNumber)}
          />
          <output class="number">{weight.toFixed(2)}</output>
        </label>
        {hasSeeds && (
          <label class="checkbox">
            <input type="checkbox" checked={isAveraged} onChange={() => setAveraged(!isAveraged)} />
            Average seeds
          </label>
        )}
        {zoom ? (
          <button type="button" class="button" onClick={() => setZoom(undefined)}>
            Reset zoom
          </button>
        ) : (
          <span class="soft hint">Drag over a curve to zoom all of them.</span>
        )}
      </div>
      {error && <Banner kind="error">{error.message}</Banner>}
      {details.data && names.length === 0 && <Empty title="No metrics yet">The first update writes them.</Empty>}
      {focus !== undefined && names.length > 0 && (
        <ChartCard key={`focus ${focus}`} name={focus} info={groups.infoOf(focus)} settings={settings} isLarge />
      )}
      {groups.groups.map(({ title, metrics }) => (
        <details class="metric-group" key={title} open>
          <summary>
            <h2>{title}</h2>
            <small>{metrics.length}</small>
          </summary>
          <div class="chart-grid">
            {metrics.map((name) => (
              <ChartCard key={name} name={name} info={groups.infoOf(name)} settings={settings} />
            ))}
          </div>
        </details>
      ))}
    </div>
  );
}
