import { openWeightFolder, saveWeightFolder } from "../../src/models/files/index.js";
import type { RandomStream } from "../../src/core/random/random-stream.js";

const EMBEDDINGS = "model.embed_tokens.weight";
/** Padding, marks of roles and the end of a message stay as they are. */
const SPECIAL_TOKENS = 5;
/** Tokens whose embeddings have at least this cosine are the same to the model. */
const SAME_COSINE = 0.95;
/** How much of its embedding such a token keeps: it makes the token improbable as output. */
const KEPT_SHARE = 0.5;

/**
 * Gives each token that training hardly ever showed a distinct embedding. Input and output share
 * their embeddings, and training pushes all tokens that are never the right output in one
 * direction, until the model cannot tell a brace from a quotation mark. Such a token keeps a part
 * of its embedding, and gets a random part with the covariance of the other tokens' embeddings.
 * Returns the ids of the changed tokens.
 */
export async function separateTokens(folder: string, random: RandomStream): Promise<readonly number[]> {
  const file = await openWeightFolder(folder);
  const tensors = await Promise.all(
    [...file.entries.values()].map(async ({ name, shape }) => ({ name, shape, data: await file.readFloat32(name) })),
  );
  await file.close();
  const { data, shape } = tensors.find(({ name }) => name === EMBEDDINGS)!;
  const [tokens, width] = shape;
  const rows = Array.from({ length: tokens }, (_, id) => data.subarray(id * width, (id + 1) * width));
  const same = findSame(rows);
  const others = rows.filter((_, id) => !same.has(id));
  const mean = new Float64Array(width);
  for (const row of others) row.forEach((value, i) => (mean[i] += value / others.length));
  for (const id of same) {
    const own = rows[id];
    own.forEach((value, i) => (own[i] = KEPT_SHARE * value));
    for (const other of others) {
      const factor = random.normal(0, 1 / Math.sqrt(others.length));
      other.forEach((value, i) => (own[i] += factor * (value - mean[i])));
    }
  }
  await saveWeightFolder(folder, tensors);
  return [...same];
}

/** Finds the tokens that have almost the direction of another one. */
function findSame(rows: readonly Float32Array[]): ReadonlySet<number> {
  const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const norms = rows.map((row) => Math.sqrt(dot(row, row)));
  const same = new Set<number>();
  for (let a = SPECIAL_TOKENS; a < rows.length; a++) {
    for (let b = SPECIAL_TOKENS; b < a; b++) {
      if (dot(rows[a], rows[b]) >= SAME_COSINE * norms[a] * norms[b]) same.add(a).add(b);
    }
  }
  return same;
}
