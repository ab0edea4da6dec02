import { describeUnsavable } from "../../core/describe-unsavable.js";
import { errorMessage, invalidArgument, LlamaGymError } from "../../core/errors.js";
import { describeValue } from "../../core/format.js";
import { isValidValue, describeExpected, type Setting, type SettingTable } from "../../core/settings.js";
import { suggestNames } from "../../core/suggest.js";
import type { LossResult } from "../../models/graphs/index.js";
import type { AdvantageResult, AlgorithmDefinition, RolloutRequest, ScoredTrajectory } from "./algorithm-definition.js";
import type { Metrics } from "./learner.js";
import { usesReference } from "./check-model.js";
import { TOKEN_INPUTS } from "./shared/loss-nodes.js";

/** What a field of a definition must be, if it is there. */
type FieldType = "text" | "function" | "boolean" | "object";

/** What `defineAlgorithm` reads of any definition. */
const COMMON_FIELDS = {
  name: "text",
  title: "text",
  settings: "object",
  resolve: "function",
  critic: "boolean",
} as const;

const FIELDS: Readonly<Record<keyof AlgorithmDefinition<SettingTable, object, unknown, unknown>, FieldType>> = {
  ...COMMON_FIELDS,
  hasTurnAdvantages: "boolean",
  rollout: "function",
  klSetting: "text",
  entropy: "function",
  scoresEntropy: "function",
  hasRegularizer: "function",
  advantages: "function",
  policyMasks: "function",
  loss: "function",
  inputs: "function",
  metrics: "function",
  state: "object",
  entropyScale: "function",
  stepping: "object",
};

/** The fields of an algorithm with its own update. */
const CUSTOM_FIELDS: Readonly<Record<string, FieldType>> = { ...COMMON_FIELDS, create: "function" };

const STATE_FIELDS: Readonly<Record<keyof NonNullable<AnyDefinition["state"]>, FieldType>> = {
  initial: "function",
  update: "function",
  afterStep: "function",
  metrics: "function",
};

const STEPPING_FIELDS: Readonly<Record<keyof NonNullable<AnyDefinition["stepping"]>, FieldType>> = {
  epochs: "function",
  shouldStep: "function",
  shouldStop: "function",
  trainableFilter: "function",
};

/** The fields that must be there, of those that a definition may have. */
const REQUIRED_FIELDS = ["name", "settings", "rollout", "advantages", "loss", "create", "initial"];

const RESULT_FIELDS: Readonly<Record<keyof AdvantageResult, true>> = {
  advantages: true,
  returns: true,
  units: true,
  teacherLogProbs: true,
  metrics: true,
  state: true,
};

const SETTING_TYPES: readonly Setting["type"][] = ["number", "choice", "boolean", "text", "list"];

type AnyDefinition = AlgorithmDefinition<SettingTable, object, unknown, unknown>;

/**
 * Checks an algorithm's definition. @throws INVALID_ARGUMENT for an unknown or missing field, and
 * for a setting that could be neither validated nor documented.
 */
export function checkDefinition(definition: object): void {
  const { name } = definition as Partial<AnyDefinition>;
  const owner = typeof name === "string" && name !== "" ? `The algorithm ${name}` : "The algorithm";
  checkFields(owner, definition, "create" in definition ? CUSTOM_FIELDS : FIELDS);
  const { settings, klSetting, state, stepping } = definition as AnyDefinition;
  if (!/^[A-Za-z][\w.+-]*$/.test(name!))
    throw invalidArgument(
      `${owner}: its name must be a letter, then letters, digits and any of _ . + -, got ${describeValue(name)}.`,
    );
  for (const [setting, declaration] of Object.entries(settings)) checkDeclaration(owner, setting, declaration);
  if (klSetting !== undefined && !Object.hasOwn(settings, klSetting))
    throw invalidArgument(
      `${owner}: \`klSetting\` must be one of its settings, got ${describeValue(klSetting)}. ${suggestNames(klSetting, Object.keys(settings))}`,
    );
  if (state !== undefined) checkFields(`${owner}: \`state\``, state, STATE_FIELDS);
  if (stepping !== undefined) checkFields(`${owner}: \`stepping\``, stepping, STEPPING_FIELDS);
}

function checkFields(owner: string, given: object, fields: Readonly<Record<string, FieldType>>): void {
  checkFieldNames(`${owner} has a field`, given, fields);
  const values = given as Readonly<Record<string, unknown>>;
  for (const [field, type] of Object.entries(fields)) {
    const value = values[field];
    if (value === undefined && !REQUIRED_FIELDS.includes(field)) continue;
    const isValid =
      type === "text"
        ? typeof value === "string" && value !== ""
        : typeof value === type && value !== null && !Array.isArray(value);
    const expected = type === "text" ? "a non-empty string" : type === "object" ? "an object" : `a ${type}`;
    if (!isValid) throw invalidArgument(`${owner} needs \`${field}\`: ${expected}, got ${describeValue(value)}.`);
  }
}

