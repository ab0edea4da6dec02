import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { LeagueInfo, RunDetail, SeriesResponse } from "../../../src/app/dashboard/api.js";
import { alignRuns } from "../charts/curve-data.js";
import { Plot, type PlotReference } from "../charts/plot.js";
import { useDashboard, useGet, useLiveEvent } from "../data/context.js";
import { runPath } from "../data/source.js";
import { showCompact, showNumber, showPercent } from "../format.js";
import { Banner, Empty, Panel } from "../parts/controls.js";
import { RunPicker } from "../parts/run-picker.js";
import { stripControls } from "../text/ansi.js";

const POINTS = 400;
const OPPONENTS = ["random", "minimax"];
const SEATS = ["first", "second"];
const OUTCOMES = ["win", "draw", "loss"] as const;

/** Metrics of the charts with their titles. */
const CHARTS: readonly { readonly title: string; readonly metrics: readonly string[]; readonly reference?: number }[] =
  [
    { title: "NashConv: what best responses win", metrics: ["eval/nash_conv", "eval/nash_conv_greedy"], reference: 0 },
    {
      title: "Score while training",
      metrics: ["past", "adapter", "random", "minimax"].map((name) => `self_play/score_against_${name}`),
      reference: 0.5,
    },
    {
      title: "Games against itself",
      metrics: ["self_play/first_seat_return", "self_play/draw_ratio", "self_play/illegal_game_ratio"],
    },
  ];

/** A run in self-play: results by opponent and seat, distance to perfect play, and its league. */
export function OpponentsView(): JSX.Element {
  const { selected, runs } = useDashboard();
  const run = selected[0];
  const isSelfPlay = runs.find(({ id }) => id === run)?.isSelfPlay ?? false;
  const path = isSelfPlay ? run : undefined;
  const detail = useGet<RunDetail>(path && runPath(path));
  const league = useGet<LeagueInfo>(path && runPath(path, "/league"));
  const series = useGet<SeriesResponse>(path && runPath(path, `/series?${seriesQuery()}`));
  useLiveEvent("metrics", (event) => {
    if (event.run !== run) return;
    for (const { reload } of [detail, league, series]) reload();
  });
  const error = detail.error ?? league.error ?? series.error;
  return (
    <div class="view">
      <header class="view-header">
        <h1>Opponents</h1>
        <RunPicker view="opponents" />
      </header>
      {error && <Banner kind="error">{error.message}</Banner>}
      {run === undefined && <Empty title="No runs yet" />}
      {run !== undefined && !isSelfPlay && <Empty title="This run does not train in self-play" />}
      {league.data?.problem && <Banner kind="warning">{stripControls(league.data.problem)}</Banner>}
      {detail.data && <Outcomes last={detail.data.last} />}
      {series.data && (
        <div class="two-columns">
          {CHARTS.map((chart) => (
            <Chart key={chart.title} {...chart} response={series.data!} />
          ))}
        </div>
      )}
      {league.data && detail.data && <League league={league.data} detail={detail.data} />}
    </div>
  );
}

function seriesQuery(): string {
  const query = new URLSearchParams({ x: "updates", points: String(POINTS) });
  for (const name of CHARTS.flatMap(({ metrics }) => metrics)) query.append("name", name);
  return query.toString();
}

