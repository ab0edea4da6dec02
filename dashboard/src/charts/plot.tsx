import { useEffect, useRef } from "preact/hooks";
import type { JSX } from "preact";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { formatNumber } from "../../../src/core/format.js";
import { themeColor } from "./colors.js";

type Values = readonly (number | null)[];

/** A line, with an optional band from `low` to `high`. */
export interface PlotSeries {
  readonly name: string;
  readonly color: string;
  readonly y: Values;
  readonly low?: Values;
  readonly high?: Values;
  /** Drawn thin and pale: the raw values behind a smoothed line. */
  readonly faint?: boolean;
  /** Draws steps, for values that hold until the next x. */
  readonly stepped?: boolean;
}

/** A horizontal dashed line with a label. */
export interface PlotReference {
  readonly name: string;
  readonly y: number;
}

/** Visible range of x. */
export interface Zoom {
  readonly low: number;
  readonly high: number;
}

interface PlotProps {
  readonly label: string;
  readonly x: readonly number[];
  readonly series: readonly PlotSeries[];
  readonly references?: readonly PlotReference[];
  readonly height?: number;
  readonly zoom?: Zoom;
  readonly onZoom?: (zoom: Zoom | undefined) => void;
  /** Receives the index of the x under the cursor. */
  readonly onCursor?: (index: number | undefined) => void;
  /** Receives the index of the x that was clicked. */
  readonly onPick?: (index: number) => void;
  /** Plots with the same key show one cursor. */
  readonly syncKey?: string;
  readonly formatX?: (value: number) => string;
  /** x that is marked by a vertical line. */
  readonly marked?: number;
}

/** Draws series over x with uPlot. Dragging zooms, a double click shows everything. */
export function Plot(props: PlotProps): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>();
  const latest = useRef(props);
  latest.current = props;
  const theme = document.documentElement.dataset.theme;
  const structure = JSON.stringify([
    props.series.map(({ name, color, faint, low }) => [name, color, faint, low !== undefined]),
    props.height,
    theme,
  ]);

  useEffect(() => {
    const host = element.current!;
    const plot = new uPlot(createOptions(latest, host), toData(latest.current), host);
    chart.current = plot;
    const resize = new ResizeObserver(() => plot.setSize({ width: host.clientWidth, height: plot.height }));
    resize.observe(host);
    return () => {
      resize.disconnect();
      plot.destroy();
      chart.current = undefined;
    };
  }, [structure]);

  useEffect(() => {
    chart.current?.setData(toData(props), false);
    applyZoom(chart.current, props);
  }, [props.x, props.series, props.zoom?.low, props.zoom?.high, structure]);
  useEffect(() => chart.current?.redraw(false), [props.marked]);

  return <div class="plot" ref={element} role="img" aria-label={props.label} />;
}

function applyZoom(plot: uPlot | undefined, { x, zoom }: PlotProps): void {
  if (plot === undefined || x.length === 0) return;
  plot.setScale("x", { min: zoom?.low ?? x[0], max: zoom?.high ?? (x.length > 1 ? x[x.length - 1] : x[0] + 1) });
}

function toData({ x, series }: PlotProps): uPlot.AlignedData {
  const columns = series.flatMap(({ y, low, high }) => (low && high ? [high, low, y] : [y]));
  return [x, ...columns] as unknown as uPlot.AlignedData;
}

interface Latest {
  readonly current: PlotProps;
}

function createOptions(latest: Latest, host: HTMLElement): uPlot.Options {
  const { series, height = 180, syncKey, formatX = formatNumber } = latest.current;
  const axis = {
    stroke: themeColor("--text-soft"),
    font: `11px ${themeColor("--font")}`,
    grid: { stroke: themeColor("--grid"), width: 1 },
    ticks: { show: false },
  };
  const { lines, bands } = createSeries(series);
  return {
    width: host.clientWidth || 300,
    height,
    padding: [10, 12, 0, 0],
    legend: { show: false },
    cursor: {
      drag: { x: latest.current.onZoom !== undefined, y: false, setScale: false },
      points: { size: 7 },
      y: false,
      ...(syncKey === undefined ? {} : { sync: { key: syncKey, setSeries: false } }),
    },
    scales: {
      x: { time: false },
      y: { range: (_plot, low, high) => findYRange(low, high, latest.current.references ?? []) },
    },
    axes: [
      { ...axis, size: 26, gap: 6, space: 60, values: (_plot, ticks) => ticks.map(formatX) },
      { ...axis, size: 52, gap: 6, space: 32, values: (_plot, ticks) => ticks.map(formatNumber) },
    ],
    series: [{}, ...lines],
    bands,
    hooks: createHooks(latest),
  };
}

