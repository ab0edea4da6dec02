import { Box } from "./box.js";
import { CompositeSpace, Tuple } from "./composite.js";
import { Discrete } from "./discrete.js";
import { MultiBinary } from "./multi-binary.js";
import { MultiDiscrete } from "./multi-discrete.js";
import { Space } from "./space.js";

/**
 * Returns the space of `count` values, which samples like Gymnasium's `batch_space`: arrays get a
 * leading axis, integers become a MultiDiscrete, and spaces without an array form become a Tuple of
 * copies.
 */
export function batchSpace(space: Space, count: number): Space {
  const batched = tryBatchSpace(space, count);
  if (batched === undefined) return createTupleOfCopies(space, count);
  batched.copyStream(space);
  return batched;
}

function tryBatchSpace(space: Space, count: number): Space | undefined {
  const repeat = (values: ArrayLike<number>) => Array.from({ length: count }, () => Array.from(values)).flat();
  if (space instanceof Box) {
    const { low, high, shape, dtype } = space as Box<"float64">;
    return new Box(repeat(low), repeat(high), { shape: [count, ...shape], dtype });
  }
  if (space instanceof Discrete) return new MultiDiscrete(repeat([space.n]), { start: repeat([space.start]) });
  if (space instanceof MultiDiscrete) {
    const { start, nvec, shape } = space;
    const last = Array.from(start, (first, i) => first + nvec[i] - 1);
    return new Box(repeat(start), repeat(last), { shape: [count, ...shape], dtype: "int64" });
  }
  if (space instanceof MultiBinary) return new Box(0, 1, { shape: [count, ...space.shape], dtype: "int8" });
  if (space instanceof CompositeSpace) return space.withParts(space.parts.map((part) => batchSpace(part, count)));
  return undefined;
}

function createTupleOfCopies(space: Space, count: number): Space {
  const seeder = new Discrete(1e8);
  seeder.copyStream(space);
  const seeds = Array.from({ length: count }, () => seeder.sample());
  const batched = new Tuple(seeds.map(() => cloneSpace(space)));
  batched.seed(seeds);
  return batched;
}

/** Clones a space, with separate random streams. */
export function cloneSpace<T>(space: Space<T>): Space<T> {
  const clone = Object.create(Object.getPrototypeOf(space) as object) as Space<T>;
  for (const [name, field] of Object.entries(space)) Object.assign(clone, { [name]: cloneField(field) });
  clone.copyStream(space);
  return clone;
}

function cloneField(field: unknown): unknown {
  if (field instanceof Space) return cloneSpace(field);
  return Array.isArray(field) ? field.map(cloneField) : field;
}

/** Splits a value of `batchSpace(space, count)` into single values. */
export function unbatch(space: Space, batched: unknown, count: number): unknown[] {
  if (space instanceof CompositeSpace) {
    const columns = space.split(batched).map((column, i) => unbatch(space.parts[i], column, count));
    return Array.from({ length: count }, (_, i) => space.join(columns.map((column) => column[i])));
  }
  const slice = (size: number) => {
    const all = Array.from(batched as ArrayLike<number>);
    return Array.from({ length: count }, (_, i) => all.slice(i * size, (i + 1) * size));
  };
  if (space instanceof Discrete) return slice(1).map(([value]) => value);
  if (space instanceof MultiDiscrete) return slice(space.nvec.length).map((values) => Int32Array.from(values));
  if (space instanceof Box || space instanceof MultiBinary)
    return slice(space.flatSize).map((values) => space.unflatten(values));
  return Array.from(batched as readonly unknown[]);
}

/**
 * Joins single values into a value of `batchSpace(space, values.length)`; the inverse of `unbatch`.
 */
export function batchValues(space: Space, values: readonly unknown[]): unknown {
  if (space instanceof CompositeSpace) {
    const rows = values.map((value) => space.split(value));
    return space.join(
      space.parts.map((part, i) =>
        batchValues(
          part,
          rows.map((row) => row[i]),
        ),
      ),
    );
  }
  const concatenate = () => (values as readonly ArrayLike<number>[]).flatMap((value) => Array.from(value));
  if (space instanceof Discrete) return Int32Array.from(values as readonly number[]);
  if (space instanceof MultiBinary) return Int8Array.from(concatenate());
  if (space instanceof MultiDiscrete) return Float64Array.from(concatenate());
  return space instanceof Box ? space.array(concatenate()) : [...values];
}
