import { BARRED } from "../../graph/index.js";
import type { SelectedToken, TokenBatch } from "../../models/training-graph.js";
import type { Turn } from "../../rollout/turn.js";
import { int32, tensor, type Tensor } from "../../tensor/tensor.js";
import type { LaidRows } from "./rows.js";

/** What of a turn a batch needs. A prompt without a reply asks only for the value of its state. */
export type TurnTokens = Pick<Turn, "prompt" | "tokens" | "allowed" | "scored">;

/** Something that the policy chose: the number of its turn in the batch and its place in the reply. */
export interface Decision {
  readonly turn: number;
  readonly token: number;
}

/** Something that could be chosen: its score is weight * (sum of the log-probabilities of its selected tokens). */
export interface Alternative {
  /** Numbers of selected tokens. */
  readonly tokens: readonly number[];
  readonly weight: number;
}

/** Turns as one forward pass wants them. */
export interface TurnBatch {
  readonly decisions: readonly Decision[];
  readonly tokens: TokenBatch;
  /** For each decision all that could be chosen; of a free token (see isFree) that token alone: its score is its log-probability. */
  readonly alternatives: readonly (readonly Alternative[])[];
  /** For each decision, which of its alternatives was chosen. */
  readonly chosen: readonly number[];
  /**
   * For each decision, whether the log-probability of its one alternative is already that of the choice: among the whole
   * vocabulary, or among the many tokens that the selected token names.
   */
  readonly isFree: readonly boolean[];
  /** Whether tokens are selected among some of the vocabulary, which graphs must be made for. */
  readonly hasSets: boolean;
}

/**
 * Tokens that are each scored as an alternative; of more, the choice is scored in one row of logits, by the set of its tokens.
 * Few alternatives are few rows, which turns in the same state share, and need no mask over the vocabulary.
 */
const MOST_ALTERNATIVES = 16;

/**
 * The decisions of a turn: the places of its reply where there was something to choose. The first counts in any case, since
 * the turn's value is read there. An action drawn by its score is one decision.
 */
export function decisionsOf({ tokens, allowed, scored }: Pick<Turn, "tokens" | "allowed" | "scored">): number[] {
  if (scored !== undefined) return [0];
  return tokens.flatMap((_, i) => (i === 0 || allowed === undefined || allowed[i].length > 1 ? [i] : []));
}

/** The token sequences that a turn's decisions need: as far as the last token that predicts something. */
export function sequencesOf(turn: TurnTokens): number[][] {
  const { prompt, tokens, scored } = turn;
  if (scored !== undefined) return scored.candidates.map((candidate) => [...prompt, ...candidate.slice(0, -1)]);
  return [[...prompt, ...tokens.slice(0, decisionsOf(turn).at(-1) ?? 0)]];
}

