import { LlamaGymError } from "../errors.js";
import type { DecoderConfig } from "../nn/config.js";
import { ropeRegime, ropeTables } from "../nn/rope.js";
import { int32, tensor, type Tensor } from "../tensor/tensor.js";

/** Sequences that begin with the same tokens; the prefix is computed once for all of them. */
export interface SequenceGroup {
  readonly prefix: readonly number[];
  readonly rows: readonly (readonly number[])[];
}

/** A token of a row; `index` counts from the prefix's end and is below 0 within the prefix. */
export interface TokenPlace {
  readonly group: number;
  readonly row: number;
  readonly index: number;
}

/** Which final states a batch wants. */
export interface ReadStates {
  /** Inputs of a sequence graph with states "read". */
  readonly feeds: Record<string, Tensor>;
  /** For each place, the number of its state among those that the graph gives. */
  readonly select: readonly number[];
}

export interface PackedBatch {
  /** Inputs of the graphs that sequence-graph.ts builds. */
  readonly feeds: Record<string, Tensor>;
  /** Reads the states that predict the tokens at these places; undefined when one is the first of its sequence. */
  read(places: readonly TokenPlace[]): ReadStates | undefined;
}

/** Beyond every real position: keys there are seen by nobody. */
export const PADDING_POSITION = 2 ** 30;

/**
 * Lays groups of sequences flat, each token once, also those that all prefixes begin with (the root): root, prefixes and rows
 * follow one another without padding, and routes say where each head vector goes for attention, in slots
 * [groups, ..., rows, ..., tokens].
 */
export function packSequences(
  config: DecoderConfig,
  groups: readonly SequenceGroup[],
  { withPrefix = true }: { withPrefix?: boolean } = {},
): PackedBatch {
  if (!withPrefix && groups.some(({ prefix }) => prefix.length > 0)) {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      "A group has a prefix, but the graph was made without (withPrefix: false).",
    );
  }
  for (const { prefix, rows } of groups) for (const tokens of [prefix, ...rows]) checkTokens(config, tokens);
  // Rows whose rotary frequencies differ by their lengths cannot read the same prefix: each gets its own.
  const laid = groups.map((group) => (agreeOnFrequencies(config, [group]) ? group : withoutPrefix(group)));
  const root = agreeOnFrequencies(config, laid) ? rootLength(laid) : 0;
  const packed = layFlat(config, laid, { root, shortest: withPrefix ? 1 : 0 });
  const moved = groups.map((group, i) => (laid[i] === group ? 0 : group.prefix.length));
  const read = (places: readonly TokenPlace[]) =>
    packed.read(places.map(({ group, row, index }) => ({ group, row, index: index + moved[group] })));
  return { ...packed, read };
}

/** Throws INVALID_ARGUMENT for a token that the model does not have. */
export function checkTokens({ vocabSize }: DecoderConfig, tokens: readonly number[]): void {
  const odd = tokens.find((token) => !Number.isInteger(token) || token < 0 || token >= vocabSize);
  if (odd === undefined) return;
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `Token ${odd} is not one of the model's ${vocabSize} (0 to ${vocabSize - 1}).`,
  );
}

/** How many first tokens two sequences share. */
export function commonLength(a: readonly number[], b: readonly number[]): number {
  const end = Math.min(a.length, b.length);
  let length = 0;
  while (length < end && a[length] === b[length]) length++;
  return length;
}

/** How many first tokens the prefixes of several groups share. */
export function rootLength([first, ...others]: readonly SequenceGroup[]): number {
  if (others.length === 0) return 0;
  return Math.min(...others.map(({ prefix }) => commonLength(first.prefix, prefix)));
}

/** Whether the rows' rotary frequencies, which may depend on their lengths, are the same. */
function agreeOnFrequencies({ ropes }: DecoderConfig, groups: readonly SequenceGroup[]): boolean {
  const lengths = groups.flatMap(({ prefix, rows }) => rows.map((row) => prefix.length + row.length));
  return ropeRegime(ropes, Math.min(...lengths)) === ropeRegime(ropes, Math.max(...lengths));
}

function withoutPrefix({ prefix, rows }: SequenceGroup): SequenceGroup {
  return { prefix: [], rows: rows.map((row) => [...prefix, ...row]) };
}

/**
 * `root` tokens are common to all prefixes. It and the rest of the prefixes have slots for at least `shortest` tokens, empty ones
 * if need be.
 */
