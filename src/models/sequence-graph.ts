import {
  addDims,
  concat,
  expand,
  gatherRows,
  input,
  mulDims,
  reshape,
  routeRows,
  size,
  split,
  type Dim,
  type Node,
} from "../graph/index.js";
import {
  attend,
  attentionShape,
  intoSlots,
  outOfSlots,
  type Route,
  type Segment,
  type Slots,
} from "../nn/attention.js";
import type { DecoderConfig } from "../nn/config.js";
import { decoder, type Positions, type ReadTokens } from "../nn/decoder.js";
import type { Scope } from "../nn/scope.js";
import { visibilityBias } from "../nn/visibility.js";

/** Inputs that say where each token stands, the same for every graph of a model. */
export function positionInputs(config: DecoderConfig, tokens: Dim): Positions {
  return {
    ropes: config.ropes.map(({ rotaryDim }, i) => ({
      cos: input(`cos_${i}`, "float32", [tokens, rotaryDim / 2]),
      sin: input(`sin_${i}`, "float32", [tokens, rotaryDim / 2]),
    })),
    ids: config.names.positions === undefined ? undefined : input("positions", "int32", [tokens]),
  };
}

interface SequenceGraphOptions {
  /** Without prefixes in the batch the graph is shorter. */
  readonly withPrefix: boolean;
  /** Whose final states are given: all tokens', [tokens, width], or those that `PackedBatch.read` names, [reads, width]. */
  readonly states: "all" | "read";
}

/** Tokens that ask together, and where each stands: [groups, rows, tokens]. */
interface Part {
  readonly slots: Slots;
  readonly positions: Node;
}

/** Keys and values, and where each of them stands: [groups, rows or 1, keys]. */
interface Seen extends Segment {
  readonly positions: Node;
}

/**
 * Final hidden states of whole sequences, as packSequences lays them out: groups of rows behind a prefix that is computed once,
 * and what all prefixes begin with, the root, computed once for all groups.
 */
export function sequenceGraph(config: DecoderConfig, scope: Scope, { withPrefix, states }: SequenceGraphOptions): Node {
  const { heads, keyValueHeads, headDim } = config;
  const [tokens, groups, rows] = ["tokens", "groups", "rows"].map(size);
  const part = (name: string, slots: Slots): Part => ({
    slots,
    positions: input(`${name}_positions`, "int32", [slots.groups, slots.rows, slots.tokens]),
  });
  const root = part("root", { groups: 1, rows: 1, tokens: size("root_tokens") });
  const prefixes = part("prefix", { groups, rows: 1, tokens: size("prefix_tokens") });
  const ownRows = part("row", { groups, rows, tokens: size("row_tokens") });
  const parts = withPrefix ? [root, prefixes, ownRows] : [ownRows];
  const slotCounts = (headCount: number) =>
    parts.map(({ slots }) => mulDims(slots.groups, slots.rows, headCount, slots.tokens));
  const routeInputs = (name: string, headCount: number): Route => ({
    slots: input(`${name}_slots`, "int32", [addDims(...slotCounts(headCount))]),
    inverse: input(`${name}_inverse`, "int32", [mulDims(tokens, headCount)]),
  });
  const queryRoute = routeInputs("query", heads);
  const keyRoute = routeInputs("key", keyValueHeads);
  const inParts = (x: Node, headCount: number, route: Route): Node[] =>
    split(intoSlots(x, headCount, headDim, route), 0, slotCounts(headCount));
  /** What stands before the rows of each group. */
  const behindRoot = (ofRoot: Node, ofPrefixes: Node): Node =>
    concat([expand(ofRoot, [groups, ...ofRoot.shape.slice(1)]), ofPrefixes], 2);
  const positionsBefore = behindRoot(root.positions, prefixes.positions);

  const positions = positionInputs(config, tokens);
  const reads = states === "read" ? readTokens(positions, tokens) : undefined;
  /** Those that ask in the last layer, where only some do. */
  const reading = part("read", { groups, rows, tokens: size("row_reads") });
  const readCount = size("reads");
  const readRoute: Route = {
    slots: input("read_slots", "int32", [mulDims(groups, rows, heads, reading.slots.tokens)]),
    inverse: input("read_inverse", "int32", [mulDims(readCount, heads)]),
  };

  return decoder(
    config,
    scope,
    input("tokens", "int32", [tokens]),
    positions,
    (q, k, v, layer, index) => {
      const ask = (queries: Node, asking: Part, segments: readonly Seen[]): Node => {
        const biases = segments.map((each) => visibilityBias(asking.positions, each.positions, layer.window));
        return attend(queries, segments, concat(biases, -1), asking.slots, attentionShape(config, layer));
      };
      const [keyParts, valueParts] = [k, v].map((x) => inParts(x, keyValueHeads, keyRoute));
      const seen = (take: (parts: readonly Node[]) => Node, positions: Node, shared: boolean): Seen => ({
        keys: take(keyParts),
        values: take(valueParts),
        positions,
        shared,
      });
      const ofRoot = ([x]: readonly Node[]) => reshape(x, [1, keyValueHeads, root.slots.tokens, headDim]);
      const ofPrefixes = ([, x]: readonly Node[]) =>
        reshape(x, [groups, keyValueHeads, prefixes.slots.tokens, headDim]);
      const ofRows = (each: readonly Node[]) =>
        reshape(each.at(-1)!, [groups, keyValueHeads, rows, ownRows.slots.tokens, headDim]);
      const before = (each: readonly Node[]) => behindRoot(ofRoot(each), ofPrefixes(each));
      // The root sees itself; a prefix what stands before the rows, which is itself behind the root; rows that and themselves.
      const shared = withPrefix ? [seen(ofRoot, root.positions, true), seen(before, positionsBefore, true)] : [];
      const seenByRows = [...shared.slice(1), seen(ofRows, ownRows.positions, false)];
      if (reads !== undefined && index === config.layers.length - 1) {
        const attended = ask(intoSlots(q, heads, headDim, readRoute), reading, seenByRows);
        return outOfSlots(attended, heads, headDim, readCount, readRoute);
      }
      const seenByParts = [...shared.map((each) => [each]), seenByRows];
      const attended = inParts(q, heads, queryRoute).map((queries, i) => ask(queries, parts[i], seenByParts[i]));
      return outOfSlots(concat(attended, 0), heads, headDim, tokens, queryRoute);
    },
    reads,
  );
}

/** The inputs that say which tokens are read; see `PackedBatch.read`. */
function readTokens(positions: Positions, tokens: Dim): ReadTokens {
  const ids = input("read_tokens", "int32", [size("reads")]);
  const inverse = input("read_tokens_inverse", "int32", [tokens]);
  return {
    pick: (x) => routeRows(x, ids, inverse),
    positions: {
      ropes: positions.ropes.map(({ cos, sin }) => ({ cos: gatherRows(cos, ids), sin: gatherRows(sin, ids) })),
      ids: undefined,
    },
  };
}
