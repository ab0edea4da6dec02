import { MASKED_LOGIT } from "../../../engine/graph/index.js";
import {
  paysOffAsHead,
  type SelectedToken,
  type TokenBatch,
  type PrefixLayout,
  type TokenPosition,
} from "../../../models/graphs/index.js";
import type { Turn } from "../../rollout/trajectory.js";
import { int32, tensor, type Tensor } from "../../../engine/tensor/index.js";

/** The tokens of a turn. A prompt without a completion yields only the value of its state. */
export type TurnTokens = Pick<Turn, "prompt" | "tokens" | "allowedTokens" | "hasKeptTokens" | "actionCandidates">;

/**
 * A choice of the policy: the index of its turn in the batch and of its token in the completion.
 */
export interface Decision {
  readonly turn: number;
  readonly token: number;
}

/**
 * A possible choice, with the score weight * (sum of the log-probabilities of its selected tokens).
 */
export interface Alternative {
  /** Indices of selected tokens. */
  readonly tokens: readonly number[];
  readonly weight: number;
}

/** Turns as inputs of one forward pass. */
export interface TurnBatch {
  readonly decisions: readonly Decision[];
  readonly tokens: TokenBatch;
  /** The alternatives of each decision; of an unconstrained one only the chosen token. */
  readonly alternatives: readonly (readonly Alternative[])[];
  /** The index of each decision's chosen alternative. */
  readonly chosen: readonly number[];
  /**
   * Whether a decision's log-probability belongs to its only alternative, among the whole
   * vocabulary or the allowed tokens of its selected token.
   */
  readonly isUnconstrained: readonly boolean[];
  /** Whether selected tokens have allowed tokens, which needs a graph with them. */
  readonly hasAllowedTokens: boolean;
}

/**
 * Returns the token indices of a completion at which several tokens were allowed; the first token
 * where none was. The turn's value is read at the first of them. A scored action is one decision.
 */
export function decisionIndices({
  tokens,
  allowedTokens,
  actionCandidates,
}: Pick<Turn, "tokens" | "allowedTokens" | "actionCandidates">): number[] {
  if (actionCandidates !== undefined) return [0];
  const indices: number[] = [];
  for (let i = 0; i < tokens.length; i++) if (allowedTokens?.[i]?.length !== 1) indices.push(i);
  return indices.length === 0 && tokens.length > 0 ? [0] : indices;
}

/** Decision sequences by the candidates of their turns. */
const candidateSequences = new WeakMap<
  readonly (readonly number[])[],
  { readonly prompt: readonly number[]; readonly sequences: readonly (readonly number[])[] }
>();

/**
 * Returns the sequences of a turn whose next tokens are its decisions. Turns with the same arrays
 * as prompt and candidates share them.
 */
export function decisionSequences(turn: TurnTokens): readonly (readonly number[])[] {
  const { prompt, tokens, actionCandidates } = turn;
  if (actionCandidates !== undefined) {
    const known = candidateSequences.get(actionCandidates.sequences);
    if (known?.prompt === prompt) return known.sequences;
    const sequences = actionCandidates.sequences.map((candidate) => [...prompt, ...candidate.slice(0, -1)]);
    candidateSequences.set(actionCandidates.sequences, { prompt, sequences });
    return sequences;
  }
  const last = decisionIndices(turn).at(-1) ?? 0;
  return [last === 0 ? prompt : [...prompt, ...tokens.slice(0, last)]];
}

/** Whether a batch's log-probabilities need the logits of few tokens only. */
export function usesHeadTokens({ tokens: { headTokens } }: TurnBatch, vocabSize: number): boolean {
  return headTokens !== undefined && paysOffAsHead(headTokens.length, vocabSize);
}

/**
 * Returns the tokens whose logits suffice for a batch, in ascending order: decisions among
 * alternatives and allowed tokens depend on no others. Undefined if some decision was not
 * constrained.
 */