function createSeries(series: readonly PlotSeries[]): { lines: uPlot.Series[]; bands: uPlot.Band[] } {
  const lines: uPlot.Series[] = [];
  const bands: uPlot.Band[] = [];
  for (const { name, color, low, high, faint = false, stepped = false } of series) {
    if (low && high) {
      const edge = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
      bands.push({ series: [lines.length + 1, lines.length + 2], fill: `${color}2e` });
      lines.push({ ...edge, label: `${name}, highest` }, { ...edge, label: `${name}, lowest` });
    }
    lines.push({
      label: name,
      stroke: faint ? `${color}40` : color,
      width: faint ? 1 : 2,
      spanGaps: true,
      points: { show: (_plot, _index, first, last) => !faint && last - first < 2 },
      ...(stepped ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {}),
    });
  }
  return { lines, bands };
}

/** Leaves a twentieth of the range free above and below; a single value gets a range around it. */
function findYRange(low: number | null, high: number | null, references: readonly PlotReference[]): [number, number] {
  const values = [low, high, ...references.map(({ y }) => y)].filter((value) => value !== null);
  const [min, max] = [Math.min(...values), Math.max(...values)];
  if (!Number.isFinite(min) || !Number.isFinite(max)) return [0, 1];
  const room = max > min ? (max - min) / 20 : Math.abs(max) / 2 || 1;
  return [min - room, max + room];
}

function createHooks(latest: Latest): uPlot.Hooks.Arrays {
  return {
    ready: [
      (plot) => {
        plot.over.addEventListener("dblclick", () => latest.current.onZoom?.(undefined));
        plot.over.addEventListener("click", () => {
          const index = plot.cursor.idx;
          if (typeof index === "number") latest.current.onPick?.(index);
        });
      },
    ],
    setSelect: [
      (plot) => {
        const { left, width } = plot.select;
        if (width < 4) return;
        latest.current.onZoom?.({ low: plot.posToVal(left, "x"), high: plot.posToVal(left + width, "x") });
        plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      },
    ],
    setCursor: [(plot) => latest.current.onCursor?.(plot.cursor.idx ?? undefined)],
    draw: [(plot) => drawReferences(plot, latest.current), (plot) => drawMark(plot, latest.current.marked)],
  };
}

function drawReferences(plot: uPlot, { references = [] }: PlotProps): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = themeColor("--text-soft");
  ctx.fillStyle = themeColor("--text-soft");
  ctx.font = `${11 * ratio}px ${themeColor("--font")}`;
  ctx.textAlign = "right";
  ctx.textBaseline = "bottom";
  ctx.lineWidth = ratio;
  ctx.setLineDash([5 * ratio, 4 * ratio]);
  for (const { name, y } of references) {
    const position = plot.valToPos(y, "y", true);
    ctx.beginPath();
    ctx.moveTo(bbox.left, position);
    ctx.lineTo(bbox.left + bbox.width, position);
    ctx.stroke();
    ctx.fillText(name, bbox.left + bbox.width - 2 * ratio, position - 3 * ratio);
  }
  ctx.restore();
}

function drawMark(plot: uPlot, marked: number | undefined): void {
  if (marked === undefined) return;
  const { ctx, bbox } = plot;
  const position = plot.valToPos(marked, "x", true);
  ctx.save();
  ctx.strokeStyle = themeColor("--text");
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(position, bbox.top);
  ctx.lineTo(position, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}
