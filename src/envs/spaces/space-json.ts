import { z } from "zod";
import { countElements } from "../../core/numbers.js";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { isNestedDeeper, type JsonValue } from "../../core/json.js";
import { nestArray, nestedFromJson, numbersFromJson, type NestedNumbers } from "./arrays.js";
import { Box } from "./box.js";
import { BOX_DTYPES, type BoxDtype } from "./box-dtype.js";
import { Dict, Tuple } from "./composite.js";
import { Discrete } from "./discrete.js";
import { Graph } from "./graph.js";
import { MultiBinary } from "./multi-binary.js";
import { MultiDiscrete } from "./multi-discrete.js";
import { OneOf } from "./one-of.js";
import { Sequence } from "./sequence.js";
import { formatValue, type Space } from "./space.js";
import { Text } from "./text.js";

/** JSON description of a space, with Gymnasium's argument names. */
export type SpaceDescription = { readonly [name: string]: JsonValue };

/** Maximum nesting of a description (about 30 nested spaces), because its readers are recursive. */
const MAX_DEPTH = 64;
/** Spaces of a description, since each has an object and a random stream. */
const MAX_SPACES = 1000;
/** NumPy's limit. */
const MAX_DIMENSIONS = 64;
/** Characters of a Text: sampling one takes as many draws. */
const MAX_TEXT_LENGTH = 2 ** 20;
/** Different characters of a Text: those of Unicode's first plane. */
const MAX_CHARSET = 2 ** 16;
const MAX_NAME_LENGTH = 1000;

/** Describes a space as JSON; `spaceFromJson` is the inverse. */
export function spaceToJson(space: Space): SpaceDescription {
  if (space instanceof Discrete) return { type: "Discrete", n: space.n, start: space.start };
  if (space instanceof Box) {
    const { low, high, shape, dtype } = space as Box<"float64">;
    return { type: "Box", low: nestArray(low, [low.length]), high: nestArray(high, [high.length]), shape, dtype };
  }
  if (space instanceof MultiBinary) return { type: "MultiBinary", n: space.n };
  if (space instanceof MultiDiscrete) {
    const nest = (values: Int32Array) => nestArray(values, space.shape);
    return { type: "MultiDiscrete", nvec: nest(space.nvec), start: nest(space.start) };
  }
  if (space instanceof Text) {
    const { maxLength, minLength, characters } = space;
    return { type: "Text", max_length: maxLength, min_length: minLength, charset: characters.join("") };
  }
  if (space instanceof Dict)
    return { type: "Dict", spaces: space.join(space.parts.map(spaceToJson)) as SpaceDescription };
  if (space instanceof Tuple) return { type: "Tuple", spaces: space.parts.map(spaceToJson) };
  if (space instanceof OneOf) return { type: "OneOf", spaces: space.parts.map(spaceToJson) };
  if (space instanceof Sequence) return { type: "Sequence", space: spaceToJson(space.featureSpace) };
  if (space instanceof Graph) {
    const { nodeSpace, edgeSpace } = space;
    const edges = edgeSpace === undefined ? null : spaceToJson(edgeSpace);
    return { type: "Graph", node_space: spaceToJson(nodeSpace), edge_space: edges };
  }
  throw invalidArgument(`${space.toString()} has no JSON description. Use the spaces of llamagym.`);
}

/** A validated description that is not built yet. */
interface SpacePlan {
  /** Number of spaces. */
  readonly count: number;
  /** Size of a flattened member; of one element for sequences and graphs. */
  readonly elements: number;
  build(): Space;
}

const integer = z.int();
const positive = z.int().min(1);
const numbers = z
  .custom<JsonValue>((value) => numbersFromJson(value as JsonValue) !== undefined, "expected numbers")
  .transform((value) => nestedFromJson(value) as number | NestedNumbers);
const numberArray = numbers.refine((value) => typeof value === "object", "expected an array of numbers");
const countNested = (nested: number | NestedNumbers) =>
  typeof nested === "number" ? 1 : (numbersFromJson(nested as JsonValue)?.length ?? 0);

function planSpace(elements: number, build: () => Space): SpacePlan {
  return { count: 1, elements, build };
}

function planParts(parts: readonly SpacePlan[], build: (spaces: readonly Space[]) => Space): SpacePlan {
  return {
    count: parts.reduce((sum, { count }) => sum + count, 1),
    elements: parts.reduce((sum, { elements }) => sum + elements, 0),
    build: () => build(parts.map((part) => part.build())),
  };
}

const anySpace: z.ZodType<SpacePlan> = z.lazy(() => z.discriminatedUnion("type", SPACE_SCHEMAS));
const anySpaces = z.array(anySpace).max(MAX_SPACES);
const typed = <Type extends string, Fields extends z.ZodRawShape>(type: Type, fields: Fields) =>
  z.object({ type: z.literal(type), ...fields });