function findHeadTokens(turns: readonly TurnTokens[], selected: readonly SelectedToken[]): number[] | undefined {
  const isConstrained = turns.every(
    // The log-probability of a prompt without a completion is ignored.
    (turn) =>
      turn.actionCandidates === undefined &&
      decisionIndices(turn).every((token) => turn.allowedTokens?.[token] !== undefined),
  );
  if (!isConstrained) return undefined;
  const headTokens = new Set(selected.map(({ target }) => target!));
  for (const ids of new Set(selected.map(({ allowedTokens }) => allowedTokens)))
    for (const id of ids ?? []) headTokens.add(id);
  return [...headTokens].sort((a, b) => a - b);
}

/**
 * Default number of allowed tokens up to which each is scored as an alternative, which turns in the
 * same state share; beyond it, the chosen token is scored under a mask over the vocabulary.
 */
export const MAX_ALTERNATIVES = 16;

/** Builds the batch of turns whose decision sequences have been laid out. */
export function buildTurnBatch(
  turns: readonly TurnTokens[],
  layout: PrefixLayout,
  temperature = 1,
  maxAlternatives = MAX_ALTERNATIVES,
): TurnBatch {
  const tokens = new SelectedTokenList();
  const added: AddedDecision[] = [];
  /** Alternatives of decisions that turns in the same state share. */
  const shared = new Map<string, readonly Alternative[]>();
  const candidates = new Map<readonly (readonly number[])[], SharedCandidates>();
  let start = 0;
  turns.forEach((turn, turnIndex) => {
    const positions = layout.positions.slice(start, (start += decisionSequences(turn).length));
    for (const decision of turnDecisions(turn, positions, { tokens, shared, candidates, maxAlternatives }))
      added.push({ ...decision, turn: turnIndex });
  });
  // The weights of action candidates include the temperature.
  const batchTemperature = turns.some(({ actionCandidates }) => actionCandidates !== undefined) ? 1 : temperature;
  return {
    decisions: added.map(({ turn, token }) => ({ turn, token })),
    alternatives: added.map(({ alternatives }) => alternatives),
    chosen: added.map(({ chosen }) => chosen),
    isUnconstrained: added.map(({ isUnconstrained }) => isUnconstrained),
    hasAllowedTokens: tokens.list.some(({ allowedTokens }) => allowedTokens !== undefined),
    tokens: {
      groups: layout.groups,
      selected: tokens.list,
      headTokens: findHeadTokens(turns, tokens.list),
      temperature: batchTemperature,
    },
  };
}

/** A decision with its entries in a `TurnBatch`. */
interface AddedDecision extends Decision {
  readonly alternatives: readonly Alternative[];
  readonly chosen: number;
  readonly isUnconstrained: boolean;
}

/** The alternatives of action candidates whose first sequence begins at a position. */
interface SharedCandidates {
  readonly start: PrefixLayout["positions"][number];
  readonly alternatives: readonly Alternative[];
}

/**
 * Selects the tokens of a turn's decisions; `positions` has the positions of its decision
 * sequences.
 */