/** @throws INVALID_ARGUMENT, which begins with `subject`, for a field that is not known. */
function checkFieldNames(subject: string, given: object, fields: object): void {
  const unknown = Object.keys(given).find((field) => !Object.hasOwn(fields, field));
  if (unknown !== undefined)
    throw invalidArgument(
      `${subject} ${JSON.stringify(unknown)}, which nothing reads. ${suggestNames(unknown, Object.keys(fields))}`,
    );
}

function checkDeclaration(owner: string, name: string, declaration: unknown): void {
  const setting = declaration as Partial<Setting> | null | undefined;
  if (!/^[a-z][A-Za-z0-9]*$/.test(name))
    throw invalidArgument(`${owner}: its setting ${JSON.stringify(name)} must be in camelCase, such as batchSize.`);
  if (setting?.type === undefined || !SETTING_TYPES.includes(setting.type))
    throw invalidArgument(
      `${owner}: its setting ${name} must be declared as settings.number({ default, description }), or with integer, choice, boolean, text or list, got ${describeValue(declaration)}.`,
    );
  if (typeof setting.description !== "string" || setting.description.trim() === "")
    throw invalidArgument(`${owner}: its setting ${name} needs a description, which help and docs show.`);
  if (setting.default !== undefined && !isValidValue(setting.default, setting as Setting))
    throw invalidArgument(
      `${owner}: the default of its setting ${name} must be ${describeExpected(setting as Setting)}, got ${describeValue(setting.default)}.`,
    );
}

/**
 * Returns the definition with functions whose results are checked, so that a wrong one is an error
 * that names it, before it can train anything.
 */
export function withChecks<Definition extends Pick<AlgorithmDefinition<never, never, never, never>, "name">>(
  definition: Definition,
): Definition {
  const { rollout, advantages, loss, metrics, inputs, critic, klSetting, title, name } =
    definition as unknown as AnyDefinition;
  const owner = `The algorithm ${title ?? name}`;
  const checked: Partial<AnyDefinition> = {
    rollout: (config) =>
      checkRollout(
        owner,
        call(owner, "rollout", () => rollout(config)),
      ),
    advantages: async (trajectories, config, state) => {
      const result = await callAsync(owner, "advantages", () => advantages(trajectories, config, state));
      return checkAdvantages(owner, trajectories, result);
    },
    loss: (nodes, config) => {
      const reject = (input: string, reason: string) =>
        invalidArgument(`${owner}: its loss reads perToken(${JSON.stringify(input)}), ${reason}`);
      const perToken = (input: string) => {
        if (inputs === undefined && ![...TOKEN_INPUTS, "weights"].includes(input))
          throw reject(
            input,
            `which nothing supplies. ${suggestNames(input, TOKEN_INPUTS, "; others come from `inputs`")}`,
          );
        if (input === "oldValues" && !critic) throw reject(input, "which needs `critic: true`.");
        if (input === "refLogProbs" && !usesReference({ klSetting }, config as object))
          throw reject(input, "which are computed where the setting that `klSetting` names is above 0.");
        return nodes.perToken(input);
      };
      return checkLoss(
        owner,
        call(owner, "loss", () => loss({ ...nodes, perToken }, config)),
      );
    },
    ...(metrics && {
      metrics: (...args) =>
        checkMetrics(
          owner,
          "metrics",
          call(owner, "metrics", () => metrics(...args)),
        ),
    }),
  };
  return { ...definition, ...checked };
}

/** Calls a function of an algorithm. @throws ALGORITHM_FAILED, naming it. */
function call<Result>(owner: string, name: string, run: () => Result): Result {
  try {
    return run();
  } catch (error) {
    throw failure(owner, name, error);
  }
}

async function callAsync<Result>(owner: string, name: string, run: () => Result): Promise<Awaited<Result>> {
  try {
    return await run();
  } catch (error) {
    throw failure(owner, name, error);
  }
}

const failure = (owner: string, name: string, error: unknown): unknown =>
  error instanceof LlamaGymError
    ? error
    : new LlamaGymError("ALGORITHM_FAILED", `${owner}: its \`${name}\` threw: ${errorMessage(error)}`, {
        cause: error,
      });

function checkRollout(owner: string, request: RolloutRequest): RolloutRequest {
  const { kind } = (request ?? {}) as { readonly kind?: unknown };
  const counts = kind === "turns" ? ["turns"] : ["groups", "groupSize"];
  if (kind !== "turns" && kind !== "groups")
    throw invalidArgument(
      `${owner}: \`rollout\` must return { kind: "turns", turns } or { kind: "groups", groups, groupSize }, got ${describeValue(request)}.`,
    );
  for (const name of counts) {
    const value = (request as unknown as Readonly<Record<string, unknown>>)[name];
    if (!(Number.isSafeInteger(value) && (value as number) >= 1))
      throw invalidArgument(
        `${owner}: \`rollout\` must return an integer >= 1 as \`${name}\`, got ${describeValue(value)}. Settings have the names of its table.`,
      );
  }
  return request;
}

