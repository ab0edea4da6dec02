import { invalidArgument } from "../../core/errors.js";
import { int32, tensor, type Tensor } from "../../engine/tensor/index.js";
import type { DecoderConfig } from "../../engine/nn/index.js";
import { packSharedPrefixes, checkTokens, type SelectedToken, type TokenBatch } from "../../models/graphs/index.js";
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
  /** For each selected token, the cells of the targets that it stands for: pairs of datum and index. */
  readonly cells: readonly (readonly (readonly [datum: number, index: number])[])[];
}

/** Values in float32 that the logits of a pass may take: with a trained output matrix, several copies are kept. */
const MAX_LOGITS = 2 ** 27;

/** Checks a training pass. @throws INVALID_ARGUMENT naming the datum and the input that is wrong. */
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

/** Splits a pass into parts that fit into memory, in which tokens that sequences begin with are computed once. */
export function* splitPass({ data, loss }: TrainingPass, config: DecoderConfig): Generator<PassPart> {
  const targetsPerToken = Math.max(...data.map(({ shape }) => shape[1] ?? 1));
  const fitting = Math.min(defaultMicroBatchTokens(config), Math.floor(MAX_LOGITS / config.vocabSize));
  const microBatchTokens = Math.max(1, Math.floor(fitting / targetsPerToken));
  const items = data.map(({ tokens }) => [tokens]);
  for (const { indices, groups, positions } of packSharedPrefixes(items, { microBatchTokens, config })) {
    const selected: SelectedToken[] = [];
    const cells: [number, number][][] = [];
    const rows: number[] = [];
    const columns = Object.fromEntries(Object.keys(data[0].inputs).map((name) => [name, [] as number[]]));
    indices.forEach((datum, i) => {
      const { group, row, prefix } = positions[i];
      const { tokens, targets, inputs, shape } = data[datum];
      const [, width = 1] = shape;
      for (let position = 0; position < tokens.length; position++) {
        // Equal targets of a position, such as the cells that a sparse tensor leaves out, are computed once.
        const known = new Map<number, number>();
        for (let k = 0; k < width; k++) {
          const index = position * width + k;
          const target = targets[index];
          const found = known.get(target);
          if (found !== undefined) {
            cells[found].push([datum, index]);
            columns.weights[found] += inputs.weights[index];
            continue;
          }
          known.set(target, selected.length);
          selected.push({ group, row, index: position + 1 - prefix, target });
          cells.push([[datum, index]]);
          rows.push(i);
          for (const [name, column] of Object.entries(columns)) column.push(inputs[name][index]);
        }
      }
    });
    const inputs: Record<string, Tensor> = Object.fromEntries(
      Object.entries(columns).map(([name, column]) => [
        name,
        tensor("float32", [column.length], Float32Array.from(column)),
      ]),
    );
    if (loss.normalized !== undefined) inputs.rows = int32(rows);
    yield { batch: { groups, selected }, inputs, cells };
  }
}