function* turnDecisions(
  turn: TurnTokens,
  positions: PrefixLayout["positions"],
  {
    tokens,
    shared,
    candidates,
    maxAlternatives,
  }: {
    readonly tokens: SelectedTokenList;
    readonly shared: Map<string, readonly Alternative[]>;
    readonly candidates: Map<readonly (readonly number[])[], SharedCandidates>;
    readonly maxAlternatives: number;
  },
): Generator<Omit<AddedDecision, "turn">> {
  const { actionCandidates } = turn;
  const locate = (sequence: number, token: number): TokenPosition => ({
    ...positions[sequence],
    index: turn.prompt.length + token - positions[sequence].prefix,
  });
  if (actionCandidates !== undefined) {
    const { sequences, weights, chosen } = actionCandidates;
    const [start] = positions;
    let known = candidates.get(sequences);
    if (known?.start !== start) {
      const alternatives = sequences.map((candidate, i) => ({
        tokens: candidate.map((target, token) => tokens.select({ ...locate(i, token), target })),
        weight: weights[i],
      }));
      candidates.set(sequences, (known = { start, alternatives }));
    }
    yield { token: 0, alternatives: known.alternatives, chosen, isUnconstrained: false };
    return;
  }
  for (const token of turn.tokens.length === 0 ? [0] : decisionIndices(turn)) {
    // A prompt without a completion has no next token; its log-probability is ignored.
    const target = turn.tokens.at(token) ?? 0;
    const allowedTokens = turn.allowedTokens?.[token];
    const location = locate(0, token);
    if (allowedTokens === undefined || allowedTokens.length > maxAlternatives || turn.hasKeptTokens === true) {
      const selected = tokens.select({ ...location, target, allowedTokens });
      yield { token, alternatives: [{ tokens: [selected], weight: 1 }], chosen: 0, isUnconstrained: true };
      continue;
    }
    const key = `${location.group},${location.row},${location.index},${tokens.setId(allowedTokens)}`;
    const alternatives =
      shared.get(key) ??
      Array.from(allowedTokens, (each) => ({ tokens: [tokens.select({ ...location, target: each })], weight: 1 }));
    shared.set(key, alternatives);
    yield { token, alternatives, chosen: allowedTokens.indexOf(target), isUnconstrained: false };
  }
}

/** Collects the selected tokens of a batch. */
class SelectedTokenList {
  readonly list: SelectedToken[] = [];
  private readonly positions = new Map<string, number>();
  private readonly setIds = new Map<Int32Array, number>();

  /** Selects a token unless it is selected already: turns in the same state share their tokens. */
  select({ group, row, index, target, allowedTokens }: SelectedToken): number {
    const key = `${group},${row},${index},${target},${allowedTokens === undefined ? "" : this.setId(allowedTokens)}`;
    let position = this.positions.get(key);
    if (position === undefined) {
      position = this.list.push({ group, row, index, target, allowedTokens }) - 1;
      this.positions.set(key, position);
    }
    return position;
  }

  /** Returns the number of a set of allowed tokens, which turns share as an object. */
  setId(tokens: Int32Array): number {
    const id = this.setIds.get(tokens) ?? this.setIds.size;
    this.setIds.set(tokens, id);
    return id;
  }
}

export function decisionsByTurn({ decisions }: TurnBatch): number[][] {
  const byTurn: number[][] = [];
  decisions.forEach(({ turn }, decision) => (byTurn[turn] ??= []).push(decision));
  return byTurn;
}

/** Returns the inputs of `constrainedPolicyNodes`. */
export function constraintFeeds({ alternatives, chosen, isUnconstrained }: TurnBatch): Record<string, Tensor> {
  const count = alternatives.length;
  const width = Math.max(1, ...alternatives.map(({ length }) => length));
  const depth = Math.max(1, ...alternatives.flatMap((all) => all.map(({ tokens }) => tokens.length)));
  const tokenIndices = new Int32Array(count * width * depth);
  const weights = new Float32Array(count * width * depth);
  const mask = new Float32Array(count * width).fill(MASKED_LOGIT);
  alternatives.forEach((all, decision) =>
    all.forEach(({ tokens, weight }, i) => {
      const cell = decision * width + i;
      mask[cell] = 0;
      tokenIndices.set(tokens, cell * depth);
      weights.fill(weight, cell * depth, cell * depth + tokens.length);
    }),
  );
  return {
    decision_routes: tensor("int32", [count, width, depth], tokenIndices),
    decision_weights: tensor("float32", [count, width, depth], weights),
    decision_barred: tensor("float32", [count, width], mask),
    decision_chosen: int32(chosen),
    decision_first: int32(alternatives.map(([first]) => first.tokens[0])),
    decision_free: tensor(
      "float32",
      [count],
      Float32Array.from(isUnconstrained, (free) => (free ? 1 : 0)),
    ),
  };
}