function layFlat(
  config: DecoderConfig,
  groups: readonly SequenceGroup[],
  { root, shortest }: { readonly root: number; readonly shortest: number },
): PackedBatch {
  const rootSlots = Math.max(shortest, root);
  const prefixLength = Math.max(shortest, ...groups.map(({ prefix }) => prefix.length - root));
  const rowCount = Math.max(1, ...groups.map(({ rows }) => rows.length));
  const rowLength = Math.max(1, ...groups.flatMap(({ rows }) => rows.map((row) => row.length)));

  const tokens: number[] = [];
  const positions: number[] = [];
  const lengths: number[] = [];
  /** Puts tokens down from a position on, those of sequences of at most so many tokens; gives the number of the first. */
  const put = (added: readonly number[], position: number, length: number): number => {
    const start = tokens.length;
    added.forEach((token, i) => {
      tokens.push(token);
      positions.push(position + i);
      lengths.push(length);
    });
    return start;
  };
  const longestOf = ({ prefix, rows }: SequenceGroup) => prefix.length + Math.max(0, ...rows.map((row) => row.length));
  put(groups[0]?.prefix.slice(0, root) ?? [], 0, Math.max(0, ...groups.map(longestOf)));
  const starts = groups.map((group) => {
    const { prefix, rows } = group;
    return {
      prefix: put(prefix.slice(root), root, longestOf(group)),
      rows: rows.map((row) => put(row, prefix.length, prefix.length + row.length)),
    };
  });
  const full =
    root === rootSlots &&
    groups.every(
      ({ prefix, rows }) =>
        prefix.length === root + prefixLength &&
        rows.length === rowCount &&
        rows.every((row) => row.length === rowLength),
    );
  // One dummy token stands in every empty slot: nobody sees it and nothing is read from it.
  const dummy = tokens.length;
  if (!full) {
    tokens.push(0);
    positions.push(0);
    lengths.push(1);
  }

  const rootAt = (i: number) => (i < root ? i : dummy);
  const prefixAt = (group: number, i: number) =>
    root + i < groups[group].prefix.length ? starts[group].prefix + i : dummy;
  const rowAt = (group: number, row: number, i: number) =>
    i < (groups[group].rows[row]?.length ?? 0) ? starts[group].rows[row] + i : dummy;

  const slotsOf = (heads: number) => [
    ...headSlots(config, heads, { groups: 1, rows: 1, tokens: rootSlots }, (_group, _row, i) => rootAt(i)),
    ...headSlots(config, heads, { groups: groups.length, rows: 1, tokens: prefixLength }, (group, _, i) =>
      prefixAt(group, i),
    ),
    ...headSlots(config, heads, { groups: groups.length, rows: rowCount, tokens: rowLength }, rowAt),
  ];
  const keyPositions = (count: number, at: (slot: number) => number) =>
    Int32Array.from({ length: count }, (_, slot) => (at(slot) === dummy ? PADDING_POSITION : positions[at(slot)]));

  const feeds: Record<string, Tensor> = {
    tokens: int32(tokens),
    root_positions: tensor("int32", [1, 1, rootSlots], keyPositions(rootSlots, rootAt)),
    prefix_positions: tensor(
      "int32",
      [groups.length, 1, prefixLength],
      keyPositions(groups.length * prefixLength, (slot) =>
        prefixAt(Math.floor(slot / prefixLength), slot % prefixLength),
      ),
    ),
    row_positions: tensor(
      "int32",
      [groups.length, rowCount, rowLength],
      keyPositions(groups.length * rowCount * rowLength, (slot) =>
        rowAt(Math.floor(slot / (rowCount * rowLength)), Math.floor(slot / rowLength) % rowCount, slot % rowLength),
      ),
    ),
    ...route("query", slotsOf(config.heads), tokens.length * config.heads),
    ...route("key", slotsOf(config.keyValueHeads), tokens.length * config.keyValueHeads),
    ...positionFeeds(config, positions, lengths),
  };
  /** The flat token that predicts a place; -1 for the first token of a sequence. */
  const predictor = ({ group, row, index }: TokenPlace): number => {
    if (index > 0) return starts[group].rows[row] + index - 1;
    const before = groups[group].prefix.length + index - 1;
    if (before < 0) return -1;
    return before < root ? before : starts[group].prefix + before - root;
  };
  const read = (places: readonly TokenPlace[]): ReadStates | undefined => {
    const flat = places.map(predictor);
    if (flat.includes(-1)) return undefined;
    return readStates(config, { flat, places, positions, groups: groups.length, rows: rowCount });
  };
  return { feeds, read };
}

