import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { MetricInfo, RunDetail, SeriesResponse, XAxis } from "../../../src/app/dashboard/api.js";
import { alignGroups, alignRuns, type AlignedSeries, type RunSeries, type SeedGroup } from "../charts/curve-data.js";
import { downloadChart, type ChartFormat } from "../charts/download.js";
import { Plot, type Zoom } from "../charts/plot.js";
import { formatDuration, showCompact, showNumber } from "../format.js";
import { IconButton } from "../parts/controls.js";
import { DocText } from "../parts/doc-text.js";
import { Icon } from "../parts/icon.js";
import { stripControls } from "../text/ansi.js";

/** What all charts of the view share. */
export interface CurveSettings {
  readonly x: XAxis;
  readonly weight: number;
  readonly zoom: Zoom | undefined;
  readonly onZoom: (zoom: Zoom | undefined) => void;
  /** Series of each selected run, of the metrics in view. */
  readonly responses: readonly SeriesResponse[];
  readonly references: RunDetail["references"];
  /** Groups to average; undefined shows each run. */
  readonly seeds: readonly SeedGroup[] | undefined;
  /** Asks for the data of a metric while its chart is in view. */
  readonly show: (name: string, isVisible: boolean) => void;
  readonly onFocus: (name: string) => void;
}

interface ChartCardProps {
  readonly name: string;
  readonly info: MetricInfo | undefined;
  readonly settings: CurveSettings;
  readonly isLarge?: boolean;
}

/** A metric's chart with its explanation. */
export function ChartCard({ name, info, settings, isLarge = false }: ChartCardProps): JSX.Element {
  const { x, zoom, onZoom, responses, show } = settings;
  const element = useRef<HTMLElement>(null);
  const [isExplained, setExplained] = useState(isLarge);
  const [cursor, setCursor] = useState<number>();
  const shownName = stripControls(name);
  useEffect(() => {
    if (isLarge) return;
    const observer = new IntersectionObserver(([entry]) => show(name, entry.isIntersecting), { rootMargin: "200px" });
    observer.observe(element.current!);
    return () => {
      observer.disconnect();
      show(name, false);
    };
  }, [name]);
  const runs = useMemo(() => collectRuns(name, responses), [name, responses]);
  const { x: xs, series } = useMemo(() => align(runs, settings), [runs, settings.seeds, settings.weight]);
  const references = name === "rollout/ep_rew_mean" ? settings.references : [];
  const isEmpty = runs.every(({ data }) => data.y.every((value) => value === null));

  return (
    <article class={`panel chart ${isLarge ? "large" : ""}`} ref={element} aria-label={shownName}>
      <header>
        <h3>
          <button type="button" class="link" onClick={() => settings.onFocus(name)} title="Show this metric large">
            {shownName}
          </button>
        </h3>
        <Readout series={series} cursor={cursor} />
        <DownloadMenu
          onDownload={(format) => void downloadChart(toCurve(shownName, x, series, xs, references), format)}
        />
        {info && !isLarge && (
          <IconButton
            icon="info"
            label={`Explain ${shownName}`}
            pressed={isExplained}
            onClick={() => setExplained(!isExplained)}
          />
        )}
      </header>
      <div class="chart-body">
        <div class="chart-plot">
          {isEmpty ? (
            <div class="chart-empty">{responses.length === 0 ? "" : "No values"}</div>
          ) : (
            <Plot
              label={`${shownName} over ${x}`}
              x={xs}
              series={series}
              references={references}
              height={isLarge ? 300 : 170}
              zoom={zoom}
              onZoom={onZoom}
              onCursor={setCursor}
              syncKey="curves"
              formatX={x === "seconds" ? formatDuration : showCompact}
            />
          )}
        </div>
        {isExplained && info && <Explanation info={info} />}
      </div>
    </article>
  );
}

function Explanation({ info: { meaning, healthy, unhealthy } }: { readonly info: MetricInfo }): JSX.Element {
  return (
    <dl class="explanation">
      <dd>
        <DocText text={meaning} />
      </dd>
      {healthy !== "" && (
        <>
          <dt class="healthy">Healthy</dt>
          <dd>
            <DocText text={healthy} />
          </dd>
        </>
      )}
      {unhealthy !== "" && (
        <>
          <dt class="unhealthy">Otherwise</dt>
          <dd>
            <DocText text={unhealthy} />
          </dd>
        </>
      )}
    </dl>
  );
}

/** The values under the cursor, or the last ones. */
function Readout({
  series,
  cursor,
}: {
  readonly series: AlignedSeries["series"];
  readonly cursor?: number;
}): JSX.Element {
  const lines = series.filter(({ faint }) => faint !== true).slice(0, 6);
  return (
    <span class="readout number">
      {lines.map(({ name, color, y }) => (
        <span key={name} title={stripControls(name)}>
          {lines.length > 1 && <i class="swatch" style={{ background: color }} />}
          {showNumber(findNear(y, cursor ?? y.length - 1))}
        </span>
      ))}
    </span>
  );
}

/** The last value up to `index`: curves of other runs have their own x. */
function findNear(values: readonly (number | null)[], index: number): number | null {
  for (let i = index; i >= 0; i--) if (values[i] !== null && values[i] !== undefined) return values[i];
  return null;
}

function DownloadMenu({ onDownload }: { readonly onDownload: (format: ChartFormat) => void }): JSX.Element {
  return (
    <details class="menu">
      <summary aria-label="Download" title="Download" class="icon-button">
        <Icon name="download" />
      </summary>
      <div>
        {(["svg", "png", "csv"] as const).map((format) => (
          <button
            key={format}
            type="button"
            onClick={(event) => {
              event.currentTarget.closest("details")!.open = false;
              onDownload(format);
            }}
          >
            {format.toUpperCase()}
          </button>
        ))}
      </div>
    </details>
  );
}

function collectRuns(name: string, responses: readonly SeriesResponse[]): RunSeries[] {
  return responses.flatMap(({ run, series }, index) => {
    const data = series.find((candidate) => candidate.name === name);
    return data === undefined ? [] : [{ run, index, data }];
  });
}

function align(runs: readonly RunSeries[], { seeds, weight }: CurveSettings): AlignedSeries {
  return seeds === undefined ? alignRuns(runs, weight) : alignGroups(runs, seeds, weight);
}

function toCurve(
  title: string,
  x: XAxis,
  series: AlignedSeries["series"],
  xs: readonly number[],
  references: RunDetail["references"],
) {
  const lines = series.filter(({ faint }) => faint !== true);
  return {
    title,
    xLabel: x,
    yLabel: title,
    references,
    series: lines.map(({ name, y, low, high }) => {
      const own = xs.map((_, i) => i).filter((i) => y[i] !== null && y[i] !== undefined);
      const pick = (values: readonly (number | null)[]): number[] => own.map((i) => values[i] ?? Number.NaN);
      return {
        name: stripControls(name),
        x: own.map((i) => xs[i]),
        y: pick(y),
        ...(low && high ? { low: pick(low), high: pick(high) } : {}),
      };
    }),
  };
}
