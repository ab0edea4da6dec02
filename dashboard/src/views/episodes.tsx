import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { EpisodeDetail, EpisodeList, EpisodeRow } from "../../../src/app/dashboard/api.js";
import type { ViewProps } from "../route.js";
import { seriesColor } from "../charts/colors.js";
import { Plot } from "../charts/plot.js";
import { useGet, useDashboard } from "../data/context.js";
import { useEpisodes } from "../data/use-episodes.js";
import { runPath } from "../data/source.js";
import { showCompact, showSigned } from "../format.js";
import { Banner, Empty, Panel } from "../parts/controls.js";
import { countFrames, FilmControls, Screen } from "../parts/film.js";
import { RunPicker } from "../parts/run-picker.js";
import { TurnText } from "../parts/turn-text.js";
import { linkTo, navigate } from "../route.js";
import { VirtualList } from "../text/virtual-list.js";
import { stripControls } from "../text/ansi.js";

const ROW_HEIGHT = 46;

/** Recorded episodes: a list, and the open one as a film with its text and numbers. */
export function EpisodesView({ route }: ViewProps): JSX.Element {
  const { selected } = useDashboard();
  const run = selected[0];
  const { list, error, loadMore } = useEpisodes(run);
  const id = route.params.get("episode") ?? list?.episodes[0]?.id;
  const detail = useGet<EpisodeDetail>(id === undefined ? undefined : runPath(run, `/episodes/${id}`));
  return (
    <div class="view fill">
      <header class="view-header">
        <h1>Episodes</h1>
        <RunPicker view="episodes" />
        {list && <span class="soft">{showCompact(list.total)} recorded</span>}
      </header>
      {error && <Banner kind="error">{error.message}</Banner>}
      {detail.error && <Banner kind="error">{detail.error.message}</Banner>}
      {list?.problem && <Banner kind="warning">{list.problem}</Banner>}
      {list && list.episodes.length === 0 && <NoEpisodes />}
      {list && list.episodes.length > 0 && (
        <div class="split">
          <EpisodeTable list={list} run={run} active={id} onEnd={loadMore} />
          {detail.data && <EpisodePage key={detail.data.row.id} run={run} detail={detail.data} />}
        </div>
      )}
    </div>
  );
}

/** What runs without recorded episodes show. */
export function NoEpisodes(): JSX.Element {
  return (
    <Empty title="No recorded episodes">
      This run was made with <code>--rollouts none</code> or by an older version. Runs record samples by default.
    </Empty>
  );
}

interface EpisodeTableProps {
  readonly list: EpisodeList;
  readonly run: string;
  readonly active: string | undefined;
  readonly onEnd: () => void;
}

function EpisodeTable({ list: { episodes, total }, run, active, onEnd }: EpisodeTableProps): JSX.Element {
  const index = episodes.findIndex(({ id }) => id === active);
  const open = (next: number): void => {
    const row = episodes[Math.max(0, Math.min(episodes.length - 1, next))];
    if (row) navigate(linkTo("episodes", { run, episode: row.id }), { replace: true });
  };
  return (
    <div class="panel episode-list">
      <VirtualList
        label="Episodes"
        role="listbox"
        count={episodes.length + (episodes.length < total ? 1 : 0)}
        rowHeight={ROW_HEIGHT}
        focused={index}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step === undefined) return;
          event.preventDefault();
          open(index + step);
        }}
        row={(i) =>
          i < episodes.length ? (
            <EpisodeLine key={episodes[i].id} row={episodes[i]} run={run} isActive={i === index} />
          ) : (
            <LoadMore key="more" onVisible={onEnd} />
          )
        }
      />
    </div>
  );
}

function LoadMore({ onVisible }: { readonly onVisible: () => void }): JSX.Element {
  useEffect(onVisible);
  return <div class="episode-row soft">Loading …</div>;
}

function EpisodeLine(props: {
  readonly row: EpisodeRow;
  readonly run: string;
  readonly isActive: boolean;
}): JSX.Element {
  const { row, run, isActive } = props;
  return (
    <a
      class="episode-row"
      role="option"
      tabIndex={-1}
      aria-selected={isActive}
      href={linkTo("episodes", { run, episode: row.id })}
    >
      <span>
        Episode {row.id}
        <small>
          {row.turns} {row.turns === 1 ? "turn" : "turns"}, {row.end}
          {describeSeat(row)}
        </small>
      </span>
      <strong class="number">{showSigned(row.return)}</strong>
      {!row.hasSignal && <span class="tag">no signal</span>}
    </a>
  );
}

/** Names the seat and the opponent of a game in self-play; "" for other episodes. */
function describeSeat({ seat, opponent }: EpisodeRow): string {
  if (seat === undefined) return "";
  const against = opponent === undefined || opponent === "self" ? "itself" : opponent;
  return `, ${["first", "second"][seat] ?? `seat ${seat}`} against ${stripControls(against)}`;
}

/** An episode as a film, with text and curves of its turns. */
function EpisodePage({ run, detail }: { readonly run: string; readonly detail: EpisodeDetail }): JSX.Element {
  const [frame, setFrame] = useState(0);
  const turn = detail.turns[Math.min(frame, detail.turns.length - 1)];
  const x = useMemo(() => detail.turns.map((_, i) => i + 1), [detail]);
  const series = useMemo(
    () =>
      (["reward", "returnToGo", "value", "advantage"] as const)
        .map((key, i) => ({
          name: { reward: "Reward", returnToGo: "Return to go", value: "Value", advantage: "Advantage" }[key],
          color: seriesColor(i),
          y: detail.turns.map((each) => each[key]),
        }))
        .filter(({ y }) => y.some((value) => value !== null)),
    [detail],
  );
  return (
    <div class="episode-page">
      <div class="two-columns">
        <Panel
          title="Environment"
          tools={<FilmControls count={countFrames(detail)} frame={frame} onFrame={setFrame} />}
          className="film"
        >
          <Screen detail={detail} frame={frame} />
        </Panel>
        <Panel
          title={`Turn ${Math.min(frame + 1, detail.turns.length)}`}
          tools={
            <a class="button" href={linkTo("tokens", { run, episode: detail.row.id })}>
              Tokens
            </a>
          }
        >
          {turn && <TurnText turn={turn} vocabulary={detail.vocabulary} />}
        </Panel>
      </div>
      <Panel
        title="Turns"
        tools={
          <span class="legend">
            {series.map(({ name, color }) => (
              <span key={name}>
                <i class="swatch" style={{ background: color }} />
                {name}
              </span>
            ))}
          </span>
        }
      >
        <Plot
          label="Reward, return to go, value and advantage of each turn"
          x={x}
          series={series}
          height={150}
          marked={Math.min(frame + 1, detail.turns.length)}
          onPick={setFrame}
          formatX={(value) => (Number.isInteger(value) ? String(value) : "")}
        />
      </Panel>
    </div>
  );
}