/** The last exact results against opponents without a model, by seat. */
function Outcomes({ last }: { readonly last: RunDetail["last"] }): JSX.Element {
  const rows = OPPONENTS.flatMap((opponent) =>
    SEATS.map((name, seat) => ({
      opponent,
      name,
      values: OUTCOMES.map((outcome) => last[`eval/${outcome}_against_${opponent}_seat_${seat}`] ?? null),
    })),
  ).filter(({ values }) => values.some((value) => value !== null));
  return (
    <Panel title="Results, as the policy samples">
      {rows.length === 0 ? (
        <p class="soft">
          Exact results are computed with <code>--eval-exact --eval-steps N</code> in small games.
        </p>
      ) : (
        <table class="data">
          <thead>
            <tr>
              <th>opponent</th>
              <th>seat</th>
              {OUTCOMES.map((outcome) => (
                <th key={outcome} class="right">
                  {outcome}
                </th>
              ))}
              <th class="outcome-column" />
            </tr>
          </thead>
          <tbody>
            {rows.map(({ opponent, name, values }) => (
              <tr key={`${opponent} ${name}`}>
                <td>{opponent}</td>
                <td>{name}</td>
                {values.map((value, i) => (
                  <td key={OUTCOMES[i]} class="right number">
                    {showPercent(value)}
                  </td>
                ))}
                <td>
                  <span class="outcome-bar" role="img" aria-label={`${opponent}, ${name} seat`}>
                    {values.map((value, i) => (
                      <span key={OUTCOMES[i]} class={OUTCOMES[i]} style={{ flexGrow: value ?? 0 }} />
                    ))}
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

interface ChartProps {
  readonly title: string;
  readonly metrics: readonly string[];
  readonly reference?: number;
  readonly response: SeriesResponse;
}

function Chart({ title, metrics, reference, response }: ChartProps): JSX.Element | null {
  const { x, series } = useMemo(() => {
    const found = response.series.filter(({ name, y }) => metrics.includes(name) && y.some((value) => value !== null));
    return alignRuns(
      found.map((data) => ({ run: shortName(data.name), index: metrics.indexOf(data.name), data })),
      0,
    );
  }, [response]);
  if (series.length === 0) return null;
  const references: readonly PlotReference[] =
    reference === undefined ? [] : [{ name: reference === 0 ? "perfect play" : "even", y: reference }];
  return (
    <Panel title={title}>
      <Plot
        label={`${title} over updates`}
        x={x}
        series={series}
        references={references}
        height={190}
        formatX={showCompact}
      />
      <ul class="chart-legend">
        {series.map(({ name, color }) => (
          <li key={name}>
            <span class="swatch" style={{ background: color }} />
            {name}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

const shortName = (metric: string): string =>
  metric
    .replace(/^(?:eval|self_play)\//, "")
    .replace("score_against_", "")
    .replaceAll("_", " ");

interface Row {
  readonly name: string;
  readonly elo: number | null;
  readonly score: number | null;
  readonly winRate: number | null;
}

/** Snapshots with the policy's score against them, and the ratings of all players. */
function League({ league, detail }: { readonly league: LeagueInfo; readonly detail: RunDetail }): JSX.Element {
  const { snapshots, elo } = league;
  const rows = listRows(league);
  const { env } = detail.row;
  const { opponents } = detail.config;
  return (
    <Panel title="League">
      <p class="soft">
        Weights: <code>{stripControls(typeof opponents === "string" ? opponents : "")}</code>.{" "}
        {elo === null ? (
          <>
            Ratings are computed by{" "}
            <code>{`llamagym eval ${stripControls(env ?? "GAME")} --elo --adapter RUN/adapter`}</code>.
          </>
        ) : elo.games === 0 ? (
          "Elo from exact scores of all pairs; random play is 0."
        ) : (
          `Elo from ${elo.games} games of each pair; random play is 0.`
        )}
      </p>
      {rows.length === 0 ? (
        <p class="soft">No snapshots yet: they are taken with past opponents, and stored in checkpoints.</p>
      ) : (
        <table class="data">
          <thead>
            <tr>
              <th>Player</th>
              {elo && <th class="right">Elo</th>}
              {elo && <th class="right">Score against all</th>}
              {snapshots.length > 0 && <th class="right">Policy's score against it</th>}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, elo: rating, score, winRate }) => (
              <tr key={name}>
                <td>{stripControls(name)}</td>
                {elo && <td class="right number strong">{rating === null ? "–" : Math.round(rating)}</td>}
                {elo && <td class="right number">{showNumber(score)}</td>}
                {snapshots.length > 0 && <td class="right number">{showNumber(winRate)}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

function listRows({ snapshots, elo }: LeagueInfo): Row[] {
  const winRates = new Map(
    snapshots.map(({ updates, winRate }) => [updates < 0 ? `adapter ${-updates}` : `update ${updates}`, winRate]),
  );
  const rated = (elo?.players ?? []).map(({ name, elo: rating, score }) => ({
    name,
    elo: rating,
    score,
    winRate: winRates.get(name) ?? null,
  }));
  const known = new Set(rated.map(({ name }) => name));
  const others = [...winRates].filter(([name]) => !known.has(name));
  return [...rated, ...others.map(([name, winRate]) => ({ name, elo: null, score: null, winRate }))];
}
