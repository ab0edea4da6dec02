import type { SelectedToken, TokenBatch } from "../../models/training-graph.js";
import type { Turn } from "../../rollout/turn.js";
import { int32, tensor, type Tensor } from "../../tensor/tensor.js";
import { layRows } from "./rows.js";

/** What of a turn a batch needs. A prompt without a reply asks only for the value of its state. */
export type TurnTokens = Pick<Turn, "prompt" | "tokens" | "allowed">;

/** A token that the policy chose: the number of its turn in the batch and its place in the reply. */
export interface Decision {
  readonly turn: number;
  readonly token: number;
}

/** Turns as one forward pass wants them. */
export interface TurnBatch {
  readonly decisions: readonly Decision[];
  readonly tokens: TokenBatch;
  /** For each decision, the numbers of its selected tokens: the chosen one alone, or all that were allowed. */
  readonly alternatives: readonly (readonly number[])[];
  /** For each decision, which of its alternatives was chosen. */
  readonly chosen: readonly number[];
}

/**
 * The decisions of a turn: the places of its reply where there was something to choose. The first counts in any case, since
 * the turn's value is read there.
 */
export function decisionsOf({ tokens, allowed }: Pick<Turn, "tokens" | "allowed">): number[] {
  return tokens.flatMap((_, i) => (i === 0 || allowed === undefined || allowed[i].length > 1 ? [i] : []));
}

/** Lays turns out for a model of this hidden size; each token that turns have in common is computed once. */
export function layTurns(turns: readonly TurnTokens[], hiddenSize: number, temperature = 1): TurnBatch {
  const places = turns.map((turn) => (turn.tokens.length === 0 ? [0] : decisionsOf(turn)));
  const sequences = turns.map(({ prompt, tokens }, i) => [...prompt, ...tokens.slice(0, places[i].at(-1))]);
  const laid = layRows(sequences, hiddenSize);
  const selected: SelectedToken[] = [];
  const numbers = new Map<string, number>();
  /** Alternatives of turns in the same state are the same token of the same place. */
  const selectOnce = (token: Required<SelectedToken>): number => {
    const key = `${token.group},${token.row},${token.index},${token.target}`;
    let number = numbers.get(key);
    if (number === undefined) numbers.set(key, (number = selected.push(token) - 1));
    return number;
  };
  const decisions: Decision[] = [];
  const alternatives: number[][] = [];
  const chosen: number[] = [];
  turns.forEach(({ prompt, tokens, allowed }, turn) => {
    const { group, row, prefix } = laid.places[turn];
    for (const token of places[turn]) {
      const index = prompt.length + token - prefix;
      // A state whose value alone is asked for has no next token; any stands for it.
      const taken = tokens.at(token) ?? 0;
      const targets = allowed === undefined ? [taken] : [...allowed[token]];
      const select = allowed === undefined ? (own: SelectedToken) => selected.push(own) - 1 : selectOnce;
      alternatives.push(targets.map((target) => select({ group, row, index, target })));
      chosen.push(targets.indexOf(taken));
      decisions.push({ turn, token });
    }
  });
  return { decisions, tokens: { groups: laid.groups, selected, temperature }, alternatives, chosen };
}

/** The numbers of each turn's decisions. */
export function decisionsByTurn({ decisions }: TurnBatch): number[][] {
  const byTurn: number[][] = [];
  decisions.forEach(({ turn }, decision) => (byTurn[turn] ??= []).push(decision));
  return byTurn;
}

/** The inputs of `decisionNodes` for a batch in which replies were held to choices. */
export function choiceFeeds({ alternatives, chosen }: TurnBatch): Record<string, Tensor> {
  const width = Math.max(1, ...alternatives.map(({ length }) => length));
  const count = alternatives.length;
  const routes = new Int32Array(count * width);
  const barred = new Float32Array(count * width);
  alternatives.forEach((numbers, decision) => {
    for (let i = 0; i < width; i++) {
      routes[decision * width + i] = numbers[i] ?? numbers[0];
      if (i >= numbers.length) barred[decision * width + i] = BARRED;
    }
  });
  return {
    decision_routes: tensor("int32", [count, width], routes),
    decision_barred: tensor("float32", [count, width], barred),
    decision_chosen: int32(chosen),
    decision_first: int32(alternatives.map(([first]) => first)),
    decision_free: tensor(
      "float32",
      [count],
      Float32Array.from(alternatives, ({ length }) => (length === 1 ? 1 : 0)),
    ),
  };
}

/** Added to the log-probability of what is no alternative; far below any real one, and finite. */
const BARRED = -1e9;
