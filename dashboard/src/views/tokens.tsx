import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { EpisodeDetail } from "../../../src/app/dashboard/api.js";
import type { ViewProps } from "../route.js";
import { useDashboard, useGet } from "../data/context.js";
import { runPath } from "../data/source.js";
import { useEpisodes } from "../data/use-episodes.js";
import { showCompact, showSigned } from "../format.js";
import { Banner, Empty, Select } from "../parts/controls.js";
import { RunPicker } from "../parts/run-picker.js";
import { TokenDetail } from "../parts/token-detail.js";
import { linkTo, navigate } from "../route.js";
import { createColoring, MEASURES, type Measure } from "../text/token-colors.js";
import { createTokenTexts, layoutTokens, type TokenRow } from "../text/token-layout.js";
import { VirtualList } from "../text/virtual-list.js";
import { NoEpisodes } from "./episodes.js";

const ROW_HEIGHT = 26;

/** Pixels of a character of the monospaced font at 13 px, and of the space next to the tokens. */
const [CHARACTER_WIDTH, SIDE_SPACE] = [7.95, 44];

/** A token of an episode. */
export interface TokenIndex {
  readonly turn: number;
  readonly token: number;
}

/** The tokens of an episode, colored by what was recorded about them. */
export function TokensView({ route }: ViewProps): JSX.Element {
  const { selected } = useDashboard();
  const run = selected[0];
  const { list, error } = useEpisodes(run);
  const id = route.params.get("episode") ?? list?.episodes[0]?.id;
  const detail = useGet<EpisodeDetail>(id === undefined ? undefined : runPath(run, `/episodes/${id}`));
  const episodes = (list?.episodes ?? []).map(
    (row) => [row.id, `${row.id}: return ${showSigned(row.return)}, ${showCompact(row.tokens)} tokens`] as const,
  );
  const options =
    episodes.some(([value]) => value === id) || id === undefined ? episodes : [[id, id] as const, ...episodes];
  return (
    <div class="view fill">
      <header class="view-header">
        <h1>Tokens</h1>
        <RunPicker view="tokens" />
        {options.length > 0 && (
          <Select
            label="Episode"
            value={id ?? ""}
            options={options}
            onChange={(episode) => navigate(linkTo("tokens", { run, episode }), { replace: true })}
          />
        )}
      </header>
      {error && <Banner kind="error">{error.message}</Banner>}
      {detail.error && <Banner kind="error">{detail.error.message}</Banner>}
      {list && list.episodes.length === 0 && <NoEpisodes />}
      {detail.data && <TokenPage key={detail.data.row.id} detail={detail.data} />}
    </div>
  );
}

function TokenPage({ detail }: { readonly detail: EpisodeDetail }): JSX.Element {
  const [measure, setMeasure] = useState<Measure>("logProb");
  const [showPrompt, setShowPrompt] = useState(true);
  const [showSpecial, setShowSpecial] = useState(false);
  const [columns, setColumns] = useState(80);
  const [active, setActive] = useState<TokenIndex | undefined>({ turn: 0, token: 0 });
  const coloring = useMemo(() => createColoring(detail, measure), [detail, measure]);
  const texts = useMemo(() => createTokenTexts(detail), [detail]);
  const special = useMemo(() => new Set(detail.vocabulary.special), [detail]);
  const rows = useMemo(
    () => layoutTokens(detail, texts, { columns, showPrompt, showSpecial }),
    [detail, texts, columns, showPrompt, showSpecial],
  );
  const move = (step: number): void => {
    const next = active === undefined ? { turn: 0, token: 0 } : { ...active, token: active.token + step };
    const count = detail.turns[next.turn]?.tokens.length ?? 0;
    if (next.token >= count)
      setActive(next.turn + 1 < detail.turns.length ? { turn: next.turn + 1, token: 0 } : active);
    else if (next.token >= 0) setActive(next);
    else if (next.turn > 0) setActive({ turn: next.turn - 1, token: detail.turns[next.turn - 1].tokens.length - 1 });
  };
  const focused =
    active &&
    rows.findIndex(
      ({ kind, turn, start, end }) =>
        kind === "completion" && turn === active.turn && active.token >= start && active.token < end,
    );

  const renderRow = (index: number): JSX.Element => {
    const row = rows[index];
    if (row.kind === "head") return <TurnHead key={index} detail={detail} row={row} />;
    const turn = detail.turns[row.turn];
    const isPrompt = row.kind === "prompt";
    const tokens = isPrompt ? turn.prompt : turn.tokens;
    const spans: JSX.Element[] = [];
    for (let i = row.start; i < row.end; i++) {
      const isSpecial = special.has(tokens[i]);
      if (isPrompt && isSpecial && !showSpecial) continue;
      const isActive = !isPrompt && active?.turn === row.turn && active.token === i;
      const color = isPrompt ? "" : `token ${coloring.classOf(turn, i)} is-${turn.marks[i] ?? "m"}`;
      spans.push(
        <span
          key={i}
          class={`${color} ${isSpecial ? "special" : ""} ${isActive ? "active" : ""}`}
          onClick={isPrompt ? undefined : () => setActive({ turn: row.turn, token: i })}
        >
          {texts(tokens[i])}
        </span>,
      );
    }
    return (
      <div key={index} class={`token-row ${row.kind}`}>
        {spans}
      </div>
    );
  };

  return (
    <>
      <div class="toolbar">
        <Select label="Color by" value={measure} options={MEASURES} onChange={setMeasure} />
        <span class="legend tokens">
          {coloring.legend.map(([className, text]) => (
            <span key={className}>
              <i class={`token ${className}`} />
              {text}
            </span>
          ))}
        </span>
        <span class="spacer" />
        <label class="checkbox">
          <input type="checkbox" checked={showPrompt} onChange={() => setShowPrompt(!showPrompt)} />
          Prompts
        </label>
        <label class="checkbox">
          <input type="checkbox" checked={showSpecial} onChange={() => setShowSpecial(!showSpecial)} />
          Special tokens
        </label>
      </div>
      {!coloring.isKnown && <Banner kind="info">This run has no record of this measure.</Banner>}
      <div class="split tokens">
        <div class="panel token-list">
          {rows.length === 0 ? (
            <Empty title="The episode has no turns" />
          ) : (
            <VirtualList
              label="Tokens: arrow keys move between them"
              count={rows.length}
              rowHeight={ROW_HEIGHT}
              focused={focused}
              row={renderRow}
              onWidth={(width) => setColumns(Math.max(16, Math.floor((width - SIDE_SPACE) / CHARACTER_WIDTH)))}
              onKeyDown={(event) => {
                const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
                if (step === undefined) return;
                event.preventDefault();
                move(step);
              }}
            />
          )}
        </div>
        <TokenDetail detail={detail} texts={texts} active={active} />
      </div>
    </>
  );
}

function TurnHead({ detail, row }: { readonly detail: EpisodeDetail; readonly row: TokenRow }): JSX.Element {
  const { reward, advantage, tokens } = detail.turns[row.turn];
  return (
    <div class="token-row head">
      <strong>Turn {row.turn + 1}</strong>
      <span>{showCompact(tokens.length)} tokens</span>
      <span>reward {showSigned(reward)}</span>
      {advantage !== null && <span>advantage {showSigned(advantage)}</span>}
    </div>
  );
}