/**
 * The states to be read, each once, and their places among the queries of the last layer, by rows: one that stands in a prefix
 * asks as part of a row, whose own keys it does not see since they come later. A last state that nobody reads stands in empty
 * slots and for all tokens that are not read.
 */
function readStates(
  config: DecoderConfig,
  {
    flat,
    places,
    positions,
    groups,
    rows,
  }: {
    readonly flat: readonly number[];
    readonly places: readonly TokenPlace[];
    readonly positions: readonly number[];
    readonly groups: number;
    readonly rows: number;
  },
): ReadStates {
  const numbers = new Map<number, number>();
  const byRow: number[][] = Array.from({ length: groups * rows }, () => []);
  flat.forEach((token, i) => {
    if (numbers.has(token)) return;
    byRow[places[i].group * rows + places[i].row].push(numbers.size);
    numbers.set(token, numbers.size);
  });
  const tokens = [...numbers.keys()];
  const nobody = tokens.length;
  const most = Math.max(...byRow.map((own) => own.length));
  // The state of nobody needs an empty slot: it would get the gradient of whatever else stood in its place.
  const length = byRow.every((own) => own.length === most) ? most + 1 : most;
  const readAt = (group: number, row: number, i: number) => byRow[group * rows + row][i] ?? nobody;
  const slots = headSlots(config, config.heads, { groups, rows, tokens: length }, readAt);
  const inverse = new Int32Array(positions.length).fill(nobody);
  tokens.forEach((token, number) => (inverse[token] = number));
  const positionAt = (slot: number) => {
    const number = byRow[Math.floor(slot / length)][slot % length];
    return number === undefined ? PADDING_POSITION : positions[tokens[number]];
  };
  return {
    feeds: {
      read_tokens: int32([...tokens, 0]),
      read_tokens_inverse: tensor("int32", [positions.length], inverse),
      read_positions: tensor(
        "int32",
        [groups, rows, length],
        Int32Array.from({ length: groups * rows * length }, (_, slot) => positionAt(slot)),
      ),
      ...route("read", slots, (nobody + 1) * config.heads),
    },
    select: flat.map((token) => numbers.get(token)!),
  };
}

/**
 * Which head vector stands in each slot [groups, keyValueHeads, rows, heads per key head, tokens]; `flatToken` gives the flat
 * token of a place.
 */
export function headSlots(
  { keyValueHeads }: Pick<DecoderConfig, "keyValueHeads">,
  heads: number,
  { groups, rows, tokens }: { readonly groups: number; readonly rows: number; readonly tokens: number },
  flatToken: (group: number, row: number, token: number) => number,
): number[] {
  const perKey = heads / keyValueHeads;
  const slots: number[] = [];
  for (let group = 0; group < groups; group++) {
    for (let keyHead = 0; keyHead < keyValueHeads; keyHead++) {
      for (let row = 0; row < rows; row++) {
        for (let query = 0; query < perKey; query++) {
          const head = keyHead * perKey + query;
          for (let i = 0; i < tokens; i++) slots.push(flatToken(group, row, i) * heads + head);
        }
      }
    }
  }
  return slots;
}

/** A route into slots and back, as inputs of the graph; a row given twice goes back from its first slot. */
export function route(name: string, slots: readonly number[], rows: number): Record<string, Tensor> {
  const inverse = new Int32Array(rows);
  for (let slot = slots.length - 1; slot >= 0; slot--) inverse[slots[slot]] = slot;
  return { [`${name}_slots`]: int32(slots), [`${name}_inverse`]: tensor("int32", [rows], inverse) };
}

/** Rotary tables of each token, and its position for models that learned an embedding for each. */
export function positionFeeds(
  config: DecoderConfig,
  positions: readonly number[],
  lengths: readonly number[],
): Record<string, Tensor> {
  const feeds: Record<string, Tensor> = {};
  config.ropes.forEach((rope, i) => {
    const half = rope.rotaryDim / 2;
    const { cos, sin } = ropeTables(rope, positions, lengths);
    feeds[`cos_${i}`] = tensor("float32", [positions.length, half], cos);
    feeds[`sin_${i}`] = tensor("float32", [positions.length, half], sin);
  });
  if (config.names.positions !== undefined) feeds.positions = int32(positions);
  return feeds;
}