const SPACE_SCHEMAS = [
  typed("Discrete", { n: positive, start: integer.nullish() }).transform(({ n, start }) =>
    planSpace(n, () => new Discrete(n, { start: start ?? 0 })),
  ),
  typed("Box", {
    low: numbers,
    high: numbers,
    shape: z.array(integer.min(0)).max(MAX_DIMENSIONS).nullish(),
    dtype: z.enum(Object.keys(BOX_DTYPES) as BoxDtype[]).nullish(),
  }).transform(({ low, high, shape, dtype }) => {
    const elements = Math.max(countElements(shape ?? []), countNested(low), countNested(high));
    return planSpace(elements, () => new Box(low, high, { shape: shape ?? undefined, dtype: dtype ?? undefined }));
  }),
  typed("MultiBinary", { n: z.union([positive, z.array(positive).min(1).max(MAX_DIMENSIONS)]) }).transform(({ n }) =>
    planSpace(countElements([n].flat()), () => new MultiBinary(n)),
  ),
  typed("MultiDiscrete", { nvec: numberArray, start: numberArray.nullish() }).transform(({ nvec, start }) => {
    const sum = (numbersFromJson(nvec as JsonValue) ?? []).reduce((total, count) => total + count, 0);
    return planSpace(sum, () => new MultiDiscrete(nvec, { start: start ?? undefined }));
  }),
  typed("Text", {
    max_length: integer.max(MAX_TEXT_LENGTH),
    min_length: integer.nullish(),
    charset: z.string().max(MAX_CHARSET).nullish(),
  }).transform(({ max_length, min_length, charset }) =>
    planSpace(
      max_length,
      () => new Text(max_length, { minLength: min_length ?? undefined, charset: charset ?? undefined }),
    ),
  ),
  typed("Tuple", { spaces: anySpaces }).transform(({ spaces }) => planParts(spaces, (parts) => new Tuple(parts))),
  typed("OneOf", { spaces: anySpaces.min(1) }).transform(({ spaces }) =>
    planParts(spaces, (parts) => new OneOf(parts)),
  ),
  typed("Dict", { spaces: z.record(z.string().max(MAX_NAME_LENGTH), anySpace) }).transform(({ spaces }) => {
    const names = Object.keys(spaces);
    return planParts(
      Object.values(spaces),
      (parts) => new Dict(Object.fromEntries(names.map((name, i) => [name, parts[i]]))),
    );
  }),
  typed("Sequence", { space: anySpace }).transform(({ space }) => planParts([space], ([part]) => new Sequence(part))),
  typed("Graph", { node_space: anySpace, edge_space: anySpace.nullish() }).transform(({ node_space, edge_space }) =>
    planParts(edge_space ? [node_space, edge_space] : [node_space], ([nodes, edges]) => new Graph(nodes, edges)),
  ),
] as const;

/**
 * Creates a space from its description, which is checked as a whole before anything is built.
 * @param options.maxElements largest size of a flattened member. Default: none; set it for
 * descriptions from elsewhere.
 * @throws FORMAT_UNSUPPORTED for an invalid or too large description
 */
export function spaceFromJson(
  json: JsonValue,
  { maxElements = Infinity }: { readonly maxElements?: number } = {},
): Space {
  const plan = parsePlan(json);
  if (plan.count > MAX_SPACES)
    throw descriptionError(json, `it has ${plan.count} spaces, at most ${MAX_SPACES} are allowed`);
  if (plan.elements > maxElements)
    throw descriptionError(json, `its members have ${plan.elements} elements, at most ${maxElements} are allowed`);
  try {
    return plan.build();
  } catch (error) {
    if (error instanceof LlamaGymError) throw descriptionError(json, error.message);
    throw error;
  }
}

function parsePlan(json: JsonValue): SpacePlan {
  if (isNestedDeeper(json, MAX_DEPTH))
    throw new LlamaGymError("FORMAT_UNSUPPORTED", `A space's description is nested in more than ${MAX_DEPTH} levels.`);
  const parsed = anySpace.safeParse(json);
  if (parsed.success) return parsed.data;
  const { path, code, message } = parsed.error.issues[0];
  const location = path.length === 0 ? "" : `${path.join(".")}: `;
  const types = SPACE_SCHEMAS.map((schema) => schema.in.shape.type.value).join(", ");
  const isTypeWrong = code === "invalid_union" || path.at(-1) === "type" || path.length === 0;
  throw descriptionError(
    json,
    isTypeWrong ? `${location}expected an object with a type of ${types}` : location + message,
  );
}

function descriptionError(json: JsonValue, problem: string): LlamaGymError {
  return new LlamaGymError(
    "FORMAT_UNSUPPORTED",
    `${formatValue(json)} describes no space: ${problem.slice(0, 500).replace(/\.$/, "")}.`,
  );
}
