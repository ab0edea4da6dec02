import { fs } from "#platform";
import { z } from "zod";
import { LlamaGymError } from "../../core/errors.js";
import { addAllChecksums, verifyAllChecksums } from "../../core/files/checksums.js";
import { readJson, writeJson } from "../../core/files/json-file.js";
import { removeFolder } from "../../core/files/remove-folder.js";
import { replaceFolder } from "../../core/files/write-file-atomic.js";
import type { Agent } from "../agent/agent.js";

const PREFIX = "best-";
const EVALUATION_FILE = "evaluation.json";

const bestEvaluation = z.object({ updates: z.int().min(0), meanReturn: z.number() });

/** An evaluation of the trained parameters after an update. */
export interface BestEvaluation {
  readonly updates: number;
  readonly meanReturn: number;
}

/**
 * The trained parameters with the best evaluation of a run, in a folder next to its checkpoints.
 */
export class BestModel {
  constructor(
    private readonly agent: Agent,
    private readonly dir: string,
  ) {}

  /**
   * Saves the trained parameters unless an earlier evaluation was as good. @throws
   * FILE_WRITE_FAILED
   */
  async saveIfBetter(evaluation: BestEvaluation): Promise<void> {
    const best = await this.find();
    if (best !== undefined && best.meanReturn >= evaluation.meanReturn) return;
    const folder = fs.join(this.dir, PREFIX + String(evaluation.updates).padStart(6, "0"));
    await replaceFolder(folder, async (partialFolder) => {
      await this.agent.save(partialFolder);
      await writeJson(fs.join(partialFolder, EVALUATION_FILE), { ...evaluation });
      await addAllChecksums(partialFolder);
    });
    if (best !== undefined) await removeFolder(best.folder);
  }

  /**
   * Loads the saved parameters and returns their evaluation; undefined if there is none. @throws
   * FILE_CORRUPT
   */
  async load(): Promise<BestEvaluation | undefined> {
    const best = await this.find();
    if (best === undefined) return undefined;
    await verifyAllChecksums(best.folder);
    await this.agent.load(best.folder);
    return { updates: best.updates, meanReturn: best.meanReturn };
  }

  /** Finds the best evaluation; a process that was killed may have left two. */
  private async find(): Promise<(BestEvaluation & { readonly folder: string }) | undefined> {
    const names = await fs.list(this.dir).catch((): string[] => []);
    const found = names
      .filter((name) => new RegExp(`^${PREFIX}\\d+$`).test(name))
      .map((name) => fs.join(this.dir, name));
    const evaluations = await Promise.all(
      found.map(async (folder) => {
        const path = fs.join(folder, EVALUATION_FILE);
        const { data } = bestEvaluation.safeParse(await readJson(path));
        if (data !== undefined) return { folder, ...data };
        throw new LlamaGymError(
          "FILE_CORRUPT",
          `${path} is damaged: it has no evaluation. Remove ${folder} to train on.`,
        );
      }),
    );
    return evaluations.sort((a, b) => b.meanReturn - a.meanReturn || a.updates - b.updates)[0];
  }
}