function checkAdvantages<State>(
  owner: string,
  trajectories: readonly ScoredTrajectory[],
  result: AdvantageResult<State>,
): AdvantageResult<State> {
  if (typeof result !== "object" || result === null)
    throw invalidArgument(
      `${owner}: \`advantages\` must return { advantages } by trajectory, turn and decision, got ${describeValue(result)}.`,
    );
  checkFieldNames(`${owner}: \`advantages\` returned`, result, RESULT_FIELDS);
  for (const name of ["advantages", "returns", "teacherLogProbs"] as const)
    if (name === "advantages" || result[name] !== undefined) checkNumbers(owner, name, trajectories, result[name]);
  const { units, metrics } = result;
  if (units !== undefined && !(Array.isArray(units) && units.length === trajectories.length))
    throw invalidArgument(
      `${owner}: \`advantages\` must return one unit (a number or undefined) for each of the ${trajectories.length} trajectories, got ${describeValue(units)}.`,
    );
  if (metrics !== undefined) checkMetrics(owner, "advantages", metrics);
  return result;
}

/** Checks that there is one finite number for each decision of each turn. */
function checkNumbers(owner: string, name: string, trajectories: readonly ScoredTrajectory[], values: unknown): void {
  const wrong = (where: string, expected: string, value: unknown) =>
    invalidArgument(`${owner}: \`${name}\`${where} must be ${expected}, got ${describeValue(value)}.`);
  if (!Array.isArray(values) || values.length !== trajectories.length)
    throw wrong("", `an array with one entry for each of the ${trajectories.length} trajectories`, values);
  trajectories.forEach(({ turns }, i) => {
    const ofTurns: unknown = values[i];
    if (!Array.isArray(ofTurns) || ofTurns.length !== turns.length)
      throw wrong(`[${i}]`, `an array with one entry for each of its ${turns.length} turns`, ofTurns);
    turns.forEach(({ oldLogProbs }, t) => {
      const ofDecisions: unknown = ofTurns[t];
      const isArray =
        Array.isArray(ofDecisions) || ofDecisions instanceof Float64Array || ofDecisions instanceof Float32Array;
      const count = oldLogProbs.length;
      if (!isArray || ofDecisions.length !== count)
        throw wrong(`[${i}][${t}]`, `an array with one number for each of its ${count} decisions`, ofDecisions);
      const bad = (ofDecisions as readonly unknown[]).findIndex((value) => !Number.isFinite(value));
      if (bad < 0) return;
      if (!trajectories.every(hasFiniteScores))
        throw new LlamaGymError(
          "TRAINING_DIVERGED",
          "The policy's log-probabilities or values are not finite, so nothing can be computed from them. Lower the learning rate, or start from an earlier checkpoint.",
        );
      throw wrong(`[${i}][${t}][${bad}]`, "a finite number", ofDecisions[bad]);
    });
  });
}

/** Whether what the model computed of a trajectory can be calculated with. */
function hasFiniteScores({ turns, bootstrapValue }: ScoredTrajectory): boolean {
  const isFinite = (values: Float64Array | undefined) => values?.every((value) => Number.isFinite(value)) ?? true;
  return (
    Number.isFinite(bootstrapValue) &&
    turns.every((turn) => isFinite(turn.oldLogProbs) && isFinite(turn.oldValues) && isFinite(turn.refLogProbs))
  );
}

function checkLoss(owner: string, result: LossResult): LossResult {
  const { loss } = (result ?? {}) as Partial<LossResult>;
  if (loss?.operation === undefined)
    throw invalidArgument(
      `${owner}: \`loss\` must return { loss }, a scalar of the graph, got ${describeNode(result, loss)}.`,
    );
  if (loss.shape.length > 0)
    throw invalidArgument(
      `${owner}: \`loss\` must return a scalar, got the shape [${loss.shape.join(", ")}]. Sum it weighted: reduceSum(mul(loss, weights)).`,
    );
  return result;
}

function describeNode(result: unknown, loss: unknown): string {
  if (typeof result !== "object" || result === null) return describeValue(result);
  return "operation" in result
    ? "the scalar itself"
    : loss === undefined
      ? "an object without it"
      : describeValue(loss);
}

function checkMetrics(owner: string, name: string, metrics: Metrics): Metrics {
  const wrong = Object.entries(metrics ?? {}).find(([, value]) => typeof value !== "number");
  if (wrong !== undefined)
    throw invalidArgument(
      `${owner}: \`${name}\` must return metrics as numbers, got ${describeValue(wrong[1])} for ${wrong[0]}.`,
    );
  return metrics;
}

/** Checks that a state is JSON, as which checkpoints keep it. @throws INVALID_ARGUMENT */
export function checkState(title: string, state: unknown): void {
  const unsavable = describeUnsavable({ state });
  if (unsavable !== undefined) throw invalidArgument(`The algorithm ${title} cannot be saved: its ${unsavable}.`);
}
