import { parseArgs } from "node:util";
import { ALGORITHM_NAMES } from "../../../rl/algorithms/index.js";
import { isAlgorithmPath, isBuiltInAlgorithm, loadAlgorithm } from "../../runs/load-algorithm.js";
import { UsageError } from "./usage-error.js";

/** Arguments that name files with settings. */
export interface FileArgs {
  readonly config?: string;
  readonly resume?: string;
}

/**
 * Loads the algorithm given as --algorithm, or else the one that `readSaved` reads from a file of
 * settings; returns its name.
 * @throws UsageError for an unknown name.
 */
export async function loadArgAlgorithm(
  args: readonly string[],
  readSaved: (files: FileArgs) => Promise<unknown>,
  isOtherName: (name: string) => boolean = () => false,
): Promise<string | undefined> {
  const { values } = parseArgs({
    args: [...args],
    strict: false,
    options: { algorithm: { type: "string" }, config: { type: "string", short: "c" }, resume: { type: "string" } },
  });
  const [name, config, resume] = [values.algorithm, values.config, values.resume].map((value) =>
    typeof value === "string" ? value : undefined,
  );
  const algorithm = name ?? (await readSaved({ config, resume }));
  if (typeof algorithm !== "string") return undefined;
  if (isOtherName(algorithm)) return algorithm;
  if (!isBuiltInAlgorithm(algorithm) && !isAlgorithmPath(algorithm))
    throw new UsageError(
      `--algorithm must be one of ${ALGORITHM_NAMES.join(", ")} or a JavaScript or TypeScript file that exports an algorithm, got ${algorithm}.`,
    );
  return loadAlgorithm(algorithm);
}
