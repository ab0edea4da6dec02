import type { JSX } from "preact";
import type { EpisodeDetail, TurnDetail } from "../../../src/app/dashboard/api.js";
import { formatCount, showNumber, showPercent, showSigned } from "../format.js";
import { stripControls } from "../text/ansi.js";
import type { TokenTexts } from "../text/token-layout.js";
import type { TokenIndex } from "../views/tokens.js";
import { Empty, Panel } from "./controls.js";
import { ProbabilityBars } from "./probability-bars.js";

const MARKS: Readonly<Record<string, string>> = {
  t: "trained",
  m: "masked: not trained",
  f: "forced: the only token allowed",
};

interface TokenDetailProps {
  readonly detail: EpisodeDetail;
  readonly texts: TokenTexts;
  readonly active: TokenIndex | undefined;
}

/** All that was recorded about a token, and the tokens that were allowed in its place. */
export function TokenDetail({ detail, texts, active }: TokenDetailProps): JSX.Element {
  const turn = active && detail.turns[active.turn];
  if (turn === undefined) {
    return (
      <Panel className="token-detail">
        <Empty title="Select a token">Its numbers and the tokens that were allowed there appear here.</Empty>
      </Panel>
    );
  }
  const i = active!.token;
  const alternatives = turn.alternatives?.[i] ?? [];
  const allowed = turn.allowedCounts?.[i];
  return (
    <Panel title={<code class="token-name">{texts(turn.tokens[i])}</code>} className="token-detail">
      <dl class="pairs">
        {listNumbers(turn, i).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="number">{value}</dd>
          </div>
        ))}
      </dl>
      <h3 class="caption">
        Allowed here <small>{allowed === undefined ? "unconstrained" : formatCount(allowed)}</small>
      </h3>
      <ProbabilityBars
        items={alternatives.map(({ token, probability }) => ({
          text: texts(token),
          probability,
          isChosen: token === turn.tokens[i],
        }))}
      />
      {turn.candidates && (
        <>
          <h3 class="caption">Candidates</h3>
          <ProbabilityBars
            items={turn.candidates.map(({ text, probability }) => ({
              text: stripControls(text),
              probability,
              isChosen: text === turn.text,
            }))}
          />
        </>
      )}
    </Panel>
  );
}

function listNumbers(turn: TurnDetail, i: number): readonly (readonly [string, string])[] {
  const logProb = turn.logProbs[i] ?? null;
  const reference = turn.refLogProbs?.[i] ?? null;
  const teacher = turn.teacherLogProbs?.[i] ?? null;
  const numbers: readonly (readonly [string, string | null])[] = [
    ["Token", String(turn.tokens[i])],
    ["Training", MARKS[turn.marks[i]] ?? "unknown"],
    ["Probability", logProb === null ? null : showPercent(Math.exp(logProb))],
    ["Log-probability", logProb === null ? null : showNumber(logProb)],
    ["Distance to reference", logProb === null || reference === null ? null : showSigned(logProb - reference)],
    ["Teacher's log-probability", teacher === null ? null : showNumber(teacher)],
    ["Entropy", pick(turn.entropies, i)],
    ["Advantage", pick(turn.advantages, i)],
    ["Value", pick(turn.values, i)],
    ["Target of the critic", pick(turn.returns, i)],
    ["Ratio new / old", pick(turn.ratios, i)],
    ["Clipped", turn.clipped === null ? null : turn.clipped[i] === 1 ? "yes" : "no"],
  ];
  return numbers.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]));
}

function pick(values: readonly (number | null)[] | null, i: number): string | null {
  const value = values?.[i] ?? null;
  return value === null ? null : showNumber(value);
}
