import { invalidArgument } from "../../core/errors.js";
import { int32, tensor, type Tensor } from "../../engine/tensor/index.js";
import { fixedFrequencyLength, type DecoderConfig } from "../../engine/nn/index.js";
import {
  packSharedPrefixes,
  checkTokens,
  type PrefixLayout,
  type SelectedToken,
  type TokenBatch,
} from "../../models/graphs/index.js";
import { defaultMicroBatchTokens } from "../../models/weights/index.js";
import { type ForwardBackwardRequest, type TrainingDatum, toDense } from "../../tinker/wire/index.js";
import { TINKER_LOSSES, type TinkerLoss } from "./losses.js";

/** A datum with its inputs checked. */
interface CheckedDatum {
  readonly tokens: readonly number[];
  /** Shape of the targets: [tokens] or [tokens, targets of each]. */
  readonly shape: readonly number[];
  /** Targets, one after another. */
  readonly targets: ArrayLike<number>;
  /** Inputs of the loss by name, each as many as targets. */
  readonly inputs: Readonly<Record<string, ArrayLike<number>>>;
}

/** A training pass with its inputs checked. */
export interface TrainingPass {
  readonly loss: TinkerLoss;
  readonly lossName: string;
  readonly data: readonly CheckedDatum[];
}

/** A part of a training pass that goes through the model at once. */
export interface PassPart {
  readonly batch: TokenBatch;
  readonly inputs: Readonly<Record<string, Tensor>>;
  /**
   * For each selected token, the cells of the targets that it stands for: pairs of datum and index.
   */
  readonly cells: readonly (readonly (readonly [datum: number, index: number])[])[];
}

/**
 * Values in float32 that the logits of a pass may take: with a trained output matrix, several
 * copies are kept.
 */
const MAX_LOGITS = 2 ** 27;

/**
 * Checks a training pass. @throws INVALID_ARGUMENT naming the datum and the input that is wrong.
 */
export function checkPass(request: ForwardBackwardRequest, config: DecoderConfig): TrainingPass {
  const { lossFn: lossName, lossFnConfig, data } = request;
  if (!Object.hasOwn(TINKER_LOSSES, lossName)) {
    const advice =
      lossName === "stable_reinforce"
        ? "It is not published; use loss_fn=importance_sampling, ppo or cispo."
        : `Available: ${Object.keys(TINKER_LOSSES).join(", ")}.`;
    throw invalidArgument(`There is no loss "${lossName}". ${advice}`);
  }
  const loss = TINKER_LOSSES[lossName];
  const settings = { ...loss.optional };
  for (const [name, value] of Object.entries(lossFnConfig)) {
    // Weights belong to targets and have no default for all of them.
    const isKnown = Object.hasOwn(loss.optional, name) && name !== "weights";
    if (!isKnown || typeof value !== "number" || !Number.isFinite(value))
      throw invalidArgument(
        `The loss ${lossName} has no setting ${name} = ${JSON.stringify(value)}. Settings: ${Object.keys(settings).join(", ") || "none"}, finite numbers.`,
      );
    settings[name] = value;
  }
  if (data.length === 0) throw invalidArgument("A training pass needs at least one datum.");
  return { loss, lossName, data: data.map((datum, i) => checkDatum(datum, i, loss, lossName, settings, config)) };
}

function checkDatum(
  { tokens, lossFnInputs }: TrainingDatum,
  index: number,
  loss: TinkerLoss,
  lossName: string,
  settings: Readonly<Record<string, number>>,
  config: DecoderConfig,
): CheckedDatum {
  const where = `Datum ${index}`;
  if (tokens.length === 0 || tokens.length > config.maxPositions)
    throw invalidArgument(`${where} has ${tokens.length} tokens; the model takes 1 to ${config.maxPositions}.`);
  checkTokens(config, tokens);
  const { target_tokens: target, ...others } = lossFnInputs;
  if (target === undefined) throw invalidArgument(`${where} lacks \`target_tokens\`.`);
  const { shape } = target;
  if (shape.length > 2 || shape[0] !== tokens.length || (shape.length === 2 && !loss.isLinear))
    throw invalidArgument(
      `${where} has \`target_tokens\` of shape [${shape.join(", ")}] for ${tokens.length} input tokens; ` +
        `expected [${tokens.length}]${loss.isLinear ? ` or [${tokens.length}, K]` : ""}.`,
    );
  const targets = toDense(target);
  checkTokens(config, Array.from(targets));
  const allowed = [...loss.required, ...Object.keys(loss.optional)];
  const unknown = Object.keys(others).find((name) => !allowed.includes(name));
  if (unknown !== undefined)
    throw invalidArgument(
      `${where} has the input \`${unknown}\`, which the loss ${lossName} does not use. Inputs: target_tokens, ${allowed.join(", ")}.`,
    );
  const inputs: Record<string, ArrayLike<number>> = {};
  for (const name of allowed) {
    const given = others[name];
    if (given === undefined && loss.required.includes(name)) throw invalidArgument(`${where} lacks \`${name}\`.`);
    if (given !== undefined && given.shape.join() !== shape.join())
      throw invalidArgument(
        `${where} has \`${name}\` of shape [${given.shape.join(", ")}]; expected that of the targets, [${shape.join(", ")}].`,
      );
    const values = given === undefined ? new Float32Array(targets.length).fill(settings[name]) : toDense(given);
    if (Array.from(values).some((value) => !Number.isFinite(value)))
      throw invalidArgument(`${where} has a value in \`${name}\` that is not a finite number.`);
    inputs[name] = name === loss.normalized ? normalize(values) : values;
  }
  return { tokens, shape, targets, inputs };
}

