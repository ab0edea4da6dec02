import { readFile } from "node:fs/promises";
import { UsageError } from "./usage-error.js";

/** Characters of a rubric: each request to the judge has it. */
const MAX_RUBRIC_LENGTH = 65_536;

/** Returns the setting `judgeRubric`, with the text of a rubric that names a file. */
export async function readRubric(given: unknown): Promise<{ readonly judgeRubric?: string }> {
  if (typeof given !== "string") return {};
  const judgeRubric = (await readTextFile(given)) ?? given;
  if (judgeRubric.length <= MAX_RUBRIC_LENGTH) return { judgeRubric };
  throw new UsageError(`The rubric has ${judgeRubric.length} characters, at most ${MAX_RUBRIC_LENGTH} are allowed.`);
}

/** Returns the text of a file; undefined for other texts. */
async function readTextFile(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (/^\S+\.(?:md|txt)$/.test(path))
      throw new UsageError(`The rubric ${path} cannot be read: ${(error as Error).message}`);
    return undefined;
  }
}