/** Lays turns out, their sequences as `laid` says; each token that turns have in common is computed once. */
export function layTurns(turns: readonly TurnTokens[], laid: LaidRows, temperature = 1): TurnBatch {
  const sequences = turns.map(sequencesOf);
  const tokens = new SelectedTokens();
  const batch = { decisions: [] as Decision[], alternatives: [] as Alternative[][], chosen: [] as number[] };
  const isFree: boolean[] = [];
  let first = 0;
  turns.forEach((turn, number) => {
    const places = laid.places.slice(first, (first += sequences[number].length));
    const { prompt, scored, allowed } = turn;
    const at = (place: number, token: number) => ({
      ...places[place],
      index: prompt.length + token - places[place].prefix,
    });
    const choose = (token: number, alternatives: Alternative[], chosen: number) => {
      batch.decisions.push({ turn: number, token });
      batch.alternatives.push(alternatives);
      batch.chosen.push(chosen);
      isFree.push(false);
    };
    const say = (token: number, selected: number) => {
      choose(token, [{ tokens: [selected], weight: 1 }], 0);
      isFree[isFree.length - 1] = true;
    };
    if (scored !== undefined) {
      const alternatives = scored.candidates.map((candidate, i) => ({
        tokens: candidate.map((target, token) => tokens.selectOnce({ ...at(i, token), target })),
        weight: scored.weights[i],
      }));
      return choose(0, alternatives, scored.chosen);
    }
    for (const token of turn.tokens.length === 0 ? [0] : decisionsOf(turn)) {
      // A state whose value alone is asked for has no next token; any stands for it.
      const taken = turn.tokens.at(token) ?? 0;
      const among = allowed?.[token];
      if (among === undefined || among.length > MOST_ALTERNATIVES) {
        const selected = { ...at(0, token), target: taken, among };
        say(token, among === undefined ? tokens.select(selected) : tokens.selectOnce(selected));
        continue;
      }
      const targets = [...among];
      const alternatives = targets.map((target) => ({
        tokens: [tokens.selectOnce({ ...at(0, token), target })],
        weight: 1,
      }));
      choose(token, alternatives, targets.indexOf(taken));
    }
  });
  // Scores of actions are tempered as a whole.
  const ownTemperature = turns.some(({ scored }) => scored !== undefined) ? 1 : temperature;
  return {
    ...batch,
    isFree,
    hasSets: tokens.list.some(({ among }) => among !== undefined),
    tokens: { groups: laid.groups, selected: tokens.list, temperature: ownTemperature },
  };
}

/** Selected tokens of a batch, as they come. */
class SelectedTokens {
  readonly list: SelectedToken[] = [];
  private readonly numbers = new Map<string, number>();
  private readonly sets = new Map<Int32Array, number>();

  select({ group, row, index, target, among }: SelectedToken): number {
    return this.list.push({ group, row, index, target, among }) - 1;
  }

  /** Alternatives of turns in the same state are the same token of the same place. */
  selectOnce(token: SelectedToken): number {
    const { group, row, index, target, among } = token;
    const key = `${group},${row},${index},${target},${among === undefined ? "" : this.setNumber(among)}`;
    let number = this.numbers.get(key);
    if (number === undefined) this.numbers.set(key, (number = this.select(token)));
    return number;
  }

  private setNumber(tokens: Int32Array): number {
    const number = this.sets.get(tokens) ?? this.sets.size;
    this.sets.set(tokens, number);
    return number;
  }
}

/** The numbers of each turn's decisions. */
export function decisionsByTurn({ decisions }: TurnBatch): number[][] {
  const byTurn: number[][] = [];
  decisions.forEach(({ turn }, decision) => (byTurn[turn] ??= []).push(decision));
  return byTurn;
}

/** The inputs of `decisionNodes` for a batch in which replies were held to choices, or actions were drawn by their scores. */
export function choiceFeeds({ alternatives, chosen, isFree }: TurnBatch): Record<string, Tensor> {
  const count = alternatives.length;
  const width = Math.max(1, ...alternatives.map(({ length }) => length));
  const depth = Math.max(1, ...alternatives.flatMap((all) => all.map(({ tokens }) => tokens.length)));
  const routes = new Int32Array(count * width * depth);
  const weights = new Float32Array(count * width * depth);
  const barred = new Float32Array(count * width).fill(BARRED);
  alternatives.forEach((all, decision) =>
    all.forEach(({ tokens, weight }, i) => {
      const cell = decision * width + i;
      barred[cell] = 0;
      routes.set(tokens, cell * depth);
      weights.fill(weight, cell * depth, cell * depth + tokens.length);
    }),
  );
  return {
    decision_routes: tensor("int32", [count, width, depth], routes),
    decision_weights: tensor("float32", [count, width, depth], weights),
    decision_barred: tensor("float32", [count, width], barred),
    decision_chosen: int32(chosen),
    decision_first: int32(alternatives.map(([first]) => first.tokens[0])),
    decision_free: tensor(
      "float32",
      [count],
      Float32Array.from(isFree, (free) => (free ? 1 : 0)),
    ),
  };
}