/** Returns 1 / n for each of n values that are not 0. */
function normalize(mask: ArrayLike<number>): Float32Array {
  const values = Float32Array.from(mask, (value) => (value === 0 ? 0 : 1));
  const count = values.reduce((sum, value) => sum + value, 0);
  return values.map((value) => (count === 0 ? 0 : value / count));
}

/**
 * Splits a pass into parts that fit into memory, in which tokens that sequences begin with are
 * computed once.
 */
export function* splitPass({ data, loss }: TrainingPass, config: DecoderConfig): Generator<PassPart> {
  const targetsPerToken = Math.max(...data.map(countTargetsPerToken));
  const fitting = Math.min(defaultMicroBatchTokens(config), Math.floor(MAX_LOGITS / config.vocabSize));
  const microBatchTokens = Math.max(1, Math.floor(fitting / targetsPerToken));
  const items = data.map(({ tokens }) => [tokens]);
  // Beyond this length the states of a prefix depend on the length of the row.
  const maxSharedLength = fixedFrequencyLength(config.ropes);
  const sharesStates = data.every(({ tokens }) => tokens.length <= maxSharedLength);
  for (const { indices, groups, positions } of packSharedPrefixes(items, { microBatchTokens, config })) {
    const part = new PartBuilder(loss, Object.keys(data[0].inputs), sharesStates);
    indices.forEach((datum, i) => part.add(datum, i, data[datum], positions[i]));
    yield part.build(groups);
  }
}

/** Returns the mean number of different targets of a position, each of which takes logits. */
function countTargetsPerToken({ tokens, targets, shape: [, width = 1] }: CheckedDatum): number {
  if (width === 1) return 1;
  let count = 0;
  for (let start = 0; start < targets.length; start += width)
    count += new Set(Array.from({ length: width }, (_, k) => targets[start + k])).size;
  return count / tokens.length;
}

/** Selects the targets of a part. */
class PartBuilder {
  private readonly selected: SelectedToken[] = [];
  private readonly cells: [number, number][][] = [];
  private readonly rows: number[] = [];
  private readonly columns: Readonly<Record<string, number[]>>;
  /** For each target of a state, the selected token that it is. */
  private readonly known = new Map<string, number>();

  constructor(
    private readonly loss: TinkerLoss,
    inputNames: readonly string[],
    /** Whether rows of a group have equal states in its prefix. */
    private readonly sharesStates: boolean,
  ) {
    this.columns = Object.fromEntries(inputNames.map((name) => [name, []]));
  }

  /** Adds the targets of a datum; `member` is its number in the part. */
  add(
    datum: number,
    member: number,
    { tokens, targets, inputs, shape }: CheckedDatum,
    { group, row, prefix }: PrefixLayout["positions"][number],
  ): void {
    const [, width = 1] = shape;
    const { isLinear, activity } = this.loss;
    for (let position = 0; position < tokens.length; position++) {
      const index = position + 1 - prefix;
      // All rows of a group share the states of its prefix.
      const state = `${group} ${this.sharesStates && index <= 0 ? "" : row} ${index}`;
      for (let k = 0; k < width; k++) {
        const cell = position * width + k;
        const target = targets[cell];
        const key = `${state} ${target}`;
        const found = this.known.get(key);
        const isActive = activity.length === 0 || activity.some((name) => inputs[name][cell] !== 0);
        if (found !== undefined && (isLinear || !isActive)) {
          // Equal targets of a state, such as those of a prompt that several data share, are
          // computed once.
          this.cells[found].push([datum, cell]);
          if (isLinear) this.columns.weights[found] += inputs.weights[cell];
          continue;
        }
        if (found === undefined) this.known.set(key, this.selected.length);
        this.selected.push({ group, row, index, target });
        this.cells.push([[datum, cell]]);
        this.rows.push(member);
        for (const [name, column] of Object.entries(this.columns)) column.push(inputs[name][cell]);
      }
    }
  }

  build(groups: TokenBatch["groups"]): PassPart {
    const { selected, cells, columns, rows } = this;
    const inputs: Record<string, Tensor> = {};
    for (const [name, column] of Object.entries(columns))
      inputs[name] = tensor("float32", [column.length], Float32Array.from(column));
    if (this.loss.normalized !== undefined) inputs.rows = int32(rows);
    return { batch: { groups, selected }, inputs, cells };
  }
}
